"""Cells of the chapters on counterfactuals. Alone: pytest tests/chapters/test_part_4.py"""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import functions, ran

from nli_lib import stats
from nli_lib.claims import paper_table, paper_value
from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.planted import counterfactuals
from nli_lib.corpora.suites import load_pairs
from nli_lib.generate.perturb import HOLDS, NOUN, VERB, Demonstration, find_spans
from nli_lib.measure.dynamics import sensitivity
from nli_lib.measure.similarity import otdd, self_bleu
from nli_lib.select.selection import KEPT, Selection

# ---------------------------------------------------------------- 42: the quality of counterfactuals

SETS = {"edits": load_pairs("planted", "test", originals=45)}
SETS["others"] = load_pairs("planted", "challenge", originals=60)
DIAL = SimpleNamespace(sizes=[4, 8], draws=2, regularisations=[0, 1.0], halves=3, transport=20)
GIVEN = {"every": SETS, "own": {}, "dial": DIAL, "study": SimpleNamespace(dial=SimpleNamespace(counterfactual=DIAL))}
QUALITY = functions("42_quality", **GIVEN)
SHARES, DIRECTIONS = paper_table("disco", "Table 1"), ["e2n", "e2c", "n2e", "n2c", "c2e", "c2n"]


COUNTS = {"human-cad": (88, 102, 79, 83, 79, 79), "disco": (163, 52, 21, 76, 66, 132)}


@pytest.mark.parametrize(("name", "counts"), COUNTS.items())
def test_one_set_of_counts_is_behind_table_1(name, counts):
    """The only numbers of examples by direction that both flip rates and their averages allow (D8): their weighted
    means are the printed averages, which the plain means are not."""
    rows = SHARES.loc[[f"flip-rate-{name}", f"soft-flip-rate-{name}"], ["e2c", "e2n", "n2c", "n2e", "c2n", "c2e"]]
    averages, total = SHARES.loc[rows.index, "average"], int(paper_value("disco-table1caption-annotated"))
    assert QUALITY.counts_behind(rows.to_numpy(), averages, total) == [counts] and sum(counts) == total
    assert np.average(rows, axis=1, weights=counts) == pytest.approx(averages, abs=0.0101)
    assert abs(rows.iloc[0].mean() - averages.iloc[0]) > 0.06


@pytest.mark.parametrize(("measure", "unit"), [("self-bleu", 0.01), ("otdd", 1)])
@pytest.mark.parametrize("name", ["human-cad", "disco"])
def test_the_averages_of_diversity_and_distance_are_plain_means_cut(measure, unit, name):
    row = SHARES.loc[f"{measure}-{name}"]
    assert 0 <= row.drop("average").mean() - row["average"] + 1e-9 < unit


def test_counts_behind_printed_shares_of_planted_counts():
    n, flips = (7, 11, 13), [[3, 5, 12], [6, 9, 13]]
    shares, averages = np.round(100 * np.array(flips) / n, 2), np.round(100 * np.sum(flips, axis=1) / 31, 2)
    assert n in QUALITY.counts_behind(shares, averages, 31) and not QUALITY.counts_behind(shares, averages, 30)


def test_the_directions_that_both_have():
    few = SETS["edits"][np.isin(SETS["edits"].direction, ["e2n", "n2c"])]
    assert QUALITY.shared_directions(SETS) == DIRECTIONS
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
    found = QUALITY.half_difference({"a": SETS["edits"], "b": SETS["edits"]}, lambda title, rows: rows.mean(), 500)
    assert (found.value, found.low, found.high) == (0, 0, 0) and found.n == 45
    known = {"edits": 0.75, "others": 0.25}
    assert QUALITY.half_difference(SETS, lambda title, rows: known[title], 500).value == pytest.approx(0.5)
    sizes = []
    QUALITY.half_difference(SETS, lambda title, rows: sizes.append(len(rows)) or 0.0, most=5, one=True)
    assert set(sizes) <= {2, 3, 4, 5} and sizes[::2] == sizes[1::2]  # equal counts in every comparison
    apart = {title: SETS[title][SETS[title].direction == d] for title, d in [("edits", "e2n"), ("others", "n2c")]}
    with pytest.raises(ValueError, match="no direction in common"):
        QUALITY.half_difference(apart, known.get, 500)


