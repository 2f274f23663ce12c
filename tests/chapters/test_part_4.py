"""Cells of the chapters on counterfactuals. Alone: pytest tests/chapters/test_part_4.py"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cells import functions, ran

from nli_lib.claims import paper_table, paper_value
from nli_lib.corpora.counterfactuals import load_pairs
from nli_lib.measure.similarity import otdd, self_bleu

# ---------------------------------------------------------------- 42: the quality of counterfactuals

SETS = {
    "edits": load_pairs("planted", "test", originals=45),
    "others": load_pairs("planted", "challenge", originals=60),
}
DIAL = SimpleNamespace(sizes=[4, 8], draws=2, regularisations=[0, 1.0], halves=3, transport=20)
GIVEN = {"every": SETS, "own": {}, "dial": DIAL, "study": SimpleNamespace(dial=SimpleNamespace(counterfactual=DIAL))}
QUALITY = functions("42_quality", **GIVEN)
SHARES = paper_table("disco", "Table 1")


@pytest.mark.parametrize(
    ("name", "counts"), [("human-cad", [88, 102, 79, 83, 79, 79]), ("disco", [163, 52, 21, 76, 66, 132])]
)
def test_one_set_of_counts_is_behind_table_1(name, counts):
    """The only numbers of examples by direction that both flip rates and their averages allow (D8): their weighted
    means are the printed averages, which the plain means are not."""
    rows = SHARES.loc[[f"flip-rate-{name}", f"soft-flip-rate-{name}"], ["e2c", "e2n", "n2c", "n2e", "c2n", "c2e"]]
    averages = SHARES.loc[rows.index, "average"]
    total = int(paper_value("disco-table1caption-annotated"))
    assert QUALITY.counts_behind(rows.to_numpy(), averages, total) == [tuple(counts)] and sum(counts) == total
    assert np.average(rows, axis=1, weights=counts) == pytest.approx(averages, abs=0.0101)
    assert abs(rows.iloc[0].mean() - averages.iloc[0]) > 0.06


@pytest.mark.parametrize(("measure", "unit"), [("self-bleu", 0.01), ("otdd", 1)])
@pytest.mark.parametrize("name", ["human-cad", "disco"])
def test_the_averages_of_diversity_and_distance_are_plain_means_cut(measure, unit, name):
    row = SHARES.loc[f"{measure}-{name}"]
    assert 0 <= row.drop("average").mean() - row["average"] + 1e-9 < unit


def test_counts_behind_printed_shares_of_planted_counts():
    n, flips = [7, 11, 13], [[3, 5, 12], [6, 9, 13]]
    shares = np.round(100 * np.array(flips) / n, 2)
    averages = np.round(100 * np.sum(flips, axis=1) / 31, 2)
    assert tuple(n) in QUALITY.counts_behind(shares, averages, 31)
    assert not QUALITY.counts_behind(shares, averages, 30)


def test_the_directions_that_both_have():
    one = SETS["edits"]
    few = one[np.isin(one.direction, ["e2n", "n2c"])]
    assert QUALITY.shared_directions(SETS) == ["e2n", "e2c", "n2e", "n2c", "c2e", "c2n"]
    assert QUALITY.shared_directions({"few": few, **SETS}) == ["e2n", "n2c"]


def test_diversity_is_measured_at_equal_counts_and_grows():
    found = ran("42_quality", "8e1c41a5", "diversity-table", **GIVEN)
    table = found.tables["diversity"]
    assert set(table["text"]) == {"both texts", "revised text"} and table["value"].between(0, 1).all()
    assert set(table["revisions"]) == {"all", "one of each original"}
    means = table.groupby("size")["value"].mean()
    assert means[4] < means[8]
    members = np.flatnonzero(SETS["edits"].direction == "e2n")
    texts = [found.tokens["edits"]["both texts"][row] for row in members]
    whole = table.query("set == 'edits' and direction == 'e2n' and text == 'both texts' and revisions == 'all'")
    largest = whole.loc[whole["size"].idxmax()]
    assert largest["size"] == len(members) and largest["value"] == pytest.approx(self_bleu(texts).mean(), abs=1e-5)
    assert self_bleu(texts * 2).mean() == pytest.approx(1)  # where every text stands twice


def test_the_half_difference_of_a_set_with_itself_is_nothing_and_has_a_sign():
    same = {"a": SETS["edits"], "b": SETS["edits"]}
    found = QUALITY.half_difference(same, lambda title, rows: rows.mean())
    assert (found.value, found.low, found.high) == (0, 0, 0) and found.n == 45
    known = {"edits": 0.75, "others": 0.25}
    assert QUALITY.half_difference(SETS, lambda title, rows: known[title]).value == pytest.approx(0.5)
    sizes = []
    QUALITY.half_difference(SETS, lambda title, rows: sizes.append(len(rows)) or 0.0, most=5, one=True)
    assert set(sizes) <= {2, 3, 4, 5} and sizes[::2] == sizes[1::2]  # equal counts in every comparison
    apart = {title: SETS[title][SETS[title].direction == d] for title, d in [("edits", "e2n"), ("others", "n2c")]}
    with pytest.raises(ValueError, match="no direction in common"):
        QUALITY.half_difference(apart, known.get)


def test_the_distance_of_a_part_is_otdd_and_its_floor_lies_below_a_shift():
    random, shift = np.random.default_rng(0), {"edits": 3.0, "others": 1.0}
    vectors = {
        title: (random.normal(size=(len(p.original), 5)), random.normal(size=(len(p), 5)) + shift[title])
        for title, p in SETS.items()
    }
    quality = functions("42_quality", vectors={"random": vectors}, **GIVEN)
    pairs, rows = SETS["edits"], np.flatnonzero(SETS["edits"].direction == "e2n")[:6]
    origins, (old, new) = np.unique(pairs.origin[rows]), vectors["edits"]
    wanted = otdd(old[origins], pairs.original.labels[origins], new[rows], pairs.revised.labels[rows])
    assert quality.distance("edits", rows, vectors) == pytest.approx(wanted)
    means = quality.distances_of(SETS, 20).groupby(["compared", "set"])["value"].mean()
    assert means["revisions", "edits"] > means["revisions", "others"] > means["other originals", "others"]
    found = quality.half_difference(SETS, lambda title, rows: quality.distance(title, rows, vectors))
    assert found.value > 0


def test_flip_rates_by_a_judge_that_is_always_right_and_one_that_never_changes():
    judged = {
        ("edits", "people"): QUALITY.judged_by_people(SETS["edits"]),
        ("edits", "models"): np.stack([SETS["edits"].old_labels] * 3),
    }
    table = ran("42_quality", "flip-table", judged=judged, **GIVEN).tables["flips"]
    table = table.set_index(["judge", "rate", "direction"]).sort_index()
    assert (table.loc["people", "value"] == 1).all() and (table.loc["models", "value"] == 0).all()
    assert table.loc[("models", "flip", "e2n"), "over"] == "premises and trainings"
    assert (table["n"] <= 45).all()


def test_nobody_but_the_maker_has_judged_what_a_model_wrote():
    pairs = SETS["edits"]
    table = pairs.revised.table.drop(columns="true_label").assign(maker="text-davinci-002")
    machine = replace(pairs, revised=replace(pairs.revised, table=table))
    assert QUALITY.judged_by_people(machine) is None
    people = replace(pairs, revised=replace(pairs.revised, table=table.assign(maker="worker")))
    assert QUALITY.judged_by_people(people).tolist() == pairs.revised.labels.tolist()


def test_the_gap_of_flip_rates_has_the_sign_of_the_first_set():
    right = {title: np.stack([p.revised.labels] * 3) for title, p in SETS.items()}
    wrong = {**right, "others": np.stack([SETS["others"].old_labels] * 3)}
    assert QUALITY.flip_gap(SETS, right, "n2c").value == 0
    found = QUALITY.flip_gap(SETS, wrong, "n2c")
    assert found.value == 1 and found.seeds == 3 and found.n <= 45


def test_edits_of_the_grammar_are_one_span():
    table = ran("42_quality", "e5c53c35", **GIVEN).tables["edits"]
    assert set(table["side"]) == {"premise"} and table["revisions"].sum() == 210
    kinds = table[["nothing", "insertion", "deletion", "substitution", "rewriting"]]
    assert kinds.sum(axis=1).to_numpy() == pytest.approx(np.ones(len(table)), abs=1e-4)
    assert (table["distance"] > 0).all() and table["share"].between(0, 2).all()
