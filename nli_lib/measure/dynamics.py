"""Scores of examples from a model's logits: over the epochs of its training, and before and after an edit.

The scores of a data map take `logits (E, N, C)`, as recorded over E epochs, and return one number for each example,
`(N,)`. p[e, i, c] is the softmax of the logits over classes, g[i] the gold label of example i. One epoch (E = 1) is
allowed. The source of the logits matters and is not decided here (the training pass with dropout, or an evaluation pass
after each epoch): the run's `capture` records it, and a figure should repeat it.

`levels` measures the difficulty of an example for two models, one that reads both texts and one that reads the
hypothesis alone (the difficulty paper). The five measures of spurious correlation in that paper's Table 2 follow, as
printed and corrected: each takes N premises and N hypotheses and returns (N,). Their words are those of
`measure.features`, as in the paper's `heuristics.py`. A text without words scores 0.

`sensitivity` and `outcomes` compare an original x with label l and its revision x', written for label l': does the
prediction follow the edit, and is it right? They return one value for each pair of the two, (K,), in the order of the
revisions: an original with four revisions is counted four times.
"""

from collections.abc import Callable, Collection, Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import softmax

from nli_lib.measure import Floats, check_labels, check_logits, check_scored
from nli_lib.measure.features import Texts, Words, tokenize_pairs

# The six scores, each with the sign that makes high mean harder to learn or less certain.
DOUBT = {"variability": 1, "max_variability": 1, "confidence": -1, "margin": -1, "correctness": -1, "forgetting": 1}


def confidence(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Mean probability of the gold label over the epochs, 0 to 1; high = easy.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).

    Formula: mu[i] = mean over e of p[e, i, g[i]].

    References
    ----------
    Dataset cartography (Swayamdipta et al. 2020); WANLI section 2.1, the difficulty paper equation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.dynamics import confidence
    >>> epochs = [[[0.2, 0.4, 0.4], [0.9, 0.05, 0.05]], [[0.8, 0.1, 0.1], [0.9, 0.05, 0.05]]]
    >>> logits = np.log(epochs)  # two epochs, two pairs, three classes
    >>> confidence(logits, labels=[0, 0]).round(2)
    array([0.5, 0.9])
    """
    return _gold_probabilities(logits, labels).mean(axis=0)


def variability(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Spread of the gold label's probability over the epochs, 0 to 0.5; high = ambiguous.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).

    Formula: sigma[i] = sqrt(mean over e of (p[e, i, g[i]] - mu[i])^2), the population standard deviation, so sigma <=
    sqrt(mu (1 - mu)) <= 0.5, and with odd E at most sqrt(E^2 - 1) / (2 E).

    *Departures*: equation 2 of the difficulty paper is printed without the square, which makes it 0 for every example;
    its code, like all the others, takes the population standard deviation, and so do we.

    References
    ----------
    Dataset cartography; WANLI section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.dynamics import variability
    >>> epochs = [[[0.2, 0.4, 0.4], [0.9, 0.05, 0.05]], [[0.8, 0.1, 0.1], [0.9, 0.05, 0.05]]]
    >>> logits = np.log(epochs)  # two epochs, two pairs, three classes
    >>> variability(logits, labels=[0, 0]).round(2)
    array([0.3, 0. ])
    """
    return _gold_probabilities(logits, labels).std(axis=0)


def correctness(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Share of the epochs in which the gold label had the highest logit, 0 to 1; high = easy.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).

    Formula: mean over e of [argmax over c of logits[e, i, c] = g[i]]; a tie counts for the lowest class index.

    *Departures*: cartography and WANLI report the count, which is this share times E. Never divide by the largest value
    seen, as their plots do: if no example is always right, that overstates every share.

    References
    ----------
    The difficulty paper equation 3.

    Examples
    --------
    >>> from nli_lib.measure.dynamics import correctness
    >>> logits = [[[0, 1, 0]], [[2, 1, 0]]]  # two epochs of one pair
    >>> correctness(logits, labels=[0])
    array([0.5])
    """
    return _correct(*check_scored(logits, labels)).mean(axis=0)


def margin(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Area under the margin (AUM): gold logit minus the highest other logit, averaged over the epochs, any real; high =
    easy.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).
    Formula: mean over e of (logits[e, i, g[i]] - max over c != g[i] of logits[e, i, c]).
    *Departures*: the difficulty paper's code finds the runner-up by probability, which differs only for classes that
    the softmax has rounded to equal values; we search the logits, as the AUM package does.

    References
    ----------
    Pleiss et al. 2020; the difficulty paper uses it as average margin.

    Examples
    --------
    >>> from nli_lib.measure.dynamics import margin
    >>> logits = [[[3, 1, 0], [0, 2, 1]]]  # one epoch of two pairs
    >>> margin(logits, labels=[0, 0])
    array([ 2., -2.])
    """
    scores, gold = check_scored(logits, labels)
    others = scores.copy()  # (E, N, C)
    others[:, np.arange(len(gold)), gold] = -np.inf
    return (_at_gold(scores, gold) - others.max(axis=-1)).mean(axis=0)


