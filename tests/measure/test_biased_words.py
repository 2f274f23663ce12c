"""Which words make a feature. Alone: pytest tests/measure/test_biased_words.py"""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from nli_lib.measure.features import features, tokenize
from nli_lib.measure.giveaways import flagged_words

PREMISES = ["A man sleeps for a day.", "The dog runs; the dog runs."]
HYPOTHESES = ["Nobody is sleeping for a day", "A dog, for a while."]


def fires(table, *cells):
    matrix = np.zeros(table.matrix.shape, bool)
    for row, name in cells:
        matrix[row, list(table.names).index(name)] = True
    return sparse.csr_array(matrix)


def words(texts, flags):
    found = tokenize(texts)
    return found.vocabulary.to_numpy(zero_copy_only=False)[found.ids[flags]].tolist()


def test_by_hand():
    table = features(PREMISES, HYPOTHESES)
    cells = [(0, "nobody@hypothesis"), (0, "for a@hypothesis"), (1, "dog runs@premise"), (1, "hypo-len< 6")]
    found = flagged_words(PREMISES, HYPOTHESES, fires(table, *cells), table.names)
    assert words(HYPOTHESES, found.hypothesis) == ["nobody", "for", "a"]  # of the second pair, no "for a"
    assert words(PREMISES, found.premise) == ["dog", "runs", "dog", "runs"]  # each of its occurrences
    assert found.whole.tolist() == [False, True]


def test_sides_are_kept_apart_and_absent_words_flag_nothing():
    table = features(PREMISES, HYPOTHESES)
    cells = [(0, "a@premise"), (1, "nobody@hypothesis"), (0, "a day@premise")]
    found = flagged_words(PREMISES, HYPOTHESES, fires(table, *cells), table.names)
    assert not found.hypothesis.any() and words(PREMISES, found.premise) == ["a", "a", "day"]


def test_slow_twin():
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(list("abcd"), random.integers(0, 7))) for _ in range(60)]
    premises, hypotheses = texts[:30], texts[30:]
    table = features(premises, hypotheses)
    picked = table.matrix.multiply(sparse.csr_array(random.random(table.matrix.shape) < 0.2)).tocsr()
    picked.eliminate_zeros()
    found = flagged_words(premises, hypotheses, picked, table.names)
    slow = {"premise": [], "hypothesis": []}
    whole = np.zeros(30, bool)
    for row in range(30):
        names = table.names[picked[[row]].indices]
        for side, text in (("premise", premises[row]), ("hypothesis", hypotheses[row])):
            tokens = text.split()
            flags = [f"{token}@{side}" in names for token in tokens]
            for at, pair in enumerate(pairwise(tokens)):
                if f"{' '.join(pair)}@{side}" in names:
                    flags[at] = flags[at + 1] = True
            slow[side] += flags
        whole[row] = any("@" not in name for name in names)
    assert found.premise.tolist() == slow["premise"] and found.hypothesis.tolist() == slow["hypothesis"]
    assert found.whole.tolist() == whole.tolist() and any(slow["premise"])


def test_shapes_that_do_not_fit_are_refused():
    table = features(PREMISES, HYPOTHESES)
    with pytest.raises(ValueError, match="2 pairs"):
        flagged_words(PREMISES, HYPOTHESES, table.matrix[:1], table.names)
