"""The recorded curves and how they are read. Run alone: pytest tests/tools/test_audit_reference.py"""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.corpus import CONTRADICTION_OR_NOT, LABELS, TWO_WAY, concat
from nli_tools import audit
from nli_tools.audit import comparable, curves, leakage, reference, sample_premises, with_classes

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "audit_curves.py"
found = importlib.util.spec_from_file_location("made_audit_curves", BENCHMARK)
making = importlib.util.module_from_spec(found)
found.loader.exec_module(making)


def test_the_recorded_curves_are_numbers_that_can_be():
    table = curves()
    assert list(table) == list(making.COLUMNS)
    assert set(table["corpus"]) == {"snli", "mnli", "wanli"}
    assert not table.duplicated(["corpus", "classes", "figure", "n"]).any()
    assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()
    shares = table[~table["figure"].isin(["highest z", "gain"])]
    assert shares[["low", "value", "high"]].stack().between(0, 1).all()
    names = {"/".join(classes) for classes in making.SETS}
    assert set(table["classes"]) == names | {"any"}
    for (corpus, classes), part in table.groupby(["corpus", "classes"]):
        # of two classes out of three WANLI's sample has 10,000 pairs
        assert part["n"].max() >= (6_000 if classes == "any" else 10_000), (corpus, classes)
    # written by nobody who guessed: the strongest feature stands out the more, the more pairs there are
    z = table[(table["figure"] == "highest z") & (table["classes"] == "/".join(LABELS))]
    assert (z.sort_values("n").groupby("corpus")["value"].agg(["first", "last"]).diff(axis=1)["last"] > 5).all()


def test_a_figure_is_interpolated_over_the_logarithm_of_the_pairs(monkeypatch):
    rows = [
        (corpus, classes, figure, n, value, value - 0.1, value + 0.1, 3)
        for corpus in ("snli", "wanli")
        for classes, figure in (("entailment/neutral", "gain"), ("any", "leaked pairs"))
        for n, value in ((100, 0.2), (10_000, 0.4))
    ]
    table = pd.DataFrame(rows, columns=making.COLUMNS)
    monkeypatch.setattr(audit, "curves", lambda: table)
    found = reference(("entailment", "neutral"), 1_000)
    assert found["value"].tolist() == pytest.approx([0.3] * 4) and found["low"].tolist() == pytest.approx([0.2] * 4)
    assert set(found["at"]) == {1_000}
    most = reference(("entailment", "neutral"), 500_000)
    assert set(most["at"]) == {10_000} and most["value"].tolist() == pytest.approx([0.4] * 4)
    assert reference(LABELS, 1_000).empty  # not recorded, and leakage alone is not shown


def test_classes_are_left_out_or_joined():
    whole = load("planted", "train", limit=300)
    pair = with_classes(whole, ("entailment", "contradiction"))
    assert len(pair) == (whole.labels != 1).sum() and pair.counts["contradiction"] == whole.counts["contradiction"]
    two = with_classes(whole, TWO_WAY)
    assert len(two) == 300 and two.counts["not_entailment"] == 300 - whole.counts["entailment"]
    assert with_classes(whole, CONTRADICTION_OR_NOT).counts["contradiction"] == whole.counts["contradiction"]


def test_curves_are_what_they_say(monkeypatch):
    """Of a small corpus: the mean of the draws is that of `comparable`, and a single set is its own test set."""
    monkeypatch.setattr(making, "SETS", (LABELS,))
    parts = [load("planted", "train", limit=300), load("planted", "test", limit=200)]
    made = pd.concat(making.make_curves({"snli": parts, "wanli": parts[:1]}, sizes=(60, 100)))
    leaks = made[(made["corpus"] == "snli") & (made["classes"] == "any")]
    drawn = [leakage(parts[0][sample_premises(parts[0], 100, seed)], parts[1]) for seed in range(10)]
    values = [each["leaked premises"].estimate.value for each in drawn]
    row = leaks.query("n == 100 and figure == 'leaked premises'").iloc[0]
    assert (row["value"], row["low"], row["high"]) == pytest.approx((np.mean(values), min(values), max(values)))
    whole = concat(parts, name="snli")
    values = [comparable(whole[sample_premises(whole, 60, seed)], seed=seed)["above"] for seed in range(10)]
    row = made.query("corpus == 'snli' and n == 60 and figure == 'above'").iloc[0]
    assert row["value"] == pytest.approx(np.nanmean(values)) and row["draws"] == np.isfinite(values).sum()
    assert "majority" not in set(made[made["corpus"] == "wanli"]["figure"])
    assert {"leaked pairs"} < set(made[made["corpus"] == "wanli"]["figure"])
