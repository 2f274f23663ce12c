"""Training sets of equal size, made from one corpus in all compared ways, and their trainings.

`Budget` is the basis of every such comparison, in chapter 61 (`Plan`) and in `nli-study compare`::

    sets, absent = budget.sets(seed)                     # (arm, `ARM` or `TWIN`) -> TrainingSet: `select.arms`
    training = budget.training(made, seed)               # its spec and rows; `.run()` trains it, or finds it
    right = budget.right(predict(training.run(), test), test)

The trainings of chapter 61 can be separate jobs: the notebook, two jobs at a time, a cluster and another machine make
the same parts, and none of them twice::

    plan = Plan(study)                          # in the notebook; its record names what was read
    wanted = plan.parts(tests)                  # name -> part: a training and its correct test pairs
    tables = study.parts(wanted)                # name -> table of one row
    Plan.from_scale("small").waits()            # name of a job -> jobs that it waits for; needs only the dial
    python -m nli_lib.study.budgets small --job train-0-z-filter        # called by the Snakefile

A part is identified by its training rows. If a trained model's scores choose them, it is identified by that model's
training data and recipe, and by the result of the same choice on made-up scores (`probe`): the scores need not exist,
and code that chooses other rows makes other parts. If pairs from another chapter are added, it is identified by their
digest in that chapter's record: they need not exist either.

Columns of a part's table
    seed, arm, which (`ARM` or `TWIN`), reason (why an arm could not be made; other columns are then missing)
    rows, updates, different, added, labels    as in `select.arms.TrainingSet`
    one column for each class                  rows with that label
    pool                                       pairs available from a source that the study wrote
    corpora                                    names of the corpora in the set, joined by ";"
    training seconds, scoring seconds          for the training, and for the models that score its candidates
    device                                     the device of the training
    right: <title>                             correct pairs of a test set, one bit per pair
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from nli_lib.corpora import sources, suites
from nli_lib.corpora.corpus import LABELS, SIDES, Corpus, CorpusError, check_enough, concat, overlap
from nli_lib.errors import UserError
from nli_lib.evaluate import correct_predictions
from nli_lib.measure.consensus import THRESHOLD, prunable
from nli_lib.select.arms import ARM, BY_NAME, BY_PEOPLE, GENERATED, PRODUCT, Pool, candidates_of, choices, training_sets
from nli_lib.select.selection import TWIN, augmentation, folds, sample
from nli_lib.store import RunSpec
from nli_lib.study import dial, standing
from nli_lib.study.parts import TRAIN, Part, Training, decided, file_of, gather, packed

if TYPE_CHECKING:
    from nli_lib.learn.fit import Run
    from nli_lib.select.arms import Arm, TrainingSet
    from nli_lib.study.notebook import Study


# ---------------------------------------------------------------- one budget


class Budget:
    """Training sets of one size, made from one corpus in all compared ways, and their trainings.

    A comparison defines the common settings of its trainings, `spec(corpus, seed, **fields)`, and the pairs to add or
    draw from with a seed: `additions(seed)`, by source.

    Attributes
    ----------
    arms
        name -> Arm; budget: rows of every set; share: the part of them that is added or swapped in
    candidates
        number of pairs of the corpus from which the arms of a seed choose, None: all
    folds
        number of folds for cross-scoring the candidates; jobs: number of these models trained at a time
    threshold
        threshold of consensus pruning
    """

    jobs: int | None = None
    threshold = THRESHOLD
    whole: Corpus  # the corpus from which candidates are drawn
    lacking: Mapping[str, str] = {}  # missing source of added pairs -> reason
    weights: tuple[float, float] = (1.0, 1.0)  # beta and gamma of the product of experts

    def __init__(self, arms: Mapping[str, Arm], *, budget: int, share: float, candidates: int | None, folds: int):
        self.arms, self.budget, self.share, self.folds = dict(arms), budget, share, folds
        self.extra, self._size = round(share * budget), candidates
        self._candidates: dict[int, Corpus] = {}

    def excluded(self) -> Iterable[Corpus]:
        """Corpora that no candidate may be part of: everything added with any seed."""
        return self.additions(0).values()

    def release(self, specs: Iterable[RunSpec]) -> None:
        """Called with models that are no longer needed, because their scores of the candidates are known."""

    def candidates(self, seed: int) -> Corpus:
        """The pairs of the corpus from which the arms of a seed choose."""
        if seed not in self._candidates:
            self._candidates[seed] = candidates_of(self.whole, self.excluded(), size=self._size, seed=seed)
        return self._candidates[seed]

    # ------------------------------------------------------------ models that score the candidates

    def scorers(self, arms: Iterable[str]) -> list[str]:
        """Names of the models that have to score the candidates for some arms."""
        needs = {self.arms[arm].needs for arm in arms}
        names = ["dynamics"] * bool(needs & {"dynamics", "levels"}) + ["hypothesis"] * ("levels" in needs)
        return names + [f"fold-{at}" for at in range(self.folds)] * ("cross scores" in needs)

    def _fold(self, seed: int) -> NDArray[np.int64]:
        candidates = self.candidates(seed)
        return folds(candidates.labels, groups=candidates.premise, count=self.folds, seed=seed)

    def scorer(self, name: str, seed: int) -> tuple[RunSpec, NDArray[np.bool_] | None]:
        """Spec of the model with that name, and a mask of its training candidates; None: all."""
        from nli_lib.learn.predict import fold_specs

        candidates = self.candidates(seed)
        if not name.startswith("fold-"):  # a model of the pair or of the hypothesis alone, with recorded epochs
            return self.spec(candidates, seed, view="pair" if name == "dynamics" else name), None
        at, fold = int(name.removeprefix("fold-")), self._fold(seed)
        # one at a time: in a chain, later ones would start from the model before
        return next(fold_specs(self.spec(candidates, seed, capture="train"), fold, [at])), fold != at

    def score(self, name: str, seed: int) -> Run:
        """The model with that name, trained if it is not in the store."""
        from nli_lib.learn.fit import fit

        spec, keep = self.scorer(name, seed)
        return fit(spec, self.candidates(seed), keep)

    def pool(self, seed: int, arms: Sequence[str] | None = None) -> Pool:
        """The material for the arms, with the scores that they need; trains the scoring models."""
        arms = list(self.arms if arms is None else arms)
        candidates, additions = self.candidates(seed), self.additions(seed)
        needs, names = {self.arms[arm].needs for arm in arms}, self.scorers(arms)
        recorded = {"pair": "dynamics", "hypothesis": "hypothesis"}
        given: dict[str, Any] = {key: self.score(name, seed).logits for key, name in recorded.items() if name in names}
        absent: dict[str, str] = {}
        if "cross scores" in needs and prunable(candidates.classes):  # otherwise no arm uses the scores
            try:
                fold = self._fold(seed)
            except ValueError as error:
                absent["cross scores"] = str(error)
            else:
                from nli_lib.learn.predict import cross_score

                spec = self.spec(candidates, seed, capture="train")
                given["cross"] = cross_score(spec, candidates, fold, jobs=self.jobs)
        used = [name for name in names if name == "hypothesis" or (name.startswith("fold-") and "cross" in given)]
        self.release(self.scorer(name, seed)[0] for name in used)
        if "generated" in needs:
            given["generated"] = additions.get(GENERATED)
        made, why = choices(candidates, **given, threshold=self.threshold, seed=seed) if needs - {""} else ({}, {})
        return Pool(candidates, additions, made, {**self.lacking, **why, **absent})

    # ------------------------------------------------------------ training sets

    def sets(self, seed: int, arms: Sequence[str] | None = None, pool: Pool | None = None) -> tuple[dict, dict]:
        """`select.arms.training_sets` of one training, by default for all arms; `pool`, if already made."""
        arms = list(self.arms if arms is None else arms)
        form = {"budget": self.budget, "share": self.share, "arms": [self.arms[arm] for arm in arms], "seed": seed}
        return training_sets(pool or self.pool(seed, arms), **form)

    def training(self, made: TrainingSet, seed: int) -> Training:
        """The training of one set, whether done or not."""
        if not made.objective.startswith(PRODUCT):  # nor its twin
            return Training(self.spec(made.corpus, seed, capture="train"), made.corpus)
        from nli_lib.learn.experts import ProductOfExperts

        objective = ProductOfExperts(*self.weights, reads="own" if made.objective == PRODUCT else "another")
        spec = self.spec(made.corpus, seed, capture="train", objective=objective.name)
        return Training(spec, made.corpus, objective=objective)

    def right(self, logits: NDArray, test: Corpus) -> NDArray[np.bool_]:
        """(N,) bool, True for correct pairs of a test set."""
        if test.classes == self.whole.classes != LABELS:
            return logits.argmax(axis=1) == test.labels
        return correct_predictions(logits, test.labels, test.classes)


# ---------------------------------------------------------------- chapter 61


NOTEBOOK = "61_equal_budgets"
# source of pairs that the study wrote -> chapter and export with them, and the chapter's table of their cost
OWN = {"our WANLI": ("13_filter_by_variability", "pairs", "12_overgenerate")}
OWN["our DISCO"] = ("41_perturb_and_filter", "pairs", "41_perturb_and_filter")
OWN[GENERATED] = ("24_three_datasets", "pool", "")
IN, STRESS = "in distribution", "Stress test"
RIGHT, TWINS = "right: ", ", twin"
SCORED = ("dynamics", "levels", "cross scores")  # needs of an arm that require trained models
PROBED = 240  # made-up pairs in `probe`
SHARE_HELD_OUT = 5  # one in so many pairs of a user's file is used for testing


class Plan(Budget):
    """The trainings of chapter 61, by the dial of its study; the study's record names what was read.

    Attributes
    ----------
    title, name, split
        title, name and split of the base corpus
    held_out
        for a user's file, the part for testing; None before `whole` is read, and for a published corpus
    """

    jobs = 1
    held_out: Corpus | None = None

    def __init__(self, study: Study):
        self.dial, self.exported, self.study, self._open = study.dial.budgets, study.exported, study.results_name, study
        if study.corpus_name == study.dial.corpus:
            self.title, self.name, self.split = self.dial.base
        else:
            self.title, self.name, self.split = study.title_of(), study.corpus_name, study.train_split
        self.weights, self.threshold = (self.dial.beta, self.dial.gamma), study.dial.consensus.threshold
        sizes = {name: getattr(self.dial, name) for name in ("budget", "share", "candidates", "folds")}
        arms = BY_NAME if self.dial.arms is None else {name: BY_NAME[name] for name in self.dial.arms}
        super().__init__(arms, **sizes)

    @classmethod
    def from_scale(cls, scale: str, corpus: str | None = None, data_dir: str | None = None) -> Plan:
        """Make the same plan for a job, without a notebook and its record."""
        from nli_lib.study.notebook import Study

        parameters = dial.check({"SCALE": scale, "CORPUS": corpus, "DATA_DIR": data_dir})
        with contextlib.redirect_stdout(sys.stderr):
            return cls(Study(NOTEBOOK, parameters, only=TRAIN))

    # ------------------------------------------------------------ sizes

    def trainings(self, arm: str) -> int:
        """Number of trainings of an arm and its twin: more for the most important arms, and the base has the largest
        number."""
        if asked := self._open.params["SEEDS"]:
            return asked
        matters = arm in self.dial.matter or arm == "base"
        return max(self.dial.trainings, self.dial.trainings_that_matter if matters else 0)

    def arms_of(self, seed: int, among: Iterable[str] | None = None) -> list[str]:
        """The arms that are trained with a seed."""
        return [arm for arm in (self.arms if among is None else among) if seed < self.trainings(arm)]

    # ------------------------------------------------------------ what the arms are made from

    @functools.cached_property
    def whole(self) -> Corpus:
        """The base corpus; for a user's file, the part that is not used for testing."""
        study = self._open
        form = dial.form_of(study.params) if study.own_file else {}
        corpus = sources.load(self.name, self.split, study.data_dir, None, **form)
        if not study.own_file:
            return corpus
        check_enough(corpus, SHARE_HELD_OUT, what="a part to test on")
        fold = folds(corpus.labels, groups=corpus.premise, count=SHARE_HELD_OUT)
        self.held_out = corpus[fold == 0]
        return corpus[fold != 0]

    @functools.cached_property
    def _sources(self) -> tuple[dict[str, Corpus], dict[str, suites.Counterfactuals], dict[str, str]]:
        """The possible additions by source: pairs, revisions with their originals, and the reasons for missing ones."""
        found, revised, absent, data_dir = {}, {}, {}, self._open.data_dir
        for name, places in {**self.dial.released, **self.dial.counterfactuals}.items():
            try:
                if name in self.dial.released:
                    found[name] = concat([sources.load(*place, data_dir) for place in places], name=places[0][0])
                else:
                    sets = [suites.load_pairs(*place, data_dir=data_dir, originals=self.extra) for place in places]
                    revised[name] = suites.join(sets, name=places[0][0])
            except CorpusError as error:
                absent[name] = suites.without_folder(error, data_dir)
        for name, (chapter, part, _) in OWN.items():
            try:
                written = own_pairs(name, self.exported(part, chapter))
                # pairs that a language model copied from the base are not new, and no reason to remove them from the
                # base
                found[name] = written[~overlap(written, self.whole)["pairs"].to_numpy()]
            except (UserError, OSError):
                absent[name] = f"{chapter} has left no pairs of this study; it has to be run before"
        return found, revised, absent

    def excluded(self) -> list[Corpus]:
        """Everything that can be added, complete."""
        found, revised, _ = self._sources
        return [*found.values(), *(part for each in revised.values() for part in (each.original, each.revised))]

    @property
    def lacking(self) -> dict[str, str]:
        """Missing sources of added pairs, with the reason."""
        return self._sources[2]

    def additions(self, seed: int) -> dict[str, Corpus]:
        """The additions with a seed: pools to draw from, and the number of revisions to add, each with its original."""
        found, revised, _ = self._sources
        return {**found, **{name: _families(name, each, self.extra, seed) for name, each in revised.items()}}

    # ------------------------------------------------------------ trainings

    def spec(self, corpus: Corpus, seed: int, **fields: object) -> RunSpec:
        place = {"corpus": corpus.name, "split": corpus.split, "limit": None, "subset": corpus.digest[:12]}
        return self._open.spec("wanli", **{**place, "seed": seed, "epochs": self.dial.epochs, **fields})

    def parts(self, tests: Mapping[str, Corpus], arms: Sequence[str] | None = None) -> dict[str, Part]:
        """The trainings of every seed and of some arms, by default all with an available source: name -> part."""
        found = {}
        for seed in range(self.trainings("base")):
            asked = self.arms_of(seed, arms)
            here = [arm for arm in asked if not self.why_not(arm)]
            by_rows = [arm for arm in here if self.arms[arm].needs not in SCORED and self.arms[arm].source not in OWN]
            sets, absent = self.sets(seed, by_rows)
            for arm in asked:
                if arm not in here and self.arms[arm].source not in self.exports:
                    continue
                for which in (ARM,) if arm in absent else (ARM, TWIN):
                    name = f"{arm}{TWINS * (which == TWIN)}, training {seed}"
                    decides = self.decides(seed, arm, which, sets.get((arm, which)), tests)
                    part = Part(NOTEBOOK, decides, functools.partial(self._row, seed, arm, which, tests))
                    # pairs of another chapter need not exist if the part does
                    if arm in here or file_of(name, part, self.study).exists():
                        found[name] = part
        return found

    def why_not(self, arm: str) -> str:
        """The reason why the source of an arm is missing, "" if it is not."""
        source, (found, revised, lacking) = self.arms[arm].source, self._sources
        return "" if source in ("", *found, *revised) else lacking.get(source, f"no pairs of {source} are at hand")

    @functools.cached_property
    def exports(self) -> dict[str, str]:
        """Digests of the pairs that other chapters wrote, by source, from their records."""
        found = {}
        for source, (chapter, part, _) in OWN.items():
            found[source] = standing.read(chapter, self.study).get("exports", {}).get(f"{chapter}.{part}.parquet")
        return {source: digest for source, digest in found.items() if digest}

    def decides(self, seed: int, arm: str, which: str, made: TrainingSet | None, tests: Mapping) -> dict[str, object]:
        """The content that identifies a training; `made`: its set, if neither a model nor a chapter chose the rows."""
        tested = {title: each.digest for title, each in tests.items()}
        if made is not None:
            return decided(self.training(made, seed).spec, made.corpus, tested=tested)
        more = {"arm": arm, "which": which, "tested": tested, "chosen": probe().get(f"{arm}, {which}", "")}
        more |= {"budget": self.budget, "share": self.share, "folds": self.folds, "gap": self.threshold}
        if source := self.arms[arm].source:
            more["added"] = self.exports.get(source) or self.additions(seed)[source].digest
        return decided(self.spec(self.candidates(seed), seed), self.candidates(seed), **more)

    def _row(self, seed: int, arm: str, which: str, tests: Mapping[str, Corpus]) -> pd.DataFrame:
        from nli_lib.learn.predict import predict

        sets, absent = self.sets(seed, [arm])
        if arm in absent:
            return pd.DataFrame([{"arm": arm, "which": which, "seed": seed, "reason": absent[arm]}])
        made, source = sets[arm, which], self.arms[arm].source
        training = self.training(made, seed)
        run = training.run()
        right = {title: self.right(predict(run, test), test) for title, test in tests.items()}
        about = run.store.read_json("about.json")
        scored = [self.score(name, seed).store.read_json("about.json")["seconds"] for name in self.scorers([arm])]
        row = {"arm": arm, "which": which, "seed": seed, "reason": "", "rows": len(made.corpus)}
        row["updates"] = training.spec.epochs * -(-len(made.corpus) // training.spec.batch_size)
        row |= {"different": made.distinct, "added": made.added, "labels": made.labels, **made.corpus.counts}
        row["corpora"] = ";".join(sorted(set(made.corpus.table["corpus"])))
        row["pool"] = len(self._sources[0][source]) if source in OWN else 0
        row |= {"training seconds": float(about["seconds"]), "scoring seconds": float(sum(scored))}
        row |= {"device": about["device"], **{RIGHT + title: packed(each) for title, each in right.items()}}
        table = pd.DataFrame([row])
        table.attrs = {"seconds": about["seconds"] + row["scoring seconds"], "device": about["device"]}
        return table

    # ------------------------------------------------------------ jobs

    def waits(self) -> dict[str, list[str]]:
        """Every training of the chapter by the name of its job, with the jobs that it waits for.

        "score-<seed>-dynamics", "score-<seed>-hypothesis", "score-<seed>-fold-<k>", "train-<seed>-<arm>" and, of its
        twin, "train-<seed>-<arm>-twin". A job finds out itself whether the corpora allow its arm; if not, it says so
        and ends.
        """
        found: dict[str, list[str]] = {}
        for seed in range(max(map(self.trainings, self.arms), default=0)):
            for arm in self.arms_of(seed):
                before = [f"score-{seed}-{name}" for name in self.scorers([arm])]
                found |= {name: [] for name in before}
                # the twin of the arm that adds other candidates is the base
                ends = ("",) if arm == "random more" and "base" in self.arms else ("", "-twin")
                found |= {f"train-{seed}-{_slug(arm)}{end}": before for end in ends}
        return found

    # ------------------------------------------------------------ test sets

    def tests(self) -> tuple[dict[str, dict[str, Corpus]], pd.DataFrame, dict[str, str]]:
        """Test sets by group, a table of the pairs removed from them, and missing ones, title -> reason.

        Pairs that are also in the base corpus or in possible additions are removed. Columns of the table: group, title,
        pairs (used), taken out, whole (rows of the set before sampling: its weight).
        """
        base, near = self.whole, self.dial.in_distribution.get(self.name, {})
        found, missing = {}, {}
        for group, each in {IN: near, **self.dial.groups}.items():
            wanted = {title: place for title, place in each.items() if group == IN or title not in near}
            found[group], lacking = suites.load_each(wanted, self._open.data_dir)
            missing |= lacking
            if group == IN and self.held_out:
                found[group][f"{self.title}, held out"] = self.held_out
            if self.dial.stress and group == self.dial.stress[0]:
                _, name, split, size = self.dial.stress
                few, _ = suites.load_each({STRESS: (name, split)}, self._open.data_dir, size)
                wordnet = suites.dictionaries()[0].get("wordnet")
                made = [suites.stress(kind, part, wordnet=wordnet) for part in few.values() for kind in suites.KINDS
                        if wordnet or kind != "antonym"]  # fmt: skip
                found[group] |= {STRESS: concat(made, name=name, split="stress")} if made else {}
        if not (every := [test for each in found.values() for test in each.values()]):
            return found, pd.DataFrame(columns=["group", "title", "pairs", "taken out", "whole"]), missing
        seen = overlap(_texts(every), _texts([base, *self.excluded()]))["pairs"].to_numpy()
        seen = iter(np.split(seen, np.cumsum([len(test) for test in every])[:-1]))
        rows, left = [], {}
        for group, each in found.items():
            left[group], room = {}, (self.dial.tested_limit or 0) // max(len(each), 1)
            for (title, test), gone in zip(each.items(), seen, strict=False):
                part = sample(test[~gone], min(room or len(test), int((~gone).sum())))
                left[group] |= {title: part} if len(part) else {}
                rows.append((group, title, len(part), int(gone.sum()), len(test)))
        return left, pd.DataFrame(rows, columns=["group", "title", "pairs", "taken out", "whole"]), missing

    @functools.cached_property
    def tested(self) -> dict[str, Corpus]:
        """The test sets of all groups by title."""
        return {title: test for each in self.tests()[0].values() for title, test in each.items()}


def own_pairs(name: str, table: pd.DataFrame) -> Corpus:
    """Make a corpus of pairs that the study wrote: those that the chapter's filter kept, with the requested labels."""
    if name == GENERATED:  # pairs of which the teacher is sure, from the generator's first seed
        first = table["seed"] == table["seed"].min()
        kept = table[first & (table["source"] == GENERATED) & table["D0 + G*"]]
    else:
        kept = table[table["kept"].astype(bool)]
    rows = kept[["uid", "premise", "hypothesis", "label"]].astype({"label": int}).drop_duplicates(SIDES)
    named = {"uid": [f"{name}-{at}" for at in range(len(rows))], "corpus": name, "split": "train"}
    return Corpus(rows.assign(**named), name, "train")


def _families(name: str, pairs: suites.Counterfactuals, size: int, seed: int) -> Corpus:
    """Draw up to ``size`` different rows of random originals and their revisions; unless people made the revisions, the
    table marks the originals, because people gave their labels."""
    made = augmentation(pairs, len(np.unique(pairs.origin)) + len(pairs), seed=seed)
    made = made[~made.table.duplicated(SIDES).to_numpy()][:size]
    if any(arm.people for arm in BY_NAME.values() if arm.source == name):
        return made
    keys, known = (pd.MultiIndex.from_frame(each.table[SIDES]) for each in (made, pairs.original))
    return Corpus(made.table.assign(**{BY_PEOPLE: keys.isin(known)}), made.name, made.split, made.classes)


def _texts(corpora: Sequence[Corpus]) -> Corpus:
    """The texts of corpora with any classes as one corpus, to look for the same pairs in another."""
    table = pd.concat([each.table[SIDES] for each in corpora], ignore_index=True)
    return Corpus(table.assign(uid=table.index.astype(str), label=0, corpus="", split=""), "texts", "")


@functools.cache
def probe() -> dict[str, str]:
    """Digests, by "<arm>, <which>", of the rows that the arms with scores choose from made-up pairs and scores."""
    at = np.arange(PROBED)
    label, kind = at % 3, at // 3 % 3  # kinds: learnt from the hypothesis alone, learnt at the end, never learnt
    texts = {side: [f"{side} {each}" for each in at] for side in SIDES}
    rows = {"uid": at.astype(str), **texts, "label": label, "corpus": "made up", "split": "train"}
    pairs = Corpus(pd.DataFrame(rows), "made up", "train")
    small = 0.1 * np.random.default_rng(0).permutation(PROBED)[:, None] / PROBED
    early, late = ((3 + small) * np.eye(3)[each] for each in (label, (label + 1) % 3))
    curves = [np.choose(kind[:, None], [early, late if epoch < 2 else early, late]) for epoch in range(5)]
    alone = np.where((kind == 0)[:, None], early, late)
    made, absent = choices(pairs, pair=np.stack(curves), hypothesis=np.stack([alone] * 4), cross=curves[-1])
    arms = [name for name, arm in BY_NAME.items() if arm.needs in SCORED]
    sets, _ = training_sets(Pool(pairs, choices=made, absent=absent), budget=PROBED // 3, arms=arms)
    return {f"{arm}, {which}": each.corpus.digest[:12] for (arm, which), each in sets.items()}


# ---------------------------------------------------------------- jobs


def run_job(plan: Plan, name: str) -> str:
    """Do one job of `Plan.waits` and describe the result in one line; a trained arm's predictions for the test sets are
    part of its job. Raises `StudyError` for an unknown name."""
    if name not in plan.waits():
        raise standing.StudyError(f'there is no job "{name}": without --job, all are listed.')
    kind, seed, what = name.split("-", 2)
    if kind == "score":
        return plan.score(what, int(seed)).spec.id
    arm = {_slug(arm): arm for arm in plan.arms}[what.removesuffix("-twin")]
    if not (why := plan.why_not(arm)):
        part = f"{arm}{TWINS * what.endswith('-twin')}, training {seed}"
        made = gather({part: plan.parts(plan.tested, [arm])[part]}, plan.study)[part]
        why = made["reason"][0]
    return f"nothing to train: {why}" if why else f"{made['training seconds'][0]:.0f} s"


def _slug(arm: str) -> str:
    return arm.lower().replace(" ", "-")


def main(scale: str, job: str | None = None, corpus: str | None = None, data_dir: str | None = None) -> None:
    """Run one training of chapter 61 at a scale, by the name of its job, or without --job list all; --corpus and
    --data-dir as for `nli-study run`."""
    try:
        plan = Plan.from_scale(scale, corpus, data_dir)
        print(f"{job}: {run_job(plan, job)}" if job else "\n".join(plan.waits()))
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    typer.run(main)
