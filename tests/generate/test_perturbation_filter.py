"""DISCO's ten heuristics. Run alone: pytest tests/generate/test_perturbation_filter.py"""

import os
import string
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nli_lib.corpora import load
from nli_lib.generate.perturb import (
    CODE_2022,
    CODE_2023,
    COPIES,
    FORBIDDEN,
    GAP,
    HOLDS,
    IN_HYPOTHESIS,
    IN_PREMISE,
    LIKE_HYPOTHESIS,
    LIKE_PREMISE,
    NEGATION,
    NEW_LIKE_HYPOTHESIS,
    PAPER,
    REASONS,
    RULES,
    PerturbationError,
    perturbation_filter,
    rules_met,
)
from nli_lib.select.selection import KEPT

PREMISE = "A man in a red coat walks his dog through the old town on a sunny day."
HYPOTHESIS = "He smiles."


def pairs(generation, hypothesis=HYPOTHESIS, premise=PREMISE, span="a sunny day", label="contradiction"):
    row = {"generation": generation, "hypothesis": hypothesis, "origin_premise": premise}
    return pd.DataFrame([row | {"premise": premise.replace(span, generation), "intended_label": label}])


def met(pair, name=CODE_2022):
    return [reason for reason, flag in rules_met(pair, name=name).items() if flag[0]]


LONG = "The quick child carries a very large box of wooden toys."
ONLY = [
    (pairs("he smiles while many birds sing above him"), HOLDS),
    (pairs("very large", hypothesis=LONG), IN_HYPOTHESIS),
    (pairs("red coat"), IN_PREMISE),
    (pairs("smiles he"), LIKE_HYPOTHESIS),
    (pairs("town old the through dog his walks"), LIKE_PREMISE),
    (pairs("some rain, story: a cat"), FORBIDDEN),
    (pairs("a hill under deep snow"), NEGATION),
    (pairs("a very _ evening"), GAP),
    (pairs("loudly sings songs", "A man sings songs.", "A man walks.", "walks"), NEW_LIKE_HYPOTHESIS),
]


@pytest.mark.parametrize(("pair", "rule"), ONLY, ids=[rule for _, rule in ONLY])
def test_each_rule_has_a_case_that_it_alone_drops(pair, rule):
    assert met(pair) == [rule]
    assert perturbation_filter(pair).reason[0] == rule


def test_a_copy_of_the_hypothesis_meets_three_more_rules_and_is_named_by_the_first():
    pair = pairs("He smiles!")
    assert met(pair) == [COPIES, HOLDS, IN_HYPOTHESIS, LIKE_HYPOTHESIS]
    assert perturbation_filter(pair).reason[0] == COPIES
    assert REASONS[0] == COPIES and len(REASONS) == 10


def test_what_is_kept():
    found = perturbation_filter(pairs("a rainy evening"))
    assert found.keep.tolist() == [True] and found.reason[0] == KEPT


def test_an_empty_generation_stands_in_every_hypothesis():
    assert met(pairs("")) == [IN_HYPOTHESIS, IN_PREMISE]
    assert met(pairs("?!")) == [IN_HYPOTHESIS, IN_PREMISE]
    assert perturbation_filter(pairs("")).reason[0] == IN_HYPOTHESIS


@pytest.mark.parametrize(
    ("generation", "label", "negates"),
    [
        ("a hill under snow", "contradiction", True),
        ("a grand piano", "contradiction", True),
        ("a hill under snow", "neutral", False),  # contradictions alone
        ("a dog that doesn't run", "contradiction", False),  # a straight apostrophe is deleted first
        ("a dog that doesn\u2019t run", "contradiction", True),  # a curly one is not ASCII punctuation
        ("a dog that didn\u2019t run", "contradiction", False),  # not in the list
    ],
)
def test_negations_are_letters_and_apostrophes_matter(generation, label, negates):
    assert (NEGATION in met(pairs(generation, label=label))) == negates


def test_no_contraction_of_2023_can_be_met():
    straight = [word for word in RULES[CODE_2023].negations if "'" in word]
    assert len(straight) == 9
    for word in (*straight, *(word.replace("'", "\u2019") for word in straight)):
        assert NEGATION not in met(pairs(f"it {word} rain"), CODE_2023)
    assert all("\u2019" in word for word in RULES[CODE_2022].negations[3:])


