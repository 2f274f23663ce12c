"""MultiNLI's hard parts and the adversarial benchmark. Alone: pytest tests/corpora/test_hard_sets.py"""

import json

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import sources
from nli_lib.corpora.corpus import LABELS, CorpusError
from nli_lib.corpora.reading import Rows
from nli_lib.corpora.suites import BENCHMARK, FOLDERS, adversarial, mnli_hard, mnli_hards


def lines(
    folder, part="matched", premises="One .\nTwo .\n", hypotheses="A .\nB .\n", labels="neutral\ncontradiction\n"
):
    place = folder / "mnli_hard" / FOLDERS[part]
    place.mkdir(parents=True)
    for name, text in {"s1": premises, "s2": hypotheses, "labels": labels}.items():
        (place / f"{name}.test").write_text(text, encoding="utf-8")


def test_line_files_are_read_side_by_side(tmp_path):
    lines(tmp_path)
    corpus = mnli_hard("matched", tmp_path)
    assert corpus.premise.tolist() == ["One .", "Two ."] and corpus.hypothesis.tolist() == ["A .", "B ."]
    assert corpus.labels.tolist() == [1, 2]


def test_missing_unequal_and_unknown_are_named(tmp_path):
    with pytest.raises(CorpusError, match=r"does not hold mnli_hard/MNLIMatchedHardWithHardTest/s1\.test"):
        mnli_hard("matched", tmp_path)
    lines(tmp_path, hypotheses="A .\n")
    with pytest.raises(CorpusError, match=r"s1\.test 2, s2\.test 1, labels\.test 2"):
        mnli_hard("matched", tmp_path)
    lines(tmp_path, "mismatched", labels="neutral\nperhaps\n")
    assert mnli_hard("mismatched", tmp_path).skipped == {"unknown label": 1}
    found, missing = mnli_hards(tmp_path)
    assert list(found) == ["MultiNLI mismatched, hard part"] and list(missing) == ["MultiNLI matched, hard part"]
    with pytest.raises(CorpusError, match="'both' is not one of matched, mismatched"):
        mnli_hard("both", tmp_path)


def test_labels_of_the_benchmark_are_mapped_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "robust_nli").mkdir()
    texts = {"PI_CD": "contradiction", "LI_TS": "non-contradiction", "IS_SD": "non-entailment"}
    for split, label in texts.items():
        row = {"idx": 0, "premise": "a dog", "hypothesis": "a cat", "label": label}
        (tmp_path / "robust_nli" / f"{split}.jsonl").write_text(json.dumps(row) + "\n")
    found, missing = adversarial(tmp_path)
    assert {title: each.labels.tolist() for title, each in found.items()} == {"PI-CD": [2], "LI-TS": [0], "IS-SD": [1]}
    assert set(missing) == set(BENCHMARK) - set(found) and "robust_nli/PI_SP.jsonl" in missing["PI-SP"]


@pytest.mark.realdata
@pytest.mark.parametrize(("part", "rows"), [("matched", 4_573), ("mismatched", 4_530)])
def test_the_hard_parts_have_the_published_sizes(part, rows):
    corpus = mnli_hard(part)
    assert corpus.rows_read == len(corpus) == rows


def test_a_sample_is_drawn_from_the_whole_part(tmp_path):
    folder = tmp_path / "robust_nli"
    folder.mkdir()
    rows = [{"premise": f"p {at}", "hypothesis": f"h {at}", "label": LABELS[at % 3]} for at in range(30)]
    (folder / "PI_SP.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found, missing = adversarial(tmp_path, 10, ["PI-SP"])
    again, _ = adversarial(tmp_path, 10, ["PI-SP"])
    assert list(found) == ["PI-SP"] and not missing
    assert found["PI-SP"].source == "robust_nli/PI_SP.jsonl, 10 of 30 examples, seed 0"
    assert len(found["PI-SP"]) == 10 == len(set(found["PI-SP"].premise))
    assert list(found["PI-SP"].premise) == list(again["PI-SP"].premise) != [f"p {at}" for at in range(10)]
    for limit in (30, 31, None):
        assert list(adversarial(tmp_path, limit, ["PI-SP"])[0]["PI-SP"].premise) == [f"p {at}" for at in range(30)]


def test_another_set_on_the_hub_is_not_the_benchmark(tmp_path, monkeypatch):
    table = pd.DataFrame({"premise": ["p"], "hypothesis": ["h"], "label": ["neutral"]})
    read = (Rows.of(table, np.arange(1), "hub x"), "pietrolesci/robust_nli@1")
    monkeypatch.setattr(sources, "read_hub", lambda *where: read)
    found, missing = adversarial(tmp_path, titles=["PI-SP"])
    assert not found and "1 rows, but PI-SP has 371: not the same set" in missing["PI-SP"]
