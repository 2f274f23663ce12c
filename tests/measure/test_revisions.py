"""What a revision changed. Run alone: pytest tests/measure/test_revisions.py"""

import numpy as np
import pytest

from nli_lib.measure.counterfactual import PRONOUNS, is_slight, pronouns, pronouns_changed, word_change

# after three of the paper's Table 6, by hand: (before, after, change of the words, whether the pronouns change); and
# characters, where there are no blanks
TABLE_6 = [
    ("雨停了。", "大雨停了。", 1, False),
    (
        "The power plant is the only source of continuous electric power for the city.",
        "It is the only source of continuous electric power for the city.",
        -2,
        True,
    ),
    ("The king has met the queen before.", "The king has met the queen in person before.", 2, False),
    ("I still don't know how the system works.", "The system is how the system works.", -1, True),
]


@pytest.mark.parametrize(("before", "after", "change", "changed"), TABLE_6)
def test_by_hand(before, after, change, changed):
    assert word_change([before], [after]).tolist() == [change]
    assert pronouns_changed([before], [after]).tolist() == [changed]


def test_the_ends_of_a_slight_change_belong_to_it():
    assert is_slight(np.arange(-3, 5)).tolist() == [False, False, True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("She's at her desk, and THEY know it.", {"she", "her", "they", "it"}),
        ("He’ll see: I'm mine.", {"he", "i", "mine"}),
        ("One must know one's own.", {"one's"}),
        ("This is what others said that nobody knew.", set()),
        ("The theist hit hers.", {"hers"}),
        ("", set()),
    ],
)
def test_pronouns_of_a_text(text, found):
    assert pronouns(text) == found


def test_a_pronoun_more_often_is_no_other_set():
    assert not pronouns_changed(["He said it."], ["It said he. He!"])[0]
    assert pronouns_changed(["He said it."], ["He said that."])[0]
    assert len(word_change([], [])) == len(pronouns_changed([], [])) == 0
    assert all(word == word.lower() for word in PRONOUNS)


def test_texts_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="zip"):
        word_change(["a"], [])
