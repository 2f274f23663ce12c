"""Suites name their members and what is missing; hard sets; revisions beside their originals.

Alone: pytest tests/corpora/test_suites.py"""

import json

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.corpora import CorpusError, load, sources, suites
from nli_lib.corpora.corpus import LABELS, Corpus, NotAtHandError
from nli_lib.corpora.planted import counterfactuals
from nli_lib.corpora.reading import Rows
from nli_lib.corpora.sources import SOURCES
from nli_lib.corpora.suites import BENCHMARK, HARD_PARTS, SUITES, adversarial, load_each, load_pairs, mnli_hard, pair_up


@pytest.fixture(autouse=True)
def without_the_hub(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("name", SUITES)
def test_members_are_splits_that_exist(name):
    for corpus, split in SUITES[name].values():
        if corpus != "planted":
            assert split in SOURCES[corpus].splits


def test_missing_members_are_named_with_the_reason(tmp_path):
    row = {"sentence1": "A boy reads.", "gold_label": "neutral"}
    rows = [{**row, "sentence2": f"Text {i}.", "pairID": f"p{i}"} for i in range(9)]
    (tmp_path / "snli_1.0_test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "snli_1.0_test_hard.jsonl").write_text("")
    loaded, missing = load_each("snli", tmp_path, limit=5)
    assert {title: len(each) for title, each in loaded.items()} == {"SNLI test": 5}
    assert set(loaded) | set(missing) == set(SUITES["snli"]) and "heuristics_evaluation_set.txt" in missing["HANS"]
    assert missing["SNLI-hard"] == "snli_1.0_test_hard.jsonl: the file is empty."
    assert not any(str(tmp_path) in reason for reason in missing.values())


def test_a_reason_without_a_folder_keeps_its_words(monkeypatch):
    monkeypatch.delenv("NLI_DATA", raising=False)
    assert suites.without_folder(CorpusError("1 or more, or None for all"), None) == "1 or more, or None for all"


def test_an_unknown_suite_lists_the_known_ones():
    with pytest.raises(CorpusError, match=r'suite="snly" is not one of snli'):
        load_each("snly")


def test_a_corpus_without_a_suite_of_its_own_is_tested_on_that_of_snli():
    assert [suites.suite_for(name) for name in ("planted", "wanli", "mine.csv")] == ["planted", "wanli", "snli"]


# ---------------------------------------------------------------- hard sets


def lines(folder, part="matched", hypotheses="A .\nB .\n", labels="neutral\ncontradiction\n"):
    place = folder / "mnli_hard" / HARD_PARTS[part]
    place.mkdir(parents=True)
    for name, text in {"s1": "One .\nTwo .\n", "s2": hypotheses, "labels": labels}.items():
        (place / f"{name}.test").write_text(text, encoding="utf-8")


def benchmark(folder, **parts):
    """Files of the adversarial benchmark: split -> the label of each of its rows."""
    (folder / "robust_nli").mkdir()
    for split, labels in parts.items():
        rows = [{"premise": f"p {at}", "hypothesis": f"h {at}", "label": label} for at, label in enumerate(labels)]
        (folder / "robust_nli" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def test_line_files_are_read_side_by_side(tmp_path):
    lines(tmp_path)
    corpus = mnli_hard("matched", tmp_path)
    assert corpus.premise.tolist() == ["One .", "Two ."] and corpus.hypothesis.tolist() == ["A .", "B ."]
    assert corpus.labels.tolist() == [1, 2]


def test_missing_and_unequal_line_files_are_named(tmp_path):
    with pytest.raises(CorpusError, match=r"does not hold mnli_hard/MNLIMatchedHardWithHardTest/s1\.test"):
        mnli_hard("matched", tmp_path)
    lines(tmp_path, hypotheses="A .\n")
    with pytest.raises(CorpusError, match=r"s1\.test 2, s2\.test 1, labels\.test 2"):
        mnli_hard("matched", tmp_path)
    lines(tmp_path, "mismatched", labels="neutral\nperhaps\n")
    assert mnli_hard("mismatched", tmp_path).skipped == {"unknown label": 1}
    found, missing = suites.mnli_hards(tmp_path)
    assert list(found) == ["MultiNLI mismatched, hard part"] and list(missing) == ["MultiNLI matched, hard part"]


def test_labels_of_the_benchmark_are_mapped_by_name(tmp_path):
    benchmark(tmp_path, PI_CD=["contradiction"], LI_TS=["non-contradiction"], IS_SD=["non-entailment"])
    found, missing = adversarial(tmp_path)
    assert {title: each.labels.tolist() for title, each in found.items()} == {"PI-CD": [2], "LI-TS": [0], "IS-SD": [1]}
    assert set(missing) == set(BENCHMARK) - set(found) and "robust_nli/PI_SP.jsonl" in missing["PI-SP"]


def test_a_sample_is_drawn_from_the_whole_part(tmp_path):
    benchmark(tmp_path, PI_SP=[LABELS[at % 3] for at in range(30)])
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


@pytest.mark.realdata
def test_the_hard_parts_have_the_published_sizes():
    sizes = {part: (len(mnli_hard(part)), mnli_hard(part).rows_read) for part in HARD_PARTS}
    assert sizes == {"matched": (4_573, 4_573), "mismatched": (4_530, 4_530)}


# ---------------------------------------------------------------- revisions beside their originals


def corpus(*rows, **columns):
    table = pd.DataFrame(rows, columns=["uid", "premise", "hypothesis", "label"])
    return Corpus(table.assign(corpus="mine", split="train", **columns), "mine", "train")


ORIGINAL = corpus(("a", "A dog runs.", "It moves.", 0), ("b", "A cat sleeps.", "It dreams.", 1))
REVISIONS = [("r0", "A dog sits.", "It moves.", 2), ("r1", "A cat sleeps.", "It is awake.", 2)]
REVISIONS += [("r2", "A dog.", "It moves.", 1), ("r3", "A cow.", "It moos.", 0)]
REVISED = corpus(*REVISIONS, origin_uid=["a", "b", "a", "gone"])
QUALITY = functions("42_quality", np=np)


def test_revisions_find_their_originals_and_the_lost_are_counted():
    pairs = pair_up(REVISED, ORIGINAL)
    assert pairs.origin.tolist() == [0, 1, 0] and len(pairs) == 3 and pairs.revised.skipped == {"original not found": 1}
    assert pairs.direction.tolist() == ["e2c", "n2c", "e2n"]
    assert pairs.side.tolist() == ["premise", "hypothesis", "premise"] and pairs.old_labels.tolist() == [0, 1, 0]
    assert pairs.texts() == (["A dog runs.", "It dreams.", "A dog runs."], ["A dog sits.", "It is awake.", "A dog."])


def test_originals_that_stand_in_the_revisions_own_columns():
    revised = corpus(
        ("x", "p1", "h", 1), ("y", "p2", "h", 1), ("z", "p3", "k", 2), ("w", "p4", "k", 2),
        origin_premise=["p", "p", "q", "q"], origin_label=["entailment", "entailment", "neutral", "nonsense"],
        origin_corpus="snli",
    )  # fmt: skip
    pairs = pair_up(revised)
    assert len(pairs.original) == 2 and pairs.original.name == "snli" and pairs.origin.tolist() == [0, 0, 1]
    assert pairs.original.hypothesis.tolist() == ["h", "k"] and pairs.direction.tolist() == ["e2n", "e2n", "n2c"]


def test_a_row_without_an_original_shifts_no_other():
    rows = [("x", "p1", "h", 1), ("y", "p2", "h", 1), ("z", "p3", "h", 2)]
    pairs = pair_up(corpus(*rows, origin_premise=["a", None, "b"], origin_label="entailment"))
    assert pairs.original.premise[pairs.origin].tolist() == ["a", "b"] and len(pairs.original) == 2
    assert pairs.revised.uid.tolist() == ["x", "z"]


def test_one_revision_of_each_original_and_joining():
    pairs = pair_up(REVISED, ORIGINAL)
    chosen = [pairs[QUALITY.one_of_each(pairs.origin, seed)] for seed in range(20)]
    assert all(sorted(each.origin) == [0, 1] for each in chosen)
    assert {tuple(each.revised.uid) for each in chosen} == {("r0", "r1"), ("r1", "r2")}
    both = suites.join([pairs, pairs[np.array([1])]], name="both")
    assert both.origin.tolist() == [0, 1, 0, 3] and len(both.original) == 4 and both.old_labels.tolist() == [0, 1, 0, 1]


def test_planted_pairs_are_true_and_of_every_direction():
    pairs = load_pairs("planted", "test", originals=60)
    assert len(pairs) == 120 and set(pairs.direction) == set(suites.directions())
    assert (pairs.revised.table["true_label"] == pairs.revised.labels).all() and set(pairs.side) == {"premise"}


@pytest.mark.parametrize(("given", "named"), [((ORIGINAL, ORIGINAL), "origin_uid"), ((ORIGINAL,), "origin_premise")])
def test_what_is_missing_is_named(given, named):
    with pytest.raises(CorpusError, match=named):
        pair_up(*given)


def test_pairs_of_a_table_of_ones_own():
    rows = [("p1", "h", 1, "p", "entailment"), ("p2", "h", 2, "p", "entailment")]
    table = pd.DataFrame(rows, columns=["premise", "hypothesis", "label", "origin_premise", "origin_label"])
    pairs = QUALITY.from_table(table, "generated")
    assert len(pairs.original) == 1 and pairs.direction.tolist() == ["e2n", "e2c"]
    assert pairs.revised.uid.tolist() == ["generated-0", "generated-1"]


@pytest.mark.realdata
def test_human_cad_has_four_revisions_whose_labels_all_differ_from_the_originals():
    pairs = load_pairs("cad", "test")
    assert np.bincount(pairs.origin).tolist() == [4] * 400 and (pairs.revised.labels != pairs.old_labels).all()
    assert np.isin(pairs.side, ["premise", "hypothesis"]).mean() > 0.99
    labels = np.stack([pairs.revised.labels, pairs.old_labels])
    seen = pd.DataFrame({"origin": np.tile(pairs.origin, 2), "label": labels.ravel()}).groupby("origin")["label"]
    assert (seen.nunique() == 3).all()
    disco = load_pairs("disco", "e2n")
    assert len(disco) == 5698 and set(disco.direction) == {"e2n"} and set(disco.side) == {"premise"}


# ---------------------------------------------------------------- revisions of a corpus's own pairs (chapter 60)

REVISIONS_OF = functions("60_do_scores_agree", np=np, pd=pd).revisions_of
OURS = [("1", "A cow sleeps.", "It dreams.", 1), ("2", "A Dog runs. ", "It moves.", 0), ("3", "No.", "No.", 2)]


@pytest.mark.parametrize(("ours", "uids", "place"), [
    (OURS, ["r0", "r2"], [1, 1]),  # by their texts
    ([*OURS, ("4", "a dog runs.", "It moves.", 1)], ["r0", "r2"], [1, 1]),  # of equal pairs the first
    (OURS[::2], [], [])])  # fmt: skip
def test_originals_are_found_by_their_texts(ours, uids, place):
    revised, found = REVISIONS_OF(corpus(*ours), pair_up(REVISED, ORIGINAL))
    assert revised.uid.tolist() == uids and found.tolist() == place


def test_a_planted_set_belongs_to_its_own_originals(tmp_path):
    original, revised = counterfactuals(20, split="train")
    found, place = REVISIONS_OF(original, load_pairs("planted", "train", originals=20))
    assert len(found) == len(revised) == 40 and place.tolist() == [at for at in range(20) for _ in range(2)]
    with pytest.raises(NotAtHandError, match="cad revised_combined/validation"):
        load_pairs("cad", "validation", tmp_path)


@pytest.mark.realdata
def test_human_revisions_of_snli():
    found, place = REVISIONS_OF(load("snli", "validation"), load_pairs("cad", "validation"))
    assert len(found) == 800 and len(set(place)) == 200
