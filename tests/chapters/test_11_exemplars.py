"""Exemplars, neighbours and their random twins. Run alone: pytest tests/chapters/test_11_exemplars.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure import similarity

WORDS, SENTENCES, ELSEWHERE = "words in common", "sentence similarity", "cosine in another training"
TEXTS = ["a dog", "a dog", "a cat", "two birds"]


def cells_for(texts, **columns):
    """The functions of the chapter for a corpus with these premises and hypotheses."""
    rows = {"uid": [f"u{at}" for at in range(len(texts))], "premise": texts, "hypothesis": texts, "label": 0}
    table = pd.DataFrame({**rows, "corpus": "tiny", "split": "train", **columns})
    return functions("11_exemplars", corpus=Corpus(table, "tiny", "train"))


@pytest.fixture(autouse=True)
def no_encoder(monkeypatch):
    """A stand-in for the sentence encoder: 1 where the texts are equal, 0 elsewhere."""
    equal = lambda one, other: (np.asarray(one) == np.asarray(other)).astype(float)  # noqa: E731
    monkeypatch.setattr(similarity, "similarity", equal)


def test_likeness_by_hand():
    vectors = np.array([[2.0, 0], [1, 0], [0, 3], [-1, 0]])
    likeness = cells_for(TEXTS, genre=["talk", "talk", "letters", ""]).likeness
    every = likeness(np.array([0, 2]), np.array([[1, 2], [0, 3]]), vectors)
    assert list(every) == [WORDS, SENTENCES, ELSEWHERE, "same genre"] and every.loc[[1, 3]].isna().all(axis=None)
    # pair 0 beside 1: all words; beside 2: "a" of {a, dog, cat}; pair 2 beside 0: a third; beside 3: none
    assert every.loc[[0, 2], WORDS].tolist() == pytest.approx([(1 + 1 / 3) / 2, 1 / 6])
    assert every.loc[[0, 2], [SENTENCES, ELSEWHERE, "same genre"]].to_numpy().tolist() == [[0.5] * 3, [0] * 3]
    assert list(likeness(np.array([0]), np.array([[1]]), None)) == [WORDS, SENTENCES, "same genre"]


def test_a_pair_without_a_genre_is_of_no_kind():
    found = cells_for(TEXTS, genre=[None, None, "a", "a"]).likeness(np.array([0, 2]), np.array([[1], [3]]), None)
    assert found.loc[[0, 2], "same genre"].tolist() == [0, 1]


def test_the_table_and_the_difference_by_hand():
    cells, at = cells_for(np.arange(40).astype(str)), np.arange(40)
    one = [pd.DataFrame({"x": np.where(at < 20, value, np.nan)}) for value in (0.4, 0.6)]
    other = [pd.DataFrame({"x": np.where(at >= 30, value, np.nan)}) for value in (0.1, 0.1)]
    table = cells.estimates({"one": one, "other": other})
    assert table["value"].tolist() == pytest.approx([0.5, 0.1])
    assert table["condition"].tolist() == ["one", "other"] and set(table["over"]) == {"premises and trainings"}
    gap = cells.difference({"one": one, "other": other}, "x")
    assert gap.value == pytest.approx(0.4) and gap.low < 0.4 < gap.high and gap.seeds == 2


def test_the_interval_covers_a_planted_difference():
    random, cells, first = np.random.default_rng(0), cells_for(np.arange(120).astype(str)), np.arange(120) < 60

    def trainings(mean, own):
        draws = (mean + random.normal(0, 0.05) + random.normal(0, 0.3, 120) for _ in range(3))
        return [pd.DataFrame({"x": np.where(own, each, np.nan)}) for each in draws]

    gaps = [cells.difference({0.3: trainings(0.3, first), 0.1: trainings(0.1, ~first)}, "x") for _ in range(60)]
    assert sum(gap.low <= 0.2 <= gap.high for gap in gaps) >= 54