def test_the_distance_of_a_part_is_otdd_and_its_floor_lies_below_a_shift():
    random, shift = np.random.default_rng(0), {"edits": 3.0, "others": 1.0}
    vectors = {
        title: (random.normal(size=(len(p.original), 5)) / 5, (random.normal(size=(len(p), 5)) + shift[title]) / 5)
        for title, p in SETS.items()}  # fmt: skip
    quality = functions("42_quality", vectors={"random": vectors}, **GIVEN)
    pairs, rows = SETS["edits"], np.flatnonzero(SETS["edits"].direction == "e2n")[:6]
    origins, (old, new) = np.unique(pairs.origin[rows]), vectors["edits"]
    wanted = otdd(old[origins], pairs.original.labels[origins], new[rows], pairs.revised.labels[rows])
    assert quality.distance("edits", rows, vectors) == pytest.approx(wanted)
    means = quality.distances_of(SETS, 20).groupby(["compared", "set"])["value"].mean()
    assert means["revisions", "edits"] > means["revisions", "others"] > means["other originals", "others"]
    assert quality.half_difference(SETS, lambda title, rows: quality.distance(title, rows, vectors), 500).value > 0


def test_flip_rates_by_a_judge_that_is_always_right_and_one_that_never_changes():
    judged = {("edits", "people"): QUALITY.judged_by_people(SETS["edits"])}
    judged["edits", "models"] = np.stack([SETS["edits"].old_labels] * 3)
    table = ran("42_quality", "flip-table", judged=judged, **GIVEN).tables["flips"]
    table = table.set_index(["judge", "rate", "direction"]).sort_index()
    assert (table.loc["people", "value"] == 1).all() and (table.loc["models", "value"] == 0).all()
    assert table.loc[("models", "flip", "e2n"), "over"] == "premises and trainings" and (table["n"] <= 45).all()


def test_nobody_but_the_maker_has_judged_what_a_model_wrote():
    pairs = SETS["edits"]
    table = pairs.revised.table.drop(columns="true_label").assign(maker="text-davinci-002")
    assert QUALITY.judged_by_people(replace(pairs, revised=replace(pairs.revised, table=table))) is None
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


# ---------------------------------------------------------------- 40: spans and prompts

ROWS = [(0, 0, "a b", NOUN, 2), (0, 4, "c", VERB, 1), (0, 9, "a b", NOUN, 2), (2, 0, "d", NOUN, 1)]
SPANS = pd.DataFrame(ROWS, columns=["text", "start", "span", "kind", "times"])


def spans_of(spans, *ids):
    corpus = SimpleNamespace(labels=np.array([0, 0, 1]), classes=("entailment", "neutral"))
    return ran("40_spans_and_prompts", *ids, spans=spans, corpus=corpus, positions=np.arange(3), np=np, pd=pd).tables


def released(corpora, limit=None):
    study = SimpleNamespace(own_file=False, load_each=lambda _: corpora)
    wanted = SimpleNamespace(released={}, released_limit=limit)
    return ran("40_spans_and_prompts", "from-nli-lib-3", study=study, wanted=wanted).tables["released"]


def test_equally_many_originals_of_each_label_and_none_that_was_not_kept():
    draw = functions("40_spans_and_prompts").draw_originals
    labels, keep = np.array([0] * 50 + [1] * 30 + [2] * 4), np.arange(84) % 2 == 0
    found = draw(keep, labels, 30)
    assert np.bincount(labels[found]).tolist() == [10, 10, 2] and keep[found].all()
    assert (np.diff(found) > 0).all() and (found == draw(keep, labels, 30)).all()
    assert len(draw(np.zeros(84, dtype=bool), labels, 30)) == 0
    assert len(draw(np.ones(80, dtype=bool), np.arange(80) % 2, 30)) == 30  # of two classes as many


def test_spans_of_premises_and_of_each_kind_by_hand():
    tables = spans_of(SPANS, "from-nli-lib-2", "kinds-table")
    table = tables["premises"].set_index(["label", "kinds"])
    assert table.loc[("entailment", "all"), ["value", "n"]].tolist() == [1, 2]  # two different ones, and none
    assert table.loc[("neutral", "all"), "value"] == 1
    table = tables["kinds"].set_index("kind")  # how often their letters occur again
    assert table.loc[NOUN, ["spans", "repeated"]].tolist() == pytest.approx([3, 2 / 3], abs=1e-4)
    assert table.loc[VERB, "words"] == 1


def test_rules_by_hand():
    table = spans_of(SPANS, "rules-table")["rules"].set_index("rule")
    assert table.loc["all", ["tried", "share", "repeated"]].tolist() == [1.5, 1.0, 0.0]
    assert (table["tried"] == 1.5).all() and table.loc["two, with replacement", "share"] <= 1
    without = spans_of(SPANS[:0], "from-nli-lib-2", "kinds-table", "rules-table")
    assert without["rules"].empty and without["kinds"].empty and (without["premises"]["value"] == 0).all()


