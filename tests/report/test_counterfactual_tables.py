"""Alone: pytest tests/report/test_counterfactual_tables.py"""

from dataclasses import replace

import numpy as np
import pytest

from nli_lib.claims import paper_table, paper_value
from nli_lib.corpora.counterfactuals import load_pairs
from nli_lib.measure.similarity import otdd, self_bleu
from nli_lib.report import counterfactual_plots
from nli_lib.report.counterfactuals import (
    ALL,
    BOTH,
    FLOOR,
    ONE,
    REVISED,
    bleu_of,
    counts_behind,
    distance_of,
    distance_table,
    diversity_table,
    edit_table,
    flip_gap,
    flip_table,
    half_difference,
    judged_by_people,
    shared_directions,
    tokens_of,
    weighted_mean,
)

SETS = {
    "edits": load_pairs("planted", "test", originals=45),
    "others": load_pairs("planted", "challenge", originals=60),
}
DIRECTIONS = ["e2n", "e2c", "n2e", "n2c", "c2e", "c2n"]


# ---------------------------------------------------------------- Table 1


@pytest.mark.parametrize(
    ("name", "counts"), [("human-cad", [88, 102, 79, 83, 79, 79]), ("disco", [163, 52, 21, 76, 66, 132])]
)
def test_one_set_of_counts_is_behind_table_1(name, counts):
    """The only numbers of examples by direction that both flip rates and their averages allow (D8): their weighted
    means are the printed averages, which the plain means are not."""
    table = paper_table("disco", "Table 1")
    order = ["e2c", "e2n", "n2c", "n2e", "c2n", "c2e"]
    rows = [f"{rate}-{name}" for rate in ("flip-rate", "soft-flip-rate")]
    averages = tuple(table.loc[rows, "average"])
    total = int(paper_value("disco-table1caption-annotated"))
    found = counts_behind(*table.loc[rows, order].to_numpy(), averages, total)
    assert found.to_numpy().tolist() == [counts] and sum(counts) == total
    for row, average in zip(rows, averages, strict=True):
        assert weighted_mean(table.loc[row, order], counts) == pytest.approx(average, abs=0.0101)
    assert abs(table.loc[rows[0], order].mean() - averages[0]) > 0.06


def test_the_averages_of_diversity_and_distance_are_plain_means_cut():
    table = paper_table("disco", "Table 1")
    for row, unit in (
        ("self-bleu-human-cad", 0.01),
        ("self-bleu-disco", 0.01),
        ("otdd-human-cad", 1),
        ("otdd-disco", 1),
    ):
        mean = table.loc[row].drop("average").mean()
        assert 0 <= mean - table.loc[row, "average"] + 1e-9 < unit


def test_counts_behind_printed_shares_of_planted_counts():
    n, hard, soft = [7, 11, 13], [3, 5, 12], [6, 9, 13]
    shares = [[round(100 * k / m, 2) for k, m in zip(part, n, strict=True)] for part in (hard, soft)]
    averages = tuple(round(100 * sum(part) / 31, 2) for part in (hard, soft))
    assert n in counts_behind(*shares, averages, 31).to_numpy().tolist()
    assert counts_behind(*shares, averages, 30).empty


# ---------------------------------------------------------------- diversity and distance


def test_the_directions_that_both_have():
    one = SETS["edits"]
    few = one[np.isin(one.direction, ["e2n", "n2c"])]
    assert shared_directions(SETS) == DIRECTIONS
    assert shared_directions({"few": few, **SETS}) == ["e2n", "n2c"]


def test_diversity_is_measured_at_equal_counts_and_grows():
    table = diversity_table(SETS, [4, 8], draws=2)
    assert set(table["text"]) == {BOTH, REVISED} and set(table["revisions"]) == {ALL, ONE}
    assert table["value"].between(0, 1).all()
    means = table[table["size"].isin([4, 8])].groupby("size")["value"].mean()
    assert means[4] < means[8]
    pairs = SETS["edits"]
    whole = table.query("set == 'edits' and direction == 'e2n' and text == @BOTH and revisions == @ALL")
    rows = np.flatnonzero(pairs.direction == "e2n")
    tokens = [tokens_of(SETS)["edits", BOTH][row] for row in rows]
    largest = whole.loc[whole["size"].idxmax()]
    assert largest["size"] == len(rows) and largest["value"] == pytest.approx(self_bleu(tokens).mean())


def test_copies_raise_self_bleu_to_one():
    """The extreme of several revisions of one original: where every text stands twice, Self-BLEU is 1."""
    pairs = SETS["edits"]
    tokens = tokens_of({"edits": pairs[pairs.direction == "e2n"]})
    doubled = tokens["edits", BOTH] * 2
    assert self_bleu(doubled).mean() == pytest.approx(1)
    assert self_bleu(tokens["edits", BOTH]).mean() < 1