def max_variability(logits: ArrayLike) -> Floats:
    """Estimated max variability: the largest spread of any label's probability, 0 to 0.5; high = ambiguous.

    Notes
    -----
    Shapes: logits (E, N, C) -> (N,). It needs no gold label, so it works on unlabelled text.

    Formula: max over c of the population standard deviation over e of p[e, i, c].

    References
    ----------
    WANLI section 2.3, equation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.dynamics import max_variability
    >>> epochs = [[[0.2, 0.4, 0.4], [0.9, 0.05, 0.05]], [[0.8, 0.1, 0.1], [0.9, 0.05, 0.05]]]
    >>> logits = np.log(epochs)  # two epochs, two pairs, three classes
    >>> max_variability(logits).round(2)
    array([0.3, 0. ])
    """
    return softmax(check_logits(logits), axis=-1).std(axis=0).max(axis=-1)


def forgetting(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
    """Number of times an example was right in one epoch and wrong in the next, 0 to E // 2; high = hard.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,) integers.
    Formula: sum over e of [right at e and wrong at e + 1].
    *Departures*: cartography gives 1000 to an example that was never right. We return its true count, 0, since
    `correctness(...) == 0` identifies those examples.

    References
    ----------
    Toneva et al. 2019; cartography's forgetfulness.

    Examples
    --------
    >>> from nli_lib.measure.dynamics import forgetting
    >>> logits = [[[2, 1, 0]], [[0, 1, 0]], [[2, 1, 0]]]  # right, wrong, right
    >>> forgetting(logits, labels=[0])
    array([1])
    """
    right = _correct(*check_scored(logits, labels))  # (E, N)
    return (right[:-1] & ~right[1:]).sum(axis=0, dtype=np.int64)


def el2n(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Length of the error vector (EL2N), averaged over the epochs, 0 to 1.42; high = hard.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).
    Formula: mean over e of ``|p[e, i] - y[i]|``, y[i] the one-hot label.
    *Departures*: the paper takes an early epoch and the mean over ten trainings; here the caller chooses.

    References
    ----------
    Paul et al. (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.dynamics import el2n
    >>> el2n(np.log([[[0.2, 0.4, 0.4]]]), labels=[0]).round(2)
    array([0.98])
    """
    return np.linalg.norm(_errors(logits, labels), axis=-1).mean(axis=0)


def self_influence(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Self-influence of an example through the bias of the last layer, 0 to 2 E; high = hard.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).
    Formula: sum over e of ``|p[e, i] - y[i]|^2``, the squared gradient of the loss of each epoch's model.
    *Departures*: TracIn weights the epochs by their learning rates, and for the weights of the last layer multiplies by
    the squared length of its input, which is not recorded; for inputs of equal length the order is the same.

    References
    ----------
    TracIn (Pruthi et al. 2020).

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.dynamics import self_influence
    >>> self_influence(np.log([[[0.2, 0.4, 0.4]]]), labels=[0]).round(2)
    array([0.96])
    """
    return (_errors(logits, labels) ** 2).sum(axis=(0, -1))


def scores(logits: ArrayLike, labels: ArrayLike) -> dict[str, NDArray]:
    """All six scores by name, each (N,), for a table of examples: (E, N, C), (N,) -> {"confidence": (N,), ...}.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from nli_lib.measure.dynamics import scores
    >>> epochs = [[[0.2, 0.4, 0.4], [0.9, 0.05, 0.05]], [[0.8, 0.1, 0.1], [0.9, 0.05, 0.05]]]
    >>> logits = np.log(epochs)  # two epochs, two pairs, three classes
    >>> pd.DataFrame(scores(logits, labels=[0, 0])).round(2)[["confidence", "variability", "correctness"]]
       confidence  variability  correctness
    0         0.5          0.3          0.5
    1         0.9          0.0          1.0
    """
    named = {each.__name__: each(logits, labels) for each in (confidence, variability, correctness, margin, forgetting)}
    return named | {"max_variability": max_variability(logits)}


def _gold_probabilities(logits: ArrayLike, labels: ArrayLike) -> Floats:
    scores, gold = check_scored(logits, labels)
    return _at_gold(softmax(scores, axis=-1), gold)  # (E, N)


def _errors(logits: ArrayLike, labels: ArrayLike) -> Floats:
    scores, gold = check_scored(logits, labels)
    return softmax(scores, axis=-1) - np.eye(scores.shape[-1])[gold]  # (E, N, C)


def _at_gold(values: Floats, gold: NDArray[np.int64]) -> Floats:
    return values[:, np.arange(len(gold)), gold]  # (E, N, C) -> (E, N)


def _correct(scores: Floats, gold: NDArray[np.int64]) -> NDArray[np.bool_]:
    return scores.argmax(axis=-1) == gold  # (E, N)


# ---------------------------------------------------------------- difficulty


LEVELS = ("easy", "ambiguous", "hard")
MEASURES = (confidence, variability, margin, correctness)
FEATURES = tuple(f"{view} {measure.__name__}" for view in ("pair", "hypothesis") for measure in MEASURES)


def dynamics_features(pair: ArrayLike, hypothesis: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """The eight features of each example, (N, 8), in the order of `FEATURES`; each is a measure of this module.

    Notes
    -----
    Shapes: pair (E, N, C) and hypothesis (E', N, C) are the logits of a model trained on both texts and of one trained
    on the hypothesis alone, labels (N,).

    References
    ----------
    The difficulty paper section 3 (H3); its recorder evaluates after each epoch (`capture="eval"`).
    """
    return np.stack([measure(logits, labels) for logits in (pair, hypothesis) for measure in MEASURES], axis=1)


def feature_table(pair: ArrayLike, hypothesis: ArrayLike, labels: ArrayLike) -> pd.DataFrame:
    """`dynamics_features` as a tidy table: a column for each of `FEATURES`, five decimals, and the column ``gold``."""
    values = dynamics_features(pair, hypothesis, labels).round(5).astype(np.float32)
    return pd.DataFrame(values, columns=FEATURES).assign(gold=np.asarray(labels))


def levels(features: ArrayLike, *, seed: int = 0, starts: int = 10) -> NDArray[np.int64]:
    """Level of each example, (N,): 0 easy, 1 ambiguous, 2 hard, as indices of `LEVELS`.

    Notes
    -----
    Shapes: features (N, D); the first column must be the pair's confidence, by which the groups are named.

    Formula: standardise every column (a constant one becomes 0), fit a mixture of three Gaussians with full covariance
    (the best of `starts` k-means starts, 1e-6 added to each variance), put each example into the most probable one; the
    group with the highest mean confidence is easy, the one with the lowest is hard.

    *Departures*: the code fits twice without a seed, prints the accuracy by level of the first fit and saves the groups
    of the second. Here `seed` fixes one fit. The groups may depend on it; try several seeds.

    References
    ----------
    The difficulty paper section 3 and its code (H4, H5). "Ambiguous" is the remaining group, not the one that varies
    most.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.dynamics import LEVELS, levels
    >>> confidence = np.repeat([0.9, 0.5, 0.1], 20) + np.tile(np.linspace(0, 0.05, 20), 3)
    >>> found = levels(confidence[:, None])
    >>> [LEVELS[each] for each in found[::20]]
    ['easy', 'ambiguous', 'hard']
    """
    from sklearn.mixture import GaussianMixture  # takes a second to import, needed only for levels
    from sklearn.preprocessing import StandardScaler

    values = np.asarray(features, dtype=np.float64)
    mixture = GaussianMixture(len(LEVELS), n_init=starts, random_state=seed)
    group = mixture.fit_predict(StandardScaler().fit_transform(values))
    found, member = np.unique(group, return_inverse=True)
    if len(found) < len(LEVELS):
        raise ValueError(f"the examples fall into {len(found)} of {len(LEVELS)} groups: too few differ from each other")
    mean = np.bincount(member, weights=values[:, 0]) / np.bincount(member)
    return np.argsort(np.argsort(-mean, kind="stable"))[member]


def level_agreement(first: ArrayLike, second: ArrayLike) -> dict[str, float]:
    """Agreement of two sets of levels of the same examples; all numbers are 1 if they are the same.

    adjusted Rand
        1 for the same groups, 0 for agreement by chance; the names of the groups play no part
    same level
        share of examples that both put into the same level, 0 to 1
    hard in both
        share of the first's hard examples that are hard in the second
    hard by chance
        the same share if the two were independent: the share of all examples that are hard in the second

    Examples
    --------
    >>> from nli_lib.measure.dynamics import level_agreement
    >>> level_agreement([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 1])["hard in both"]
    0.5
    """
    from sklearn.metrics import adjusted_rand_score

    first, second = np.asarray(first), np.asarray(second)
    hard = LEVELS.index("hard")
    return {
        "adjusted Rand": float(adjusted_rand_score(first, second)),
        "same level": float((first == second).mean()),
        "hard in both": float((second[first == hard] == hard).mean()),
        "hard by chance": float((second == hard).mean()),
    }


# ---------------------------------------------------------------- counterfactuals


def sensitivity(original: ArrayLike, revised: ArrayLike) -> NDArray[np.float64]:
    """Probability that moves from the old to the new *predicted* label, 0 to 1; 0 where the prediction does not change.

    Notes
    -----
    Shapes: logits of the originals (K, C) and of their revisions (K, C) -> (K,).
    Formula: [p(l2|x') - p(l2|x) + p(l1|x) - p(l1|x')] / 2, l1 the most probable label of x and l2 that of x'; of
    equally probable labels the first. Gold labels play no part: a model that is always wrong can score 1. `outcomes`
    shows the difference.
    *Departures*: none. Table 5 prints the mean over the pairs, times 100.

    References
    ----------
    DISCO, section 5.2 (D14).

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.dynamics import sensitivity
    >>> original, revised = np.log([[0.7, 0.2, 0.1]]), np.log([[0.1, 0.3, 0.6]])
    >>> sensitivity(original, revised).round(2)
    array([0.55])
    """
    before, after = (softmax(each, axis=1) for each in _both_texts(original, revised))
    at, old, new = np.arange(len(before)), before.argmax(axis=1), after.argmax(axis=1)
    moved = (after[at, new] - before[at, new] + before[at, old] - after[at, old]) / 2
    return np.where(old == new, 0.0, moved)  # exactly, whatever the rounding


def outcomes(original: ArrayLike, revised: ArrayLike, labels: ArrayLike, new_labels: ArrayLike) -> NDArray[np.object_]:
    """Outcome of each pair, (K,): "changed" or "unchanged" prediction and the number of its two texts that are
    classified right, as in "changed, 1 right".

    Notes
    -----
    Shapes: logits (K, C) twice, gold labels (K,) twice. The share of "2 right" is the pair accuracy, which is never
    above the accuracy on either text; K counts pairs, so an original with four revisions counts four times. If the gold
    labels differ, an unchanged prediction has at most one right; "changed" with fewer than two right is sensitive and
    wrong.

    References
    ----------
    DISCO, section 5.2 (D15).

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.dynamics import outcomes
    >>> original, revised = np.log([[0.7, 0.2, 0.1]]), np.log([[0.1, 0.3, 0.6]])
    >>> outcomes(original, revised, labels=[0], new_labels=[2]).tolist()
    ['changed, 2 right']
    """
    before, after = _both_texts(original, revised)
    old, new = before.argmax(axis=1), after.argmax(axis=1)
    right = (old == check_labels(labels, *before.shape)).astype(int) + (new == check_labels(new_labels, *before.shape))
    names = [[f"{word}, {count} right" for count in range(3)] for word in ("unchanged", "changed")]
    return np.array(names, dtype=object)[(old != new).astype(int), right]


def _both_texts(original: ArrayLike, revised: ArrayLike) -> tuple[Floats, Floats]:
    before, after = (check_logits(each, epochs=False) for each in (original, revised))
    if before.shape != after.shape:
        raise ValueError(f"logits of shape {before.shape} and {after.shape}: give both texts of each pair a row")
    return before, after


# ---------------------------------------------------------------- spurious


SPURIOUS = ("word overlap", "antonyms", "length mismatch", "misspelled", "negation")  # in the paper's order
NEGATIONS = ("no", "not", "never", "none")
MORE_NEGATIONS = (*NEGATIONS, "nobody", "nothing", "nor", "neither", "nowhere", "without", "cannot", "cant", "dont")
INNER_APOSTROPHE = "(\\p{L})['\u2019](\\p{L})"
APOSTROPHE = "\u02bc"  # a letter in Unicode, so the tokenizer keeps it inside a word


def word_overlap(premises: Texts, hypotheses: Texts) -> Floats:
    """Share of the hypothesis that also occurs in the premise, 0 to 1; high = much overlap.

    Notes
    -----
    Formula: ``|types of the premise and of the hypothesis|`` / tokens of the hypothesis. A repeated word counts once in
    the numerator and every time in the denominator, as in the paper's code (H6).

    Examples
    --------
    >>> from nli_lib.measure.dynamics import word_overlap
    >>> word_overlap(["A dog runs in the park."], ["A dog sleeps."]).round(2)
    array([0.67])
    """
    premise, hypothesis = _tokens(premises, hypotheses)
    shared = (premise.counts() > 0).multiply(hypothesis.counts() > 0).sum(axis=1)
    return _share(shared, hypothesis.lengths)


def length_mismatch(premises: Texts, hypotheses: Texts) -> Floats:
    """Excess length of the premise, in lengths of the hypothesis, -1 and up; 0 = equally long.

    Notes
    -----
    Formula: (tokens of the premise - tokens of the hypothesis) / tokens of the hypothesis, signed (H6; the paper's
    table says only "sentence length").

    Examples
    --------
    >>> from nli_lib.measure.dynamics import length_mismatch
    >>> length_mismatch(["A dog runs in the park."], ["A dog sleeps."])
    array([1.])
    """
    premise, hypothesis = _tokens(premises, hypotheses)
    return _share(premise.lengths - hypothesis.lengths, hypothesis.lengths)


def negation(premises: Texts, hypotheses: Texts, *, corrected: bool = False) -> Floats:
    """1 where a text of the pair has a negation, else 0.

    Notes
    -----
    Formula: 1 if either text has one of `NEGATIONS` (H6).

    *Departures*: the paper's four words miss nobody, nothing, nor and every contraction (isn't, won't).
    `corrected=True` counts `MORE_NEGATIONS` and words ending in n't as well.

    Examples
    --------
    >>> from nli_lib.measure.dynamics import negation
    >>> texts = ["A dog runs."] * 2, ["It isn't asleep.", "It does not sleep."]
    >>> negation(*texts)
    array([0., 1.])
    >>> negation(*texts, corrected=True)
    array([1., 1.])
    """
    premise, hypothesis = _tokens(premises, hypotheses, contractions=corrected)
    words = premise.vocabulary
    known = pc.is_in(words, value_set=pa.array(MORE_NEGATIONS if corrected else NEGATIONS, words.type))
    if corrected:
        known = pc.or_(known, pc.ends_with(words, f"n{APOSTROPHE}t"))
    negates = np.asarray(known).astype(np.int64)  # (W,)
    return ((premise.counts() @ negates + hypothesis.counts() @ negates) > 0).astype(np.float64)


def misspelled(
    premises: Texts, hypotheses: Texts, unknown: Callable[[Iterable[str]], Collection[str]], *, corrected: bool = False
) -> Floats:
    """Share of the pair's words that a dictionary does not know, 0 to 1; high = many.

    Notes
    -----
    Formula: distinct unknown words of both texts / tokens of both (H6). `unknown` returns the unknown ones of many
    words and is called once, with every distinct word of the corpus (`corpora.suites.spelling`).

    *Departures*: deleting punctuation first turns "don't" into the unknown word "dont", so the paper's measure partly
    counts contractions. `corrected=True` looks up "don't", and "dog" for "dog's".

    Examples
    --------
    >>> from nli_lib.measure.dynamics import misspelled
    >>> dictionary = {"a", "dog", "runs", "sleeps"}
    >>> misspelled(["A dog runs."], ["A dgo sleeps."], lambda words: set(words) - dictionary).round(2)
    array([0.17])
    """
    premise, hypothesis = _tokens(premises, hypotheses, contractions=corrected)
    words = premise.vocabulary.to_pylist()
    forms = [word.replace(APOSTROPHE, "'") for word in words]
    if corrected:
        forms = [form.removesuffix("'s").strip("'") for form in forms]
    missing = set(unknown(form for form in forms if form))
    strange = np.array([form in missing for form in forms], dtype=np.int64)  # (W,)
    either = (premise.counts() + hypothesis.counts()) > 0  # (N, W)
    return _share(either @ strange, premise.lengths + hypothesis.lengths)


def antonyms(
    premises: Texts,
    hypotheses: Texts,
    antonyms_of: Callable[[str], Collection[str]],
    *,
    base_form: Callable | None = None,
) -> Floats:
    """Share of the hypothesis' tokens that are antonyms of a word of the premise, 0 to 1; high = many.

    Notes
    -----
    Formula: tokens of the hypothesis, repeats counted, that are in the union of `antonyms_of(word)` over the premise's
    words / tokens of the hypothesis (H6). `antonyms_of` is called once for each distinct word of a premise
    (`corpora.suites.Wordnet`).

    *Departures*: the paper compares inflected words of the hypothesis with base forms, so "lost" is no antonym of
    "win". The corrected variant, with `base_form`, compares base forms.

    Examples
    --------
    >>> from nli_lib.measure.dynamics import antonyms
    >>> opposite = {"hot": {"cold"}}
    >>> antonyms(["A hot day."], ["A cold day."], lambda word: opposite.get(word, ())).round(2)
    array([0.33])
    """
    premise, hypothesis = _tokens(premises, hypotheses)
    words = premise.vocabulary.to_pylist()
    forms = words if base_form is None else [base_form(word) for word in words]
    asked = np.unique(premise.ids)
    others = pd.DataFrame({"row": asked, "form": [list(antonyms_of(words[row])) for row in asked]}).explode("form")
    pairs = others.merge(pd.DataFrame({"form": forms, "place": range(len(forms))}), on="form").astype({"row": int})
    where, shape = (pairs["row"], pairs["place"]), (len(words), len(words))
    opposite = sparse.csr_array((np.ones(len(pairs), np.int64), where), shape=shape)
    antonymous = (premise.counts() @ opposite) > 0  # (N, W): words that are antonyms of the premise's
    return _share(hypothesis.counts().multiply(antonymous).sum(axis=1), hypothesis.lengths)


def every_measure(
    premises: Texts, hypotheses: Texts, *, unknown: Callable | None = None, wordnet: object | None = None
) -> dict[str, Floats]:
    """The five measures and their corrected variants by name, each (N,).

    Measures without their dictionary are left out.

    Parameters
    ----------
    unknown
        as in `misspelled`; wordnet has `antonyms_of` and `base_form` (`corpora.suites.Wordnet`)

    Examples
    --------
    >>> from nli_lib.measure.dynamics import every_measure
    >>> found = every_measure(["A dog runs."], ["No dog runs."])
    >>> [f"{name}: {values[0]:.2f}" for name, values in found.items()]
    ['word overlap: 0.67', 'length mismatch: 0.00', 'negation: 1.00', 'negation, corrected: 1.00']
    """
    texts = (premises, hypotheses)
    found = {"word overlap": word_overlap(*texts), "length mismatch": length_mismatch(*texts)}
    for name, corrected in (("{}", False), ("{}, corrected", True)):
        found[name.format("negation")] = negation(*texts, corrected=corrected)
        if unknown:
            found[name.format("misspelled")] = misspelled(*texts, unknown, corrected=corrected)
        if wordnet:
            base_form = wordnet.base_form if corrected else None
            found[name.format("antonyms")] = antonyms(*texts, wordnet.antonyms_of, base_form=base_form)
    return found


def _tokens(premises: Texts, hypotheses: Texts, *, contractions: bool = False) -> tuple[Words, Words]:
    """Words of both sides over one vocabulary; with `contractions` an apostrophe inside a word is kept as a letter."""
    sides = [premises, hypotheses]
    # Twice, because the letter after one apostrophe may be the letter before the next.
    for _ in range(2 if contractions else 0):
        sides = [pa.array(side, pa.large_string()) for side in sides]
        sides = [pc.replace_substring_regex(side, INNER_APOSTROPHE, rf"\1{APOSTROPHE}\2").to_pylist() for side in sides]
    return tokenize_pairs(*sides)


def _share(part: NDArray, whole: NDArray) -> Floats:
    """part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