def test_released_spans_that_are_found_and_one_that_is_not():
    premise = "Two women are doing dishes in their kitchen."
    table = pd.DataFrame({"span_prev": ["are doing dishes", " in their kitchen", "doing dishes in"]})
    table = table.assign(origin_premise=premise, uid=list("123"), premise="x", hypothesis="y", label=0)
    corpus = Corpus(table.assign(corpus="disco", split="e2n"), "disco", "e2n")
    found = released({"made up": corpus}).set_index("kind")["count"]
    assert found.tolist() == [0, 0, 1, 1, 1] and found["not found"] == 1  # a blank in front does not count
    assert released({}).empty


def test_words_shared_with_demonstrations():
    corpus = SimpleNamespace(premise=["A dog runs."], hypothesis=["It moves."])
    same, other = (Demonstration(*texts, "x", "y") for texts in (("A dog runs.", "It moves."), ("No.", "Yes.")))
    given = {"corpus": corpus, "problems": pd.DataFrame({"position": [0]})}
    ways = {"same": [[same]], "other": [[other]], "none": [[]]}
    table = ran("40_spans_and_prompts", "alike-table", ways=ways, **given).tables["alike"]
    assert table.set_index("condition")["value"].to_dict() == {"same": 1.0, "other": 0.0}


@pytest.mark.realdata
def test_most_of_the_released_spans_are_found():
    found = released({split: load("disco", split) for split in ("e2n", "n2c")}, limit=150)
    lost = found[found["kind"] == "not found"].set_index("title")["share"]
    assert lost["e2n"] < 0.55 and lost["n2c"] < 0.35
    assert find_spans(["A man walks."])["span"].tolist() == ["A man", "walks"]


# ---------------------------------------------------------------- 41: perturb and filter

FILTERED = functions("41_perturb_and_filter")
PAIRS = pd.DataFrame({"position": [0, 0, 0, 1, 1, 2], "direction": ["e2n", "e2n", "e2c", "n2c", "n2c", "c2e"]})


def filtered(*ids, **given):
    return ran("41_perturb_and_filter", *ids, **given).tables


def missed(pairs, kept):
    """The table of the chapter, and the estimates that it claims."""
    claims, alone = [], np.atleast_2d(np.asarray(kept, dtype=bool))
    study = SimpleNamespace(claim=lambda _, estimate, **__: claims.append(estimate))
    given = {"study": study, "written": pairs, "alone": alone, "corpus": SimpleNamespace(name="mine")}
    return ran("41_perturb_and_filter", "missed-table", "missed-claim", **given).lost, claims


def test_a_teacher_does_not_learn_from_the_premises_it_judges():
    originals, revised = counterfactuals(20, 0)
    found = FILTERED.other_premises(revised, revised.premise[:3])
    assert not found.keep[:3].any() and found.size == (~np.isin(revised.premise, revised.premise[:3])).sum()
    assert FILTERED.other_premises(originals, []).keep.all()


def test_survival_by_direction_and_a_direction_without_problems_or_survivors():
    steps = {"asked": np.ones(6, dtype=bool), "kept": np.array([1, 0, 0, 1, 1, 0], dtype=bool)}
    table = filtered("survival-table", written=PAIRS, steps=steps)["survival"].set_index(["direction", "step"])
    assert table.loc[("all directions", "kept"), ["count", "n"]].tolist() == [3, 6]
    shares = table["share"].xs("kept", level="step").to_dict()
    known = {"all directions": 0.5, "e2n": 0.5, "e2c": 0, "n2c": 1, "c2e": 0}
    assert shares == pytest.approx(known | {"n2e": np.nan, "c2n": np.nan}, nan_ok=True)
    assert table.loc[("c2e", "kept"), "count"] == 0 and table.loc[("c2n", "kept"), "n"] == 0
    nothing = filtered("survival-table", written=PAIRS[:0], steps={"asked": np.empty(0, dtype=bool)})["survival"]
    assert nothing["direction"].tolist() == ["all directions", *DIRECTIONS] and nothing["share"].isna().all()


def test_reasons_by_version():
    passed = Selection(np.array([True] * 5 + [False]), np.array([KEPT] * 5 + [HOLDS], dtype=object))
    table = filtered("reasons-table", pairs=PAIRS, passed={"2022": passed})["reasons"].set_index("reason")
    assert table.loc[HOLDS, "count"] == 1 and table.loc[KEPT, "count"] == 5 and table["count"].sum() == 6
    assert filtered("reasons-table", pairs=PAIRS[:0], passed={"2022": passed})["reasons"].empty


