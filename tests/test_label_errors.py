"""What the suspicion of a label is worth. Alone: pytest tests/test_label_errors.py"""

import pandas as pd
import pytest

from nli_lib.agreement import error_shares, overlaps, shares_by_kind


def test_shares_by_group_in_the_order_of_the_rows():
    table = pd.DataFrame({"truth": "five", "kind": ["b", "a", "b", "b"], "wrong": [True, False, False, True]})
    shares = error_shares(table, ["truth", "kind"])
    assert shares[["kind", "n", "wrong"]].to_numpy().tolist() == [["b", 3, 2], ["a", 1, 0]]
    assert shares["share"].tolist() == [2 / 3, 0]
    assert (shares["low"] <= shares["share"]).all() and (shares["share"] <= shares["high"]).all()


def test_several_seeds_have_the_size_of_one():
    table = pd.DataFrame({"truth": "five", "seed": [0] * 10 + [1] * 10, "wrong": [True, False] * 10})
    shares = error_shares(table, ["truth"])
    assert shares[["n", "wrong"]].to_numpy().tolist() == [[10, 5]]
    assert error_shares(table.assign(truth=["five"] * 19 + ["hundred"]), ["truth"])["n"].tolist() == [10, 1]


def test_overlap_of_two_lists():
    lists = pd.DataFrame({"seed": [0, 0, 0, 1, 1], "position": [1, 2, 3, 2, 3]})
    table = overlaps(lists, [0, 1, 2], pool=12)
    assert table[["first", "second"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 2]]
    assert table["overlap"].tolist() == [2 / 3, 0, 0]  # the third seed lists nothing
    assert table["chance"].tolist() == pytest.approx([0.5 / 4.5, 0, 0])


JUDGED = pd.DataFrame(
    {"truth": "five", "kind": ["P1G0", "P1G0", "P1G0", "P0G1"], "gap": [2.0, 2.5, 0.5, 9.0], "wrong": [0, 1, 0, 1]}
).astype({"wrong": bool})
LABELS = pd.DataFrame({"truth": "five", "label": [0, 1], "n": [10, 20], "wrong": [1, 10]})


def test_by_kind_beside_any_pair_with_the_label():
    table = shares_by_kind(JUDGED, LABELS).set_index(["kind", "condition"])["share"]
    assert table["P1G0", "any gap"] == pytest.approx(1 / 3) and table["P1G0", "gap above 2"] == 1
    twin = table.xs("random twin: any pair with that label", level="condition")
    assert twin.to_dict() == {"P1G0": 0.1, "P2G0": 0.1, "P0G1": 0.5, "P2G1": 0.5}
