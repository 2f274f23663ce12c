"""The edit between two versions of a sentence. Run alone: pytest tests/corpora/test_edits.py"""

import pytest

from nli_lib.corpora.planted import edit


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("The nurse failed to sing.", "The nurse managed to sing.", ("failed", "managed")),
        ("The nurse sang.", "The nurse sang loudly.", ("sang", "sang loudly")),
        ("The nurse sang loudly.", "The nurse sang.", ("sang loudly", "sang")),
        ("The nurse sang, but not here.", "The nurse sang there, not here.", ("sang, but", "sang there,")),
        ("Nobody sang.", "Everybody sang.", ("Nobody", "Everybody")),
        ("a a", "a", ("a a", "a")),
        ("The nurse sang." + " " * 100_000, "The nurse slept." + " " * 100_000, ("sang", "slept")),
    ],
)
def test_the_edit_between_two_texts(before, after, found):
    assert edit(before, after) == found


@pytest.mark.parametrize(("before", "after"), [("A nurse sang.", "A nurse sang."), ("Yes", "No")])
def test_texts_that_no_edit_leads_between(before, after):
    with pytest.raises(ValueError, match="no single edit"):
        edit(before, after)