def test_shifts_of_two_teachers_by_hand():
    before, after = np.log([[0.5, 0.3, 0.2]]), np.log([[0.1, 0.8, 0.1], [0.5, 0.3, 0.2]])
    found = FILTERED.shifts_of([(before, after), (before, after[::-1])], [0, 0], [1, 1])
    assert np.allclose(found, [[0.5, 0], [0, 0.5]])
    none = np.empty(0, dtype=int)
    assert FILTERED.shifts_of([(before, after[:0])], none, none).shape == (1, 0)


def test_what_two_spans_miss_by_hand_and_by_simulation():
    found = missed(PAIRS, [True, False, False, True, True, False])[0].set_index(["position", "direction"])
    assert found.loc[(0, "e2n"), ["missed_0", "missed_apart_0"]].tolist() == [0.25, 0]  # one of two, drawn twice
    assert found.loc[(1, "n2c"), "missed_0"] == 0 and np.isnan(found.loc[(0, "e2c"), "missed_0"])
    five = pd.DataFrame({"position": [0] * 5, "direction": ["e2n"] * 5})
    exact = missed(five, [True, True, False, False, False])[0].iloc[0]
    draws = np.random.default_rng(0).integers(5, size=(20_000, 2))
    assert exact["missed_0"] == pytest.approx((draws >= 2).all(axis=1).mean(), abs=0.01)
    assert exact["missed_apart_0"] == pytest.approx(3 / 10)


def test_the_estimate_leaves_out_what_has_one_span_or_nothing_kept():
    _, (found,) = missed(PAIRS, [[1, 0, 1, 1, 1, 0], [1, 1, 0, 1, 0, 0]])
    assert found.value == pytest.approx(np.mean([np.mean([0.25, 0]), np.mean([0, 0.25])]))
    assert (found.n, found.seeds, found.over) == (2, 2, "premises and trainings")
    assert not missed(PAIRS, np.zeros((2, 6)))[1] and not missed(PAIRS[:0], np.zeros((1, 0)))[1]


def test_revisions_with_the_label_they_have_and_the_one_they_have_not():
    originals, revised = counterfactuals(10, 0)
    found = FILTERED.cross_labelled(originals, revised)
    right = found[found["true"]]
    assert (len(found), len(right)) == (40, 20) and (right["label"].to_numpy() == revised.labels[right["row"]]).all()
    assert (found["label"].to_numpy() != originals.labels[found["position"]]).all()
    assert not found.duplicated(["row", "label"]).any() and FILTERED.cross_labelled(originals[:0], revised).empty


def test_separation_of_a_perfect_and_of_a_blind_teacher(monkeypatch):
    few = partial(stats.over_trainings, resamples=50)
    monkeypatch.setitem(FILTERED.separation.__globals__, "over_trainings", few)
    true, groups = np.arange(200) % 2 == 0, np.arange(200) // 2
    perfect = FILTERED.separation(np.where(true, 0.9, 0.1)[None], true, groups)
    assert (perfect.value, perfect.low, perfect.high, perfect.n) == (1, 1, 1, 100)
    blind = FILTERED.separation(np.zeros((3, 200)), true, groups)
    assert blind.value == 0.5 and blind.seeds == 3


def test_what_filters_keep_of_true_and_broken_pairs():
    given = {"true": np.array([True, True, False, False]), "row": np.arange(4), "np": np, "pd": pd}
    filters = {"half": np.array([True, False, True, False]), "none": np.zeros(4, dtype=bool)}
    table = filtered("truth-table", runs=[0], filters=filters, **given)["truth"].set_index(["filter", "label"])
    assert table.loc[("half", "true"), "share"] == 0.5 and table.loc[("half", "broken"), "pure"] == 0.5
    assert np.isnan(table.loc[("none", "true"), "pure"]) and table.loc[("none", "true"), "count"] == 0
    assert filtered("truth-table", runs=[], filters=filters, **given)["truth"].empty


def test_the_words_more_than_the_span_by_hand():
    # masked, 3 words more; at the end of the premise; inserted, none more
    rows = [("A man runs home.", "runs", "walks all the way", None), ("A man runs home.", "home", "very far", None)]
    rows += [("A cat sits here.", "sits", "sleeps", "A cat ")]
    table = pd.DataFrame(rows, columns=["origin_premise", "span_prev", "gen_out", "prefix"])
    assert FILTERED.suffix_gap(table).value == 3 and not FILTERED.inserted(table.drop(columns="prefix")).any()


