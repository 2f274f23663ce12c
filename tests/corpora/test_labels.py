"""Labels are mapped by name; two-class sets have two rules that differ."""

import numpy as np
import pytest

from nli_lib.corpora.corpus import (
    CONTRADICTION_OR_NOT,
    LABELS,
    NO_GOLD,
    SUPPORTED_OR_REFUTED,
    TWO_WAY,
    UNKNOWN,
    C,
    CorpusError,
    E,
    N,
    canonical,
    collapse,
    head_columns,
    is_numbered,
    to_index,
)


def test_one_order():
    assert LABELS == ("entailment", "neutral", "contradiction")
    assert (E, N, C) == (0, 1, 2)


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        (["entailment", "neutral", "contradiction"], [E, N, C]),  # SNLI, MultiNLI, WANLI, Human-CAD
        (["e", "n", "c"], [E, N, C]),  # ANLI, ChaosNLI
        (["ENTAILMENT", "NEUTRAL", "CONTRADICTION"], [E, N, C]),  # SICK
        (["contradictory"], [C]),  # XNLI 1.0
        (["SUPPORTS", "NOT ENOUGH INFO", "REFUTES"], [E, N, C]),  # FEVER
        ([" Entailment "], [E]),
    ],
)
def test_spellings_of_the_three_way_sources(spellings, expected):
    assert to_index(spellings).tolist() == expected


@pytest.mark.parametrize("spelling", ["not_entailment", "non-entailment", "neutral", "contradiction"])
def test_everything_but_entailment_is_the_second_class_of_a_two_way_set(spelling):
    assert to_index(["entailment", spelling], TWO_WAY).tolist() == [0, 1]


def test_two_way_fever_has_no_place_for_neutral():
    assert to_index(["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], SUPPORTED_OR_REFUTED).tolist() == [0, 1, UNKNOWN]


@pytest.mark.parametrize("nothing", ["-", "", None, float("nan"), -1, "-1", "hidden"])
def test_rows_without_a_gold_label(nothing):
    assert to_index([nothing, "neutral"]).tolist() == [NO_GOLD, N]


@pytest.mark.parametrize("other", ["LABEL_0", "0", 2, "maybe", "not_entailment"])
def test_names_without_a_place_are_unknown_and_never_a_number(other):
    assert to_index([other]).tolist() == [UNKNOWN]


def test_a_sources_own_names_come_first():
    reversed_order = {"0": "not_entailment", "1": "entailment"}
    assert to_index(["0", "1", 1], TWO_WAY, reversed_order).tolist() == [1, 0, 0]


def test_no_labels_at_all():
    assert to_index([]).shape == (0,)


def test_placeholders_are_told_from_names():
    assert is_numbered("LABEL_0")
    assert is_numbered("label 12")
    assert not is_numbered("entailment")
    assert is_numbered("2")
    assert not is_numbered("two")
    assert canonical("Contradictory") == "contradiction"
    assert canonical("LABEL_1") is None


@pytest.mark.parametrize(
    "label2id",
    [
        {"entailment": 0, "neutral": 1, "contradiction": 2},
        {"CONTRADICTION": 0, "NEUTRAL": 1, "ENTAILMENT": 2},  # checkpoints that count from contradiction
        {"contradiction": 0, "entailment": 1, "neutral": 2},  # alphabetical
    ],
)
def test_a_heads_columns_by_name(label2id):
    columns = head_columns(label2id)
    logits = np.zeros((1, 3))
    for name, column in label2id.items():
        logits[0, column] = LABELS.index(name.lower())
    assert logits[:, columns].tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("label2id", "message"),
    [
        ({"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}, "LABEL_0"),
        ({"0": 0, "1": 1, "2": 2}, "do not say"),
        ({"entailment": 0, "not_entailment": 1}, "by name"),
        ({"positive": 0, "negative": 1, "neutral": 2}, "by name"),
        ({"entailment": 0, "neutral": 0, "contradiction": 1}, "by name"),
    ],
)
def test_heads_that_cannot_be_read_by_name_are_refused(label2id, message):
    with pytest.raises(CorpusError, match=message):
        head_columns(label2id)


def test_the_two_rules_differ_where_entailment_is_first_but_below_one_half():
    logits = np.log([[0.4, 0.3, 0.3], [0.6, 0.2, 0.2], [0.1, 0.6, 0.3]])
    assert collapse(logits, TWO_WAY).tolist() == [0, 0, 1]
    assert collapse(logits, TWO_WAY, "sum").tolist() == [1, 0, 1]


def test_a_tie_under_the_sum_rule_goes_to_entailment():
    assert collapse(np.log([[2.0, 1.0, 1.0]]), TWO_WAY, "sum").tolist() == [0]


def test_a_constant_added_to_the_logits_changes_nothing():
    logits = np.random.default_rng(0).normal(size=(200, 3)) * 3
    for classes in (TWO_WAY, SUPPORTED_OR_REFUTED, CONTRADICTION_OR_NOT):
        for rule in ("argmax", "sum"):
            assert np.array_equal(collapse(logits, classes, rule), collapse(logits + 5, classes, rule))


def test_three_classes_are_their_argmax_under_both_rules():
    logits = np.random.default_rng(1).normal(size=(50, 3))
    for rule in ("argmax", "sum"):
        assert np.array_equal(collapse(logits, LABELS, rule), logits.argmax(axis=1))


def test_a_neutral_prediction_on_two_way_fever():
    logits = np.array([[1.0, 3.0, 2.0]])
    assert collapse(logits, SUPPORTED_OR_REFUTED).tolist() == [-1]
    assert collapse(logits, SUPPORTED_OR_REFUTED, "sum").tolist() == [1]


def test_a_prediction_that_a_corpus_of_two_of_the_classes_lacks():
    assert collapse(np.array([[1.0, 2.0, 3.0]]), ("entailment", "neutral")).tolist() == [-1]
    assert collapse(np.array([[3.0, 2.0, 1.0]]), ("neutral", "contradiction"), "sum").tolist() == [0]
    assert to_index(["neutral", "e"], ("neutral", "contradiction")).tolist() == [0, UNKNOWN]


def test_contradiction_only_sets_put_neutral_with_entailment():
    assert collapse(np.array([[0.0, 3.0, 2.0]]), CONTRADICTION_OR_NOT).tolist() == [0]


def test_collapse_refuses_what_it_cannot_know():
    with pytest.raises(ValueError, match="argmax"):
        collapse(np.zeros((1, 3)), TWO_WAY, "mean")
    with pytest.raises(ValueError, match="shape"):
        collapse(np.zeros((2, 2)), TWO_WAY)
    with pytest.raises(ValueError, match="no rule"):
        collapse(np.zeros((2, 3)), ("yes", "no"))
    assert collapse(np.zeros((0, 3)), TWO_WAY, "sum").shape == (0,)
