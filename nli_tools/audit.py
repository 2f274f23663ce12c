"""The measurements of an audit: repeated pairs, leakage, the hypothesis alone, features, the z-filter::

    found = audit(corpus, test)                             # every number of the page, with interval and unit
    values = comparable(corpus)                             # those for comparisons between corpora, without intervals
    others = reference(corpus.classes, len(corpus))         # SNLI, MultiNLI and WANLI at that size

No network is trained. The functions at the end format numbers and features for readers.

Notes
-----
z compares a label's share among the pairs of a feature with its share in the corpus (`z_over_shares`), so that an
unequal label balance does not give every frequent word a large z; the z-filter compares with one over the number of
labels, as in its paper.

z grows with the square root of n, and the share that a filter drops and the accuracy of a model of n-grams also depend
on n, so figures of two corpora can be compared only at equal size. `audit_curves.csv` has only numbers, curves over the
number of pairs; `benchmarks/audit_curves.py` made it from the official development and test sets of SNLI and MultiNLI
and a public sample of WANLI's training set.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from nli_lib import stats
from nli_lib.corpora.corpus import CONTRADICTION_OR_NOT, LABELS, SIDES, TWO_WAY, Corpus
from nli_lib.measure import features
from nli_lib.measure.features import OFTEN, Features
from nli_lib.measure.giveaways import cross_fitted, draw_folds
from nli_lib.names import unsigned_zero
from nli_lib.select.selection import linked
from nli_lib.select.zfilter import Filtered, z_filter
from nli_lib.stats import OVER, Estimate, clustered_share, mean_and_range

PAIRS, SHARE, POINTS, Z, CELLS = "pairs", "share", "share, difference", "standard errors", "share of n-grams and labels"
AREA = "area under the ROC curve"


class Figure(NamedTuple):
    """One number of an audit: the estimate with its interval, and its unit."""

    estimate: Estimate
    unit: str = SHARE

    def as_json(self) -> dict[str, object]:
        """Plain values; an unknown end is None."""
        known = self.estimate._asdict()
        ends = {name: float(known[name]) if np.isfinite(known[name]) else None for name in ("value", "low", "high")}
        return {**ends, "unit": self.unit, "n": int(known["n"]), "over": known["over"]}


def bounded(share: Estimate) -> Figure:
    """Make a figure of a share, with its interval cut at 0 and 1."""
    return Figure(share._replace(low=max(0.0, share.low), high=min(1.0, share.high)))


def sample_premises(corpus: Corpus, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Positions of up to ``most`` pairs, ascending, drawn as whole premises in random order (the last may be cut)."""
    if len(corpus) <= most:
        return np.arange(len(corpus))
    code = pd.factorize(corpus.premise)[0]
    turn = np.random.default_rng(seed).permutation(code.max() + 1)[code]
    return np.sort(np.argsort(turn, kind="stable")[:most])


def counted(corpus: Corpus) -> dict[str, Figure]:
    """Numbers of pairs, premises, rows of the file and rows left out by reason; shares of the labels."""
    counts = {PAIRS: len(corpus), "premises": len(pd.unique(corpus.premise)), "rows read": corpus.rows_read}
    counts |= {f"skipped: {reason}": count for reason, count in corpus.skipped.items()}
    units = {PAIRS: PAIRS, "premises": "premises"}
    found = {name: Figure(exact(count, corpus.rows_read), units.get(name, "rows")) for name, count in counts.items()}
    if corpus.rows_read:
        left = np.arange(corpus.rows_read) < sum(corpus.skipped.values())
        found["skipped"] = Figure(clustered_share(left, np.arange(len(left)))._replace(over="rows"))
    for label, name in enumerate(corpus.classes):
        found[f"label: {name}"] = Figure(clustered_share(corpus.labels == label, corpus.premise))
    return found


