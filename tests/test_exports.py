"""The list for a reviewer and cleanlab's arrays. Alone: pytest tests/test_exports.py"""

import json

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import Corpus
from nli_lib.evaluate import export_filtered, export_review, review_list
from nli_lib.select.selection import Selection
from nli_lib.tables import read_csv, unguarded

LOGITS = np.array([[0.0, 3.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 5.0], [1.0, 1.5, 0.0]])
GOLD = [0, 0, 1, 0]
FOLD = np.array([0, 1, 1, 0])


@pytest.fixture
def corpus():
    rows = {"uid": list("abcd"), "premise": 'A dog, "Rex", runs.\n=1+1', "hypothesis": "é <b>", "label": GOLD}
    return Corpus(pd.DataFrame(rows).assign(corpus="mine", split="train"), "mine", "train")


def test_the_most_contradicted_comes_first(corpus):
    table = review_list(corpus, LOGITS, FOLD)
    assert table["uid"].tolist() == ["c", "a", "d"]  # b's label is what the model says
    assert table["rank"].tolist() == [1, 2, 3]
    assert table["kind"].tolist() == ["P2G1", "P1G0", "P1G0"]
    assert table["gap"].tolist() == [5.0, 3.0, 0.5]
    assert table["pruned"].tolist() == [False, True, False]
    assert table["fold"].tolist() == [1, 0, 0]
    assert table.loc[0, "gold"] == "neutral"
    assert table.loc[0, "predicted"] == "contradiction"
    assert table.loc[2, "p_gold"] == pytest.approx(np.exp(1) / (np.exp(1) + np.exp(1.5) + 1), abs=1e-4)


def test_the_papers_rule_takes_nothing_where_a_class_of_its_names_is_missing():
    table = pd.DataFrame({"uid": list("ab"), "premise": "p", "hypothesis": list("xy"), "label": [0, 1]})
    two = Corpus(table.assign(corpus="mine", split="train"), "mine", "train", ("entailment", "contradiction"))
    found = review_list(two, np.array([[0.0, 9.0], [0.0, 9.0]]), [0, 1])
    assert found["uid"].tolist() == ["a"] and not found["pruned"].any()


def test_votes_of_several_seeds_stay_with_their_example(corpus):
    table = review_list(corpus, LOGITS, FOLD, votes=[3, 0, 1, 2])
    assert dict(zip(table["uid"], table["votes"], strict=True)) == {"a": 3, "c": 1, "d": 2}
    assert "votes" not in review_list(corpus, LOGITS, FOLD)


def test_the_files_give_back_what_went_in(corpus, tmp_path):
    table = review_list(corpus, LOGITS, FOLD)
    paths = export_review(tmp_path / "new", table, corpus, LOGITS, FOLD)
    again = unguarded(pd.read_csv(paths["suspects.csv"], keep_default_na=False))
    pd.testing.assert_frame_equal(again, table, check_dtype=False)
    lines = [json.loads(line) for line in paths["suspects.jsonl"].read_text(encoding="utf-8").splitlines()]
    assert [line["uid"] for line in lines] == ["c", "a", "d"]
    assert lines[0]["premise"] == corpus.premise[0]
    with np.load(paths["cleanlab.npz"], allow_pickle=False) as arrays:
        assert arrays["labels"].tolist() == GOLD
        assert arrays["fold"].tolist() == FOLD.tolist()
        assert arrays["uid"].tolist() == list("abcd")
        assert arrays["classes"].tolist() == list(corpus.classes)
        assert arrays["pred_probs"].sum(axis=1) == pytest.approx(np.ones(4))
        assert (arrays["pred_probs"].argmax(axis=1) == LOGITS.argmax(axis=1)).all()


def test_nothing_to_review_is_an_empty_list(corpus):
    sure = np.eye(3)[GOLD] * 4
    assert len(review_list(corpus, sure, FOLD)) == 0


def test_what_a_filter_left_out_is_written_with_its_reason(corpus, tmp_path):
    keep = np.array([True, False, True, False])
    chosen = Selection(keep, np.array(["kept", "no@hypothesis; null", "kept", "null"], dtype=object))
    table = read_csv(export_filtered(tmp_path / "new" / "z.csv", corpus, chosen))
    assert table["uid"].tolist() == list("abcd")
    assert table["kept"].tolist() == keep.astype(str).tolist()
    assert table["reason"].tolist() == chosen.reason.tolist()
    assert table["premise"].tolist() == corpus.premise.tolist()
    assert table["gold"].tolist() == ["entailment", "entailment", "neutral", "entailment"]


def test_a_selection_of_other_examples_is_refused(corpus, tmp_path):
    with pytest.raises(ValueError, match="Length of values .3. does not match"):
        export_filtered(tmp_path / "z.csv", corpus, Selection.all(3))


def test_a_column_of_bytes_and_one_called_as_ours_are_kept(corpus, tmp_path):
    table = corpus.table.assign(raw=b"\xff\x00", gold="theirs", **{"gold (own)": "too"})
    mine = Corpus(table, "mine", "train")
    found = review_list(mine, LOGITS, FOLD)
    export_review(tmp_path, found, mine, LOGITS, FOLD)
    first = json.loads((tmp_path / "suspects.jsonl").read_text().splitlines()[0])
    assert first["raw"] == "b'\\xff\\x00'" and first["gold"] == "neutral"
    assert first["gold (own)"] == "theirs" and first["gold (own) (own)"] == "too"


def test_the_columns_of_the_users_file_stay(corpus, tmp_path):
    rows = corpus.table.assign(source_page=[4, 3, 2, 1], kept="yes", note="-5")
    own = Corpus(rows, "mine", "train")
    table = review_list(own, LOGITS, FOLD)
    assert table["source_page"].tolist() == [2, 4, 1]
    assert list(table.columns[:5]) == ["rank", "uid", "premise", "hypothesis", "gold"]
    written = pd.read_csv(export_filtered(tmp_path / "z.csv", own, Selection.all(4)), dtype=str)
    assert written["source_page"].tolist() == list("4321")
    assert written["kept"].tolist() == ["True"] * 4 and written["kept (own)"].tolist() == ["yes"] * 4
    assert written["note"].tolist() == ["-5"] * 4  # a number is no formula
