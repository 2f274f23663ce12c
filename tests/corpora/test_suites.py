"""Suites name their members, and name what is missing."""

import json

import pytest

from nli_lib.corpora import CorpusError
from nli_lib.corpora.sources import SOURCES
from nli_lib.corpora.suites import SUITES, load_each, suite_for, without_folder


@pytest.mark.parametrize("name", SUITES)
def test_members_are_splits_that_exist(name):
    for corpus, split in SUITES[name].values():
        if corpus != "planted":
            assert split in SOURCES[corpus].splits


def test_the_snli_suite_holds_the_sets_of_the_study():
    assert {"SNLI test", "SNLI-hard", "MultiNLI matched", "MultiNLI mismatched", "HANS", "ANLI R3", "SICK test"} <= set(
        SUITES["snli"]
    )


def test_missing_members_are_named_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    row = {"sentence1": "A boy reads.", "gold_label": "neutral"}
    rows = [{**row, "sentence2": f"Text {i}.", "pairID": f"p{i}"} for i in range(9)]
    (tmp_path / "snli_1.0_test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "snli_1.0_test_hard.jsonl").write_text("")
    loaded, missing = load_each("snli", tmp_path, limit=5)
    assert list(loaded) == ["SNLI test"]
    assert len(loaded["SNLI test"]) == 5
    assert set(loaded) | set(missing) == set(SUITES["snli"])
    assert "heuristics_evaluation_set.txt" in missing["HANS"]
    assert missing["SNLI-hard"] == "snli_1.0_test_hard.jsonl: the file is empty."
    assert not any(str(tmp_path) in reason for reason in missing.values())


def test_a_reason_without_a_folder_keeps_its_words(monkeypatch):
    monkeypatch.delenv("NLI_DATA", raising=False)
    assert without_folder(CorpusError("1 or more, or None for all"), None) == "1 or more, or None for all"


def test_an_unknown_suite_lists_the_known_ones():
    with pytest.raises(CorpusError, match=r'suite="snly" is not one of snli'):
        load_each("snly")


def test_a_corpus_without_a_suite_of_its_own_is_tested_on_that_of_snli():
    assert [suite_for(name) for name in ("planted", "wanli", "mine.csv")] == ["planted", "wanli", "snli"]
