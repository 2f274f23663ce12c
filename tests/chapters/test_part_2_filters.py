"""Chapters 21, 24 and 25: what filters leave, and what is learnt from it. Alone: pytest <this file>"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import functions, ran
from scipy import sparse, stats

from nli_lib.claims import paper_table
from nli_lib.corpora import from_dataset
from nli_lib.corpora.corpus import LABELS
from nli_lib.corpora.suites import BENCHMARK
from nli_lib.measure.features import Features, features, top_in_sets, z_statistics, z_threshold
from nli_lib.select.zfilter import z_filter

CLASSES = np.array(LABELS, dtype=object)


def accuracies(values):
    """The saved accuracies of {(condition, title): one for each seed}, by the rule argmax."""
    rows = [(title, name, seed, each) for (name, title), few in values.items() for seed, each in enumerate(few)]
    return pd.DataFrame(rows, columns=["title", "condition", "seed", "accuracy"]).assign(rule="argmax")


# ---------------------------------------------------------------- 21: what the z-filter leaves


@pytest.fixture(scope="module")
def corpus():
    """120 pairs of two labels; "not" stands in every contradiction but few entailments."""
    labels = np.arange(120) % 2
    texts = [f"thing {n % 7} is {'not ' * bool(label or n % 10 == 0)}here" for n, label in enumerate(labels)]
    names = np.array(["entailment", "contradiction"])[labels]
    return from_dataset(pd.DataFrame({"premise": "a scene", "hypothesis": texts, "label": names}), "tiny", "train")


@pytest.fixture(scope="module")
def cut(corpus):
    table = features(corpus.premise, corpus.hypothesis)
    return table, z_filter(table.matrix, corpus.labels, names=table.names, k=2, batch_size=10)


def test_strongest_features_of_each_set(corpus, cut):
    table, kept = cut
    tops = top_in_sets(table, corpus.labels, {"before": np.ones(120, bool), "after": kept.keep}, corpus.classes, k=3)
    assert tops.groupby(["pairs", "label"]).size().eq(3).all() and len(tops) == 12
    counted = z_statistics(table.matrix, corpus.labels, 2)
    first = tops.query("pairs == 'before' and rank == 1").set_index("label")["z"]
    assert first[list(corpus.classes)].to_numpy() == pytest.approx(np.nanmax(counted.z, axis=0))
    assert set(tops["line"]) == {z_threshold(0.01, tests=counted.z.size)}


def test_what_the_filter_leaves_beside_its_twin(corpus, cut):
    """Written as the definition: the five best features of each set of pairs, and every z above the line."""
    table, kept = cut
    suppression, options = functions("21_z_filter").suppression, {"k": 2, "batch_size": 10, "n_classes": 2}
    highest, flat, above = suppression(table, corpus.labels, line=1.5, **options)
    sets = {"after": kept.keep, "twin": kept.random_twin(corpus.labels).keep}
    tops = top_in_sets(table, corpus.labels, sets, corpus.classes, k=5)
    z = tops.pivot(index=["pairs", "rank"], columns="label", values="z")
    assert highest == pytest.approx((z.loc["after", 1] / z.loc["twin", 1]).mean())
    assert flat == pytest.approx(((z.loc["after", 1] - z.loc["after", 5]) / z.loc["after", 1]).mean())
    every = {name: z_statistics(table.matrix[rows], corpus.labels[rows], 2).z.ravel() for name, rows in sets.items()}
    counts = {name: sum(value > 1.5 for value in z) for name, z in every.items()}
    assert counts["twin"] > 0 and above == counts["after"] / counts["twin"]
    assert np.isnan(suppression(table, corpus.labels, line=99, **options)[2])
    one, same, other = (suppression(table, corpus.labels, line=1.5, seed=seed, **options) for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)  # another seed is another order


def test_the_shapes_count_what_is_there(corpus, cut):
    part = SimpleNamespace(keep=corpus.labels == 1)
    given = {"corpus": corpus, "labels": corpus.labels, "classes": corpus.classes, "table": cut[0]}
    rows = ran("21_z_filter", "c42baf1a2d93", k=20, kept=part, twin=part, **given).tables["shapes"]
    counts = rows[["pairs", "n", "premises", "share of contradiction"]].to_numpy().tolist()
    assert counts == [["before", 120, 1, 0.5], ["after", 60, 1, 1], ["random twin", 60, 1, 1]]
    assert rows["words of the hypothesis"][1] == 5


def test_all_pairs_stand_beside_the_filter_seed_by_seed():
    ours = accuracies({("z-filter", "test"): [0.8, 0.7], ("random twin", "test"): [0.7, 0.65]}).assign(n=100)
    ours = pd.concat([ours, ours[:1].assign(rule="sum", accuracy=0.1)], ignore_index=True)
    base = accuracies({(name, "test"): [0.9] * 3 for name in ("encoder, pair", "n-grams")}).assign(n=100)
    base = pd.concat([base, base[:1].assign(title="another")]).rename(columns={"condition": "model"})
    both = functions("21_z_filter", study=SimpleNamespace(table=lambda part, notebook: base)).with_all_pairs(ours)
    assert both["condition"].tolist() == ["all pairs"] * 2 + ["z-filter"] * 2 + ["random twin"] * 2
    assert both["accuracy"].tolist() == [0.9, 0.9, 0.8, 0.7, 0.7, 0.65] and set(both["n"]) == {100}


# ---------------------------------------------------------------- 24: the sets


def filter_table(hypotheses, labels, agrees, confident):
    samples = pd.DataFrame({"generator": "plain", "seed": 0, "hypothesis": hypotheses, "agrees": agrees})
    given = {"corpus": SimpleNamespace(classes=LABELS), "generated": SimpleNamespace(labels=np.array(labels))}
    samples = samples.assign(confident=confident, label=labels)
    return ran("24_three_datasets", "12-a94844", samples=samples, tau=0.5, **given).tables["filter"]


def test_the_filters_effect_by_hand():
    texts, right = ["a man sleeps", "a man", "A dog runs outside.", "no one"], [True, False, True, True]
    found = filter_table(texts, [0, 0, 1, 1], right, [True, False, True, False])
    found = found.set_index("label").loc[["all", *LABELS]]
    assert found.loc["all", ["n", "agree", "kept"]].tolist() == [4, 3, 2]
    assert found.loc["entailment", ["words", "words kept"]].tolist() == [2.5, 3]
    neutral = found.loc["neutral"]
    assert neutral["low"] < neutral["share kept"] == neutral["mix kept"] == 0.5 < neutral["high"]
    never = found.loc["contradiction"]  # a label that was never generated has a row that says so
    assert never["n"] == 0 and np.isnan(never["share kept"]) and never["mix"] == 0


def test_a_filter_that_keeps_nothing_has_no_words_and_no_mix():
    found = filter_table(["a b", "c"], [0, 1], False, False)
    assert (found["kept"] == 0).all() and found["words kept"].isna().all() and (found["mix kept"] == 0).all()


def planted_table(rows=600, count=40):
    random = np.random.default_rng(0)
    labels, matrix = random.integers(3, size=rows), random.random((rows, count)) < 0.2
    matrix[:, 0] = (labels == 0) & (random.random(rows) < 0.9)
    return Features(sparse.csr_array(matrix), np.array([f"w{i}@hypothesis" for i in range(count)], object)), labels


def test_figure_two_has_all_that_stands_out_and_a_tenth_of_the_rest():
    table, labels = planted_table(2_000, 400)
    three = {"before": np.ones(2_000, bool), "after": np.arange(2_000) < 1_000, "random twin": labels > 0}
    given = {"table": table, "labels": labels, "three": three, "classes": CLASSES}
    study = SimpleNamespace(title_of=lambda: "SNLI")
    points = ran("24_three_datasets", "20-0ed136", study=study, **given).tables["figure_2"]
    assert list(points["panel"].unique()) == ["SNLI", "Seq-Z"] and (points["tests"] == 400 * 3).all()
    for panel, rows in {"SNLI": three["before"], "Seq-Z": three["after"]}.items():
        z, part = z_statistics(table.matrix[np.flatnonzero(rows)], labels[rows], 3).z, points[points["panel"] == panel]
        assert part["z"].ge(10).sum() == (z >= 10).sum() > 0 and 0.07 < part["z"].lt(10).sum() / (z < 10).sum() < 0.13
        column = part["feature"].str.extract(r"(\d+)", expand=False).astype(int)
        label = part["label"].map({name: at for at, name in enumerate(LABELS)})
        assert part["z"].to_numpy() == pytest.approx(z[column, label], abs=1e-4)
    z_of_p = (points["p"] - 1 / 3) / np.sqrt(2 / 9 / points["n"])
    assert z_of_p.to_numpy() == pytest.approx(points["z"].to_numpy(), abs=0.01)


def test_sizes_add_up():
    table, labels = planted_table()
    source = np.array(["D0", "G", "G*"] * 200, dtype=object)
    chapter, options = functions("24_three_datasets", np=np), {"n_classes": 3, "k": 2, "batch_size": 10, "seed": 0}
    sets = chapter.debiased_sets(table.matrix, labels, source, np.ones(600, bool), **options)
    twins = {title: chapter.random_twin(*part, labels, source, 0) for title, part in sets.items()}
    given = {"pools": {0: (table, labels, source, None)}, "sets": {0: sets}, "twins": {0: twins}, "classes": CLASSES}
    cells = ran("24_three_datasets", "17-da5c5b", **given)
    found = cells.tables["sizes"].set_index("set")
    assert (found[["of D0", "of G", "of G*"]].sum(axis=1) == found["pairs"]).all()
    assert found.filter(like="share of").sum(axis=1).to_numpy() == pytest.approx(np.ones(len(found)), abs=2e-4)
    assert found.loc["D0", "highest z"] == found.loc["D0", "twin's highest z"]  # unfiltered: its own twin
    assert found.loc["Z(D0)", "highest z"] < found.loc["Z(D0)", "twin's highest z"]
    counted = z_statistics(table.matrix[source == "D0"], labels[source == "D0"], 3)
    often = counted.z[counted.n >= 20]  # the largest z of the features that are frequent
    assert found.loc["D0", "highest z"] == pytest.approx(often.max(axis=0).mean(), abs=1e-4)
    assert np.isnan(cells.highest(table.matrix, labels, np.zeros(600, bool)))


def test_sets_are_written_with_labels_by_name(tmp_path):
    columns = {"uid": ["a", "b"], "premise": ["x", 'says "é"'], "hypothesis": ["y", "z\u2028w"], "label": [2, 0]}
    pool = pd.DataFrame({**columns, "source": ["D0", "G*"], "seed": 0, "Z-Aug": True, "Seq-Z": [False, True]})
    study = SimpleNamespace(exports=tmp_path)
    ran("24_three_datasets", "24-d2738f", study=study, whole=[pool.assign(**{"Par-Z": False})], classes=CLASSES)
    read = pd.read_json(tmp_path / "z-aug.jsonl", lines=True)
    assert list(read) == ["uid", "premise", "hypothesis", "label", "source"]
    assert read["label"].tolist() == ["contradiction", "entailment"] and read["premise"].tolist() == ["x", 'says "é"']
    assert pd.read_json(tmp_path / "seq-z.jsonl", lines=True)["uid"].tolist() == ["b"]
    assert (tmp_path / "par-z.jsonl").read_text().strip() == ""


# ---------------------------------------------------------------- 25: training on them


def test_both_t_tests_are_scipys():
    values = {("D0", "t"): [0.78, 0.80, 0.78, 0.9], ("Seq-Z", "t"): [0.80, 0.83, 0.79], ("Seq-Z", "u"): [0.5]}
    study = SimpleNamespace(table=lambda part: accuracies(values))
    found = ran("25_debiased_training", "21-tests", study=study).tables["tests"]
    assert len(found) == 1  # a set that the other was not tested on, and a twin that is not there, have no row
    row, pair = found.iloc[0], (values["Seq-Z", "t"], values["D0", "t"][:3])  # a seed that one lacks is left out
    assert row["difference"] == pytest.approx(0.02) and row["low"] < 0.02 < row["high"] and row["seeds"] == 3
    assert row["paired"] == pytest.approx(stats.ttest_rel(*pair).pvalue, abs=1e-5)
    assert row["welch"] == pytest.approx(stats.ttest_ind(*pair, equal_var=False).pvalue, abs=1e-5)


@pytest.mark.filterwarnings("ignore:Precision loss")
@pytest.mark.parametrize(("a", "b", "p"),
    [([0.5] * 2, [0.5] * 2, 1), ([0.6] * 2, [0.5] * 2, 0), ([0.5], [0.4], np.nan)])  # fmt: skip
def test_t_tests_without_any_spread(a, b, p):
    found = functions("25_debiased_training").t_tests(np.array(a), np.array(b))
    assert found[-2:] == pytest.approx([p, p], nan_ok=True)


def benchmark_of(parts):
    accuracy = accuracies({("D0", title): [value] for title, value in {**parts, "HANS": 0.9}.items()})
    return ran("25_debiased_training", "22-33dc68", accuracy=accuracy).tables["benchmark"]


def test_the_benchmarks_mean_is_the_papers():
    printed = paper_table("zfilter", "Table 5").loc["baseline"]
    parts = {title: printed["st" if title.startswith("ST-") else title.lower()] for title in BENCHMARK}
    found = benchmark_of(parts).iloc[0]
    assert found["parts"] == 7 and round(found["mean"], 1) == printed["average"]


def test_st_is_the_mean_of_four_and_counts_once():
    parts = {"PI-CD": 0.5, "ST-LM": 0.2, "ST-NE": 0.4, "ST-SE": 0.6, "ST-WO": 0.8}
    for given, wanted in ((parts, "PI-CD, ST"), ({"PI-CD": 0.5, "ST-LM": 0.2}, "PI-CD")):
        found = benchmark_of(given)[["mean", "parts", "which"]].iloc[0]
        assert found.tolist() == [pytest.approx(0.5), len(wanted.split(", ")), wanted]
    assert benchmark_of({}).empty and np.isnan(benchmark_of({"ST-LM": 0.2})["mean"].iloc[0])
