"""WANLI's heuristic filters and its cleaning. Run alone: pytest tests/generate/test_heuristics.py"""

import string

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nli_lib.generate.pairs import COPIED, EXAMPLE, PHRASE, PHRASES, SHORT, clean, heuristic_filter
from nli_lib.select.selection import KEPT

GIVEN = [("A dog runs.", "An animal moves."), ("A cat sleeps.", "A cat rests.")]


def reason(premise, hypothesis, examples=GIVEN):
    return heuristic_filter(pd.DataFrame({"premise": [premise], "hypothesis": [hypothesis]}), [examples]).reason[0]


@pytest.mark.parametrize(
    ("premise", "hypothesis", "expected"),
    [
        ("A man sings.", "A man makes music.", KEPT),
        ("Four", "A man sings.", SHORT),
        ("Fives", "A man sings.", KEPT),
        ("A man sings.", "  abc  ", SHORT),
        ("", "", SHORT),  # also a copy: the first reason counts
        ("A man, sings!", "a man sings", COPIED),
        ("A man  sings.", "A man sings.", KEPT),  # two blanks are not one
        ("雨停了。", "天晴", KEPT),  # where there are no blanks, a word has a character or two
        ("雨停了。", "天", SHORT),
        ("雨停了。", "雨停了", COPIED),
        ("This pair of sentences sings.", "It does.", PHRASE),
        ("This Pair of Sentences sings.", "It does.", KEPT),
        ("Nobody, says The", " speaker of it all.", PHRASE),  # written together
        ("The speaker sings.", "Somebody sings.", PHRASE),
        (" A dog runs. ", "An animal moves.", EXAMPLE),
        ("A dog runs.", "A cat rests.", KEPT),  # sides of two examples
    ],
)
def test_each_reason_by_hand(premise, hypothesis, expected):
    assert reason(premise, hypothesis) == expected


def test_the_order_of_the_reasons():
    assert reason("previous examples", "Previous examples") == COPIED
    assert reason("The speaker sings.", "A song.", [("The speaker sings.", "A song.")]) == PHRASE


def slow(premise, hypothesis, examples):
    """The released filter, one pair after the other."""
    if len(premise.strip()) < 5 or len(hypothesis.strip()) < 5:  # of texts with blanks
        return SHORT
    sides = ["".join(c for c in side.lower() if c not in string.punctuation) for side in (premise, hypothesis)]
    if sides[0] == sides[1]:
        return COPIED
    if any(phrase in premise + hypothesis for phrase in PHRASES):
        return PHRASE
    if any(premise.strip() == a.strip() and hypothesis.strip() == b.strip() for a, b in examples):
        return EXAMPLE
    return KEPT


SIDES = st.sampled_from(
    ["A dog runs.", "a dog runs", " An animal moves.", "The speaker", "abc", "A cat rests.", "", "!?.,;"]
)


@given(st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=12))
def test_equal_to_the_slow_twin_and_independent_of_the_order(sides):
    pairs = pd.DataFrame(sides, columns=["premise", "hypothesis"])
    found = heuristic_filter(pairs, [GIVEN] * len(pairs))
    assert found.reason.tolist() == [slow(*pair, GIVEN) for pair in sides]
    backwards = heuristic_filter(pairs[::-1], [GIVEN] * len(pairs))
    assert backwards.reason[::-1].tolist() == found.reason.tolist()
    assert (found.keep == (found.reason == KEPT)).all()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  A dog.  ", "A dog."),
        ('"A dog."', "A dog."),
        ('"A" dog "B"', '"A" dog "B"'),  # four quotes
        ("(A dog.)", "A dog."),
        ("(A) (dog)", "(A) (dog)"),
        ('"A dog.', "A dog."),
        ("A dog.'", "A dog."),
        ("A dog's.", "A dog's."),  # neither first nor last
        (")A dog.", "A dog."),
        ('"', ""),
        ("", ""),
        ('A "dog"', 'A "dog"'),
        ('"(A)"', "A"),
        ('("A")', '"A"'),  # the quotes are looked at first
    ],
)
def test_cleaning_by_hand(text, cleaned):
    assert clean(pd.Series([text])).tolist() == [cleaned]
