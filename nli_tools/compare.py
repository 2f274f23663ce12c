"""Interventions on somebody's corpus beside their random twins: what could be detected, what was, and what to do.

    smallest(PLANNED, n=600, trainings=5, family=8)     the smallest difference that would be found, before any training
    pairs_needed(PLANNED, trainings=5, family=8, worth=0.1)     test pairs for which that is .1
    content = comparison(right, premises, ...)          every number with interval and unit, verdicts, what to do

Everything is about one test set. ``right`` is that of `compare`: (arm, which) -> {title: (S, N) bool}.

The page of a comparison, self-contained, to be opened from disk, and its table; also as a part of a report.

Names that a user gave go through jinja's escaping alone; the page has no script and forbids all requests.

The trainings of `nli-study compare`: what the arms of somebody's corpus are made of, and what their models answer.

    work = Work(request, corpus, test, "held_out.csv", {"mine": pairs}, Plan(seeds=5))
    work.check_size(PLANNED)                 # an error where the test set can show nothing, before any training
    right, sets, whole, absent, kept = work.everything()

All trainings have one recipe, as in the study's own comparison at equal budgets, and are runs of the store.

`nli-study compare`: interventions on somebody's corpus, each beside its random twin, judged on a held-out file.

compare.html, compare.json     the page and its numbers, in the folder of the corpus
compare.csv                    one row an arm
compare_pairs.csv              one row a pair: in which share of the trainings each arm kept it

Every training is a run of the store: stopped, the same command continues. All of them have one recipe, as in the
study's own comparison at equal budgets. Before anything is trained it is said whether the test file can show a
difference that is worth knowing of, by assumption; and after the base and its twin, by what these two have shown.
"""

