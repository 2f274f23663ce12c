"""What spans premises have. Run alone: pytest tests/report/test_spans_report.py"""

import os

import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.perturb import NOUN, SPAN_RULES, VERB, Demonstration, find_spans
from nli_lib.report.spans import (
    MISSING,
    demonstrations_alike,
    kinds_of_spans,
    released_found,
    rules_compared,
    spans_of_premises,
)

SPANS = pd.DataFrame(
    {
        "text": [0, 0, 0, 2],
        "start": [0, 4, 9, 0],
        "span": ["a b", "c", "a b", "d"],
        "kind": [NOUN, VERB, NOUN, NOUN],
        "times": [2, 1, 2, 1],
    }
)


def test_a_premise_without_spans_counts_as_none():
    table = spans_of_premises(SPANS, [0, 0, 1], ("entailment", "neutral")).set_index(["label", "kinds"])
    assert table.loc[("entailment", "all"), "value"] == 1.0  # two different ones, and none
    assert table.loc[("neutral", "all"), "value"] == 1.0 and table.loc[("entailment", "all"), "n"] == 2


def test_kinds_say_how_often_their_letters_occur_again():
    table = kinds_of_spans(SPANS).set_index("kind")
    assert table.loc[NOUN, "spans"] == 3 and table.loc[NOUN, "repeated"] == pytest.approx(2 / 3, abs=1e-4)
    assert table.loc[VERB, "words"] == 1
    assert kinds_of_spans(SPANS[:0]).empty


def test_rules_by_hand():
    table = rules_compared(SPANS).set_index("rule")
    assert table.loc["all", ["tried", "share", "repeated"]].tolist() == [1.5, 1.0, 0.0]
    assert table.loc["two", "tried"] == 1.5
    assert table.loc[SPAN_RULES[1], "tried"] == 1.5 and table.loc[SPAN_RULES[1], "share"] <= 1
    assert rules_compared(SPANS[:0]).empty


def test_released_spans_that_are_found_and_one_that_is_not():
    premise = "Two women are doing dishes in their kitchen."
    rows = [("are doing dishes", 0), (" in their kitchen", 1), ("doing dishes in", 2)]
    table = pd.DataFrame({"origin_premise": premise, "span_prev": [span for span, _ in rows]})
    table = table.assign(uid=["1", "2", "3"], premise="x", hypothesis="y", label=0, corpus="disco", split="e2n")
    found = released_found({"made up": Corpus(table, "disco", "e2n")}).set_index("kind")["count"]
    assert found.tolist() == [0, 0, 1, 1, 1] and found[MISSING] == 1  # a blank in front does not count
    assert released_found({}).empty


def test_words_shared_with_demonstrations():
    rows = {"uid": ["1"], "premise": ["A dog runs."], "hypothesis": ["It moves."], "label": [0]}
    corpus = Corpus(pd.DataFrame(rows).assign(corpus="mine", split="train"), "mine", "train")
    same, other = (Demonstration(*texts, "x", "y") for texts in (("A dog runs.", "It moves."), ("No.", "Yes.")))
    groups = {"same": [[same]], "other": [[other]], "none": [[]]}
    table = demonstrations_alike(corpus, pd.DataFrame({"position": [0]}), groups).set_index("condition")
    assert table["value"].to_dict() == {"same": 1.0, "other": 0.0}


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA is not set: the real corpora are not read")
def test_most_of_the_released_spans_are_found():
    found = released_found({split: load("disco", split) for split in ("e2n", "n2c")}, limit=150)
    lost = found[found["kind"] == MISSING].set_index("title")["share"]
    assert lost["e2n"] < 0.55 and lost["n2c"] < 0.35
    assert find_spans(["A man walks."])["span"].tolist() == ["A man", "walks"]
