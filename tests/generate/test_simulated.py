"""What simulated annotators do is what was put in. Run alone: pytest tests/generate/test_simulated.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.agreement import kappa
from nli_lib.corpora import load
from nli_lib.generate import review
from nli_lib.generate.review import COSMETIC, NEEDED, aggregate, revisions, simulated_annotations


@pytest.fixture(scope="module")
def planted():
    return load("planted", "train", limit=3_000)


def test_rates_are_the_stated_ones(planted):
    found = simulated_annotations(planted, 2)
    assert list(found) == list(NEEDED) and len(found) == 6_000
    assert set(found["annotator"]) == {"simulated 1", "simulated 2"}
    assert found["discarded"].mean() == pytest.approx(review.DISCARDS, abs=0.01)
    changed = revisions(found)
    kept = (~found["discarded"]).sum()
    assert len(changed) / kept == pytest.approx(review.REVISES, abs=0.012)
    truth = np.array(planted.classes)[planted.table["true_label"].to_numpy(dtype=int)]
    wrong = found["label"] != pd.Series(truth, planted.uid)[found["item"]].to_numpy()
    assert wrong[~found["discarded"]].mean() == pytest.approx(review.SLIPS, abs=0.015)
    chapter, both = functions("14_human_review"), (changed["before"], changed["after"])
    slight = np.isin(chapter.word_change(*both), [-1, 0, 1, 2])
    assert slight.mean() == pytest.approx(2 / 3, abs=0.06)
    moved = [chapter.pronouns(old) != chapter.pronouns(new) for old, new in zip(*both, strict=True)]
    assert np.array(moved)[~slight].mean() > 0.9


def test_kappa_is_what_independent_slips_give(planted):
    """Both right, or both in the same one of two errors: .85^2 + .15^2 / 2 agree; chance is a third, about."""
    agree = (1 - review.SLIPS) ** 2 + review.SLIPS**2 / 2
    found = kappa(simulated_annotations(planted, 2))
    assert found.value == pytest.approx((agree - 1 / 3) / (2 / 3), abs=0.04)


def test_the_seed_decides_everything_and_annotators_differ(planted):
    small = planted[:200]
    one, again, other = (simulated_annotations(small, 3, seed=seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(one, again)
    assert not one.equals(other) and one["annotator"].nunique() == 3
    first, second = (one[one["annotator"] == f"simulated {n}"]["label"].to_numpy() for n in (1, 2))
    assert (first != second).any()
    assert COSMETIC in set(aggregate(simulated_annotations(planted, 2))["rule"])