import shutil
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib import paths
from nli_lib.compare import (
    BASE,
    PLAIN,
    Right,
    above_base,
    against_twins,
    average,
    detectable_table,
    ranks,
    scores,
    smallest_detectable,
)
from nli_lib.corpora import check_enough
from nli_lib.corpora.corpus import LABELS, Corpus, concat
from nli_lib.errors import UserError
from nli_lib.evaluate import correct_predictions
from nli_lib.measure.consensus import prunable
from nli_lib.select.arms import (
    ARM,
    BY_NAME,
    CANDIDATES,
    TWIN,
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
from nli_lib.store import StoreError, alone
from nli_lib.study.dial import read_scale, run_spec
from nli_lib.study.record import corpus_file
from nli_lib.study.runner import Request, version
from nli_lib.tables import write_csv
from nli_tools import own_corpus
from nli_tools.audit import (
    POINTS,
    SHARE,
    Figure,
    distance,
    ends,
    exact,
    percent,
    points,
    short_points,
    stand_in,
    with_classes,
)
from nli_tools.audit_page import as_estimate, templates

ALPHA = 0.05
MOST_PAIRS, MOST_TRAININGS = 10_000_000, 20
BETTER, WORSE, SAME, OPEN = "better than its twin", "worse than its twin", "no difference worth knowing of", "undecided"
UNLEARNT = "nothing learnt"
WHOLE_ARM = "all candidates"
DO = {
    "random more": "collect more pairs like these",
    "z-filter": "keep the pairs that the z-filter keeps",
    "consensus pruning": "drop the entailments that models call neutral",
    "ambiguous third": "keep the third of the pairs of widest variability",
    "AUM": "keep the middle third of the pairs by margin",
    "easy": "keep the easy level",
    "hard": "keep the hard level",
}


class Noise(NamedTuple):
    """What hides a difference: spread, its standard deviation from training to training; unit, the standard error that
    one test pair gives it, which falls with the square root of the pairs."""

    spread: float
    unit: float


# Assumptions for planning, kind ones: in the chapters on the z-filter and on Model 1, recorded at scale small, the
# difference of an arm and its twin varies by .003 to .018 between trainings on 4,400 to 9,800 pairs. Of the test pairs,
# a fifth is taken to be right by one of the two alone.
PLANNED = Noise(spread=0.01, unit=float(np.sqrt(0.2)))


def smallest(noise: Noise, *, n: int, trainings: int, family: int) -> float:
    """The smallest true difference of an arm and its twin that is found among ``family`` arms in four of five cases.

    NaN where nothing varies, as with models that always give one label.
    """
    if not noise.spread + noise.unit > 0:
        return float("nan")
    return smallest_detectable(noise.spread, trainings, premises=noise.unit / np.sqrt(n), family=family)


def pairs_needed(noise: Noise, *, trainings: int, family: int, worth: float) -> int | None:
    """Test pairs for which `smallest` is ``worth``; None where so few trainings cannot find it with any number."""

    def found(n: int) -> bool:
        return smallest(noise, n=n, trainings=trainings, family=family) <= worth

    return bisect_left(range(MOST_PAIRS + 1), True, lo=1, key=found) if found(MOST_PAIRS) else None


def trainings_needed(noise: Noise, *, family: int, worth: float) -> int | None:
    """The fewest trainings of an arm with which some number of test pairs finds a difference of ``worth``."""
    each = range(2, MOST_TRAININGS + 1)
    return next((s for s in each if pairs_needed(noise, trainings=s, family=family, worth=worth)), None)


def too_small(noise: Noise, *, n: int, trainings: int, family: int, worth: float, title: str) -> str:
    """Why a comparison is not worth its trainings, with the size that it would need; "" where it is, or unknown."""
    there = smallest(noise, n=n, trainings=trainings, family=family)
    if not there > worth:
        return ""
    pairs = pairs_needed(noise, trainings=trainings, family=family, worth=worth)
    said = (
        f"{title}: with {n:,} test pairs and {trainings} trainings of each of {family} arms, a difference below "
        f"{distance(there)} would not be found, and {distance(worth)} are asked for. "
    )
    if pairs is not None:
        return f"{said}{pairs:,} test pairs are needed for that."
    more = trainings_needed(noise, family=family, worth=worth)
    if more is None:
        return f"{said}No number of trainings up to {MOST_TRAININGS} would do."
    pairs = pairs_needed(noise, trainings=more, family=family, worth=worth)
    return (
        f"{said}No number of test pairs is enough for that with {trainings} trainings: {more} trainings and {pairs:,} "
        "pairs would do."
    )


def measured_noise(right: Mapping[tuple[str, str], Right], premises: Mapping[str, ArrayLike], title: str) -> Noise:
    """The noise that the base and its twin show, two draws of one corpus that are truly no better than each other."""
    n = len(premises[title])
    pair = {key: right[key] for key in right if key[0] == BASE}
    (row,) = _plain(detectable_table(pair, premises, {title: [title]}, {title: n}, trainings=[2], family=1)).to_dict(
        "records"
    )
    return Noise(row["spread"], row["premises"] * float(np.sqrt(n)))


# ---------------------------------------------------------------- what was found


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

    whole     answers of models trained on all candidates; distinct: different pairs of each set of ``rows`` rows
    majority  the share of the test set's most frequent label; worth: the smallest difference that is worth knowing of

    Keys: figures, learnt (whether the base is better than the majority label), detectable, arms (one entry an arm, the
    base's first, with a verdict), next. A verdict takes Holm's p over all arms but the base, whose twin is a second
    draw of the same corpus. Where neither an arm nor its twin is better than the majority label, both may have learnt
    nothing, and that they are alike says nothing: `UNLEARNT`, as for all arms where the base has learnt nothing.
    """
    groups, sizes = {title: [title]}, {title: len(premises[title])}
    others = {key: each for key, each in right.items() if key[0] != BASE}
    base = {key: each for key, each in right.items() if key[0] == BASE}
    place = (premises, groups, sizes)
    gaps = pd.concat([against_twins(each, *place, resamples=resamples) for each in (base, others)])
    gaps = _plain(gaps).set_index("arm")
    above = _plain(above_base(right, *place, resamples=resamples)).set_index("arm")
    order = _plain(ranks(scores(right, groups, sizes))).set_index("arm")
    found = []

    def known(*accuracies: Estimate) -> bool:
        return any(each.low > majority.value for each in accuracies)

    learnt = known(average(right[BASE, ARM], premises, [title], resamples=resamples))
    for name in gaps.index:
        own, twin = (average(right[name, which], premises, [title], resamples=resamples) for which in (ARM, TWIN))
        gap = gaps.loc[name]
        entry = {
            "arm": name,
            "do": action(arms[name]) if name != BASE else "",
            "distinct": Figure(exact(distinct[name, ARM], rows), "pairs").as_json(),
            **_measured(own, twin, gap, order.loc[name]),
            "verdict": "" if name == BASE else _verdict(gap, worth, learnt=learnt and known(own, twin)),
        }
        if name in above.index:
            entry["above the base"] = _number(_estimate(above.loc[name]), POINTS)
        found.append(entry)
    noise, family = measured_noise(right, premises, title), len(found) - 1
    limits = {"alone": 1, "of all": family}
    trainings = len(right[BASE, ARM][title])
    exactly = {name: smallest(noise, n=sizes[title], trainings=trainings, family=k) for name, k in limits.items()}
    all_pairs = average(whole, premises, [title], resamples=resamples)
    figures = {"majority": _number(majority), WHOLE_ARM: _number(all_pairs)}
    return {
        "figures": figures,
        "learnt": bool(learnt),
        "detectable": {
            **{name: _plain_number(each, POINTS) for name, each in exactly.items()},
            "spread": _plain_number(noise.spread, "share, standard deviation over trainings"),
            "arms": family,
            "power": _plain_number(0.8, SHARE),
        },
        "worth": _plain_number(worth, POINTS),
        "arms": found,
        "next": _next(found, all_pairs, exactly["of all"], title, learnt=learnt),
    }


def _measured(own: Estimate, twin: Estimate, gap: pd.Series, place: pd.Series) -> dict:
    """What was measured of an arm: its accuracy, its twin's, their difference, and its place among the arms."""
    return {
        "accuracy": _number(own),
        "accuracy of the twin": _number(twin),
        "difference": _number(_estimate(gap), POINTS) | {"p": _known(gap["p"]), "p, Holm": _known(gap["p, Holm"])},
        "rank": {"value": int(place["rank"]), "low": int(place["best"]), "high": int(place["worst"]), "unit": "place"},
    }


def _verdict(gap: pd.Series, worth: float, *, learnt: bool) -> str:
    return verdict(_estimate(gap), gap["p, Holm"], worth) if learnt else UNLEARNT


def verdict(gap: Estimate, holm: float, worth: float) -> str:
    """`BETTER` or `WORSE` where Holm's p is below .05, `SAME` where the interval lies within ``worth`` of nothing, else
    `OPEN`."""
    if holm < ALPHA:
        return BETTER if gap.value > 0 else WORSE
    return SAME if -worth < gap.low and gap.high < worth else OPEN


def action(arm: Arm) -> str:
    """What an arm does to a corpus, as an order."""
    if arm.form == "added":
        return f"add {arm.source}"
    return f"put {arm.source} in the place of own pairs" if arm.form == "swapped" else DO.get(arm.name, arm.name)


def _next(found: Sequence[Mapping], whole: Estimate, limit: float, title: str, *, learnt: bool) -> str:
    arms = [each for each in found if each["arm"] != BASE]
    better = sorted((each for each in arms if each["verdict"] == BETTER), key=lambda each: -each["difference"]["value"])
    worse = [each["arm"] for each in arms if each["verdict"] == WORSE]
    ending = f" Do not choose pairs by: {', '.join(worse)} (worse than random ones)." if worse else ""
    if not learnt:
        return (
            f"Do not act on the comparison: trained on so few pairs, the model predicts {title} no better than the "
            "most frequent label does. Add pairs, or train longer."
        )
    if not better:
        nothing = [each["arm"] for each in arms if each["verdict"] == UNLEARNT]
        alike = f" From so few pairs nothing was learnt with: {', '.join(nothing)}." if nothing else ""
        return (
            f"Leave the corpus as it is: of {len(arms)} interventions, none trains a better model for {title} than as "
            f"many random pairs do; a difference of {distance(limit)} would have been found in four of five "
            f"cases.{alike}{ending}"
        )
    best = better[0]
    do = best["do"][:1].upper() + best["do"][1:]
    gap = Estimate(*(best["difference"][end] for end in ("value", "low", "high")), n=0)
    also = f" So do: {', '.join(each['arm'] for each in better[1:])}." if better[1:] else ""
    return (
        f"{do}: the model trained so predicts {title} better than one trained on as many random "
        f"pairs, by {distance(gap.value)} {ends(gap, points)}.{also} All candidates together train one of "
        f"{percent(whole.value)} {ends(whole)}, this one of {percent(best['accuracy']['value'])}.{ending}"
    )


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """One test set has one average."""
    return table[table["average"] == PLAIN]


def _estimate(row: pd.Series) -> Estimate:
    return Estimate(*(row[name] for name in Estimate._fields))


def _number(found: Estimate, unit: str = SHARE) -> dict:
    if unit == SHARE:
        found = found._replace(low=max(0.0, found.low), high=min(1.0, found.high))
    return Figure(found, unit).as_json() | {"trainings": int(found.seeds)}


def _plain_number(value: float, unit: str) -> dict:
    return {"value": _known(value), "unit": unit}


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def named(arms: Sequence[str], sources: Sequence[str]) -> dict[str, Arm]:
    """The arms of a user's corpus by name: some of `select.arms`, then each source of theirs, added and swapped in."""
    known = {name: BY_NAME[name] for name in arms}
    own = [Arm(f"{source} {word}", form, source) for source in sources for word, form in
           (("added", "added"), ("swapped in", "swapped"))]  # fmt: skip
    return known | {arm.name: arm for arm in own}


# ---------------------------------------------------------------- comparison page


FORMAT = 1  # of compare.json
WIDTH = 100  # of the strip in which the differences are drawn


def page(content: Mapping) -> str:
    """The html of a comparison. content: what compare.json holds, see `nli_tools.compare`."""
    template = templates(html=True)
    template.filters["points"] = distance
    return template.get_template("comparison.html").render(**shown(content))


def shown(content: Mapping) -> dict[str, object]:
    """What the templates of the page are filled with, also where the comparison is a part of another page."""
    return {"k": content, "arm_rows": [_row(each, _reach(content)) for each in content["arms"]], "base": BASE}


def table(content: Mapping) -> pd.DataFrame:
    """One row an arm: the numbers of the page as columns, differences in accuracy (0-1) with their intervals."""
    rows = []
    for each in content["arms"]:
        row = {"arm": each["arm"], "different pairs": int(each["distinct"]["value"])}
        for name in ("accuracy", "accuracy of the twin", "difference", "above the base"):
            found = each.get(name, {})
            row |= {name: found.get("value"), f"{name}, low": found.get("low"), f"{name}, high": found.get("high")}
        row |= {"p": each["difference"]["p"], "p, Holm": each["difference"]["p, Holm"]}
        row |= {"trainings": each["difference"]["trainings"], "over": each["difference"]["over"]}
        row |= {
            "place": each["rank"]["value"],
            "place, best": each["rank"]["low"],
            "place, worst": each["rank"]["high"],
        }
        rows.append(row | {"verdict": each["verdict"]})
    absent = [{"arm": name, "verdict": f"left out: {reason}"} for name, reason in content["absent"].items()]
    return pd.DataFrame(rows + absent).round(5)


def _reach(content: Mapping) -> float:
    """The largest end of any difference: the strips of all arms have one scale."""
    found = [as_estimate(each["difference"]) for each in content["arms"]]
    return max((abs(end) for each in found for end in each[:3] if end == end), default=0.0) or 1.0


def _row(each: Mapping, reach: float) -> dict:
    gap, own, twin = (as_estimate(each[name]) for name in ("difference", "accuracy", "accuracy of the twin"))
    place = {end: _place(getattr(gap, end), reach) for end in ("value", "low", "high")}
    rank = each["rank"]
    return {
        "arm": each["arm"],
        "distinct": int(each["distinct"]["value"]),
        "own": f"{percent(own.value)} {ends(own)}",
        "twin": percent(twin.value),
        "gap": f"{short_points(gap.value)} {ends(gap, short_points)}",
        "p": "–" if each["difference"]["p, Holm"] is None else f"{each['difference']['p, Holm']:.3f}",
        "rank": f"{rank['value']} [{rank['low']}–{rank['high']}]",
        "verdict": each["verdict"] or "two draws of one corpus",
        "strip": place,
    }


def _place(value: float, reach: float) -> float | None:
    return round(WIDTH / 2 + 0.46 * WIDTH * value / reach, 1) if value == value else None


# ---------------------------------------------------------------- compare work


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
        self.arms = named(ARMS, list(additions))
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

    def check_size(self, noise: Noise) -> None:
        """Raise `CompareError` where a difference that is worth knowing of would not be found; say it with anyway."""
        plan = self.plan
        sizes = {"n": len(self.test), "trainings": plan.seeds, "family": self.family}
        if said := too_small(noise, **sizes, worth=plan.worth, title=self.title):
            if not plan.anyway:
                raise CompareError(f"{said} Or name a larger difference with --worth, or go on with --anyway.")
            print(said, flush=True)
        found = 100 * smallest(noise, **sizes)
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
        from nli_lib.learn.fit import fit
        from nli_lib.learn.predict import cross_score, fold_specs

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
        self.check_size(measured_noise(right, {self.title: self.test.premise}, self.title))

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


# ---------------------------------------------------------------- compare


PAGE, NUMBERS, TABLE, PAIRS = "compare.html", "compare.json", "compare.csv", "compare_pairs.csv"


def run(request: Request, test: str, added: Mapping[str, str], plan: Plan) -> list[Path]:
    """Compare what can be done to the corpus of a request, on a test file; the files that were written.

    added  name -> file of pairs that could be added, such as those of `nli-study generate`
    """
    corpus, held_out = own_corpus.read(request.corpus, request), own_corpus.read_test(test, request)
    own_corpus.say(corpus)
    check_enough(corpus, own_corpus.MIN_ROWS, "a comparison")
    check_encoder(request.scale, plan.changes)
    additions = {name: _fitting(own_corpus.read_test(file, request), corpus) for name, file in added.items()}
    held_out = _fitting(held_out, corpus)
    seen = stand_in(held_out, concat([corpus, *_same_classes(additions, corpus)], name="trained on"))
    if seen.all():
        raise CompareError(f"{test}: all of its pairs that can be used stand in what is trained on.")
    if seen.any():
        print(f"{seen.sum():,} of the {len(seen):,} pairs of {test} are trained on as well, and are taken out of it.")
    if len(set(held_out.labels[~seen])) < 2:
        raise CompareError(f"{test}: its pairs have one label, which a model need not read anything to predict.")
    work = Work(request, corpus, held_out[~seen], Path(test).name, additions, plan)
    work.check_size(PLANNED)
    with alone(paths.RUNS / "compare" / request.study, "this comparison"):  # it deletes the weights that it has used
        right, sets, whole, absent, kept = work.everything()
    for name, reason in absent.items():
        print(f"left out: {name}: {reason}")
    content = _content(work, right, sets, whole, absent) | {
        "digest": own_corpus.digest(request.corpus, request),
        **request.form,
        "test": {"name": Path(test).name, "digest": own_corpus.digest(test, request), "pairs": len(work.test)}
        | {"taken out": int(seen.sum()), "premises": len(set(work.test.premise))},
        "added": {name: len(each) for name, each in additions.items()},
    }
    folder = paths.EXPORTS / request.study
    print(content["next"])
    return [
        own_corpus.write(folder / PAGE, page(content)),
        own_corpus.write(folder / NUMBERS, own_corpus.as_text(content)),
        write_csv(folder / TABLE, table(content)),
        write_csv(folder / PAIRS, kept),
    ]


def stored(request: Request) -> dict | None:
    """What compare.json holds of the corpus as it is now; None where there is none that this version wrote."""
    return own_corpus.recorded(paths.EXPORTS / request.study / NUMBERS, FORMAT, request)


def check_encoder(scale: str, changes: Mapping[str, object]) -> None:
    """Raise `CompareError` or `ModelError`, before anything begins, where this machine cannot train the encoder of a
    scale, or the "model" of the changes to its recipe."""
    try:
        from nli_lib.learn.model import load_tokenizer

        load_tokenizer(str(changes.get("model", read_scale(scale).model)))
    except ModuleNotFoundError as error:
        raise CompareError(absent(error)) from None


def absent(error: ModuleNotFoundError) -> str:
    """What to install, in words, where torch or another package of the study was not found, or that of an encoder."""
    if error.name is None:  # an error of ours, which says so
        return str(error)
    return f"{error.name} is not installed: pip install 'nli-quality-study[study,offline]'"


def _fitting(other: Corpus, corpus: Corpus) -> Corpus:
    """Pairs of three classes with the two classes of a corpus; others as they are."""
    if other.classes == LABELS and corpus.classes != LABELS:
        return with_classes(other, corpus.classes)
    return other


def _same_classes(additions: Mapping[str, Corpus], corpus: Corpus) -> list[Corpus]:
    return [each for each in additions.values() if each.classes == corpus.classes]


# ---------------------------------------------------------------- what was found


def _content(work: Work, right: Mapping, sets: Mapping, whole: Mapping, absent: Mapping[str, str]) -> dict:
    premises = {work.title: work.test.premise}
    distinct = {key: made.distinct for key, made in sets.items()}
    settings = {"whole": whole, "distinct": distinct, "rows": work.budget, "majority": work.majority}
    found = comparison(right, premises, work.title, arms=work.arms, worth=work.plan.worth, **settings)
    spec = work.spec(work.corpus, 0)
    return found | {
        "format": FORMAT,
        "version": version(),
        "corpus": work.corpus.name,
        "classes": list(work.corpus.classes),
        "absent": dict(absent),
        "settings": {
            "rows of a training set": work.budget,
            "added or swapped in": added_pairs(work.budget, work.plan.share),
            "candidates": len(work.candidates(0)),
            "trainings": work.plan.seeds,
            "folds": work.plan.folds,
            "encoder": Path(spec.model).name,
            "epochs": spec.epochs,
            "batch size": spec.batch_size,
            "learning rate": spec.learning_rate,
        },
    }
