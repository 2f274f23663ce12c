"""What the arms of a comparison choose among the pairs of one corpus: a Selection for each, from texts and logits.

made, why = choices(candidates, pair=run.logits, cross=logits)      # arm -> Selection, and what is lacking -> reason
Pool(candidates, choices=made, absent=why)                          # for `select.arms`
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.artifacts import Features, join, prediction
from nli_lib.measure.check import class_count
from nli_lib.measure.consensus import THRESHOLD, prunable, suspects
from nli_lib.measure.difficulty import dynamics_features, levels
from nli_lib.measure.dynamics import margin, variability
from nli_lib.measure.partial_input import cross_fitted, partial_input_predictions
from nli_lib.measure.shards import features_in_shards
from nli_lib.select.selection import Selection
from nli_lib.select.subsets import training_subsets
from nli_lib.select.zfilter import z_filter, z_mix

NO_NEUTRAL = (
    "it prunes entailments that models call neutral, and this corpus has the labels {}: see nli-study suspects for the "
    "labels that models contradict"
)


def choices(
    candidates: Corpus,
    *,
    pair: ArrayLike | None = None,
    hypothesis: ArrayLike | None = None,
    cross: ArrayLike | None = None,
    generated: Corpus | None = None,
    threshold: float = THRESHOLD,
    seed: int = 0,
) -> tuple[dict[str, Selection], dict[str, str]]:
    """`select.arms.Pool.choices` from what has been computed of M candidates, and why others are lacking.

    pair        (E, M, C) logits of every epoch of a model trained on them: ambiguous third, AUM
    hypothesis  (E', M, C) of one trained on their hypotheses: easy, hard
    cross       (M, C) logits of models that did not train on the pair: consensus pruning above the ``threshold``
    generated   Corpus of K pairs that a generator wrote: Z-Aug, Par-Z, Seq-Z, whose filter takes the seed

    The z-filter needs the texts alone. Sources: those of `select.zfilter`, `select.subsets`, `measure.consensus`.
    """
    made, absent = _filtered(candidates, generated, seed)
    gold = candidates.labels
    if not prunable(candidates.classes):
        absent["consensus pruning"] = NO_NEUTRAL.format(", ".join(candidates.classes))
    elif cross is not None:
        wrong = suspects(cross, gold, threshold=threshold)
        made["consensus pruning"] = Selection.where(~wrong, dropped=f"another label, by more than {threshold:g}")
    if pair is not None:
        level = np.zeros(len(gold), np.int64)
        if hypothesis is not None:
            try:
                level = levels(dynamics_features(pair, hypothesis, gold))
            except ValueError as error:
                hypothesis, absent["levels"] = None, str(error)
        parts = training_subsets(level, variability(pair, gold), margin(pair, gold))
        made |= {"ambiguous third": parts["data maps"], "AUM": parts["aum"]}
        made |= {} if hypothesis is None else {name: parts[name] for name in ("easy", "hard")}
    return made, absent


def _filtered(candidates: Corpus, generated: Corpus | None, seed: int) -> tuple[dict[str, Selection], dict[str, str]]:
    """The z-filter of the candidates, and the three mixtures with generated pairs."""
    try:
        table = _features(candidates, generated)
    except ValueError as error:  # a label too rare for the cross-fitted prediction
        return {}, dict.fromkeys(("features", "generated"), str(error))
    whole = len(candidates)
    options = {"names": table.names, "seed": seed, "n_classes": len(candidates.classes)}
    found: dict[str, Selection] = {"z-filter": z_filter(table.matrix[:whole], candidates.labels, **options)}
    if generated is None or not len(generated) or generated.classes != candidates.classes:
        return found, {}
    labels = np.concatenate([candidates.labels, generated.labels])
    base = np.arange(len(labels)) < whole
    mixed = {way: z_mix(way.lower(), table.matrix, labels, base, **options) for way in ("Z-Aug", "Par-Z", "Seq-Z")}
    return found | mixed, {}


def _features(candidates: Corpus, generated: Corpus | None) -> Features:
    """Features of the candidates and, after them, the generated pairs: those of the z-filter, a cross-fitted prediction
    from the hypothesis for the one and an out-of-sample one for the other."""
    more = candidates[:0] if generated is None or generated.classes != candidates.classes else generated
    classes, gold = class_count(candidates.labels, n_classes=len(candidates.classes)), candidates.labels
    guess: NDArray = cross_fitted(candidates.hypothesis, gold, n_classes=classes, groups=candidates.premise)
    if len(more):
        other = partial_input_predictions(candidates.hypothesis, gold, {"": more.hypothesis}, n_classes=classes)[""]
        guess = np.concatenate([guess, other])
    sides = [np.concatenate([getattr(candidates, side), getattr(more, side)]) for side in ("premise", "hypothesis")]
    return join(features_in_shards(*sides), prediction(guess.argmax(axis=1), n_classes=classes))
