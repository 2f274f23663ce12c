"""The trainings of `nli-study compare`: what the arms of somebody's corpus are made of, and what their models answer.

    work = Work(request, corpus, test, "held_out.csv", {"mine": pairs}, Plan(seeds=5))
    work.check_size(PLANNED)                 # an error where the test set can show nothing, before any training
    right, sets, whole, absent, kept = work.everything()

All trainings have one recipe, as in the study's own comparison at equal budgets, and are runs of the store.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.compare import BASE
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.evaluate import correct_predictions
from nli_lib.measure.consensus import prunable
from nli_lib.report import comparison as numbers
from nli_lib.select.arms import (
    ARM,
    CANDIDATES,
    Arm,
    Pool,
    TrainingSet,
    added_pairs,
    budget_of,
    candidates_of,
    choices,
    training_sets,
    why_absent,
)
from nli_lib.select.selection import folds as draw_folds
from nli_lib.spec import RunSpec
from nli_lib.stats import Estimate, clustered_share
from nli_lib.store import StoreError
from nli_lib.study.dial import read_scale
from nli_lib.study.manifest import corpus_file
from nli_lib.study.recipes import run_spec
from nli_lib.study.schedule import Request

ARMS = ("base", "random more", "z-filter", "consensus pruning", "ambiguous third", "AUM", "easy", "hard")
WHOLE = "it keeps every pair, in all trainings"


class CompareError(UserError, RuntimeError):
    """A comparison cannot be made, or is not worth its trainings; the message says why and what it would take."""


@dataclass(frozen=True)
class Plan:
    """How a comparison is made. budget: rows of every training set, None: a third of the pairs; share: of them, how
    many are added or swapped in; seeds: trainings of each arm; folds: of cross-scoring; worth: the smallest difference
    of accuracies that is worth knowing of; anyway: go on where it would not be found; keep: the weights of the models;
    changes: fields of every `RunSpec`, such as model and epochs."""

    budget: int | None = None
    share: float = 0.25
    seeds: int = 5
    folds: int = 5
    worth: float = 0.1
    anyway: bool = False
    keep: bool = False
    changes: Mapping[str, object] = field(default_factory=dict)


class Work:
    """One comparison: its corpus, test set and additions, and the trainings that it takes."""

    def __init__(
        self, request: Request, corpus: Corpus, test: Corpus, title: str, additions: Mapping[str, Corpus], plan: Plan
    ):
        self.request, self.corpus, self.test, self.title, self.plan = request, corpus, test, title, plan
        self.additions = dict(additions)
        self.arms = numbers.named(ARMS, list(additions))
        self.place = {"corpus": request.corpus, "split": corpus.split, "limit": None}
        if content := corpus_file(request.corpus, request.data_dir):
            self.place["content"] = content
        self.budget = plan.budget or budget_of(corpus)
        self._begun, self._rows = time.monotonic(), 0
        self._check_classes()
        for arm in self.arms.values():
            whole = Pool(self.corpus, self.additions)
            if arm.source in self.additions and (why := why_absent(arm, whole, added_pairs(self.budget, plan.share))):
                raise CompareError(f"--added {arm.source}: {why}.")
        self.sets_of(self.candidates(0), ["base"])  # an error where the corpus is too small for the budget

    @property
    def family(self) -> int:
        return len(self.arms) - 1

    def _check_classes(self) -> None:
        try:
            self.right_of(np.zeros((len(self.test), len(self.corpus.classes))))
        except ValueError:
            raise CompareError(
                f"{self.title} has the labels {', '.join(self.test.classes)}, and the corpus "
                f"{', '.join(self.corpus.classes)}: a model of one cannot be judged by the other."
            ) from None

    def right_of(self, logits: NDArray) -> NDArray[np.bool_]:
        """(N,) which of the test pairs are right."""
        if self.test.classes == self.corpus.classes:
            return logits.argmax(axis=1) == self.test.labels
        return correct_predictions(logits, self.test.labels, self.test.classes)

    def check_size(self, noise: numbers.Noise) -> None:
        """Raise `CompareError` where a difference that is worth knowing of would not be found; say it with anyway."""
        plan = self.plan
        sizes = {"n": len(self.test), "trainings": plan.seeds, "family": self.family}
        if said := numbers.too_small(noise, **sizes, worth=plan.worth, title=self.title):
            if not plan.anyway:
                raise CompareError(f"{said} Or name a larger difference with --worth, or go on with --anyway.")
            print(said, flush=True)
        found = 100 * numbers.smallest(noise, **sizes)
        said = "unknown, since nothing varies" if np.isnan(found) else f"{found:.1f} points"
        print(f"The smallest difference that would be found: {said}", flush=True)

    def spec(self, corpus: Corpus, seed: int, **fields: object) -> RunSpec:
        recipe = {**self.place, "subset": corpus.digest[:12], "seed": seed, **fields, **self.plan.changes}
        return run_spec("wanli", read_scale(self.request.scale), **recipe)

    def candidates(self, seed: int) -> Corpus:
        size = None if self.plan.budget is None else CANDIDATES * self.plan.budget
        additions = {name: each for name, each in self.additions.items() if each.classes == self.corpus.classes}
        return candidates_of(self.corpus, additions, size=size, seed=seed)

    def sets_of(self, pool: Corpus | Pool, arms: Sequence[str], seed: int = 0) -> tuple[dict, dict[str, str]]:
        pool = pool if isinstance(pool, Pool) else Pool(pool)
        wanted = [self.arms[name] for name in arms]
        return training_sets(pool, budget=self.budget, share=self.plan.share, arms=wanted, seed=seed)

    def answers(self, spec: RunSpec, corpus: Corpus) -> NDArray[np.bool_]:
        """Which test pairs a model is right about that is trained on a corpus, (N,); its weights are deleted."""
        from nli_lib.learn.fit import fit
        from nli_lib.learn.predict import predict

        run = fit(spec, corpus)
        try:
            logits = predict(run, self.test)
        except StoreError:
            if any(run.model.glob("*.safetensors")):
                raise
            shutil.rmtree(run.folder)  # it was trained for another test file, and its weights are gone
            logits = predict(fit(spec, corpus), self.test)
        self._free([spec])
        return self.right_of(logits)

    def _free(self, specs: Sequence[RunSpec]) -> None:
        if not self.plan.keep:
            for spec in specs:
                for path in (spec.folder / "model").glob("*.safetensors"):
                    path.unlink()

    def pool(self, candidates: Corpus, seed: int) -> Pool:
        """What the arms of one training choose from, and why some cannot: dynamics, levels, cross scores."""
        from nli_lib.learn.cross import cross_score, fold_specs
        from nli_lib.learn.fit import fit

        absent, cross = {}, None
        views = {view: self.spec(candidates, seed, view=view) for view in ("pair", "hypothesis")}
        logits = {view: fit(spec, candidates).logits for view, spec in views.items()}
        if prunable(candidates.classes):  # else the scores would serve no arm
            try:
                fold = draw_folds(candidates.labels, groups=candidates.premise, count=self.plan.folds, seed=seed)
                spec = self.spec(candidates, seed, capture="train")
                cross = cross_score(spec, candidates, fold)
                # one at a time: in a chain the later ones would start from the model before
                self._free([each for at in range(self.plan.folds) for each in fold_specs(spec, fold, [at])])
            except ValueError as error:
                absent["cross scores"] = str(error)
        self._free([views["hypothesis"]])  # the model of the pair is judged as well
        made, others = choices(candidates, **logits, cross=cross, seed=seed)
        return Pool(candidates, self.additions, made, others | absent)

    def everything(self) -> tuple[dict, dict, dict, dict[str, str], pd.DataFrame]:
        """Train all of it: answers by (arm, which), the sets of the first training, answers of models of all
        candidates, arms that are absent with the reason, and which pairs each arm kept."""
        seeds = range(self.plan.seeds)
        candidates = [self.candidates(seed) for seed in seeds]
        bases = [self.sets_of(each, ["base"], seed)[0] for seed, each in zip(seeds, candidates, strict=True)]
        print(f"The base and its twin, {self.plan.seeds} trainings of {self.budget:,} rows each", flush=True)
        right = _joined([dict(self.trained(sets, seed)) for seed, sets in zip(seeds, bases, strict=True)], self.title)
        self.check_base(right)
        pools = []
        for seed, each in zip(seeds, candidates, strict=True):
            print(f"Scores of the {len(each):,} candidates, training {seed + 1} of {len(seeds)}", flush=True)
            pools.append(self.pool(each, seed))
        made = [self.sets_of(pool, list(self.arms), seed) for seed, pool in zip(seeds, pools, strict=True)]
        absent = {name: reason for _, reasons in made for name, reason in reasons.items()}
        chosen = [name for name in self.arms if name not in absent and name in pools[0].choices]
        absent |= {name: WHOLE for name in chosen if all(pool.choices[name].keep.all() for pool in pools)}
        sets = [{key: each for key, each in found.items() if key[0] not in absent} for found, _ in made]
        self._begun, self._rows = time.monotonic(), 0
        total = self.budget * sum(map(len, sets))
        answers = [dict(self.trained(each, seed, total)) for seed, each in zip(seeds, sets, strict=True)]
        whole = [self.answers(self.spec(each, seed), each) for seed, each in zip(seeds, candidates, strict=True)]
        return _joined(answers, self.title), sets[0], {self.title: np.stack(whole)}, absent, _kept(pools, self.arms)

    def trained(
        self, sets: Mapping[tuple[str, str], TrainingSet], seed: int, total: int = 0
    ) -> Iterator[tuple[tuple[str, str], NDArray[np.bool_]]]:
        """The answers of a model of each training set. Equal sets are one training."""
        for (name, which), made in sets.items():
            right = self.answers(self.spec(made.corpus, seed, capture="train"), made.corpus)
            self._rows += len(made.corpus)
            left = (time.monotonic() - self._begun) / self._rows * (total - self._rows) / 60
            said = f"{name}, {which}, training {seed + 1}: accuracy {right.mean():.4f}"
            print(f"{said}; about {left:.0f} min left" if total else said, flush=True)
            yield (name, which), right

    def check_base(self, right: Mapping) -> None:
        """Raise `CompareError` where the base has learnt nothing, or its trainings say that nothing would be found."""
        accuracy, most = float(right[BASE, ARM][self.title].mean()), self.majority.value
        if accuracy <= most:
            said = (
                f"Trained on {self.budget:,} pairs, the model predicts {accuracy:.1%} of {self.title}; always giving "
                f"the most frequent label would predict {most:.1%}. It has not learnt the task, and a comparison of "
                "such models compares noise."
            )
            if not self.plan.anyway:
                raise CompareError(f"{said} Add pairs, train longer (--epochs), or go on with --anyway.")
            print(said, flush=True)
        self.check_size(numbers.measured_noise(right, {self.title: self.test.premise}, self.title))

    @property
    def majority(self) -> Estimate:
        labels = self.test.labels
        return clustered_share(labels == np.bincount(labels).argmax(), self.test.premise)


def _joined(answers: Sequence[Mapping], title: str) -> dict[tuple[str, str], dict[str, NDArray[np.bool_]]]:
    """(arm, which) -> {title: (S, N)} from the answers of each training."""
    return {key: {title: np.stack([each[key] for each in answers])} for key in answers[0]}


def _kept(pools: Sequence[Pool], arms: Mapping[str, Arm]) -> pd.DataFrame:
    """Every candidate, and for each arm that chooses the share of the trainings in which it kept the pair."""
    tables = []
    for pool in pools:
        own = pool.candidates
        names = [name for name in arms if name in pool.choices]
        tables.append(
            own.table[["uid", "premise", "hypothesis"]].assign(
                gold=np.array(own.classes, dtype=object)[own.labels],
                **{f"kept by {name}": pool.choices[name].keep.astype(float) for name in names},
            )
        )
    keys = ["uid", "premise", "hypothesis", "gold"]
    return pd.concat(tables).groupby(keys, sort=False, as_index=False).mean().round(4)
