"""The training sets of the difficulty paper's Tables 5 and 6. Alone: pytest tests/select/test_subsets.py"""

import numpy as np
import pytest

from nli_lib.claims import paper_table
from nli_lib.select.selection import training_subsets


def test_by_hand():
    level = np.array([0, 0, 1, 1, 2, 2])
    variability = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])  # .66 quantile .33
    margin = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])  # quantiles 1.65 and 3.3
    subsets = training_subsets(level, variability, margin)
    kept = {name: np.flatnonzero(each.keep).tolist() for name, each in subsets.items()}
    assert kept == {
        "data maps": [4, 5],
        "aum": [2, 3],
        "easy": [0, 1],
        "easy+ambiguous": [0, 1, 2, 3],
        "ambiguous": [2, 3],
        "ambiguous+hard": [2, 3, 4, 5],
        "easy+hard": [0, 1, 4, 5],
        "hard": [4, 5],
        "all": [0, 1, 2, 3, 4, 5],
    }


def test_named_as_the_papers_rows():
    names = training_subsets(np.array([0, 1, 2]), np.arange(3.0), np.arange(3.0))
    assert [name.replace(" ", "-") for name in names] == list(paper_table("difficulty", "Table 5").index)


def test_a_third_each_and_order_does_not_matter():
    random = np.random.default_rng(0)
    level, variability, margin = random.integers(0, 3, 3000), random.random(3000), random.normal(size=3000)
    subsets = training_subsets(level, variability, margin)
    assert subsets["data maps"].size == pytest.approx(0.34 * 3000, abs=2)
    assert subsets["aum"].size == pytest.approx(0.33 * 3000, abs=2)
    order = random.permutation(3000)
    mixed = training_subsets(level[order], variability[order], margin[order])
    for name, each in subsets.items():
        assert np.array_equal(mixed[name].keep, each.keep[order])


def test_a_constant_score_selects_nothing_and_other_shapes_are_refused():
    level = np.array([0, 1, 2])
    subsets = training_subsets(level, np.zeros(3), np.zeros(3))
    assert subsets["data maps"].size == subsets["aum"].size == 0
