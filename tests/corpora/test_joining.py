"""Corpora joined, and to and from pandas and Hugging Face datasets. Alone: pytest tests/corpora/test_joining.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import Corpus, CorpusError, concat, from_dataset
from nli_lib.corpora.corpus import TWO_WAY


def corpus(name, uids, classes=("entailment", "neutral", "contradiction"), skipped=None, **columns):
    rows = {"uid": uids, "premise": "A dog runs.", "hypothesis": [f"It moves {at}." for at in range(len(uids))]}
    rows["label"] = np.arange(len(uids)) % len(classes)
    table = pd.DataFrame(rows | {"corpus": name, "split": "train"} | columns)
    return Corpus(table, name, "train", classes, skipped or {}, f"{name}.csv")


def test_corpora_are_joined_with_their_columns_uids_and_skips():
    one = corpus("one", ["a", "b", "a#2"], skipped={"empty text": 1}, genre="g")
    two = corpus("two", ["a", "c"], maker="worker")
    both = concat([one, two, corpus("one", ["d"], skipped={"empty text": 2, "bad": 1})], name="both")
    assert both.uid.tolist() == ["a", "b", "a#2", "a#2#2", "c", "d"]
    assert (both.name, both.split) == ("both", "train")
    assert both.labels.tolist() == [0, 1, 2, 0, 1, 0]
    assert both.table["corpus"].tolist() == ["one"] * 3 + ["two"] * 2 + ["one"]
    assert both.table["genre"].isna().tolist() == [False] * 3 + [True] * 3
    assert both.table["maker"].isna().tolist() == [True] * 3 + [False] * 2 + [True]
    assert both.skipped == {"empty text": 3, "bad": 1}
    assert both.source == "one.csv + two.csv + one.csv"


def test_one_corpus_joined_with_nothing_is_itself():
    one = corpus("one", ["a", "b"])
    assert concat([one], name="one").digest == one.digest
    with pytest.raises(CorpusError, match="no corpus"):
        concat([], name="none")


def test_corpora_of_other_classes_are_refused():
    with pytest.raises(CorpusError, match="one/train: entailment, neutral, contradiction; two/train: entailment, not_"):
        concat([corpus("one", ["a"]), corpus("two", ["a"], classes=TWO_WAY)], name="both")


def test_a_dataset_and_back():
    pytest.importorskip("datasets")
    one = corpus("one", ["a", "b", "c"], genre=["x", None, "z"], weight=[1.5, 2.0, 0.0])
    dataset = one.to_dataset()
    assert dataset.features["label"].names == list(one.classes)
    back = from_dataset(dataset)
    assert (back.name, back.split, back.classes, back.digest) == ("one", "train", one.classes, one.digest)
    assert list(back.table) == list(one.table)
    assert back.table["weight"].tolist() == [1.5, 2.0, 0.0]


def test_a_dataset_with_another_order_and_rows_without_a_gold_label():
    datasets = pytest.importorskip("datasets")
    rows = {"premise": ["P"] * 4, "hypothesis": list("abcd"), "label": [0, 1, 2, -1]}
    names = ["contradiction", "entailment", "neutral"]
    features = {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string")}
    features = datasets.Features({**features, "label": datasets.ClassLabel(names=names)})
    found = from_dataset(datasets.Dataset.from_dict(rows, features=features), "mine", "dev")
    assert found.labels.tolist() == [2, 0, 1]
    assert found.skipped == {"no gold label": 1}
    assert (found.name, found.split) == ("mine", "dev")
    with pytest.raises(CorpusError, match="splits train: choose one"):
        from_dataset(datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows)}))
    with pytest.raises(CorpusError, match="numbers without names"):
        from_dataset(datasets.Dataset.from_dict(rows))


def test_a_frame():
    frame = pd.DataFrame({"a": ["P", "Q", "R"], "b": ["H", None, "I"], "gold": ["neutral", "entailment", "e"], "n": 7})
    columns = {"premise": "a", "hypothesis": "b", "label": "gold"}
    found = from_dataset(frame.set_index("n", drop=False), "mine", columns=columns)
    assert found.uid.tolist() == ["mine-train-0", "mine-train-2"]
    assert found.table["n"].tolist() == [7, 7]
    assert found.skipped == {"empty text": 1}
    with pytest.raises(CorpusError, match="'premise' or 'sentence1' .* is missing; found 'a'"):
        from_dataset(frame)
