"""A corpus is one checked table, joined and compared with others; labels are mapped by name.

Alone: pytest tests/corpora/test_corpus.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.corpora import Corpus, CorpusError, concat, corpus as module, duplicates, from_dataset, overlap
from nli_lib.corpora.corpus import LABELS, NO_GOLD, TWO_WAY, UNKNOWN, C, E, N, collapse, head_columns, to_index

PAIRS = [("a", "A cat sleeps.", "An animal rests.", 0), ("b", "A cat sleeps.", "The cat is grey.", 1)]
PAIRS += [("c", "A dog runs.", "A dog sits.", 2), ("d", "A dog runs.", "A dog sits.", 1)]


def corpus(pairs=PAIRS, **kwargs) -> Corpus:
    table = pd.DataFrame(pairs, columns=["uid", "premise", "hypothesis", "label"]).assign(corpus="tiny", split="train")
    return Corpus(table, "tiny", "train", **kwargs)


def test_columns_arrays_and_views():
    tiny = corpus()
    assert len(tiny) == 4 and "tiny/train" in repr(tiny)
    assert tiny.labels.dtype == np.int64 and tiny.labels.tolist() == [0, 1, 2, 1]
    assert tiny.premise.dtype == object and tiny.hypothesis[2] == "A dog sits."
    assert tiny.uid.tolist() == ["a", "b", "c", "d"]
    assert tiny.texts("pair") == (tiny.premise.tolist(), tiny.hypothesis.tolist())
    assert tiny.texts("hypothesis") == (tiny.hypothesis.tolist(), None)
    assert tiny.texts("premise") == (tiny.premise.tolist(), None)
    with pytest.raises(ValueError, match=r"pair, hypothesis, premise"):
        tiny.texts("both")


EVERY = [("bool", np.array([True, False, False, True]), ["a", "d"]), ("places", np.array([2, 0]), ["c", "a"])]
EVERY += [("list", [1], ["b"]), ("none", [], []), ("slice", slice(2), ["a", "b"])]


@pytest.mark.parametrize(("keep", "uids"), [case[1:] for case in EVERY], ids=[case[0] for case in EVERY])
def test_subsets(keep, uids):
    subset = corpus(skipped={"empty text": 3}, source="somewhere")[keep]
    assert subset.uid.tolist() == uids and subset.table.index.tolist() == list(range(len(uids)))
    assert subset.source == "somewhere" and subset.skipped == {"empty text": 3}


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(IndexError, match="size of axis is 4 but .* is 2"):
        corpus()[np.array([True, False])]
    with pytest.raises(IndexError, match="only integers"):
        corpus()[[0.5]]


def test_the_digest_is_of_content_and_order():
    tiny = corpus()
    assert tiny.digest == corpus(source="elsewhere").digest and len(tiny.digest) == 64
    assert tiny.digest != tiny[[3, 2, 1, 0]].digest and tiny.digest != corpus([(*PAIRS[0][:3], 1), *PAIRS[1:]]).digest
    moved = corpus([("a", "xy", "z", 0)]), corpus([("a", "x", "yz", 0)])
    assert moved[0].digest != moved[1].digest


def test_faults_of_the_table_are_named():
    with pytest.raises(CorpusError, match="'a' names more than one row"):
        corpus([PAIRS[0], PAIRS[0]])
    with pytest.raises(CorpusError, match="label 3"):
        corpus([("a", "p", "h", 3)])
    with pytest.raises(CorpusError, match="hypothesis"):
        Corpus(pd.DataFrame({"uid": ["a"]}), "tiny", "train")


def test_duplicates():
    found = duplicates(corpus())
    assert found.pairs.tolist() == [False, False, False, True]
    assert found.conflicting.tolist() == [False, False, True, True]
    assert found.sum().to_dict() == {"pairs": 1, "conflicting": 2, "premises": 2, "hypotheses": 1}


def test_letter_case_and_blanks_hide_no_overlap():
    pairs = [("a", "A cat.", "It  sleeps.", 0), ("b", "a CAT.", "it sleeps.", 0)]
    assert not duplicates(corpus(pairs))["pairs"].any() and overlap(corpus(pairs[:1]), corpus(pairs[1:]))["pairs"].all()


def test_overlap_of_test_with_train():
    train, test = corpus(), corpus([("x", "A cat sleeps.", "It snores.", 1), ("y", "A dog runs.", "A dog sits.", 2)])
    shared = overlap(test, train)
    assert shared.pairs.tolist() == [False, True]
    assert shared.sum().to_dict() == {"pairs": 1, "premises": 2, "hypotheses": 1}
    assert overlap(train, test[[0]]).premises.tolist() == [True, True, False, False]


def test_the_report_counts_everything():
    report = functions("01_corpora_and_labels").report_of(corpus(skipped={"no gold label": 2}, source="tiny.jsonl"))
    assert report["source"].unique().tolist() == ["tiny.jsonl"]
    count = report.set_index(["kind", "what"])["count"]
    found = [count["rows", "kept"], count["label", "neutral"], count["skipped", "no gold label"]]
    assert [*found, count["repeated", "pairs"]] == [4, 2, 2, 1]


def many(counts, classes=LABELS, **kwargs):
    labels = np.repeat(np.arange(len(counts)), counts)
    pairs = [(str(at), "A cat sleeps.", f"It is {at}.", label) for at, label in enumerate(labels)]
    return corpus(pairs, classes=classes, **kwargs)


def test_warnings_name_what_is_rare_small_or_left_out():
    assert many([200, 200, 200], skipped={"empty text": 10}).warnings() == []
    (rare,) = many([1500, 1500, 100]).warnings()
    assert rare.startswith("Only 100 of 3,100 rows (3.2%) are contradiction")
    (small,) = many([99, 120], classes=("entailment", "neutral")).warnings()
    assert small.startswith("Fewer than 100 rows of a class (entailment 99, neutral 120)")
    (left,) = many([200, 200], classes=("entailment", "neutral"), skipped={"empty text": 100}).warnings()
    assert left == "More than 5% of the rows cannot be used. 100 of 500 rows were left out: empty text 100."
    (one,) = many([0, 200, 0]).warnings()
    assert one.startswith("All rows are neutral")
    said = "No row is contradiction: nothing that compares contradiction with another class can be measured."
    assert many([150, 150, 0]).warnings()[0] == said


def test_too_few_rows_of_a_class_are_one_error():
    module.check_enough(many([5, 5, 5]), 5, "five folds")
    with pytest.raises(CorpusError, match=r"tiny/train: five folds: 5 rows of each .* entailment 5, neutral 4, contra"):
        module.check_enough(many([5, 4, 5]), 5, "five folds")
    with pytest.raises(CorpusError, match="a corpus of one class cannot be analysed"):
        module.check_enough(many([0, 500, 0]))


def test_an_empty_subset_is_still_a_corpus():
    empty = corpus()[[]]
    assert len(empty.digest) == 64 and duplicates(empty)["pairs"].sum() == 0
    assert overlap(empty, corpus())["pairs"].sum() == 0


def test_examples_are_the_first_of_each_class():
    shown = corpus([PAIRS[1], PAIRS[3], PAIRS[0], PAIRS[2]]).examples(extra=["uid"])
    assert shown["uid"].tolist() == ["b", "a", "c"]
    assert shown["label"].tolist() == ["neutral", "entailment", "contradiction"]


def test_points_carry_the_examples_alone_or_all_texts():
    whole = corpus()

    def points(texts=False, **options):
        return functions("10_data_map").points_of(whole, texts, np.random.default_rng(0), **options)

    told, examples = points(), whole.examples()
    assert list(told.columns) == ["position", "label", "premise", "hypothesis"] and len(told) == len(whole)
    assert told["premise"].notna().sum() == len(examples)
    assert list(told.dropna()["hypothesis"]) == list(examples["hypothesis"])
    assert points(texts=True)["premise"].notna().all()
    assert points(most=len(examples))["premise"].notna().all(), "a part keeps the examples"
    assert points(texts=True, letters=3)["premise"].str.len().max() <= 3


# ---------------------------------------------------------------- joined, and from other tables


def named(name, uids, classes=("entailment", "neutral", "contradiction"), skipped=None, **columns):
    rows = {"uid": uids, "premise": "A dog runs.", "hypothesis": [f"It moves {at}." for at in range(len(uids))]}
    rows["label"] = np.arange(len(uids)) % len(classes)
    table = pd.DataFrame(rows | {"corpus": name, "split": "train"} | columns)
    return Corpus(table, name, "train", classes, skipped or {}, f"{name}.csv")


def test_corpora_are_joined_with_their_columns_uids_and_skips():
    one = named("one", ["a", "b", "a#2"], skipped={"empty text": 1}, genre="g")
    two = named("two", ["a", "c"], maker="worker")
    both = concat([one, two, named("one", ["d"], skipped={"empty text": 2, "bad": 1})], name="both")
    assert both.uid.tolist() == ["a", "b", "a#2", "a#2#2", "c", "d"]
    assert (both.name, both.split) == ("both", "train") and both.labels.tolist() == [0, 1, 2, 0, 1, 0]
    assert both.table["corpus"].tolist() == ["one"] * 3 + ["two"] * 2 + ["one"]
    assert both.table["genre"].isna().tolist() == [False] * 3 + [True] * 3
    assert both.table["maker"].isna().tolist() == [True] * 3 + [False] * 2 + [True]
    assert both.skipped == {"empty text": 3, "bad": 1} and both.source == "one.csv + two.csv + one.csv"


def test_what_cannot_be_joined():
    one = named("one", ["a", "b"])
    assert concat([one], name="one").digest == one.digest
    with pytest.raises(CorpusError, match="no corpus"):
        concat([], name="none")
    with pytest.raises(CorpusError, match="one/train: entailment, neutral, contradiction; two/train: entailment, not_"):
        concat([one, named("two", ["a"], classes=TWO_WAY)], name="both")


def test_a_dataset_and_back():
    pytest.importorskip("datasets")
    one = named("one", ["a", "b", "c"], genre=["x", None, "z"], weight=[1.5, 2.0, 0.0])
    dataset = one.to_dataset()
    assert dataset.features["label"].names == list(one.classes)
    back = from_dataset(dataset)
    assert (back.name, back.split, back.classes, back.digest) == ("one", "train", one.classes, one.digest)
    assert list(back.table) == list(one.table) and back.table["weight"].tolist() == [1.5, 2.0, 0.0]


def test_a_dataset_with_another_order_and_rows_without_a_gold_label():
    datasets = pytest.importorskip("datasets")
    rows = {"premise": ["P"] * 4, "hypothesis": list("abcd"), "label": [0, 1, 2, -1]}
    names = ["contradiction", "entailment", "neutral"]
    features = {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string")}
    features = datasets.Features({**features, "label": datasets.ClassLabel(names=names)})
    found = from_dataset(datasets.Dataset.from_dict(rows, features=features), "mine", "dev")
    assert found.labels.tolist() == [2, 0, 1] and found.skipped == {"no gold label": 1}
    assert (found.name, found.split) == ("mine", "dev")
    with pytest.raises(CorpusError, match="splits train: choose one"):
        from_dataset(datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows)}))
    with pytest.raises(CorpusError, match="numbers without names"):
        from_dataset(datasets.Dataset.from_dict(rows))


def test_a_frame():
    frame = pd.DataFrame({"a": ["P", "Q", "R"], "b": ["H", None, "I"], "gold": ["neutral", "entailment", "e"], "n": 7})
    columns = {"premise": "a", "hypothesis": "b", "label": "gold"}
    found = from_dataset(frame.set_index("n", drop=False), "mine", columns=columns)
    assert found.uid.tolist() == ["mine-train-0", "mine-train-2"] and found.table["n"].tolist() == [7, 7]
    assert found.skipped == {"empty text": 1}
    with pytest.raises(CorpusError, match="'premise' or 'sentence1' .* is missing; found 'a'"):
        from_dataset(frame)


# ---------------------------------------------------------------- labels

FIRST_TWO, LAST_TWO = ("entailment", "neutral"), ("neutral", "contradiction")


@pytest.mark.parametrize(("spellings", "classes", "expected"), [
    (["entailment", "neutral", "contradiction"], LABELS, [E, N, C]),  # SNLI, MultiNLI, WANLI, Human-CAD
    (["e", "n", "c"], LABELS, [E, N, C]),  # ANLI, ChaosNLI
    (["ENTAILMENT", "NEUTRAL", "CONTRADICTION"], LABELS, [E, N, C]),  # SICK
    (["contradictory"], LABELS, [C]),  # XNLI 1.0
    (["SUPPORTS", "NOT ENOUGH INFO", "REFUTES"], LABELS, [E, N, C]),  # FEVER
    ([" Entailment "], LABELS, [E]),
    (["entailment", "not_entailment", "non-entailment", "neutral", "contradiction"], TWO_WAY, [0, 1, 1, 1, 1]),
    (["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], module.SUPPORTED_OR_REFUTED, [0, 1, UNKNOWN]),
    (["neutral", "e"], LAST_TWO, [0, UNKNOWN]),
    (["-", "", None, float("nan"), -1, "-1", "hidden", "neutral"], LABELS, [*[NO_GOLD] * 7, N]),
    (["LABEL_0", "0", 2, "maybe", "not_entailment"], LABELS, [UNKNOWN] * 5),  # never a number
    ([], LABELS, [])])  # fmt: skip
def test_labels_are_mapped_by_name(spellings, classes, expected):
    assert LABELS == ("entailment", "neutral", "contradiction") and (E, N, C) == (0, 1, 2)  # the one order
    assert to_index(spellings, classes).tolist() == expected


def test_a_sources_own_names_come_first():
    reversed_order = {"0": "not_entailment", "1": "entailment"}
    assert to_index(["0", "1", 1], TWO_WAY, reversed_order).tolist() == [1, 0, 0]


def test_placeholders_are_told_from_names():
    names = ["LABEL_0", "label 12", "2", "entailment", "two"]
    assert [module.is_numbered(name) for name in names] == [True, True, True, False, False]
    assert module.canonical("Contradictory") == "contradiction" and module.canonical("LABEL_1") is None


@pytest.mark.parametrize("label2id", [
    {"entailment": 0, "neutral": 1, "contradiction": 2},
    {"CONTRADICTION": 0, "NEUTRAL": 1, "ENTAILMENT": 2},  # checkpoints that count from contradiction
    # alphabetical
    {"contradiction": 0, "entailment": 1, "neutral": 2}])  # fmt: skip
def test_a_heads_columns_by_name(label2id):
    columns = head_columns(label2id)
    logits = np.zeros((1, 3))
    for name, column in label2id.items():
        logits[0, column] = LABELS.index(name.lower())
    assert logits[:, columns].tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(("label2id", "message"), [
    ({"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}, "LABEL_0"),
    ({"0": 0, "1": 1, "2": 2}, "do not say"),
    ({"entailment": 0, "not_entailment": 1}, "by name"),
    ({"positive": 0, "negative": 1, "neutral": 2}, "by name"),
    ({"entailment": 0, "neutral": 0, "contradiction": 1}, "by name")])  # fmt: skip
def test_heads_that_cannot_be_read_by_name_are_refused(label2id, message):
    with pytest.raises(CorpusError, match=message):
        head_columns(label2id)


@pytest.mark.parametrize(("logits", "classes", "argmax", "summed"), [
    # entailment is first but below one half
    (np.log([[0.4, 0.3, 0.3], [0.6, 0.2, 0.2], [0.1, 0.6, 0.3]]), TWO_WAY, [0, 0, 1], [1, 0, 1]),
    (np.log([[2.0, 1.0, 1.0]]), TWO_WAY, [0], [0]),  # a tie goes to entailment
    ([[1.0, 3.0, 2.0]], module.SUPPORTED_OR_REFUTED, [-1], [1]),  # a neutral prediction
    ([[1.0, 2.0, 3.0]], FIRST_TWO, [-1], [1]),
    ([[3.0, 2.0, 1.0]], LAST_TWO, [-1], [0]),
    ([[0.0, 3.0, 2.0]], module.CONTRADICTION_OR_NOT, [0], [0]),
    (np.zeros((0, 3)), TWO_WAY, [], [])])  # fmt: skip
def test_the_two_rules_that_carry_three_classes_to_two(logits, classes, argmax, summed):
    assert collapse(logits, classes).tolist() == argmax and collapse(logits, classes, "sum").tolist() == summed


@pytest.mark.parametrize("rule", ["argmax", "sum"])
def test_a_constant_added_to_the_logits_changes_nothing(rule):
    logits = np.random.default_rng(0).normal(size=(200, 3)) * 3
    for classes in (TWO_WAY, module.SUPPORTED_OR_REFUTED, module.CONTRADICTION_OR_NOT):
        assert np.array_equal(collapse(logits, classes, rule), collapse(logits + 5, classes, rule))
    assert np.array_equal(collapse(logits, LABELS, rule), logits.argmax(axis=1))


@pytest.mark.parametrize(("shape", "classes", "rule", "said"), [
    ((1, 3), TWO_WAY, "mean", "argmax"), ((2, 2), TWO_WAY, "sum", "shape"),
    ((2, 3), ("yes", "no"), "sum", "no rule")])  # fmt: skip
def test_collapse_refuses_what_it_cannot_know(shape, classes, rule, said):
    with pytest.raises(ValueError, match=said):
        collapse(np.zeros(shape), classes, rule)
