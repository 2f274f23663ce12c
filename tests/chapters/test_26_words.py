"""Which words a prediction goes by. Alone: pytest tests/measure/test_giveaways.py"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from nli_lib.measure.giveaways import hard_part, without_each_word, word_evidence, words_found

TEXTS = ["Nobody sleeps.", "a man  sleeps", "Outside"]


def test_each_word_is_left_out_once():
    table = without_each_word(TEXTS)
    assert table["row"].tolist() == [0, 0, 1, 1, 1, 2]
    assert table["word"].tolist() == ["nobody", "sleeps", "a", "man", "sleeps", "outside"]
    assert table["text"].tolist() == ["sleeps.", "Nobody", "man sleeps", "a sleeps", "a man", ""]
    assert without_each_word([]).empty and without_each_word([""]).empty


def test_each_character_is_left_out_of_a_text_without_blanks():
    table = without_each_word(["雨停了"])
    assert table["word"].tolist() == ["雨", "停", "了"] and table["text"].tolist() == ["停了", "雨了", "雨停"]


def linear(texts, weights):
    """A model that adds up one vector a word: leaving a word out takes its vector away."""
    zero = np.zeros(3)
    return np.array([sum((weights.get(w.lower().strip("."), zero) for w in text.split()), zero) for text in texts])


def test_the_evidence_is_the_definition():
    weights = {"nobody": np.array([0.0, 0.0, 3.0]), "sleeps": np.array([0.5, -0.5, 0.0])}
    table = without_each_word(TEXTS)
    whole, without = linear(TEXTS, weights), linear(table["text"], weights)
    found = word_evidence(whole, without, table).set_index("word")
    assert found.index.tolist() == sorted(found.index) and found.loc["sleeps", "n"] == 2
    slow = [log_softmax(whole[row]) - log_softmax(without[at]) for at, row in enumerate(table["row"])]
    for word in found.index:
        mine = np.mean([slow[at] for at in np.flatnonzero(table["word"] == word)], axis=0)
        assert found.loc[word, [0, 1, 2]].to_numpy(float) == pytest.approx(mine)
    assert found.loc["nobody", 2] > 0 > found.loc["nobody", 0]
    assert found.loc["man", [0, 1, 2]].to_numpy(float) == pytest.approx([0, 0, 0])
    assert word_evidence(whole, without, table, min_count=2)["word"].tolist() == ["sleeps"]


def test_logits_that_do_not_fit_the_table_are_refused():
    table = without_each_word(TEXTS)
    with pytest.raises(ValueError, match="for 6 texts without a word"):
        word_evidence(np.zeros((3, 3)), np.zeros((5, 3)), table)


def test_planted_words_that_rank_first_have_an_area_of_one():
    evidence = pd.DataFrame({"word": list("abcd"), "n": 5, 0: [3.0, 2.0, 1.0, 0.0], 1: [0.0, 1.0, 2.0, 3.0]})
    found = words_found(evidence, {0: {"a", "b"}, 1: {"a", "missing"}, 2: {"missing"}}).set_index("label")
    assert found["area"].to_dict() == {0: 1.0, 1: 0.0} and found["planted"].to_dict() == {0: 2, 1: 1}


def test_the_hard_part_is_what_the_model_gets_wrong():
    assert hard_part([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]], [0, 2]).tolist() == [False, True]


def test_a_word_that_stands_twice_in_a_text_is_one_text_and_its_evidence_a_mean():
    table = without_each_word(["so so", "so"])
    whole, without = np.log([[0.5, 0.5], [0.5, 0.5]]), np.log([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]])
    (row,) = word_evidence(whole, without, table).to_dict("records")
    assert row["n"] == 2 and row[0] == pytest.approx(np.log(2) / 3)
    assert word_evidence(whole, without, table, min_count=3).empty
