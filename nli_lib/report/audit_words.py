"""An audit in words: what to do next in three sentences, each decided by the numbers, and features in plain English."""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import MANY
from nli_lib.measure.features import joined
from nli_lib.report.audit import Audit
from nli_lib.report.audit_figures import Figure
from nli_lib.report.audit_reference import TITLES
from nli_lib.report.names import unsigned_zero

ONE_ANSWER = 0.95  # share of a model's answers from where on its accuracy says nothing
OFTEN_REPEATED = 0.01  # share of repeated pairs from where on they are worth a sentence
UNTOLD = "not distinguishable from that"
CLEAN = "Nothing has to be cleaned first: no pair stands here with two labels"
RATIO = re.compile(r"len-ratio \[(.+), (.+)\)")


def next_steps(found: Audit, beside: pd.DataFrame, own: Mapping[str, Figure], *, test: str = "") -> list[str]:
    """What to do next, three sentences: about the rows, about the hypothesis alone, about features and the z-filter.

    beside  `audit_reference.reference`; own: the figures of the corpus at that size; test: name of the test file, ""
    """
    return [_rows(found.figures, test), _alone(found.figures, beside, own), _features(found)]


def _rows(figures: Mapping[str, Figure], test: str) -> str:
    parts, n = [], int(figures["pairs"].estimate.value)
    if (left := figures["skipped"].estimate).value > MANY:
        parts.append(f"mend the {_count(left)} rows that cannot be used ({percent(left.value)} of the file)")
    if test and (leaked := figures["leaked pairs"].estimate).value:
        parts.append(f"take the {_count(leaked)} pairs of {test} that also stand here out of one of the two files")
    if (both := figures["conflicts"].estimate).value:
        parts.append(f"decide about the {_count(both)} rows whose pair stands here with more than one label")
    if (again := figures["duplicates"].estimate).value > OFTEN_REPEATED:
        parts.append(f"drop the {_count(again)} rows that repeat an earlier pair")
    if parts:
        return f"Clean first: {'; then '.join(parts[:2])}."
    again = f"{percent(again.value)} of the {n:,} pairs repeat an earlier one"
    if test:
        return f"{CLEAN}, {again}, and no pair of {test} stands here."
    return f"{CLEAN}, and {again}; name a test set with --test to check for leakage."


def _alone(figures: Mapping[str, Figure], beside: pd.DataFrame, own: Mapping[str, Figure]) -> str:
    gain, right, area = (figures[name].estimate for name in ("gain", "hypothesis only", "area"))
    if np.isnan(gain.low):
        return (
            f"Do not judge the corpus by its hypotheses yet: n-grams of the hypothesis alone predict "
            f"{percent(right.value)} of the labels, {points(gain.value)} beside the most frequent label, and all pairs "
            "have one premise, so that nobody can say how much of it is chance."
        )
    curve = f"area under the ROC curve {square(area.value)} {ends(area, square)}".rstrip() + ", where 0.50 is chance"
    hidden = ""  # why the accuracy cannot show an artifact
    if gain.high < 0:
        hidden = f"it predicts fewer labels than the most frequent label does ({ends(gain, points)})"
    elif (same := figures["one answer"].estimate.value) > ONE_ANSWER:
        hidden = f"it gives {percent(same)} of the pairs one answer"
    if area.low > 0.5 and (hidden or not gain.low > 0):
        return (
            "Report a hypothesis-only baseline beside every model, and not by its accuracy: n-grams of the hypothesis "
            f"alone tell the labels apart ({curve}), which the accuracy of that model hides ({points(gain.value)} "
            f"beside the most frequent label{'; ' * bool(hidden)}{hidden})."
        )
    if hidden and not gain.low > 0:
        return (
            f"Do not call the corpus free of artifacts yet: nothing was found, but the accuracy of a model of the "
            f"hypothesis alone could show nothing here, as {hidden}; the order in which it puts the pairs shows "
            f"nothing either ({curve})"
            + (
                f", and in {area.n:,} pairs an area of up to {square(area.high)} would not show."
                if area.high > 0.5
                else "."
            )
        )
    if not gain.low > 0:
        return (
            f"Do not call the corpus free of artifacts yet: the hypothesis alone predicts no more than the most "
            f"frequent label does ({points(gain.value)}, {ends(gain, points)}; {curve})"
            + (
                f", but in {gain.n:,} pairs an advantage of up to {distance(gain.high)} would not show."
                if gain.high > 0
                else "."
            )
        )
    said = (
        f"Report a hypothesis-only baseline beside every model: n-grams of the hypothesis alone predict "
        f"{percent(right.value)} {ends(right)} of the labels, {distance(gain.value)} above the most frequent "
        "label"
    )
    placed = {"more than": [], UNTOLD: [], "less than": []}
    for row in beside[beside["figure"] == "gain"].itertuples():
        mine = own["gain"].estimate
        word = "more than" if mine.low > row.high else "less than" if mine.high < row.low else UNTOLD
        placed[word].append(f"{TITLES[row.corpus]} ({points(row.value)})")
    parts = [
        f"{word} in {', '.join([*names[:-2], ' and '.join(names[-2:])])}" for word, names in placed.items() if names
    ]
    if parts:
        at = int(beside["at"].max())
        said += f"; at {at:,} pairs that is {', '.join(parts)}"
    return said + "."


