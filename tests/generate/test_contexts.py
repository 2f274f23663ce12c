"""Contexts, their requests and what comes back. Run alone: pytest tests/generate/test_contexts.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.claims import paper_value
from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.journal import Answer
from nli_lib.generate.pairs import (
    FAILED,
    SAMPLING,
    UNPARSED,
    ContextError,
    continuations,
    continue_examples,
    corpus_of,
    examples,
    requests,
)

LABELS = [0, 0, 0, 1, 1, 2]


def corpus(classes=("entailment", "neutral", "contradiction")):
    rows = {
        "uid": [f"u{at}" for at in range(6)],
        "premise": [f"Premise {at}." for at in range(6)],
        "hypothesis": [f"Hypothesis {at}." for at in range(6)],
        "label": [min(label, len(classes) - 1) for label in LABELS],
        "corpus": "tiny",
        "split": "train",
    }
    return Corpus(pd.DataFrame(rows), "tiny", "train", classes)


def answer(text, **more):
    fields = {"api": "completions", "served": "model-1", "finish": "stop", "started": "2026-01-01", "seconds": 1.0}
    return Answer(key=f"{text}{more}", text=text, **{**fields, **more})


def pair(at):
    return f"Premise {at}.", f"Hypothesis {at}."


def test_the_seed_stands_last_and_its_nearest_neighbour_before_it():
    found = examples(corpus(), [[0, 2, 1], [3, 4, -1]])
    assert found == [[pair(1), pair(2), pair(0)], [pair(4), pair(3)]]


def test_requests_hold_the_papers_prompt_and_sampling():
    asked = requests(corpus(), np.array([[0, 2, 1], [3, 4, -1]]), model="m", draws=2)
    assert [request.draw for request in asked] == [0, 1, 0, 1]
    assert asked[0].prompt == asked[1].prompt == continue_examples([pair(1), pair(2), pair(0)], "entailment")
    assert asked[2].prompt == continue_examples([pair(4), pair(3)], "neutral")
    assert len({request.key for request in asked}) == 4
    sampling = asked[0].sampling
    assert (sampling.top_p, sampling.temperature, sampling.max_tokens) == tuple(
        paper_value(f"wanli-appc.2-{name}") for name in ("top-p", "temperature", "max-tokens")
    )
    assert (sampling.stop, sampling.presence_penalty, sampling.frequency_penalty) == (("\n\n",), 0, 0)
    assert sampling == SAMPLING


def test_a_context_of_two_labels_and_a_label_without_a_word_are_refused():
    with pytest.raises(ContextError, match="context 1: its examples have different labels"):
        requests(corpus(), np.array([[0, 1], [0, 3]]), model="m", draws=1)
    with pytest.raises(ContextError, match="tiny: the prompt .* has no word for the label 'not_entailment'"):
        requests(corpus(("entailment", "not_entailment")), np.array([[3, 4]]), model="m", draws=1)
    with pytest.raises(ContextError, match="1 answers for 2 contexts with 2 draws each"):
        continuations(corpus(), [[0, 1], [3, 4]], [answer("x")], draws=2)


def test_what_comes_back_says_where_it_is_from_and_why_it_is_no_pair():
    answers = [
        answer(" It rains.\nImplication: It is wet. "),
        answer("Nothing.", finish="length"),
        answer(None, reason="RateLimitError: 429, busy", served=""),
        answer("It rains.\nPossibility: It is cold."),
    ]
    found = continuations(corpus(), [[1, 0], [4, 3]], answers, draws=2)
    assert found["reason"].tolist() == ["", UNPARSED, f"{FAILED}: RateLimitError", ""]
    assert found["uid"].tolist() == ["u1+0", "u1+1", "u4+0", "u4+1"]
    assert found["origin_uid"].tolist() == ["u1", "u1", "u4", "u4"]
    assert set(found["origin_corpus"]) == {"tiny"}
    assert found["intended_label"].tolist() == ["entailment"] * 2 + ["neutral"] * 2
    assert found["maker"].tolist() == ["model-1", "model-1", "", "model-1"]
    assert found.loc[0, "premise"] == "It rains." and found.loc[0, "hypothesis"] == "It is wet. "
    assert found["premise"].isna().tolist() == [False, True, True, False]

    made = corpus_of(found[found["reason"] == ""])
    assert made.labels.tolist() == [0, 1] and made.hypothesis[1] == "It is cold."
    assert {"origin_uid", "origin_corpus", "maker", "intended_label"} <= set(made.table)
    assert made.source == "continuations by model-1"


def test_nothing_that_can_be_used_is_an_empty_corpus():
    found = continuations(corpus(), [[0, 1]], [answer("no"), answer("")], draws=2)
    assert len(corpus_of(found[found["reason"] == ""])) == 0
    none = continuations(corpus(), np.empty((0, 5), int), [], draws=5)
    assert len(none) == 0 and "reason" in none
    assert requests(corpus(), np.empty((0, 5), int), model="m", draws=5) == []
