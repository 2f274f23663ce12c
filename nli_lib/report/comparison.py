"""Interventions on somebody's corpus beside their random twins: what could be detected, what was, and what to do.

    smallest(PLANNED, n=600, trainings=5, family=8)     the smallest difference that would be found, before any training
    pairs_needed(PLANNED, trainings=5, family=8, worth=0.1)     test pairs for which that is .1
    content = comparison(right, premises, ...)          every number with interval and unit, verdicts, what to do

Everything is about one test set. ``right`` is that of `compare`: (arm, which) -> {title: (S, N) bool}.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

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
from nli_lib.report.audit_figures import POINTS, SHARE, Figure, exact
from nli_lib.report.audit_words import distance, ends, percent, points
from nli_lib.select.arms import ARM, BY_NAME, TWIN, Arm
from nli_lib.stats import Estimate

ALPHA = 0.05
MOST_PAIRS, MOST_TRAININGS = 10_000_000, 20
BETTER, WORSE, SAME, OPEN = "better than its twin", "worse than its twin", "no difference worth knowing of", "undecided"
UNLEARNT = "nothing learnt"
WHOLE = "all candidates"
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
    figures = {"majority": _number(majority), WHOLE: _number(all_pairs)}
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
