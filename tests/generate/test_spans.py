"""Spans by spaCy, and how they are chosen. Run alone: pytest tests/generate/test_spans.py"""

import sys

import pandas as pd
import pytest

from nli_lib.generate import perturb
from nli_lib.generate.perturb import (
    NOUN,
    PREDICATE,
    PREPOSITION,
    SPAN_COLUMNS,
    SPAN_RULES,
    VERB,
    SpanError,
    choose_spans,
    find_spans,
)

TEXTS = ["Two women are doing dishes in their kitchen.", "Run", "", "The dog did not chase the dog.", "?!"]


@pytest.fixture(scope="module")
def found():
    return find_spans(TEXTS)


def named(found, text):
    part = found[found["text"] == text]
    return dict(zip(part["span"], part["kind"], strict=True))


def test_chunks_and_the_phrases_around_them(found):
    assert named(found, 0) == {
        "Two women": NOUN,
        "are doing": VERB,
        "are doing dishes": PREDICATE,
        "dishes": NOUN,
        "in their kitchen": PREPOSITION,
        "their kitchen": NOUN,
    }
    assert named(found, 3)["did not chase"] == VERB


def test_a_span_stands_where_it_says(found):
    for row in found.itertuples():
        assert TEXTS[row.text][row.start :].startswith(row.span)
        assert row.times == TEXTS[row.text].count(row.span) >= 1
        assert row.span == row.span.strip() != TEXTS[row.text].strip(" .?!")
    assert found["text"].is_monotonic_increasing


def test_a_text_of_one_word_or_none_has_no_span(found):
    assert not set(found["text"]) & {1, 2, 4}
    assert find_spans([]).columns.tolist() == SPAN_COLUMNS and find_spans(["Run"]).empty
    assert choose_spans(find_spans(["Run"]), SPAN_RULES[1]).empty


def test_a_span_whose_letters_occur_again_says_how_often():
    found = find_spans(["A cat sees the cat in the catalogue."]).set_index("span")
    assert found.loc["the cat", "times"] == 2  # in "the catalogue", too
    assert find_spans(["The dog did not chase the dog."]).set_index("span").loc["the dog", "times"] == 1


def test_all_spans_are_each_different_one_once():
    twice = find_spans(["The dogs like the dogs near the dogs."])
    assert twice["span"].duplicated().any()
    assert not choose_spans(twice)["span"].duplicated().any()


def test_two_with_replacement_can_be_one_twice_and_two_cannot(found):
    many = pd.concat([found[found["text"] == 0].assign(text=at) for at in range(300)], ignore_index=True)
    drawn = choose_spans(many, SPAN_RULES[1], seed=1)
    assert (drawn["text"].value_counts() == 2).all()
    repeated = drawn.duplicated(["text", "span"]).sum() / 300
    assert repeated == pytest.approx(1 / 6, abs=0.07)  # of six spans
    apart = choose_spans(many, SPAN_RULES[2], seed=1)
    assert (apart["text"].value_counts() == 2).all() and not apart.duplicated(["text", "span"]).any()
    assert drawn["span"].nunique() == apart["span"].nunique() == 6
    single = many.drop_duplicates("text")
    assert (choose_spans(single, SPAN_RULES[1])["text"].value_counts() == 1).all()


def test_at_most_so_many_and_the_same_for_the_same_seed(found):
    drawn = choose_spans(found, most=3, seed=4)
    assert (drawn["text"].value_counts() <= 3).all() and len(drawn) == 6
    pd.testing.assert_frame_equal(drawn, choose_spans(found, most=3, seed=4))
    assert drawn.set_index(["text", "start"]).index.is_monotonic_increasing


def test_a_rule_that_there_is_not(found):
    with pytest.raises(SpanError, match="there is no rule 'one'"):
        choose_spans(found, "one")


def test_without_the_parser_one_line_says_what_to_install(monkeypatch):
    perturb._parser.cache_clear()
    monkeypatch.setitem(sys.modules, perturb.MODEL, None)
    with pytest.raises(SpanError, match="spans need spaCy and its small English model: pip install -c constraints.txt"):
        perturb.check_parser()
    perturb._parser.cache_clear()
