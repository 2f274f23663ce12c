"""What a teacher's filter does to generated pairs, and which features stand out in a set of pairs (Figure 2)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse, stats

from nli_lib.measure.features import Features, tokenize, z_statistics
from nli_lib.select.zfilter import D0, DEBIASED, PLAIN, Part
from nli_lib.stats import t_interval, with_wilson
from nli_lib.store import atomic

SHARE, BELOW = 0.1, 10.0  # Figure 2 draws this share of the points under the curve of this z
ADVERSARIAL = ("PI-CD", "PI-SP", "IS-SD", "IS-CS", "LI-LI", "LI-TS", "ST")  # the seven of the adversarial benchmark
STRESS = ("ST-LM", "ST-NE", "ST-SE", "ST-WO")  # of which ST is the plain mean


def filter_effect(pairs: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """What the confidence filter keeps of each generator and seed: a row for each label, and one for all of them.

    pairs    columns generator, seed, label (an index into ``classes``), hypothesis, agrees (the teacher's most probable
             label is the intended one) and confident (kept); a label of which there is no pair has a row of n = 0
    Columns: generator, seed, label (a name, or "all"), n, agree, kept, share kept with its Wilson interval low and
    high, words and words kept (mean words of a hypothesis before and after), and mix and mix kept (the label's share).
    """
    words = pd.Series(tokenize(pairs["hypothesis"]).lengths, index=pairs.index)
    table = pairs.assign(words=words, words_kept=words.where(pairs["confident"]))
    rows, by = [], ["generator", "seed"]
    for name, group in table.groupby(by, sort=True):
        parts = {"all": group} | {each: group[group["label"] == at] for at, each in enumerate(classes)}
        for label, part in parts.items():
            counts = {"n": len(part), "agree": int(part["agrees"].sum()), "kept": int(part["confident"].sum())}
            means = {"words": part["words"].mean(), "words kept": part["words_kept"].mean()}
            shares = {"mix": len(part) / len(group), "mix kept": counts["kept"] / max(int(group["confident"].sum()), 1)}
            rows.append({**dict(zip(by, name, strict=True)), "label": label, **counts, **means, **shares})
    found = pd.DataFrame(rows, columns=[*by, "label", "n", "agree", "kept", "words", "words kept", "mix", "mix kept"])
    return with_wilson(found, correct="kept", value="share kept")


def highest(matrix, labels: ArrayLike, rows: ArrayLike, *, n_classes: int, min_count: int = 20) -> np.ndarray:
    """(C,) the highest z of each label in the pairs ``rows`` (N,) bool, of features that ``min_count`` of them have;
    NaN where there is no such feature."""
    labels, rows = np.asarray(labels), np.flatnonzero(rows)
    found = z_statistics(matrix[rows], labels[rows], n_classes)
    z = np.where((found.n >= min_count)[:, None], found.z, -np.inf).max(axis=0, initial=-np.inf)
    return np.where(np.isfinite(z), z, np.nan)


def sizes_of(
    sets: Mapping[str, Part],
    twins: Mapping[str, ArrayLike],
    matrix: sparse.sparray,
    labels: ArrayLike,
    source: ArrayLike,
    classes: Sequence[str],
) -> pd.DataFrame:
    """How large each training set of a pool is, of what it is made, and what stands out in it; one row a set.

    sets, twins  title -> `select.zfilter.Part` and its random twin (N,); matrix (N, V), labels and source (N,)
    Columns: set, pairs, pool (what its filter chose from), "of D0", "of G", "of G*", "share of <label>", and highest z
    and twin's highest z: `highest`, mean of the labels.
    """
    labels, source, rows = np.asarray(labels), np.asarray(source), []
    for title, part in sets.items():
        of = {f"of {name}": int((part.keep & (source == name)).sum()) for name in (D0, PLAIN, DEBIASED)}
        counts = np.bincount(labels[part.keep], minlength=len(classes)) / max(part.size, 1)
        shares = {f"share of {name}": share for name, share in zip(classes, counts, strict=True)}
        z = [highest(matrix, labels, each, n_classes=len(classes)).mean() for each in (part.keep, twins[title])]
        sizes = {"set": title, "pairs": part.size, "pool": int(part.pool.sum())}
        rows.append({**sizes, **of, **shares, "highest z": z[0], "twin's highest z": z[1]})
    return pd.DataFrame(rows)


def figure_two(
    table: Features,
    labels: ArrayLike,
    sets: Mapping[str, ArrayLike],
    classes: Sequence[str],
    *,
    min_count: int = 1,
    share: float = SHARE,
    seed: int = 0,
) -> pd.DataFrame:
    """Points of the paper's Figure 2: p(label | feature) against n(feature), a panel for each set of pairs (N,) bool.

    Columns: panel, feature, label (a name), n, p, z, tests (points of the panel before any is left out). Every point
    with z of `BELOW` or more is there, and a random ``share`` of the others, with the seed.
    Source: the paper on debiased generation, Figure 2 and appendix D (Z14). *Departures*: ``min_count`` leaves rarer
    features out; the paper has none (1).
    """
    labels, random, parts = np.asarray(labels), np.random.default_rng(seed), []
    for panel, rows in sets.items():
        at = np.flatnonzero(rows)
        found = z_statistics(table.matrix[at], labels[at], len(classes))
        column, label = np.nonzero(np.repeat((found.n >= max(min_count, 1))[:, None], len(classes), axis=1))
        z, n = found.z[column, label], found.n[column]
        drawn = (z >= BELOW) | (random.random(len(z)) < share)
        column, label, z, n = column[drawn], label[drawn], z[drawn], n[drawn]
        names, p = np.asarray(table.names, object)[column], found.counts[column, label] / n
        points = {"panel": panel, "feature": names, "label": np.asarray(classes, object)[label], "n": n, "p": p, "z": z}
        parts.append(pd.DataFrame(points).assign(tests=len(drawn)))
    return pd.concat(parts, ignore_index=True)


def benchmark_mean(accuracy: Mapping[str, float]) -> tuple[float, tuple[str, ...]]:
    """The adversarial benchmark's average, and which of its seven parts went into it.

    accuracy  title -> accuracy, of `ADVERSARIAL` and of `STRESS`; ST itself is the plain mean of the four, where they
              are all there. The average is the plain mean of the seven, not weighted by size; of fewer, of those that
              are there, and then it is not the paper's number; NaN of none.
    Source: Liu et al. (2020); the paper on debiased generation, Table 5 (Z13). *Departures*: DISCO weights by size.
    """
    known = {name: float(accuracy[name]) for name in ADVERSARIAL if name in accuracy}
    if all(name in accuracy for name in STRESS):
        known["ST"] = float(np.mean([accuracy[name] for name in STRESS]))
    return (float(np.mean(list(known.values()))) if known else float("nan")), tuple(sorted(known))


def t_tests(table: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Two-sided t-tests between conditions over seeds, paired and Welch's, for each test set.

    table  title, condition, seed, accuracy; pairs: (condition, other)
    Columns: title, condition, other, difference with low and high (t interval of the paired differences), seeds, paired
    and welch (p values), NaN with fewer than two seeds. Equal numbers in all seeds give p = 1. Seeds that only one of
    the two has are left out. Source: the paper on debiased generation, which tests at 95% and does not say how (Z13).
    """
    rows = []
    for title, part in table.groupby("title", sort=False):
        wide = part.pivot(index="seed", columns="condition", values="accuracy")
        for one, other in pairs:
            if one not in wide or other not in wide:
                continue
            both = wide[[one, other]].dropna()
            if both.empty:
                continue
            a, b = both[one].to_numpy(), both[other].to_numpy()
            found, p = t_interval(a - b), (np.nan, np.nan)
            if len(a) > 1:
                same = np.ptp(a) == np.ptp(b) == 0
                p = (
                    _p(stats.ttest_rel, a, b),
                    float(a[0] == b[0]) if same else _p(stats.ttest_ind, a, b, equal_var=False),
                )
            facts = {"difference": found.value, "low": found.low, "high": found.high, "seeds": len(a)}
            rows.append({"title": title, "condition": one, "other": other, **facts, "paired": p[0], "welch": p[1]})
    columns = ["title", "condition", "other", "difference", "low", "high", "seeds", "paired", "welch"]
    return pd.DataFrame(rows, columns=columns)


def _p(test, a: np.ndarray, b: np.ndarray, **options: object) -> float:
    """The test's p value; where the differences do not vary it is 1 without a difference and 0 with one."""
    if test is stats.ttest_rel and np.ptp(a - b) == 0:
        return float(a[0] == b[0])
    return float(test(a, b, **options).pvalue)


def write_sets(
    folder: Path, pool: pd.DataFrame, sets: Mapping[str, ArrayLike], classes: Sequence[str]
) -> dict[str, Path]:
    """Write training sets as JSON lines into ``folder``, a file for each: "Z-Aug" becomes z-aug.jsonl.

    pool  uid, premise, hypothesis, label (an index into ``classes``), source; sets: title -> (N,) bool. A line has the
    label by name. An empty set gives an empty file.
    """
    named = pool.assign(label=np.asarray(classes, dtype=object)[pool["label"]])
    table, paths = named[["uid", "premise", "hypothesis", "label", "source"]], {}
    for title, keep in sets.items():
        paths[title] = Path(folder) / f"{title.lower()}.jsonl"
        with atomic(paths[title]) as draft:
            table[np.asarray(keep, dtype=bool)].to_json(draft, orient="records", lines=True, force_ascii=False)
    return paths
