"""What an audit measures of a corpus: repeated pairs, leakage, the hypothesis alone, features, the z-filter.

found = audit(corpus, test)          every number of the page, each with interval and unit
values = comparable(corpus)          the numbers that are compared between corpora, of one size, without intervals

No network is trained. z here compares a label's share among the pairs of a feature with its share in the corpus
(`z_over_shares`), so that an unequal label balance does not make every frequent word stand out; the z-filter compares
with one over the number of labels, as its paper does.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.features import (
    OFTEN,
    UNSPACED,
    Features,
    features_in_shards,
    side_of,
    tokenize,
    unspaced,
    z_statistics,
)
from nli_lib.measure.giveaways import cross_fitted, draw_folds
from nli_lib.report.audit_features import TOP, above_share, beyond_chance, highest, top_table, z_over_shares
from nli_lib.report.audit_figures import (
    AREA,
    POINTS,
    SHARE,
    Figure,
    counted,
    exact,
    folded,
    leakage,
    repeated,
    sample_premises,
)
from nli_lib.select.selection import linked
from nli_lib.select.zfilter import Filtered, z_filter
from nli_lib.stats import OVER, Estimate, clustered_area, clustered_mean, clustered_share, mean_and_range

FEATURES_OF = 1_000_000  # pairs; of a larger corpus, features and z-filter are those of a sample of whole premises
HYPOTHESES_OF = 50_000  # pairs on which the hypothesis-only model is cross-fitted, at most
LARGE = 100_000  # pairs from where on fewer copies and orders are computed
COPIES, ORDERS = (50, 20), (5, 3)  # up to LARGE pairs, and beyond
FOLDS, K = 5, 20
FEW_WORDS, LONG = 2, 20  # words of a hypothesis of more than so many characters that hardly are words

Stage = Callable[[str], AbstractContextManager]


class Audit(NamedTuple):
    """figures: name -> Figure; top: features of each label, best first (`top_table`); reasons: features by which the
    z-filter drops most (`Filtered.by_feature`); kept: what the filter keeps of `featured`, the pairs whose features
    were counted; notes: what was measured on a part only, in words."""

    figures: dict[str, Figure]
    top: pd.DataFrame
    reasons: pd.DataFrame
    kept: Filtered
    featured: NDArray[np.int64]
    notes: list[str]


def audit(corpus: Corpus, test: Corpus | None = None, *, seed: int = 0, stage: Stage = nullcontext) -> Audit:
    """Everything that the page shows of one corpus, and of a test file what the corpus holds of it.

    stage(name) is entered before each step, for a display of progress.
    """
    classes, notes = corpus.classes, []
    with stage("repeated pairs"):
        found = counted(corpus) | repeated(corpus) | split(corpus)
        if (share := found["without blanks"].estimate.value) >= UNSPACED:
            notes.append(
                "Texts without blanks: characters and pairs of characters stand for words, and lengths are those in "
                f"characters, in {share:.1%} of the hypotheses."
            )
        if (share := found["unparted"].estimate.value) > 0.5:
            notes.append(
                f"{share:.1%} of the hypotheses are longer than {LONG} characters and have no more than {FEW_WORDS} "
                "words, as blanks part them: n-grams see next to nothing of such texts, and that they find nothing "
                "means nothing. Put blanks between the words."
            )
        if test is not None:
            found |= leakage(corpus, test)
    with stage("hypothesis alone"):
        part = sample_premises(corpus, HYPOTHESES_OF, seed)
        if len(part) < len(corpus):
            notes.append(
                f"The hypothesis-only model is fitted to {len(part):,} of {len(corpus):,} pairs, drawn at random by "
                "premise."
            )
        part = corpus[part] if len(part) < len(corpus) else corpus
        found |= hypothesis_alone(part, seed)
        if found["gain"].estimate.over == OVER:  # premises alone
            notes.append(
                "So many pairs are linked by equal hypotheses that folds which split none cannot be drawn: what the "
                "hypothesis alone predicts may be remembered from the same hypothesis beside another premise."
            )
    with stage("features"):
        rows = sample_premises(corpus, FEATURES_OF, seed)
        if len(rows) < len(corpus):
            notes.append(
                f"Features and z-filter are those of {len(rows):,} of {len(corpus):,} pairs, drawn at random by "
                "premise."
            )
        part = corpus[rows] if len(rows) < len(corpus) else corpus
        table = features_in_shards(part.premise, part.hypothesis)
        counts = z_statistics(table.matrix, part.labels, len(classes)).counts
        top = top_table(table, counts, part)
        found["highest z"] = highest(top, len(part))
    with stage("chance"):
        found |= beyond_chance(table, counts, part, copies=COPIES[len(part) > LARGE], seed=seed)
    with stage("z-filter"):
        orders = ORDERS[len(part) > LARGE]
        filters = [_filtered(table, part, order) for order in range(seed, seed + orders)]
        kept, dropped = filters[0], [1 - each.keep.mean() for each in filters]
        found["dropped"] = Figure(mean_and_range(np.array(dropped), n=len(part), over=f"{orders} orders, range"))
        for label, name in enumerate(classes):
            mine, share = part.labels == label, Estimate(np.nan, np.nan, np.nan, 0)  # a class may have no pair
            if mine.any():
                own = np.array([1 - each.keep[mine].mean() for each in filters])
                share = mean_and_range(own, n=int(mine.sum()), over=f"{orders} orders, range")
            found[f"dropped: {name}"] = Figure(share)
        reasons = kept.by_feature(table.names, most=TOP)
    return Audit(found, top, reasons, kept, rows, notes)


def comparable(corpus: Corpus, *, seed: int = 0) -> dict[str, float]:
    """The numbers by which an audit compares corpora of one size, by the name they have in `Audit.figures`."""
    found = repeated(corpus) | hypothesis_alone(corpus, seed)
    table = features_in_shards(corpus.premise, corpus.hypothesis)
    counts = z_statistics(table.matrix, corpus.labels, len(corpus.classes)).counts
    z, often = z_over_shares(counts), counts.sum(axis=1) >= OFTEN
    values = {name: figure.estimate.value for name, figure in found.items()}
    values["highest z"] = float(z[often].max(initial=-np.inf))
    values["above"] = above_share(z, often & (side_of(table.names) == "hypothesis"))
    values["dropped"] = 1 - float(_filtered(table, corpus, seed).keep.mean())
    return {name: value if np.isfinite(value) else float("nan") for name, value in values.items()}


def split(corpus: Corpus) -> dict[str, Figure]:
    """How the hypotheses fall into words: the shares that are written without blanks and are split into characters, and
    that are long and all the same one or two words (of a script that `measure.features` does not know, for example)."""
    letters = pd.Series(corpus.hypothesis).str.len().to_numpy()
    unparted = (tokenize(corpus.hypothesis).lengths <= FEW_WORDS) & (letters > LONG)
    shares = {"without blanks": unspaced(corpus.hypothesis).mean(), "unparted": unparted.mean()}
    return {name: Figure(exact(share, len(corpus))) for name, share in shares.items()}


def hypothesis_alone(corpus: Corpus, seed: int = 0) -> dict[str, Figure]:
    """Cross-fitted accuracy of n-grams of the hypothesis, how far it lies above the most frequent label, the area under
    the ROC curve, which does not depend on the label balance, and in which share of its answers the model gives the
    label that it gives most often.

    Nothing that `kept_together` links is both fitted on and predicted, where it makes as many groups as folds. The
    intervals are over these groups. NaN where a class is too small.
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
    gain = clustered_mean(right.astype(float) - most, groups)._replace(over=over)
    area = clustered_area(scores, corpus.labels, draw_folds(corpus.labels, **drawn), groups)._replace(over=over)
    return {
        "hypothesis only": Figure(share),
        "gain": Figure(gain, POINTS),
        "area": Figure(area, AREA),
        "one answer": Figure(exact(np.bincount(guess).max() / len(guess), len(guess))),
    }


def kept_together(corpus: Corpus) -> tuple[NDArray[np.int64], bool]:
    """A number for each pair, (N,), equal for pairs of which none may be fitted on while another is predicted, and
    whether that holds for equal hypotheses too; texts are compared as in `audit_figures.repeated`.

    Pairs are linked by their premise, whose other hypotheses tell which labels it has left, and by their hypothesis,
    which could be remembered. Where hypotheses link more than a fold's share of the pairs into one group (a few fixed
    hypotheses beside every premise), premises alone decide.
    """
    premise, hypothesis = folded(corpus.premise), folded(corpus.hypothesis)
    premises, both = pd.factorize(premise)[0], linked(premise, hypothesis)
    most = max(len(corpus) / FOLDS, np.bincount(premises).max(initial=0))
    return (both, True) if np.bincount(both).max(initial=0) <= most else (premises, False)


def _filtered(table: Features, corpus: Corpus, order: int) -> Filtered:
    return z_filter(table.matrix, corpus.labels, names=table.names, k=K, seed=order, n_classes=len(corpus.classes))