def repeated(corpus: Corpus) -> dict[str, Figure]:
    """Repetitions in a corpus; letter case, ASCII punctuation and blanks are ignored.

    majority
        the most frequent label
    duplicates
        pairs that repeat an earlier one
    conflicts
        pairs that occur with more than one label, all of them counted
    hypotheses
        hypotheses that repeat an earlier one
    """
    pair, hypothesis = _keys(corpus)
    code = pd.factorize(pair)[0]
    classes = len(corpus.classes)
    seen = np.bincount(code * classes + corpus.labels, minlength=(code.max() + 1) * classes).reshape(-1, classes) > 0
    flags = {
        "majority": corpus.labels == np.bincount(corpus.labels).argmax(),
        "duplicates": pd.Series(code).duplicated().to_numpy(),
        "conflicts": (seen.sum(axis=1) > 1)[code],
        "hypotheses": pd.Series(hypothesis).duplicated().to_numpy(),
    }
    groups = pd.factorize(corpus.premise)[0]
    return {name: Figure(clustered_share(flag, groups)) for name, flag in flags.items()}


def leakage(corpus: Corpus, test: Corpus) -> dict[str, Figure]:
    """Shares of a test set's pairs with a pair, premise or hypothesis that also occurs in the corpus; compared as in
    `repeated`."""
    (own, own_hypothesis), (pair, hypothesis) = _keys(corpus), _keys(test)
    premises = folded(corpus.premise), folded(test.premise)
    flags = {
        "leaked pairs": np.isin(pair, own),
        "leaked premises": np.isin(premises[1], premises[0]),
        "leaked hypotheses": np.isin(hypothesis, own_hypothesis),
    }
    return {name: Figure(clustered_share(flag, test.premise)) for name, flag in flags.items()}


def stand_in(test: Corpus, corpus: Corpus) -> NDArray[np.bool_]:
    """(N,) bool, True for pairs of a test set that also occur in a corpus; compared as in `repeated`."""
    return np.isin(_keys(test)[0], _keys(corpus)[0])


