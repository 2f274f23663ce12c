"""A share of which only a part was judged. Alone: pytest tests/report/test_unjudged.py"""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from nli_lib.report.inference import wilson
from nli_lib.report.unjudged import MOST, bounds, judged_part, over_lists


def test_by_hand():
    """Of 100 pairs 20 are judged wrong, 10 right, 70 have four or five votes: at most 20 + 70, and 20 x 11/6."""
    found, everything = bounds(100, 20, 70)
    assert (found.value, found.n) == (0.2, 100)
    assert found.low == wilson(20, 100).low
    assert everything == wilson(90, 100).high
    assert found.high == pytest.approx(wilson(20, 100).high * 11 / 6) and found.high < everything


def test_few_clear_pairs_and_none():
    assert bounds(100, 60, 2)[0].high == wilson(62, 100).high  # two more cannot make it 11/6
    assert bounds(100, 60, 0) == (wilson(60, 100), wilson(60, 100).high)  # all judged: Wilson's own interval
    assert bounds(10, 0, 0, 10)[0].high == wilson(10, 10).high  # nobody judged, no votes: anything can be


@pytest.mark.parametrize("counts", [(10, 11, 0, 0), (10, 5, 6, 0), (10, 0, -1, 0)])
def test_counts_that_cannot_be(counts):
    with pytest.raises(ValueError, match="more than there are"):
        bounds(*counts)


def test_the_bound_on_clear_votes_by_counting_all_votes():
    """Four others vote, for gold with a probability up to a half; the author gave gold or not: count all ballots."""
    for q, author in product(np.linspace(0.01, 0.5, 50), (0, 1)):
        chance = {3: 0.0, 4: 0.0, 5: 0.0}
        for ballot in product((0, 1), repeat=4):
            votes = sum(ballot) + author
            if votes >= 3:
                chance[votes] += q ** sum(ballot) * (1 - q) ** (4 - sum(ballot))
        assert (chance[4] + chance[5]) / chance[3] <= MOST + 1e-9
    assert (chance[4] + chance[5]) / chance[3] == pytest.approx(MOST)  # at a half, the author with gold


def test_planted_people_stay_below_the_bound():
    """Five and a hundred drawn from the same people, who are split on each pair: the true share is between the ends."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        share = random.beta(2, 2, 4000)
        five = random.binomial(5, share)
        gold = five >= 3
        wrong = random.binomial(100, share) < 50
        judged = gold & (five == 3)
        found, _ = bounds(int(gold.sum()), int(wrong[judged].sum()), int((gold & (five > 3)).sum()))
        assert found.low <= wrong[gold].mean() <= found.high


def test_lists_are_counted_by_who_judged_them():
    lists = {"one": np.array([1, 1, 1, 1, 1, 0]), "two": np.array([0, 0, 0, 0, 0, 1]), "none": np.zeros(6)}
    judged = pd.DataFrame({"position": [0, 1, 5], "wrong": [True, False, True]})
    agreement = pd.DataFrame({"position": [0, 1, 2, 3], "agreement": [0.6, 0.6, 0.8, 3 / 5]})
    table = judged_part(lists, judged, agreement)
    counts = table.set_index("list")[["n", "judged", "wrong", "open", "clear"]].to_dict("split")["data"]
    assert counts == [[5, 2, 1, 2, 1], [1, 1, 1, 0, 0]]  # 3 has three votes, 4 none at hand; no row for "none"
    assert table["of judged"].tolist() == [0.5, 1] and table["verified"].tolist() == [0.2, 1]
    assert (table["low"] <= table["verified"]).all() and (table["high"] <= table["all"]).all()
    both = over_lists(table)
    assert both == (0.6, table["low"].min(), table["high"].max(), 1, 2, "pairs and trainings")


def test_nobody_was_asked():
    table = judged_part(
        {"one": [True, True]},
        pd.DataFrame({"position": [], "wrong": []}),
        pd.DataFrame({"position": [], "agreement": []}),
    )
    assert table.loc[0, ["n", "judged", "open", "clear"]].tolist() == [2, 0, 2, 0]
    assert table.loc[0, "verified"] == 0 and table.loc[0, "high"] == 1 and np.isnan(table.loc[0, "of judged"])