def test_the_states_of_the_code_differ_in_three_places():
    pair = pairs("loudly sings songs", "A man sings songs.", "A man walks.", "walks")
    assert met(pair, CODE_2022) == [NEW_LIKE_HYPOTHESIS] and met(pair, CODE_2023) == []
    assert met(pairs("It is true rain"), CODE_2022) == [FORBIDDEN] and met(pairs("It is true rain"), CODE_2023) == []
    assert met(pairs("statement: rain"), CODE_2022) == [] and met(pairs("statement: rain"), CODE_2023) == [FORBIDDEN]
    assert RULES[PAPER] == RULES[CODE_2022]
    with pytest.raises(PerturbationError, match="there is no filter 'disco'"):
        rules_met(pair, name="disco")


@pytest.mark.parametrize(
    ("shared", "union", "rule", "meets"),
    [
        (3, 5, LIKE_HYPOTHESIS, False),
        (5, 8, LIKE_HYPOTHESIS, True),
        (7, 20, LIKE_PREMISE, False),
        (4, 11, LIKE_PREMISE, True),
    ],
)
def test_repeated_words_count_strictly_above_their_limits(shared, union, rule, meets):
    """3 of 5 words are not above .6, 7 of 20 not above .35; 5 of 8 and 4 of 11 are just above."""
    words = [f"w{at}" for at in range(union)]
    sides = {rule: " ".join(words)}
    hypothesis, premise = sides.get(LIKE_HYPOTHESIS, HYPOTHESIS), sides.get(LIKE_PREMISE, PREMISE)
    assert (rule in met(pairs(" ".join(words[:shared]), hypothesis, premise))) == meets


def slow(row, name):
    """The released filter, written as its code is."""
    rules = RULES[name]
    bare = [text.lower().translate(str.maketrans("", "", string.punctuation)) for text in row[:4]]
    generation, hypothesis, premise, new = bare

    def jaccard(one, other):
        a, b = Counter(one.split()), Counter(other.split())
        return sum((a & b).values()) / sum((a | b).values()) if a or b else 1

    checks = [
        generation == hypothesis,
        hypothesis in generation,
        generation in hypothesis,
        generation in premise,
        jaccard(generation, hypothesis) > 0.6,
        jaccard(generation, premise) > 0.35,
        any(phrase in row[0] for phrase in rules.forbidden),
        row[4] == "contradiction" and any(word in generation for word in rules.negations),
        "_" in row[0],
        jaccard(new, hypothesis) > rules.overlap,
    ]
    return checks


WORDS = st.lists(st.sampled_from(["a", "dog", "no", "runs,", "The", "story:", "_", "isn\u2019t", "snow"]), max_size=6)
ROWS = st.tuples(*[WORDS.map(" ".join)] * 4, st.sampled_from(["contradiction", "neutral"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=8), st.sampled_from([CODE_2022, CODE_2023]))
def test_equal_to_the_slow_twin_and_independent_of_the_order(rows, name):
    columns = ["generation", "hypothesis", "origin_premise", "premise", "intended_label"]
    table = pd.DataFrame(rows, columns=columns)
    found = np.array(list(rules_met(table, name=name).values())).T
    assert found.tolist() == [slow(row, name) for row in rows]
    backwards = perturbation_filter(table[::-1], name=name)
    assert backwards.reason[::-1].tolist() == perturbation_filter(table, name=name).reason.tolist()


def test_no_pair_at_all():
    found = perturbation_filter(pairs("x")[:0])
    assert len(found) == 0


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA is not set: the real corpora are not read")
@pytest.mark.parametrize(("split", "dropped"), [("e2n", 0), ("n2c", 5)])
def test_the_released_pairs_pass_the_filter_of_2022(split, dropped):
    """They passed the paper's own; five of them hold a forbidden phrase or an underscore all the same."""
    table = load("disco", split).table.rename(columns={"gen_out": "generation"})
    found = perturbation_filter(table)
    assert (~found.keep).sum() == dropped
    assert set(found.reason[~found.keep]) <= {FORBIDDEN, GAP}
