"""Numbers with intervals and units, and those that need the texts of a corpus alone: repeated pairs, leakage."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import SIDES, Corpus
from nli_lib.measure.features import ASCII_PUNCTUATION, spaced
from nli_lib.stats import Estimate, clustered_share

PAIRS, SHARE, POINTS, Z, CELLS = "pairs", "share", "share, difference", "standard errors", "share of n-grams and labels"
AREA = "area under the ROC curve"
COUNTED = "counted, nothing drawn"


class Figure(NamedTuple):
    """One number of an audit: the estimate with its interval, and its unit."""

    estimate: Estimate
    unit: str = SHARE

    def as_json(self) -> dict[str, object]:
        """Plain values; an end that is not known is None."""
        value, low, high, n, _, over = self.estimate
        ends = {"value": value, "low": low, "high": high}
        plain = {name: float(end) if np.isfinite(end) else None for name, end in ends.items()}
        return {**plain, "unit": self.unit, "n": int(n), "over": over}


def sample_premises(corpus: Corpus, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Positions of ``most`` pairs, ascending, whole premises in random order (the last may be cut); all where fewer."""
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
    """What stands in a corpus more than once; letter case, ASCII punctuation and blanks do not count.

    majority      the most frequent label
    duplicates    pairs that repeat an earlier one
    conflicts     pairs that stand there with more than one label, all of them counted
    hypotheses    hypotheses that repeat an earlier one
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
    """Shares of a test set's pairs whose pair, premise or hypothesis stands anywhere in the corpus; compared as in
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
    """(N,) which pairs of a test set stand in a corpus; compared as in `repeated`."""
    return np.isin(_keys(test)[0], _keys(corpus)[0])


def _keys(corpus: Corpus) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hashes (N,) of the folded pairs and of the folded hypotheses; 64 bits, so that millions do not collide."""
    premise, hypothesis = (folded(getattr(corpus, side)) for side in SIDES)
    return premise * np.uint64(0x9E3779B97F4A7C15) + hypothesis, hypothesis


def folded(texts: ArrayLike) -> NDArray[np.uint64]:
    """Hashes (N,) of texts, equal where they are so without letter case, ASCII punctuation and runs of blanks; those
    written without blanks, without any punctuation."""
    column = pc.utf8_lower(spaced(texts))
    column = pc.replace_substring_regex(column, ASCII_PUNCTUATION, "")
    column = pc.utf8_trim_whitespace(pc.replace_substring_regex(column, r"\s+", " "))
    return pd.util.hash_array(column.to_numpy(zero_copy_only=False), categorize=False)


def exact(count: float, n: int) -> Estimate:
    """A count: its interval is itself."""
    return Estimate(float(count), float(count), float(count), int(n), over=COUNTED)
