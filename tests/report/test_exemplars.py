"""Exemplars, neighbours and their random twins. Run alone: pytest tests/report/test_exemplars.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import Corpus
from nli_lib.report import exemplars
from nli_lib.report.exemplars import ELSEWHERE, SENTENCES, WORDS, difference, estimate_table, likeness, spread
from nli_lib.stats import over_trainings


@pytest.fixture
def corpus(monkeypatch):
    texts = ["a dog", "a dog", "a cat", "two birds"]
    rows = {"uid": list("wxyz"), "premise": texts, "hypothesis": texts, "label": [0, 0, 0, 0], "corpus": "tiny"}
    table = pd.DataFrame({**rows, "split": "train", "genre": ["talk", "talk", "letters", ""]})
    # a stand-in for the sentence encoder: 1 where the texts are equal, 0 elsewhere
    monkeypatch.setattr(
        exemplars, "similarity", lambda one, other: (np.asarray(one) == np.asarray(other)).astype(float)
    )
    return Corpus(table, "tiny", "train")


def test_likeness_by_hand(corpus):
    vectors = np.array([[2.0, 0], [1, 0], [0, 3], [-1, 0]])
    found = likeness(corpus, [0, 2], [[1, 2], [0, 3]], vectors)
    assert found.index.tolist() == [0, 2]
    assert list(found) == [WORDS, SENTENCES, ELSEWHERE, "same genre"]
    # pair 0 beside 1: all words; beside 2: "a" of {a, dog, cat}; pair 2 beside 0: a third; beside 3: none
    assert found[WORDS].tolist() == pytest.approx([(1 + 1 / 3) / 2, 1 / 6])
    assert found[SENTENCES].tolist() == [0.5, 0]
    assert found[ELSEWHERE].tolist() == [0.5, 0]
    assert found["same genre"].tolist() == [0.5, 0]
    assert list(likeness(corpus, [0], [[1]], None)) == [WORDS, SENTENCES, "same genre"]


def test_a_pair_without_a_genre_is_of_no_kind(corpus):
    table = corpus.table.assign(genre=[None, None, "a", "a"])
    found = likeness(Corpus(table, "tiny", "train"), [0, 2], [[1], [3]], None)
    assert found["same genre"].tolist() == [0, 1]


def test_values_stand_at_their_positions():
    found = spread([pd.Series([5.0, 7.0], index=[2, 0]), pd.Series([1.0], index=[1])], 3)
    assert np.array_equal(found, [[7, np.nan, 5], [np.nan, 1, np.nan]], equal_nan=True)


def test_the_table_and_the_difference_by_hand():
    positions = np.arange(40)
    one = [pd.DataFrame({"x": np.full(20, value)}, index=positions[:20]) for value in (0.4, 0.6)]
    other = [pd.DataFrame({"x": np.full(10, value)}, index=positions[30:]) for value in (0.1, 0.1)]
    table = estimate_table({"one": one, "other": other}, positions)
    assert table["value"].tolist() == pytest.approx([0.5, 0.1])
    assert table["condition"].tolist() == ["one", "other"] and set(table["over"]) == {"premises and trainings"}
    columns = [[each["x"] for each in part] for part in (one, other)]
    gap = over_trainings(difference(*columns, 40), 40)
    assert gap.value == pytest.approx(0.4) and gap.low < 0.4 < gap.high and gap.seeds == 2


def test_the_interval_covers_a_planted_difference():
    random, covered = np.random.default_rng(0), 0
    for _ in range(60):
        sides = [
            [pd.Series(mean + random.normal(0, 0.05) + random.normal(0, 0.3, 60), index=at) for _ in range(3)]
            for mean, at in ((0.3, np.arange(60)), (0.1, np.arange(60, 120)))
        ]
        gap = over_trainings(difference(*sides, 120), 120, resamples=100)
        covered += gap.low <= 0.2 <= gap.high
    assert covered >= 54
