"""Chapter 15 without the pairs of chapter 13. Run alone: pytest tests/chapters/test_train_on_wanli.py"""

import pytest
from cells import measured


@pytest.mark.slow
def test_without_generated_pairs_their_sets_are_left_out_and_the_others_are_trained(tmp_path, monkeypatch):
    left = measured("15_train_on_wanli", tmp_path, monkeypatch)
    assert left.study.table("generated").iloc[0].tolist() == [0, 0, 0]
    assert left.study.table("left_out")["pairs"].tolist() == [0] * 4
    conditions = left.study.table("sets")["condition"].unique()
    assert [name for name in conditions if "generated" in name or "relabelled" in name] == []
    assert {"Planted", "challenge", "Planted ◇ challenge", "Planted + random twin"} <= set(conditions)