@pytest.mark.realdata
def test_the_released_files_are_what_they_are_said_to_be():
    cad = {split: load("disco", split) for split in ("e2n", "n2c")}
    table = filtered("from-nli-lib-14", cad=cad, wanted=SimpleNamespace(released=cad))["released"].set_index("title")
    assert table["n"].tolist() == [5698, 3476] and table["dropped"].tolist() == [0, 5]
    assert table["lowest"].tolist() == pytest.approx([0.15003, 0.15004], abs=6e-6)
    assert table.loc["n2c", "by_insertion"] == pytest.approx(1667 / 3476, abs=1e-5)


# ---------------------------------------------------------------- 44: counterfactual sensitivity

SENSITIVE, EDITED = functions("44_counterfactual_sensitivity"), load_pairs("planted", "test", originals=30)
OLD, NEW = EDITED.old_labels, EDITED.revised.labels


MODELS = [(OLD, NEW, [1, 1, 0]), ((OLD + 1) % 3, (NEW + 1) % 3, [1, 0, 1]), (OLD, OLD, [0, 0, 0])]


@pytest.mark.parametrize(("before", "after", "means"), MODELS, ids=["right", "wrong", "stubborn"])
def test_right_wrong_and_stubborn_models(before, after, means):
    sure = (np.repeat(20.0 * np.eye(3)[labels][None], 3, axis=0) for labels in (before, after))  # by three models
    found = SENSITIVE.pair_values(*sure, EDITED)
    assert list(found) == ["sensitivity", "accuracy of pairs", "sensitive and wrong"]
    assert [(each.mean(), each.shape) for each in found.values()] == [(pytest.approx(at), (3, 60)) for at in means]


def test_values_are_those_of_the_measures_training_by_training():
    before, after = np.random.default_rng(0).normal(size=(2, 2, 60, 3))
    found = SENSITIVE.pair_values(before, after, EDITED)
    assert all(found["sensitivity"][s] == pytest.approx(sensitivity(before[s], after[s])) for s in range(2))
    both = (before.argmax(axis=2) == OLD) & (after.argmax(axis=2) == NEW)
    assert found["accuracy of pairs"].tolist() == both.tolist()
    assert not (found["accuracy of pairs"] * found["sensitive and wrong"]).any()


def test_a_difference_and_what_it_counts():
    found = SENSITIVE.difference(np.full((3, 60), 0.7), np.full((3, 60), 0.6), EDITED.origin, resamples=20)
    assert found.value == pytest.approx(0.1) and found[3:] == (30, 3, "premises and trainings")


def test_an_interval_over_originals_is_wider_than_one_over_pairs_that_agree():
    """The pairs of one original agree: the interval must be that of 30 originals, not of 60 pairs."""
    flags = (np.random.default_rng(1).random(30) < 0.5)[EDITED.origin].astype(float)[None]
    ends = [SENSITIVE.difference(flags, 0 * flags, groups, resamples=2000) for groups in (EDITED.origin, np.arange(60))]
    by_origin, by_pair = (each.high - each.low for each in ends)
    assert by_origin / by_pair == pytest.approx(np.sqrt(2), rel=0.1)


def test_tables_have_a_row_for_each_and_outcomes_add_up():
    random, arms = np.random.default_rng(2), ["base", "more"]
    logits = {("planted", arm): tuple(random.normal(size=(2, 2, 60, 3))) for arm in arms}
    given = {"sets": {"planted": EDITED}, "arms": arms, "logits": logits, "np": np, "pd": pd}
    ids = "measures-tables", "outcomes-table", "a6954355"
    table = ran("44_counterfactual_sensitivity", *ids, **given).tables
    mean = table["measures"].set_index(["condition", "measure"])["value"]
    assert len(mean) == 6 and set(table["gaps"]["condition"]) == {"more"}
    wanted = [mean["more", name] - mean["base", name] for name in table["gaps"]["measure"]]
    assert table["gaps"]["value"].tolist() == pytest.approx(wanted, abs=2e-5)
    assert table["outcomes"].groupby("condition")["value"].sum().tolist() == pytest.approx([1, 1], abs=1e-4)
    parts = table["directions"][table["directions"]["measure"] == "accuracy of pairs"].set_index("condition")
    for arm in arms:
        value, pairs = parts.loc[arm, "value"], parts.loc[arm, "pairs"]
        assert np.average(value, weights=pairs) == pytest.approx(mean[arm, "accuracy of pairs"], abs=2e-5)
