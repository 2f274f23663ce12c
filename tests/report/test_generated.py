"""What became of generated text. Run alone: pytest tests/report/test_generated.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import Budget
from nli_lib.generate.pairs import COPIED, EXAMPLE, PHRASE, SHORT, UNPARSED, heuristic_filter
from nli_lib.report.generated import (
    ALL,
    LETTERS,
    OTHER,
    OWN,
    PAIR,
    answer_table,
    cost_lines,
    cost_table,
    drop_table,
    dropped_examples,
    gallery,
    likeness_to_seeds,
    share_of,
)
from nli_lib.select.selection import KEPT


def written(*rows):
    return pd.DataFrame(rows, columns=["context", "intended_label", "reason", "text"])


PAIRS = written(
    (0, "entailment", "", "a"),
    (0, "entailment", UNPARSED, "b"),
    (1, "entailment", "", "c"),
    (1, "entailment", "", "d"),
    (2, "neutral", UNPARSED, "e"),
    (2, "neutral", UNPARSED, None),
)


def answer(key, **more):
    fields = {"text": "x", "finish": "stop", "served": "m", "prompt_tokens": 100, "completion_tokens": 50}
    started = {"api": "completions", "started": "2026-01-01", "seconds": 4.0}
    return Answer(key=key, **{**fields, **started, **more})


def test_outcomes_by_label():
    found = answer_table(PAIRS).set_index(["title", "outcome"])
    assert found.loc[(ALL, PAIR), ["count", "n", "share"]].tolist() == [3, 6, 0.5]
    assert found.loc[("entailment", PAIR), "share"] == 0.75
    assert found.loc[("neutral", PAIR), ["count", "low", "high"]].tolist() == [0, 0, 0]
    assert found.groupby("title")["share"].sum().tolist() == pytest.approx([1, 1, 1])


def test_an_interval_draws_whole_contexts():
    contexts = pd.Series(np.repeat(np.arange(40), 5))
    alike = pd.Series(np.repeat(np.arange(40) % 2 == 0, 5))  # the five of a context are one observation
    apart = pd.Series(np.tile([True, False], 100))
    one, other = share_of(alike, contexts), share_of(apart, contexts)
    assert (one.value, one.n, one.over) == (0.5, 40, "pairs")
    assert one.high - one.low > 1.8 * (other.high - other.low)


def test_what_answers_cost():
    later = {"started": "2026-01-01T00:00:02.5+00:00", "text": None, "served": ""}
    answers = [answer("a"), answer("b", finish="length"), answer("c", seconds=3.5, **later)]
    (row,) = cost_table(answers, Budget(price=(2.0, 10.0))).to_dict("records")
    assert (row["answers"], row["failed"], row["served"]) == (3, 1, "m")
    assert (row["prompt_tokens"], row["completion_tokens"], row["seconds"]) == (300, 150, 6.0)
    assert row["tokens_per_second"] == 25 and row["money"] == pytest.approx((600 + 1500) / 1e6, abs=1e-4)
    assert row["cut_off"] == pytest.approx(1 / 3, abs=1e-4) and "estimated" not in row
    vain = answer("a", text=None, completion_tokens=7, estimated=True)  # paid for, and asked again
    (more,) = cost_table([vain, *answers], Budget(price=(2.0, 10.0))).to_dict("records")
    assert (more["answers"], more["failed"], more["seconds"], more["estimated"]) == (3, 1, 6.0, 1)
    assert (more["prompt_tokens"], more["completion_tokens"]) == (400, 157) and more["money"] > row["money"]


def test_a_batch_has_no_speed_and_costs_are_told_in_lines():
    answers = [answer(key, seconds=0.0, served="smollm2") for key in "ab"]
    cost = cost_table(answers, Budget(price=(0.0, 0.0))).iloc[0]
    assert cost["seconds"] == 0 and np.isnan(cost["tokens_per_second"])
    assert cost_lines(cost)["value"].to_dict() == {
        "served": "smollm2", "answers": "2", "failed": "0", "prompt tokens": "200", "completion tokens": "100",
        "seconds": "0", "money": "0.00", "cut off": "0.0%",
    }  # fmt: skip


def test_the_gallery_shows_every_outcome_once_a_context():
    many = pd.concat([PAIRS, written((3, "neutral", "", "y" * 999), (4, "neutral", "", "a"))], ignore_index=True)
    found = gallery(many, each=3)
    assert found["outcome"].tolist() == [PAIR] * 3 + [UNPARSED] * 2
    assert found["text"].tolist()[:3] == ["a", "c", "y" * LETTERS]


def test_reasons_are_counted_in_their_order():
    sides = [("A dog runs.", "It moves."), ("A dog runs.", "a dog runs"), ("No", "It moves."), ("The speaker", "sang.")]
    pairs = pd.DataFrame(sides, columns=["premise", "hypothesis"]).assign(intended_label="neutral")
    passed = heuristic_filter(pairs, [[]] * 4)
    found = drop_table(passed, pd.Series([0, 0, 1, 1]))
    assert found["reason"].tolist() == [SHORT, COPIED, PHRASE, EXAMPLE, KEPT]
    assert found["count"].tolist() == [1, 1, 1, 0, 1] and set(found["n"]) == {4}
    assert dropped_examples(pairs, passed, each=1)["reason"].tolist() == sorted([SHORT, COPIED, PHRASE])


def test_nothing_written_is_an_empty_table():
    none = pd.DataFrame({"premise": pd.Series(dtype=object), "hypothesis": pd.Series(dtype=object)})
    passed = heuristic_filter(none, [])
    assert drop_table(passed, pd.Series(dtype=int)).empty
    assert dropped_examples(none.assign(intended_label=""), passed).empty
    only = answer_table(written((0, "neutral", UNPARSED, "x")))
    assert only["outcome"].tolist() == [PAIR, UNPARSED] * 2 and only["share"].tolist() == [0, 1, 0, 1]


def seeds_of(*texts, labels):
    rows = {"uid": [f"u{at}" for at in range(len(texts))], "premise": texts, "hypothesis": texts, "label": labels}
    return Corpus(pd.DataFrame({**rows, "corpus": "tiny", "split": "train"}), "tiny", "train")


def test_words_of_the_own_seed_and_of_another_by_hand():
    corpus = seeds_of("a dog", "two cats", "a bird", labels=[0, 0, 1])
    pairs = pd.DataFrame({"context": [0, 1, 2], "premise": ["a dog", "two", "x"], "hypothesis": ["ran", "cats", "x"]})
    found = likeness_to_seeds(pairs, corpus, [[0, 1], [1, 0], [2, 2]]).set_index("seed")
    # {a, dog, ran} beside {a, dog}: 2/3, beside {two, cats}: 0; {two, cats} beside its own: 1, beside the other: 0.
    # The third context is alone with its label and has no control
    assert found.loc[OWN, "value"] == pytest.approx((2 / 3 + 1) / 2) and found.loc[OTHER, "value"] == 0
    assert found["n"].tolist() == [2, 2]
    assert likeness_to_seeds(pairs[:0], corpus, [[0, 1], [1, 0]]).empty