def test_the_half_difference_of_a_set_with_itself_is_nothing_and_has_a_sign():
    same = {"a": SETS["edits"], "b": SETS["edits"]}
    found = half_difference(same, bleu_of(tokens_of(same)), halves=4)
    assert (found.value, found.low, found.high) == (0, 0, 0) and found.n == 45
    known = {"edits": 0.75, "others": 0.25}
    assert half_difference(SETS, lambda title, rows: known[title], halves=3).value == pytest.approx(0.5)
    sizes = []
    half_difference(SETS, lambda title, rows: sizes.append(len(rows)) or 0.0, halves=2, most=5, revisions=ONE)
    assert set(sizes) <= {2, 3, 4, 5} and sizes[::2] == sizes[1::2]  # equal counts in every comparison
    apart = {
        "a": SETS["edits"][SETS["edits"].direction == "e2n"],
        "b": SETS["others"][SETS["others"].direction == "n2c"],
    }
    with pytest.raises(ValueError, match="no direction in common"):
        half_difference(apart, lambda title, rows: 0.0, halves=2)


def planted_vectors(shift):
    random = np.random.default_rng(0)
    return {
        title: (random.normal(size=(len(p.original), 5)), random.normal(size=(len(p), 5)) + shift[title])
        for title, p in SETS.items()
    }


def test_the_distance_of_a_part_is_otdd_and_its_floor_lies_below_a_shift():
    vectors = planted_vectors({"edits": 3.0, "others": 1.0})
    pairs, rows = SETS["edits"], np.flatnonzero(SETS["edits"].direction == "e2n")[:6]
    origins = np.unique(pairs.origin[rows])
    old, new = vectors["edits"]
    wanted = otdd(old[origins], pairs.original.labels[origins], new[rows], pairs.revised.labels[rows])
    assert distance_of(SETS, vectors)("edits", rows) == pytest.approx(wanted)
    table = distance_table(SETS, {"random": vectors}, [0, 1.0], most=20, draws=2)
    means = table.groupby(["compared", "set"])["value"].mean()
    assert means["revisions", "edits"] > means["revisions", "others"] > means[FLOOR, "others"]
    assert half_difference(SETS, distance_of(SETS, vectors), halves=3).value > 0


# ---------------------------------------------------------------- flips and edits


def test_flip_rates_by_a_judge_that_is_always_right_and_one_that_never_changes():
    judged = {
        ("edits", "people"): judged_by_people(SETS["edits"]),
        ("edits", "models"): np.stack([SETS["edits"].old_labels] * 3),
    }
    table = flip_table(SETS, judged).set_index(["judge", "rate", "direction"]).sort_index()
    assert (table.loc["people", "value"] == 1).all() and (table.loc["models", "value"] == 0).all()
    assert table.loc[("models", "flip", "e2n"), "over"] == "premises and trainings"
    assert (table["n"] <= 45).all()


def test_nobody_but_the_maker_has_judged_what_a_model_wrote():
    pairs = SETS["edits"]
    table = pairs.revised.table.drop(columns="true_label").assign(maker="text-davinci-002")
    machine = replace(pairs, revised=replace(pairs.revised, table=table))
    assert judged_by_people(machine) is None
    people = replace(pairs, revised=replace(pairs.revised, table=table.assign(maker="worker")))
    assert judged_by_people(people).tolist() == pairs.revised.labels.tolist()


def test_the_gap_of_flip_rates_has_the_sign_of_the_first_set():
    right = {title: np.stack([p.revised.labels] * 3) for title, p in SETS.items()}
    wrong = {**right, "others": np.stack([SETS["others"].old_labels] * 3)}
    assert flip_gap(SETS, right, "n2c").value == 0
    found = flip_gap(SETS, wrong, "n2c")
    assert found.value == 1 and found.seeds == 3 and found.n <= 45
    with pytest.raises(ValueError, match="no revisions"):
        flip_gap(SETS, right, "e2e")


def test_edits_of_the_grammar_are_one_span():
    table = edit_table(SETS)
    assert set(table["side"]) == {"premise"} and table["revisions"].sum() == 210
    kinds = table[["nothing", "insertion", "deletion", "substitution", "rewriting"]]
    assert kinds.sum(axis=1).to_numpy() == pytest.approx(np.ones(len(table)))
    assert (table["distance"] > 0).all() and table["share"].between(0, 2).all()


def test_the_figure_has_a_line_for_each_set_and_kind():
    figure = counterfactual_plots.diversity_by_size(diversity_table(SETS, [3, 6], 2), paper={"edits": 0.5}, title="x")
    labels = {line.get_label() for line in figure.axes[0].lines}
    assert {"edits, all revisions", "others, one of each original"} <= labels