def _keys(corpus: Corpus) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hashes (N,) of folded pairs and of folded hypotheses; 64 bits, so that millions do not collide."""
    premise, hypothesis = (folded(getattr(corpus, side)) for side in SIDES)
    return premise * np.uint64(0x9E3779B97F4A7C15) + hypothesis, hypothesis


def folded(texts: ArrayLike) -> NDArray[np.uint64]:
    """Hashes (N,) of texts, equal for texts that are equal without letter case, ASCII punctuation and runs of blanks;
    for texts written without blanks, without any punctuation."""
    column = pc.utf8_lower(features.spaced(texts))
    column = pc.replace_substring_regex(column, features.ASCII_PUNCTUATION, "")
    column = pc.utf8_trim_whitespace(pc.replace_substring_regex(column, r"\s+", " "))
    return pd.util.hash_array(column.to_numpy(zero_copy_only=False), categorize=False)


def exact(count: float, n: int) -> Estimate:
    """Make an estimate of a count; the interval is the count."""
    return Estimate(float(count), float(count), float(count), int(n), over="counted, nothing drawn")


# ---------------------------------------------------------------- audit features


TOP = 20  # features for each label


def z_over_shares(counts: ArrayLike) -> NDArray[np.float64]:
    """z (V, C) from counts by label (V, C), including the null feature's: a label's share among the pairs of a feature
    minus its share in the corpus, in standard errors; -inf if a feature never occurs.

    Notes
    -----
    Formula: (count - n s) / sqrt(n s (1 - s)), s the share of the label, from the null feature, which every pair has.

    *Departures*: Gardner et al. (2021) and the z-filter paper use one over the number of labels as s.
    """
    counts = np.asarray(counts, dtype=np.float64)
    n = counts.sum(axis=1, keepdims=True)
    s = counts[n.argmax()] / n.max()
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (counts - n * s) / np.sqrt(n * s * (1 - s))
    return np.where(np.isfinite(z), z, -np.inf)


def above_share(z: NDArray, columns: NDArray[np.bool_]) -> float:
    return float((z[columns] > features.z_threshold(0.01)).mean()) if columns.any() else float("nan")


def beyond_chance(table: Features, counts: NDArray, corpus: Corpus, *, copies: int, seed: int = 0) -> dict[str, Figure]:
    """Strength of features, and the same in copies with labels shuffled within each premise.

    above, by chance
        share of (hypothesis n-gram, label) above the uncorrected .01 line, and in the shuffled copies
    detectable
        number of (feature, label) above the line with Bonferroni's correction
    """
    z, often = z_over_shares(counts), counts.sum(axis=1) >= OFTEN
    columns = often & (features.side_of(table.names) == "hypothesis")
    n, classes = len(corpus), len(corpus.classes)
    premises = pd.factorize(corpus.premise)[0]
    # the null feature is kept, because z takes the label shares from it
    shown = np.flatnonzero(columns | (table.names == "null"))
    part, chosen = table.matrix[:, shown], columns[shown]

    def share(labels: NDArray, weights: NDArray | None = None) -> float:
        return above_share(z_over_shares(features.z_statistics(part, labels, classes, weights).counts), chosen)

    value = above_share(z, columns)
    chance = np.array([share(features.shuffled_labels(corpus.labels, premises, seed=each)) for each in range(copies)])
    drawn = [share(corpus.labels, w) for w in stats.resample_counts(n, groups=premises, resamples=copies, seed=seed)]
    half = 1.96 * float(np.std(drawn, ddof=1))
    middle = float(chance.mean()), *np.quantile(chance, [0.025, 0.975])
    line = features.z_threshold(0.01, tests=z.size)
    above = Estimate(value, value - half, value + half, n, over="premises, by normal approximation")
    return {
        "above": Figure(above, CELLS),
        "by chance": Figure(Estimate(*map(float, middle), n, over=f"{copies} shuffled copies"), CELLS),
        "detectable": Figure(exact((z[often] > line).sum(), n), "features and labels"),
        "line": Figure(exact(line, n), Z),
    }


def top_table(table: Features, counts: NDArray, corpus: Corpus) -> pd.DataFrame:
    """The features with the highest z for each label: label (name), rank, feature, n, share with low and high over
    premises, base (the label's share in the corpus), z with z_low and z_high, z_paper (against one over the number of
    labels), first (the row of the first pair that has it).

    Only features of at least 20 pairs; of nested ones, such as the lengths below 5 and below 6, only the one with the
    highest z.
    """
    z, n, chance = z_over_shares(counts), counts.sum(axis=1), 1 / len(corpus.classes)
    # without the part that distinguishes nested features of one family
    family = pd.Series(table.names).str.replace(r"(?<=[<>]) .*|(?<=len-ratio) .*", "", regex=True).to_numpy(object)
    base, premises, rows = counts[n.argmax()] / n.max(), pd.factorize(corpus.premise)[0], []
    columns = table.matrix.tocsc()
    ranked = np.flatnonzero((n >= OFTEN) & (table.names != "null"))
    for label, name in enumerate(corpus.classes):
        # more than are shown, because families are thinned out; of equal z the more frequent one, then by name
        near = ranked[np.argsort(-z[ranked, label], kind="stable")[: 10 * TOP]]
        near = near[np.lexsort((table.names[near].astype(str), -n[near], -z[near, label]))]
        near = near[z[near, label] > 0]
        near = near[~pd.Series(family[near]).duplicated().to_numpy()][:TOP]
        for rank, column in enumerate(near, 1):
            fires = columns.indices[columns.indptr[column] : columns.indptr[column + 1]]
            share = clustered_share(corpus.labels[fires] == label, premises[fires])
            root = np.sqrt(n[column] / (base[label] * (1 - base[label])))
            low, high = (np.array([share.low, share.high]) - base[label]) * root
            paper = (share.value - chance) * np.sqrt(n[column] / (chance * (1 - chance)))
            rows.append((
                name, rank, table.names[column], int(n[column]), share.value, share.low, share.high, base[label],
                z[column, label], low, high, paper, int(fires[0]),
            ))  # fmt: skip
    names = ["label", "rank", "feature", "n", "share", "low", "high", "base", "z", "z_low", "z_high", "z_paper"]
    return pd.DataFrame(rows, columns=[*names, "first"])


# ---------------------------------------------------------------- audit


FEATURES_OF = 1_000_000  # pairs; for a larger corpus, features and z-filter use a sample of whole premises
HYPOTHESES_OF = 50_000  # largest number of pairs for cross-fitting the hypothesis-only model
LARGE = 100_000  # number of pairs above which fewer copies and orders are computed
COPIES, ORDERS = (50, 20), (5, 3)  # up to LARGE pairs, and beyond
FOLDS, K = 5, 20
FEW_WORDS, LONG = 2, 20  # a hypothesis of so few words with more than so many characters hardly has real words

Stage = Callable[[str], AbstractContextManager]


class Audit(NamedTuple):
    """Results of an audit. figures: name -> Figure; top: features of each label, best first (`top_table`); reasons:
    features for which the z-filter drops the most pairs (`Filtered.by_feature`); kept: the filter's output from
    `featured`, the pairs with counted features; notes: texts on measurements of a part of the corpus."""

    figures: dict[str, Figure]
    top: pd.DataFrame
    reasons: pd.DataFrame
    kept: Filtered
    featured: NDArray[np.int64]
    notes: list[str]


def audit(corpus: Corpus, test: Corpus | None = None, *, seed: int = 0, stage: Stage = nullcontext) -> Audit:
    """Make every measurement of the page for a corpus, and of leakage to a test file.

    stage(name) is entered before each step, to display progress.
    """
    notes = []

    def part_of(most: int, said: str) -> tuple[NDArray[np.int64], Corpus]:
        rows = sample_premises(corpus, most, seed)
        if len(rows) == len(corpus):
            return rows, corpus
        notes.append(f"{said} {len(rows):,} of {len(corpus):,} pairs, drawn at random by premise.")
        return rows, corpus[rows]

    with stage("repeated pairs"):
        found = counted(corpus) | repeated(corpus) | split(corpus)
        if (share := found["without blanks"].estimate.value) >= features.UNSPACED:
            notes.append(
                f"Texts without spaces: in {share:.1%} of the hypotheses, characters and pairs of characters are "
                "counted instead of words, and lengths are numbers of characters."
            )
        if (share := found["unparted"].estimate.value) > 0.5:
            notes.append(
                f"{share:.1%} of the hypotheses are longer than {LONG} characters and have no more than {FEW_WORDS} "
                "words: n-grams find almost nothing in them, whatever is there. Put spaces between the words."
            )
        if test is not None:
            found |= leakage(corpus, test)
    with stage("hypothesis alone"):
        _, part = part_of(HYPOTHESES_OF, "The hypothesis-only model is fitted to")
        found |= hypothesis_alone(part, seed)
        if found["gain"].estimate.over == OVER:  # only premises
            notes.append(
                "Too many pairs share their hypothesis to keep equal hypotheses in one fold. So the model may only "
                "remember the label of a hypothesis that it has seen with another premise."
            )
    with stage("features"):
        rows, part = part_of(FEATURES_OF, "Features and z-filter are computed from")
        table = features.features_in_shards(part.premise, part.hypothesis)
        counts = features.z_statistics(table.matrix, part.labels, len(corpus.classes)).counts
        top = top_table(table, counts, part)
        # the highest z of any feature and label, with the interval of that feature, although it was selected for its z
        best = (np.nan,) * 3 if top.empty else top.loc[top["z"].idxmax(), ["z", "z_low", "z_high"]].astype(float)
        found["highest z"] = Figure(Estimate(*best, len(part), over="pairs" if top.empty else OVER), Z)
    with stage("chance"):
        found |= beyond_chance(table, counts, part, copies=COPIES[len(part) > LARGE], seed=seed)
    with stage("z-filter"):
        dropped, kept = _dropped(table, part, seed)
        found |= dropped
    return Audit(found, top, kept.by_feature(table.names, most=TOP), kept, rows, notes)


def comparable(corpus: Corpus, *, seed: int = 0) -> dict[str, float]:
    """The numbers for comparisons between corpora of one size, by their names in `Audit.figures`."""
    found = repeated(corpus) | hypothesis_alone(corpus, seed)
    table = features.features_in_shards(corpus.premise, corpus.hypothesis)
    counts = features.z_statistics(table.matrix, corpus.labels, len(corpus.classes)).counts
    z, often = z_over_shares(counts), counts.sum(axis=1) >= OFTEN
    values = {name: figure.estimate.value for name, figure in found.items()}
    values["highest z"] = float(z[often].max(initial=-np.inf))
    values["above"] = above_share(z, often & (features.side_of(table.names) == "hypothesis"))
    values["dropped"] = 1 - float(_filtered(table, corpus, seed).keep.mean())
    return {name: value if np.isfinite(value) else float("nan") for name, value in values.items()}


def split(corpus: Corpus) -> dict[str, Figure]:
    """The splitting of hypotheses into words: the share that is written without blanks and split into characters, and
    the share that is long but has only one or two words (as in a script that `measure.features` does not know)."""
    letters = pd.Series(corpus.hypothesis).str.len().to_numpy()
    unparted = (features.tokenize(corpus.hypothesis).lengths <= FEW_WORDS) & (letters > LONG)
    shares = {"without blanks": features.unspaced(corpus.hypothesis).mean(), "unparted": unparted.mean()}
    return {name: Figure(exact(share, len(corpus))) for name, share in shares.items()}


def hypothesis_alone(corpus: Corpus, seed: int = 0) -> dict[str, Figure]:
    """Results of a cross-fitted model of the hypothesis' n-grams: accuracy, its difference from the most frequent
    label, the area under the ROC curve, which does not depend on the label balance, and the share of its most frequent
    answer.

    Nothing that `kept_together` links is both fitted on and predicted, if that leaves enough groups for the folds.
    The intervals are over these groups. NaN if a class is too small.
    """
    counts = np.bincount(corpus.labels, minlength=len(corpus.classes))
    groups, hypotheses = kept_together(corpus)
    folds = int(min(FOLDS, counts[counts > 0].min()))
    if folds < 2 or (counts > 0).sum() < 2:
        missing = Estimate(np.nan, np.nan, np.nan, len(corpus))
        units = {"hypothesis only": SHARE, "gain": POINTS, "area": AREA, "one answer": SHARE}
        return {name: Figure(missing, unit) for name, unit in units.items()}
    drawn = {"folds": folds, "groups": groups if groups.max() + 1 >= folds else None, "seed": seed}
    scores = cross_fitted(corpus.hypothesis, corpus.labels, n_classes=len(counts), **drawn)
    guess = scores.argmax(axis=1)
    right, most = guess == corpus.labels, corpus.labels == counts.argmax()
    over = "premises and hypotheses" if hypotheses else OVER
    share = clustered_share(right, groups)._replace(over=over)
    gain = stats.clustered_mean(right.astype(float) - most, groups)._replace(over=over)
    area = stats.clustered_area(scores, corpus.labels, draw_folds(corpus.labels, **drawn), groups)._replace(over=over)
    return {
        "hypothesis only": Figure(share),
        "gain": Figure(gain, POINTS),
        "area": Figure(area, AREA),
        "one answer": Figure(exact(np.bincount(guess).max() / len(guess), len(guess))),
    }


def kept_together(corpus: Corpus) -> tuple[NDArray[np.int64], bool]:
    """A group number for each pair, (N,), so that no pair of a group is fitted on while another is predicted, and True
    if equal hypotheses are always in one group; texts are compared as in `repeated`.

    Pairs are linked by their premise, because its other hypotheses show which labels remain, and by their hypothesis,
    which could be remembered. If hypotheses link more than a fold's share of the pairs into one group (such as a few
    fixed hypotheses for every premise), only premises count.
    """
    premise, hypothesis = folded(corpus.premise), folded(corpus.hypothesis)
    premises, both = pd.factorize(premise)[0], linked(premise, hypothesis)
    most = max(len(corpus) / FOLDS, np.bincount(premises).max(initial=0))
    return (both, True) if np.bincount(both).max(initial=0) <= most else (premises, False)


def _dropped(table: Features, corpus: Corpus, seed: int) -> tuple[dict[str, Figure], Filtered]:
    """The shares that the z-filter drops, of all pairs and of each label, with mean and range over orders; and its
    output for one order."""
    orders, found = ORDERS[len(corpus) > LARGE], {}
    filters = [_filtered(table, corpus, order) for order in range(seed, seed + orders)]
    groups = {"dropped": corpus.labels >= 0}
    groups |= {f"dropped: {name}": corpus.labels == label for label, name in enumerate(corpus.classes)}
    for name, mine in groups.items():
        share = Estimate(np.nan, np.nan, np.nan, 0)  # a class may have no pairs
        if mine.any():
            values = np.array([1 - each.keep[mine].mean() for each in filters])
            share = mean_and_range(values, n=int(mine.sum()), over=f"{orders} orders, range")
        found[name] = Figure(share)
    return found, filters[0]


def _filtered(table: Features, corpus: Corpus, order: int) -> Filtered:
    return z_filter(table.matrix, corpus.labels, names=table.names, k=K, seed=order, n_classes=len(corpus.classes))


# ---------------------------------------------------------------- audit reference


FILE = Path(__file__).with_name("audit_curves.csv")  # corpus, classes, figure, n, value, low, high, draws
TITLES = {"snli": "SNLI", "mnli": "MultiNLI", "wanli": "WANLI"}


def reference(classes: Sequence[str], n: int) -> pd.DataFrame:
    """The figures of the three reference corpora: corpus, figure, value, low, high (smallest and largest of the draws),
    at.

    at
        the number of pairs: ``n``, or the largest that all three curves reach if n is larger; for leakage, where a part
        of the pairs is the test set, the largest that was recorded for that corpus

    Between two recorded sizes a figure is interpolated over log n. There are no rows for unrecorded classes, or for
    sizes too small to measure a figure. Leakage was recorded for three classes and does not depend on them.
    """
    known = curves()
    name = "/".join(classes)
    own = known[(known["classes"] == name) | ((known["classes"] == "any") & (name in set(known["classes"])))]
    if own.empty:
        return pd.DataFrame(columns=["corpus", "figure", "value", "low", "high", "at"])
    reach = own[own["classes"] == name].groupby("corpus")["n"].max().min()
    at, rows = int(min(n, reach)), []
    for (corpus, figure), curve in own.dropna(subset=["value"]).groupby(["corpus", "figure"], sort=False):
        curve = curve.sort_values("n")
        if at < curve["n"].min():
            continue
        found = [np.interp(np.log(at), np.log(curve["n"]), curve[end]) for end in ("value", "low", "high")]
        rows.append((corpus, figure, *map(float, found), min(at, int(curve["n"].max()))))
    return pd.DataFrame(rows, columns=["corpus", "figure", "value", "low", "high", "at"])


def curves() -> pd.DataFrame:
    """The recorded curves: the columns of `FILE`."""
    return pd.read_csv(FILE)


def with_classes(corpus: Corpus, classes: Sequence[str]) -> Corpus:
    """Convert a corpus of three classes to other classes: pairs of missing classes are dropped, merged classes are
    merged."""
    group = {TWO_WAY: (0, 1, 1), CONTRADICTION_OR_NOT: (0, 0, 1)}.get(tuple(classes))
    group = np.array(group or [classes.index(name) if name in classes else -1 for name in LABELS])
    table = corpus.table.assign(label=group[corpus.labels])
    return replace(corpus, table=table[table["label"] >= 0], classes=tuple(classes), rows_read=None)


# ---------------------------------------------------------------- audit words


ONE_ANSWER = 0.95  # largest share of one answer at which a model's accuracy still has a meaning


def percent(value: float | None) -> str:
    """Format a share as a percentage with one decimal, or two if one would show 0; "–" if it is not known."""
    if value is None or value != value:
        return "–"
    if value == 0 or abs(value) >= 0.0005:
        return f"{100 * value:.1f}%"
    return f"{100 * value:.2g}%" if abs(value) >= 0.0001 else "<0.01%"


def points(value: float) -> str:
    """Format a difference of shares in percentage points, with its sign."""
    return "–" if value != value else f"{unsigned_zero(f'{100 * value:+.1f}')} points".replace("-", "−")


def distance(value: float | None) -> str:
    """Format a distance in percentage points, without a sign."""
    return "an unknown size" if value is None or value != value else points(value).lstrip("+")


def square(value: float) -> str:
    """Format an area under the ROC curve."""
    return "–" if value is None or value != value else f"{value:.2f}"


def z_words(value: float) -> str:
    """Format a z-statistic."""
    return "–" if not np.isfinite(value) else f"{value:.1f}"


def short_points(value: float) -> str:
    """Format a difference in percentage points without the unit, which is next to it."""
    return points(value).removesuffix(" points")


def ends(estimate, form=percent) -> str:
    """Format an interval in square brackets; "" if there is none."""
    low, high = estimate.low, estimate.high
    return "" if low != low or high != high else f"[{form(low).split()[0]}, {form(high)}]"


def visible(text: object, most: int = 80) -> str:
    """Prepare a text of the corpus for display: cut, with unprintable characters as codes."""
    text = str(text)
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in shown)


def unit(without_blanks: float | None) -> str:
    """The unit of lengths and overlaps, by the share of hypotheses that are written without blanks."""
    return "characters" if (without_blanks or 0) > 0.5 else "words"


def plain(feature: str, unit: str = "words") -> str:
    """The readable form of a feature's name in `measure.features`. unit: the counted unit (`unit`)."""
    known = {
        "null": "none in particular: every pair",
        "full-lex-overlap": f"all {unit} of the hypothesis in the premise",
        r"len-ratio \[(.+), inf\)": "hypothesis {} times as long as the premise, or more",
        r"len-ratio \[(.+), (.+)\)": "hypothesis {} to {} times as long as the premise",
        "hypo-len< (.+)": f"hypothesis of fewer than {{}} {unit}",
        "hypo-len> (.+)": f"hypothesis of more than {{}} {unit}",
    }
    for pattern, words in known.items():
        if found := re.fullmatch(pattern, feature):
            return words.format(*found.groups())
    if share := re.fullmatch("lex-overlap> (.+)", feature):
        return f"more than {float(share[1]):.0%} of the hypothesis's {unit} in the premise"
    words, at, side = features.joined([feature])[0].rpartition("@")
    return f"“{visible(words, 40)}” in the {side}" if at else feature


def whose(feature: str, unit: str = "words") -> str:
    """A description of the pairs with a feature, to complete "the pairs ..."."""
    text = plain(feature, unit)
    return f"that have {text}" if text[0] == "“" else f"with {'a ' * text.startswith('hypothesis')}{text}"
