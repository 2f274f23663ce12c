"""Five measures of spurious correlation in a pair of texts (Table 2 of the difficulty paper), as printed and corrected.

Each takes N premises and N hypotheses and returns (N,). Texts are tokenised as in `tokens`: lower case, no ASCII
punctuation, split on white space, as the paper's `heuristics.py` does. A text without a token gives 0.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from nli_lib.measure.check import check_pairs
from nli_lib.measure.tokens import Words, tokenize

Texts = Sequence[str]
Floats = NDArray[np.float64]
Unknown = Callable[[Iterable[str]], Collection[str]]
Antonyms = Callable[[str], Collection[str]]

MEASURES = ("word overlap", "antonyms", "length mismatch", "misspelled", "negation")  # in the paper's order
NEGATIONS = ("no", "not", "never", "none")
MORE_NEGATIONS = (*NEGATIONS, "nobody", "nothing", "nor", "neither", "nowhere", "without", "cannot", "cant", "dont")
INNER_APOSTROPHE = "(\\p{L})['\u2019](\\p{L})"
APOSTROPHE = "\u02bc"  # a letter to Unicode, so the tokenizer keeps it inside a word


def word_overlap(premises: Texts, hypotheses: Texts) -> Floats:
    """Share of the hypothesis that stands in the premise too, 0 to 1; high = much overlap.

    Formula: |types of the premise and of the hypothesis| / tokens of the hypothesis. A repeated word counts once above
    and each time below, as in the paper's code (H6).
    """
    premise, hypothesis = _tokens(premises, hypotheses)
    shared = (premise.counts() > 0).multiply(hypothesis.counts() > 0).sum(axis=1)
    return _share(shared, hypothesis.lengths)


def length_mismatch(premises: Texts, hypotheses: Texts) -> Floats:
    """How much longer the premise is, in lengths of the hypothesis, -1 and up; 0 = equally long.

    Formula: (tokens of the premise - tokens of the hypothesis) / tokens of the hypothesis, signed (H6; the paper's
    table says only "sentence length").
    """
    premise, hypothesis = _tokens(premises, hypotheses)
    return _share(premise.lengths - hypothesis.lengths, hypothesis.lengths)


def negation(premises: Texts, hypotheses: Texts, *, corrected: bool = False) -> Floats:
    """1 where a text of the pair has a negation, else 0.

    Formula: 1 if either text has one of `NEGATIONS` (H6).
    *Departures*: the paper's four words miss nobody, nothing, nor and every contraction (isn't, won't).
    `corrected=True` counts `MORE_NEGATIONS` and words ending in n't as well.
    """
    premise, hypothesis = _tokens(premises, hypotheses, contractions=corrected)
    words = premise.vocabulary
    known = pc.is_in(words, value_set=pa.array(MORE_NEGATIONS if corrected else NEGATIONS, words.type))
    if corrected:
        known = pc.or_(known, pc.ends_with(words, f"n{APOSTROPHE}t"))
    negates = np.asarray(known).astype(np.int64)  # (W,)
    return ((premise.counts() @ negates + hypothesis.counts() @ negates) > 0).astype(np.float64)


def misspelled(premises: Texts, hypotheses: Texts, unknown: Unknown, *, corrected: bool = False) -> Floats:
    """Share of the pair's words that a dictionary does not know, 0 to 1; high = many.

    Formula: distinct unknown words of both texts / tokens of both (H6). `unknown` gives the unknown among many words
    and is asked once, for each distinct word of the corpus (`corpora.lexicon.spelling`).
    *Departures*: deleting punctuation first makes "don't" the unknown word "dont", so the paper's measure is partly one
    of contractions. `corrected=True` asks for "don't", and for "dog" in "dog's".
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
    premises: Texts, hypotheses: Texts, antonyms_of: Antonyms, *, base_form: Callable[[str], str] | None = None
) -> Floats:
    """Share of the hypothesis' tokens that are antonyms of a word of the premise, 0 to 1; high = many.

    Formula: tokens of the hypothesis, repeats counted, that are in the union of `antonyms_of(word)` over the premise's
    words / tokens of the hypothesis (H6). `antonyms_of` is asked once for each distinct word of a premise
    (`corpora.lexicon.Wordnet`).
    *Departures*: the paper compares inflected words of the hypothesis with base forms, so "lost" is no antonym of
    "win". With `base_form` the corrected variant compares base forms.
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

    Those whose dictionary is not given are left out.
    unknown  as `misspelled` takes it; wordnet has `antonyms_of` and `base_form` (`corpora.lexicon.Wordnet`)
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
    pairs = check_pairs(premises, hypotheses)
    texts = [*premises, *hypotheses]
    if contractions:
        column = pa.array(texts, pa.large_string())
        # Twice, since the letter after one apostrophe may be the one before the next.
        for _ in range(2):
            column = pc.replace_substring_regex(column, INNER_APOSTROPHE, rf"\1{APOSTROPHE}\2")
        texts = column.to_pylist()
    return tokenize(texts).split(pairs)


def _share(part: NDArray, whole: NDArray) -> Floats:
    """part / whole, 0 where there is no whole."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
