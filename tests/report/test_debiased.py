"""What the filters do, Figure 2, the benchmark's mean, t-tests. Alone: pytest tests/report/test_debiased.py"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from nli_lib.claims import paper_table
from nli_lib.measure.features import Features, z_statistics
from nli_lib.report.debiased import benchmark_mean, figure_two, filter_effect, highest, sizes_of, t_tests, write_sets
from nli_lib.select.zfilter import debiased_sets, random_twin

CLASSES = ["entailment", "neutral", "contradiction"]


def test_the_filters_effect_by_hand():
    pairs = pd.DataFrame({
        "generator": "plain", "seed": 0, "label": [0, 0, 1, 1],
        "hypothesis": ["a man sleeps", "a man", "A dog runs outside.", "no one"],
        "agrees": [True, False, True, True], "confident": [True, False, True, False],
    })  # fmt: skip
    found = filter_effect(pairs, CLASSES).set_index("label")
    assert found.loc["all", ["n", "agree", "kept"]].tolist() == [4, 3, 2]
    assert found.loc["entailment", "words"] == 2.5 and found.loc["entailment", "words kept"] == 3
    assert found.loc["neutral", "share kept"] == 0.5 and found.loc["neutral", "mix kept"] == 0.5
    assert found.loc["neutral", "low"] < 0.5 < found.loc["neutral", "high"]
    never = found.loc["contradiction"]  # a label that was never generated has a row that says so
    assert never["n"] == 0 and np.isnan(never["share kept"]) and never["mix"] == 0


def test_a_filter_that_keeps_nothing_has_no_words_and_no_mix():
    pairs = pd.DataFrame({"generator": "plain", "seed": 0, "label": [0, 1], "hypothesis": ["a b", "c"]})
    found = filter_effect(pairs.assign(agrees=False, confident=False), CLASSES)
    assert (found["kept"] == 0).all() and found["words kept"].isna().all() and (found["mix kept"] == 0).all()


def planted_table(seed=0, rows=600):
    random = np.random.default_rng(seed)
    labels = random.integers(3, size=rows)
    matrix = random.random((rows, 40)) < 0.2
    matrix[:, 0] = (labels == 0) & (random.random(rows) < 0.9)
    return Features(sparse.csr_array(matrix), np.array([f"w{i}@hypothesis" for i in range(40)], object)), labels


def test_figure_two_has_all_that_stands_out_and_a_tenth_of_the_rest():
    table, labels = planted_table(rows=2_000)
    everything = np.ones(2_000, bool)
    points = figure_two(table, labels, {"all": everything, "half": np.arange(2_000) < 1_000}, CLASSES, share=1)
    assert len(points) == 2 * 40 * 3
    z = z_statistics(table.matrix, labels, 3).z
    whole = points[points["panel"] == "all"]
    assert sorted(whole["z"]) == pytest.approx(sorted(z.ravel()))
    assert (points["tests"] == 120).all()
    row = whole[(whole["feature"] == "w0@hypothesis") & (whole["label"] == "entailment")].iloc[0]
    assert row["p"] == 1 and row["z"] > 10
    drawn = [figure_two(table, labels, {"all": everything}, CLASSES, seed=seed) for seed in range(30)]
    assert all((each["z"] >= 10).sum() == (z >= 10).sum() for each in drawn)
    below = np.mean([(each["z"] < 10).sum() for each in drawn]) / (z < 10).sum()
    assert 0.07 < below < 0.13
    assert figure_two(table, labels, {"all": everything}, CLASSES, seed=3).equals(drawn[3])


def test_highest_is_the_largest_z_of_frequent_features():
    table, labels = planted_table()
    found = highest(table.matrix, labels, np.ones(600, bool), n_classes=3)
    statistics = z_statistics(table.matrix, labels, 3)
    assert found == pytest.approx(statistics.z[statistics.n >= 20].max(axis=0))
    assert np.isnan(highest(table.matrix, labels, np.zeros(600, bool), n_classes=3)).all()


def test_the_benchmarks_mean_is_the_papers():
    printed = paper_table("zfilter", "Table 5").loc["baseline"]
    parts = {name.upper(): value for name, value in printed.items() if name != "average"}
    mean, used = benchmark_mean(parts)
    assert len(used) == 7 and round(mean, 1) == printed["average"]


def test_st_is_the_mean_of_four_and_counts_once():
    parts = {"PI-CD": 0.5, "ST-LM": 0.2, "ST-NE": 0.4, "ST-SE": 0.6, "ST-WO": 0.8}
    assert benchmark_mean(parts) == (pytest.approx(0.5), ("PI-CD", "ST"))
    assert benchmark_mean({name: parts[name] for name in ("PI-CD", "ST-LM")}) == (0.5, ("PI-CD",))
    assert np.isnan(benchmark_mean({})[0])


def test_both_t_tests_are_scipys():
    values = {"a": [0.80, 0.83, 0.79], "b": [0.78, 0.80, 0.78]}
    rows = [("t", name, seed, each) for name, three in values.items() for seed, each in enumerate(three)]
    found = t_tests(pd.DataFrame(rows, columns=["title", "condition", "seed", "accuracy"]), [("a", "b"), ("a", "c")])
    assert len(found) == 1 and found["difference"].iloc[0] == pytest.approx(0.02)
    assert found["paired"].iloc[0] == pytest.approx(stats.ttest_rel(*values.values()).pvalue)
    assert found["welch"].iloc[0] == pytest.approx(stats.ttest_ind(*values.values(), equal_var=False).pvalue)


@pytest.mark.parametrize(
    ("a", "b", "paired", "welch"),
    [([0.5, 0.5], [0.5, 0.5], 1.0, 1.0), ([0.6, 0.6], [0.5, 0.5], 0.0, 0.0), ([0.5], [0.4], np.nan, np.nan)],
)
def test_t_tests_without_any_spread(a, b, paired, welch):
    rows = [("t", name, seed, each) for name, few in {"a": a, "b": b}.items() for seed, each in enumerate(few)]
    found = t_tests(pd.DataFrame(rows, columns=["title", "condition", "seed", "accuracy"]), [("a", "b")]).iloc[0]
    assert [found["paired"], found["welch"]] == pytest.approx([paired, welch], nan_ok=True)


def test_sets_are_written_with_labels_by_name(tmp_path):
    columns = {"uid": ["a", "b"], "premise": ["x", 'says "é"'], "hypothesis": ["y", "z\u2028w"], "label": [2, 0]}
    pool = pd.DataFrame({**columns, "source": ["D0", "G*"], "seed": 0})
    paths = write_sets(
        tmp_path, pool, {"Z-Aug": [True, True], "Seq-Z": [False, True], "Par-Z": [False, False]}, CLASSES
    )
    read = pd.read_json(paths["Z-Aug"], lines=True)
    assert read["label"].tolist() == ["contradiction", "entailment"] and read["premise"].tolist() == ["x", 'says "é"']
    assert pd.read_json(paths["Seq-Z"], lines=True)["uid"].tolist() == ["b"]
    assert paths["Par-Z"].name == "par-z.jsonl" and paths["Par-Z"].read_text().strip() == ""


def test_sizes_add_up():
    table, labels = planted_table()
    source = np.array(["D0", "G", "G*"] * 200, dtype=object)
    sets = debiased_sets(table.matrix, labels, source, np.ones(600, bool), n_classes=3, k=2, batch_size=10)
    twins = {title: random_twin(part, labels, source) for title, part in sets.items()}
    found = sizes_of(sets, twins, table.matrix, labels, source, CLASSES).set_index("set")
    assert (found[["of D0", "of G", "of G*"]].sum(axis=1) == found["pairs"]).all()
    assert found.filter(like="share of").sum(axis=1).to_numpy() == pytest.approx(np.ones(len(found)))
    assert found.loc["D0", "highest z"] == found.loc["D0", "twin's highest z"]  # unfiltered: its own twin
    assert found.loc["Z(D0)", "highest z"] < found.loc["Z(D0)", "twin's highest z"]
