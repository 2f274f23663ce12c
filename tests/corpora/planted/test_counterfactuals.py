"""Planted counterfactuals: one edit of the premise, and the label that the grammar then has."""

import numpy as np
import pytest

from nli_lib.corpora.corpus import C, CorpusError, E, N, duplicates
from nli_lib.corpora.planted import PATTERNS, counterfactuals, edits


@pytest.fixture(scope="module")
def made():
    return counterfactuals(1200, 3, broken=0.3)


def test_equal_arguments_give_equal_corpora_and_others_do_not(made):
    again = counterfactuals(1200, 3, broken=0.3)
    assert [each.digest for each in again] == [each.digest for each in made]
    assert counterfactuals(1200, 4, broken=0.3)[1].digest != made[1].digest


def test_every_original_has_a_revision_towards_each_other_label(made):
    originals, revised = made
    assert np.bincount(originals.labels).tolist() == [400, 400, 400]
    assert (originals.table["true_label"] == originals.labels).all()
    assert (revised.table["origin_uid"].to_numpy() == np.repeat(originals.uid, 2)).all()
    labels = np.column_stack([originals.labels, revised.labels.reshape(-1, 2)])
    assert (np.sort(labels, axis=1) == [E, N, C]).all()
    assert duplicates(originals)["pairs"].sum() == 0


def test_broken_says_that_the_label_was_missed_and_half_of_them_keep_the_old_one(made):
    originals, revised = made
    table, old = revised.table, np.repeat(originals.labels, 2)
    assert (table["broken"] == (table["true_label"] != table["label"])).all()
    assert table["broken"].mean() == pytest.approx(0.3, abs=0.03)
    assert (table["true_label"] == old)[table["broken"]].mean() == pytest.approx(0.43, abs=0.1)
    assert not counterfactuals(200, 0)[1].table["broken"].any()
    assert counterfactuals(200, 0, broken=1.0)[1].table["broken"].all()


def test_one_edit_leads_from_a_premise_to_its_revision(made):
    originals, revised = made
    edited = revised.table[["premise", "span", "replacement"]].itertuples(index=False)
    for before, (after, span, new) in zip(np.repeat(originals.premise, 2), edited, strict=True):
        assert span and new
        places = [at for at in range(len(before)) if before.startswith(span, at)]
        assert any(before[:at] + new + before[at + len(span) :] == after for at in places)
    assert (np.repeat(originals.hypothesis, 2) == revised.hypothesis).all()
    assert (np.repeat(originals.premise, 2) != revised.premise).all()


def test_the_grammar_gives_both_premises_the_labels_that_are_said():
    """A slow twin: every form of an edit stands under its label in the grammar, in one pattern."""
    places = {(p.hypothesis, form, label) for p in PATTERNS for label in (E, N, C) for form in p.premises[label]}
    known = edits()
    assert set(known["label"]) == {E, N, C}
    for _, hypothesis, premise, label, becomes in known.itertuples(index=False):
        assert (hypothesis, premise, label) in places
        assert all((hypothesis, other, to) in places for to in (E, N, C) for other in becomes[to])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"broken": 1.5}, "broken"), ({"flips": 0.1}, "flips"), ({"split": "dev"}, "dev"), ({"word": 0.1}, "word")],
)
def test_what_there_is_not_is_refused(arguments, named):
    with pytest.raises(CorpusError, match=named):
        counterfactuals(10, 0, **arguments)


def test_a_single_original(made):
    originals, revised = counterfactuals(1, 0)
    assert (len(originals), len(revised)) == (1, 2)