def _features(found: Audit) -> str:
    dropped = found.figures["dropped"].estimate
    would = f"would drop {percent(dropped.value)} of the pairs"
    if found.top.empty or not found.figures["detectable"].estimate.value:
        return (
            f"Leave the z-filter aside: it {would}, but no feature is correlated with a label beyond what chance "
            "allows for so many features."
        )
    best, counted = found.top.loc[found.top["z"].idxmax()], unit(found.figures["without blanks"].estimate.value)
    return (
        f"Read the pairs {whose(best['feature'], counted)}, of which {percent(best['share'])} are {best['label']} "
        f"(z = {best['z']:.1f}), and decide whether that is meaning or an artifact; the z-filter {would}, so compare "
        "what a model learns from those it keeps with a random selection of the same size."
    )


def _count(share) -> str:
    return f"{round(share.value * share.n):,}"


def percent(value: float | None) -> str:
    """A share for reading: one decimal of a percentage, two where that would say 0; "–" where it is not known."""
    if value is None or value != value:
        return "–"
    if value == 0 or abs(value) >= 0.0005:
        return f"{100 * value:.1f}%"
    return f"{100 * value:.2g}%" if abs(value) >= 0.0001 else "<0.01%"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "–" if value != value else f"{unsigned_zero(f'{100 * value:+.1f}')} points".replace("-", "−")


def distance(value: float | None) -> str:
    """A distance in percentage points, without a sign."""
    return "an unknown size" if value is None or value != value else points(value).lstrip("+")


def square(value: float) -> str:
    """An area under the ROC curve for reading."""
    return "–" if value is None or value != value else f"{value:.2f}"


def z_words(value: float) -> str:
    """A z-statistic for reading."""
    return "–" if not np.isfinite(value) else f"{value:.1f}"


def short_points(value: float) -> str:
    """A difference in percentage points where the unit stands beside it."""
    return points(value).removesuffix(" points")


def ends(estimate, form=percent) -> str:
    """The interval in square brackets, "" where there is none."""
    low, high = estimate.low, estimate.high
    return "" if low != low or high != high else f"[{form(low).split()[0]}, {form(high)}]"


def visible(text: object, most: int = 80) -> str:
    """A text of the corpus to be shown: cut, with what cannot be printed as its code."""
    text = str(text)
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in shown)


def unit(without_blanks: float | None) -> str:
    """What lengths and overlaps are counted in, by the share of hypotheses that are written without blanks."""
    return "characters" if (without_blanks or 0) > 0.5 else "words"


def plain(feature: str, unit: str = "words") -> str:
    """A feature's name in `measure.features` in plain English. unit: what is counted (`unit`)."""
    if ratio := RATIO.fullmatch(feature):
        low, high = ratio.groups()
        return (
            f"hypothesis {low} times as long as the premise, or more"
            if high == "inf"
            else f"hypothesis {low} to {high} times as long as the premise"
        )
    for start, words in {
        "hypo-len< ": "hypothesis of fewer than {} {}",
        "hypo-len> ": "hypothesis of more than {} {}",
        "lex-overlap> ": "more than {:.0%} of the hypothesis's {} in the premise",
    }.items():
        if feature.startswith(start):
            return words.format(float(feature.removeprefix(start)), unit).replace(".0 ", " ")
    if feature == "null":
        return "none in particular: every pair"
    if feature == "full-lex-overlap":
        return f"all {unit} of the hypothesis in the premise"
    words, at, side = joined([feature])[0].rpartition("@")
    return f"“{visible(words, 40)}” in the {side}" if at else feature


def whose(feature: str, unit: str = "words") -> str:
    """The pairs that have a feature, as an ending of "the pairs ..."."""
    text = plain(feature, unit)
    return (
        f"that have {text}" if text.startswith("“") else f"with {'a ' if text.startswith('hypothesis') else ''}{text}"
    )
