"""Every source: a known pair in its official format, the folders it is looked for in, the hub, and the real files."""

import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import HfApi

from nli_lib.corpora import CorpusError, from_dataset, load, names, sources
from nli_lib.corpora.corpus import (
    CONTRADICTION_OR_NOT,
    LABELS,
    SUPPORTED_OR_REFUTED,
    TWO_WAY,
    C,
    E,
    N,
    canonical,
)
from nli_lib.corpora.sources import SOURCES

PROVENANCE = ("origin_uid", "origin_corpus", "maker", "intended_label")


def jsonl(folder, name, *rows):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def tabs(folder, name, *rows):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n", encoding="utf-8")


def test_snli(tmp_path):
    row = {"sentence1": "A boy reads.", "annotator_labels": ["neutral"] * 5, "captionID": "7.jpg#0"}
    first = {"sentence2": "He reads a map.", "gold_label": "neutral", "pairID": "7.jpg#0r1n", "sentence1_parse": "(S)"}
    second = {"sentence2": "He sleeps.", "gold_label": "-", "pairID": "7.jpg#0r1c"}
    third = {"sentence2": "None", "gold_label": "contradiction", "pairID": "7.jpg#0r2c"}
    jsonl(tmp_path, "snli/snli_1.0_dev.jsonl", row | first, row | second, row | third)
    corpus = load("snli", "validation", tmp_path)
    assert corpus.uid.tolist() == ["7.jpg#0r1n", "7.jpg#0r2c"]
    assert corpus.labels.tolist() == [N, C]
    assert corpus.hypothesis.tolist() == ["He reads a map.", "None"]
    assert corpus.skipped == {"no gold label": 1}
    assert corpus.classes == LABELS
    assert json.loads(corpus.table["annotator_labels"][0]) == ["neutral"] * 5
    assert "sentence1_parse" not in corpus.table
    assert corpus.table["split"].unique().tolist() == ["validation"]
    assert load("snli", "dev", tmp_path).digest == corpus.digest


def test_mnli_keeps_genre_and_fills_missing_ids(tmp_path):
    row = {"sentence1": "Rates rose.", "genre": "government", "promptID": "1"}
    up = row | {"sentence2": "Rates went up.", "gold_label": "entailment", "pairID": "1e"}
    fell = row | {"sentence2": "Rates fell.", "gold_label": "contradiction", "pairID": ""}
    jsonl(tmp_path, "multinli_1.0_dev_matched.jsonl", up, fell, up)
    corpus = load("mnli", "validation_matched", tmp_path)
    assert corpus.labels.tolist() == [E, C, E]
    assert corpus.uid.tolist() == ["1e", "mnli-validation_matched-1", "1e#2"]
    assert corpus.table["genre"].tolist() == ["government"] * 3
    assert corpus.skipped == {}


def test_anli_rounds_and_their_union(tmp_path):
    for i, letter in enumerate("enc", start=1):
        row = {"uid": f"u{i}", "context": "Lyon is in France.", "hypothesis": f"Claim {i}.", "label": letter}
        jsonl(tmp_path, f"anli_v1.0/R{i}/test.jsonl", row | {"reason": "so"})
    assert load("anli", "test_r3", tmp_path).labels.tolist() == [C]
    corpus = load("anli", "test", tmp_path)
    assert corpus.labels.tolist() == [E, N, C]
    assert corpus.table["round"].tolist() == [1, 2, 3]
    assert corpus.premise[0] == "Lyon is in France."
    assert corpus.table["split"].unique().tolist() == ["test"]
    with pytest.raises(CorpusError, match=r"anli/R1/dev\.jsonl"):
        load("anli", "validation_r1", tmp_path)


def test_wanli(tmp_path):
    row = {"id": 12, "premise": "It rained.", "hypothesis": "It was wet.", "gold": "entailment", "genre": "generated"}
    revised = {"id": 13, "gold": "contradiction", "genre": "generated_revised", "pairID": ""}
    jsonl(tmp_path, "wanli/train.jsonl", {**row, "pairID": 345}, row | revised)
    corpus = load("wanli", "train", tmp_path)
    assert corpus.labels.tolist() == [E, C]
    assert corpus.uid.tolist() == ["12", "13"]
    assert corpus.table["pairID"].tolist() == ["345", ""]
    assert corpus.table["origin_corpus"].tolist() == ["mnli", "mnli"]
    assert corpus.table["maker"].tolist() == ["gpt-3-curie", "gpt-3-curie, worker"]


HANS = ["gold_label", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse", "sentence2_parse"]
HANS += ["sentence1", "sentence2", "pairID", "heuristic", "subcase", "template"]


def test_hans(tmp_path):
    saw = ["non-entailment", *[""] * 4, "The cook saw the judge .", "The judge saw the cook .", "ex0"]
    said = ["entailment", *[""] * 4, '"Go" , the cook said .', "The cook said go .", "ex1", "constituent", "t", ""]
    tabs(tmp_path, "hans/heuristics_evaluation_set.txt", HANS, [*saw, "lexical_overlap", "s", ""], said)
    corpus = load("hans", "validation", tmp_path)
    assert corpus.classes == TWO_WAY
    assert corpus.labels.tolist() == [1, 0]
    assert corpus.premise[1] == '"Go" , the cook said .'
    assert corpus.table["heuristic"].tolist() == ["lexical_overlap", "constituent"]
    with pytest.raises(CorpusError, match='split="test" is not one of train, validation'):
        load("hans", "test", tmp_path)


def test_three_way_fever(tmp_path):
    row = {"query": "Oslo is in Peru.", "context": "Oslo is the capital of Norway.", "label": "REFUTES"}
    row |= {"cid": 9, "fid": "a"}
    more = {"context": "Oslo lies on a fjord.", "label": "NOT ENOUGH INFO", "fid": "b"}
    jsonl(tmp_path, "nli_fever/train_fitems.jsonl", row, {**row, **more}, {**row, "cid": 10, "label": "SUPPORTS"})
    corpus = load("fever", "train", tmp_path)
    assert corpus.classes == LABELS
    assert corpus.labels.tolist() == [C, N, E]
    assert corpus.premise[0] == "Oslo is the capital of Norway."
    assert corpus.hypothesis[0] == "Oslo is in Peru."
    assert corpus.uid.tolist() == ["9", "9#2", "10"]


def test_two_way_fever(tmp_path):
    row = {"sentence1": "Oslo is the capital of Norway.", "sentence2": "Oslo is in Norway.", "gold_label": "SUPPORTS"}
    jsonl(tmp_path, "fever/fever_val.jsonl", row, {**row, "sentence2": "Oslo is in Peru.", "gold_label": "REFUTES"})
    corpus = load("fever", "validation", tmp_path)
    assert corpus.classes == SUPPORTED_OR_REFUTED
    assert corpus.labels.tolist() == [0, 1]
    assert corpus.premise[0] == "Oslo is the capital of Norway."


def test_hidden_fever_labels_are_said_to_be_missing(tmp_path):
    jsonl(tmp_path, "fever/test_fitems.jsonl", {"cid": 1, "query": "A.", "context": "B.", "label": "hidden"})
    with pytest.raises(CorpusError, match=r"test_fitems\.jsonl: no usable row \(no gold label: 1\)"):
        load("fever", "test", tmp_path)


def test_sick(tmp_path):
    header = ["pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"]
    tabs(tmp_path, "sick/SICK_trial.txt", header, ["4", "A dog runs", "A dog sits", "3.1", "CONTRADICTION"])
    corpus = load("sick", "validation", tmp_path)
    assert corpus.labels.tolist() == [C]
    assert corpus.uid.tolist() == ["4"]
    assert corpus.table["relatedness_score"].tolist() == ["3.1"]


def test_sick_in_one_file(tmp_path):
    header = ["pair_ID", "sentence_A", "sentence_B", "entailment_label", "relatedness_score", "SemEval_set"]
    parts = ("TRAIN", "TEST", "TRIAL")
    rows = [[str(i), "A dog runs", "A dog moves", "ENTAILMENT", "4", part] for i, part in enumerate(parts)]
    tabs(tmp_path, "SICK.txt", header, *rows)
    for split, uid in (("train", "0"), ("test", "1"), ("validation", "2")):
        assert load("sick", split, tmp_path).uid.tolist() == [uid]


@pytest.mark.parametrize("folder", ["revised_premise", "revised_hypothesis", "revised_combined"])
def test_revisions_of_human_cad_stand_in_twos_and_fours(tmp_path, folder):
    origins = [0, 0, 0, 0, 1] if folder == "revised_combined" else [0, 0, 1, 1, 2]
    tabs(tmp_path, f"cad/{folder}/test.tsv", ["sentence1", "sentence2", "gold_label"], *[["A", "B", "neutral"]] * 5)
    found = load("cad", f"{folder}/test", tmp_path).table["origin_uid"].tolist()
    assert found == [f"cad-original/test-{row}" for row in origins]


def test_human_cad_unwraps_quotes_and_points_to_the_original(tmp_path):
    path = tmp_path / "cad/NLI/revised_premise/test.tsv"
    path.parent.mkdir(parents=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["sentence1", "sentence2", "gold_label"])
        writer.writerows([['A sign says "open".', "It is open.", label] for label in ("entailment", "neutral")] * 2)
    corpus = load("cad", "revised_premise/test", tmp_path)
    assert corpus.premise[0] == 'A sign says "open".'
    assert corpus.labels.tolist() == [E, N, E, N]
    assert corpus.table["origin_uid"].tolist() == [f"cad-original/test-{row}" for row in (0, 0, 1, 1)]
    assert corpus.table[["origin_corpus", "maker"]].drop_duplicates().to_numpy().tolist() == [["cad", "worker"]]
    assert corpus.table["intended_label"].tolist() == [LABELS[label] for label in corpus.labels]
    assert corpus.uid[3] == "cad-revised_premise/test-3"


def test_breaking_nli(tmp_path):
    row = {"sentence1": "A red car.", "sentence2": "A blue car.", "gold_label": "contradiction", "category": "colors"}
    jsonl(tmp_path, "breaking_nli/dataset.jsonl", {**row, "pairID": 7, "annotator_labels": ["contradiction"] * 3})
    corpus = load("breaking_nli", "test", tmp_path)
    assert corpus.labels.tolist() == [C]
    assert corpus.uid.tolist() == ["7"]
    assert corpus.table["category"].tolist() == ["colors"]


def test_med_counts_neutral_as_not_entailed(tmp_path):
    header = ["index", "promptID", "pairID", "genre", "sentence1", "sentence2", "gold_label"]
    down = ["1", "1", "1", "crowd:downward_monotone", "No dog ran.", "No dog ran fast.", "entailment"]
    up = ["2", "2", "2", "crowd:upward", "A dog ran.", "A dog ran fast.", "neutral"]
    tabs(tmp_path, "med/MED.tsv", header, down, up)
    corpus = load("med", "test", tmp_path)
    assert corpus.classes == TWO_WAY
    assert corpus.labels.tolist() == [0, 1]


def test_qnli_has_the_sentence_as_premise(tmp_path):
    header = ["index", "question", "sentence", "label"]
    tabs(tmp_path, "glue/QNLI/dev.tsv", header, ["5", "Who ran?", '"Run" was said by Ann.', "not_entailment"])
    corpus = load("qnli", "validation", tmp_path)
    assert corpus.premise[0] == '"Run" was said by Ann.'
    assert corpus.hypothesis[0] == "Who ran?"
    assert corpus.labels.tolist() == [1]


def test_wnli_is_the_reverse_of_rte(tmp_path):
    header, pair = ["index", "sentence1", "sentence2", "label"], ["It fell on the mat.", "The mat fell."]
    tabs(tmp_path, "glue/WNLI/dev.tsv", header, ["0", *pair, "0"], ["1", *pair, "1"])
    tabs(tmp_path, "glue/RTE/dev.tsv", header, ["0", *pair, "entailment"], ["1", *pair, "not_entailment"])
    assert load("wnli", "validation", tmp_path).labels.tolist() == [1, 0]
    assert load("rte", "validation", tmp_path).labels.tolist() == [0, 1]


CHAOS = {
    "uid": "7.jpg#0r1n",
    "majority_label": "n",
    "label_count": [30, 60, 10],
    "entropy": 1.2954618442383219,
    "example": {"uid": "7.jpg#0r1n", "premise": "A boy reads.", "hypothesis": "He reads a map.", "source": "tiny"},
    "old_label": "e",
    "old_labels": ["entailment"] * 3 + ["neutral"] * 2,
}


def test_chaosnli(tmp_path):
    jsonl(tmp_path, "chaosnli/chaosNLI_snli.jsonl", CHAOS)
    corpus = load("chaosnli", "snli", tmp_path)
    row = corpus.table.iloc[0]
    assert corpus.labels.tolist() == [N]
    assert (row["n_entailment"], row["n_neutral"], row["n_contradiction"]) == (30, 60, 10)
    assert row["entropy"] == pytest.approx(1.2954618442383219)
    assert (row["majority"], row["old_label"]) == ("neutral", "entailment")
    assert json.loads(row["annotator_labels"])[-1] == "neutral"
    assert corpus.premise[0] == "A boy reads."


@pytest.mark.parametrize(
    "counts", [[100], None, [30.5, 60, 9.5], [-1, 60, 41], [0, 0, 0], ["30", "60", "10"], [True, 0, 0]]
)
def test_chaosnli_with_broken_counts(tmp_path, counts):
    jsonl(tmp_path, "chaosNLI_snli.jsonl", CHAOS, {**CHAOS, "uid": "x", "label_count": counts})
    with pytest.raises(CorpusError, match=r"row 2, field 'label_count'"):
        load("chaosnli", "snli", tmp_path)


def test_disco(tmp_path):
    row = {"guid": "g_0", "premise": "A man sits.", "hypothesis": "A man rests.", "label": "entailment", "accept": True}
    made = {"new_premise": "A man runs.", "new_label": "neutral", "span_prev": "sits", "gen_out": "runs", "score": 0.4}
    jsonl(tmp_path, "disco/e2n.jsonl", {**row, **made})
    corpus = load("disco", "e2n", tmp_path)
    assert corpus.premise[0] == "A man runs."
    assert corpus.labels.tolist() == [N]
    assert corpus.table["origin_premise"].tolist() == ["A man sits."]
    assert corpus.table["origin_label"].tolist() == ["entailment"]
    assert corpus.table["span_prev"].tolist() == ["sits"]
    assert corpus.table[list(PROVENANCE[1:])].to_numpy().tolist() == [["snli", "text-davinci-002", "neutral"]]


def test_stress_test_in_its_own_folders_and_in_equates_copy(tmp_path):
    row = {"pairID": "63735n", "gold_label": "neutral", "sentence1": "A dog sits."}
    row["sentence2"] = "It barks and true is true"
    jsonl(tmp_path, "StressTests/Word_Overlap/multinli_0.9_taut2_matched.jsonl", row)
    corpus = load("stress", "word_overlap/matched", tmp_path)
    assert (corpus.uid[0], corpus.labels.tolist(), corpus.classes) == ("63735n", [N], LABELS)
    path = tmp_path / "stress/equate_StressTest_quantitative.csv"
    path.parent.mkdir()
    row = '"6 dogs , 2 cats","more than 1 dogs , 2 cats",entailment,0'
    path.write_text(f"premise,hypothesis,label,sample_index\n{row}\n")
    numerical = load("stress", "numerical", tmp_path)
    assert numerical.premise[0] == "6 dogs , 2 cats"
    assert numerical.labels.tolist() == [E]
    with pytest.raises(CorpusError, match="multinli_0.9_antonym_mismatched.jsonl"):
        load("stress", "antonym/mismatched", tmp_path)


def tiny_snli(folder, name="snli/snli_1.0_test.jsonl", rows=20):
    row = {"sentence1": "A boy reads.", "gold_label": "neutral"}
    jsonl(folder, name, *({**row, "sentence2": f"Text {i}.", "pairID": f"p{i:02d}"} for i in range(rows)))


@pytest.mark.parametrize("place", ["", "snli", "snli_1.0"])
def test_official_names_are_found_flat_and_in_the_corpus_folder(tmp_path, place, monkeypatch):
    tiny_snli(tmp_path / place, "snli_1.0_test.jsonl")
    assert len(load("snli", "test", tmp_path)) == 20
    monkeypatch.setenv("NLI_DATA", str(tmp_path))
    assert load("snli", "test").source.endswith("snli_1.0_test.jsonl")


def test_a_name_that_says_nothing_counts_only_in_the_corpus_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    row = {"id": 1, "premise": "P", "hypothesis": "H", "gold": "neutral"}
    jsonl(tmp_path, "train.jsonl", row)
    with pytest.raises(CorpusError, match=r"wanli/train\.jsonl"):
        load("wanli", "train", tmp_path)
    jsonl(tmp_path, "wanli_train.jsonl", row)
    assert len(load("wanli", "train", tmp_path)) == 1
    jsonl(tmp_path, "wanli/train.jsonl", row, {**row, "id": 2})
    assert len(load("wanli", "train", tmp_path / "wanli")) == 2


def test_a_sample_is_read_only_where_the_official_file_is_not_there(tmp_path):
    tiny_snli(tmp_path, "snli/snli_1.0_train_sample.jsonl", 3)
    sample = load("snli", "train", tmp_path)
    assert sample.split == "train"
    assert sample.source == "snli/snli_1.0_train_sample.jsonl (a sample of train)"
    tiny_snli(tmp_path, "snli_1.0_train.jsonl", 4)
    assert load("snli", "train", tmp_path).source == "snli_1.0_train.jsonl"


def test_a_limit_is_a_seeded_sample_in_file_order(tmp_path):
    tiny_snli(tmp_path)
    first, again, other = (load("snli", "test", tmp_path, limit=8, seed=seed) for seed in (0, 0, 1))
    assert len(first) == 8
    assert first.digest == again.digest
    assert first.digest != other.digest
    assert first.uid.tolist() == sorted(first.uid)
    assert "8 of 20 examples, seed 0" in first.source
    assert load("snli", "test", tmp_path, limit=50).digest == load("snli", "test", tmp_path).digest
    for wrong in (0, -1, 2.5, True, "many"):
        with pytest.raises(CorpusError, match="whole number"):
            load("snli", "test", tmp_path, limit=wrong)


def test_a_users_file_with_other_column_names(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("id,text_a,text_b,gold,split,label\n1,A cat.,A pet.,Entailment,dev,ok\n", encoding="utf-8")
    corpus = load(str(path), columns={"uid": "id", "premise": "text_a", "hypothesis": "text_b", "label": "gold"})
    assert corpus.uid.tolist() == ["1"]
    assert corpus.labels.tolist() == [E]
    assert corpus.table["source_split"].tolist() == ["dev"]
    assert corpus.table["source_label"].tolist() == ["ok"]  # the file's own column of that name is not lost
    with pytest.raises(CorpusError, match="'nowhere', which is not in the file"):
        load(str(path), columns={"premise": "nowhere"})
    with pytest.raises(CorpusError, match="premis is not one of"):
        load(str(path), columns={"premis": "text_a"})
    with pytest.raises(CorpusError, match="own file"):
        load("snli", "test", tmp_path, columns={"premise": "text_a"})


def test_a_users_file_in_the_snli_format_and_under_data_dir(tmp_path):
    row = {"sentence1": "A cat.", "sentence2": "A pet.", "gold_label": "entailment", "genre": "x"}
    jsonl(tmp_path, "mine.jsonl", row)
    corpus = load("mine.jsonl", "challenge", tmp_path)
    assert (corpus.name, corpus.split) == ("mine", "challenge")
    assert corpus.table["genre"].tolist() == ["x"]


def test_unknown_names_and_folders(tmp_path):
    with pytest.raises(CorpusError, match='Did you mean "snli"'):
        load("snly")
    with pytest.raises(CorpusError, match="data_dir is not a folder"):
        load("snli", data_dir=tmp_path / "gone")
    assert set(SOURCES) < set(names())


def test_no_hub_is_an_error_at_once_with_the_files_wanted(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(HfApi, "dataset_info", lambda *_, **__: pytest.fail("the hub was asked"))
    with pytest.raises(CorpusError, match=r"snli/snli_1\.0_test\.jsonl.*HF_HUB_OFFLINE is set"):
        load("snli", "test", tmp_path)
    with pytest.raises(CorpusError, match="no faithful copy"):
        load("snli", "test_hard", tmp_path)


def test_a_hub_that_does_not_answer_is_one_message(tmp_path, monkeypatch):
    def unreachable(*_, **__):
        raise ConnectionError("Name or service not known\nand a long story")

    monkeypatch.setattr(sources, "_OFFLINE", ())
    monkeypatch.setattr(HfApi, "dataset_info", unreachable)
    with pytest.raises(CorpusError, match=r"snli_1\.0_test\.jsonl.*hub stanfordnlp/snli@cdb5c3d.*not known\.$"):
        load("snli", "test", tmp_path)


@pytest.fixture
def local_hub(tmp_path, monkeypatch):
    """A folder of parquet files in the place of the hub, read by `datasets` itself."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(sources, "_OFFLINE", ())
    monkeypatch.setattr(HfApi, "dataset_info", lambda *_, **__: SimpleNamespace(sha="0123abc"))
    read, folder = datasets.load_dataset, tmp_path / "hub"
    folder.mkdir()
    # `datasets` itself calls the split of a local file "dev-..." validation
    local = {"dev": "validation"}
    found = lambda *_, split, **__: read(str(folder), split=local.get(split, split))  # noqa: E731
    monkeypatch.setattr(datasets, "load_dataset", found)

    def put(split, columns, class_names):
        texts, label = dict.fromkeys(columns, datasets.Value("string")), datasets.ClassLabel(names=class_names)
        features = datasets.Features(texts | {"label": label})
        datasets.Dataset.from_dict(columns, features=features).to_parquet(folder / f"{split}-00000-of-00001.parquet")

    return put


def test_the_hubs_class_numbers_are_read_by_name(tmp_path, local_hub):
    columns = {"premise": ["A cat."] * 3, "hypothesis": ["A pet.", "None", "x"], "label": [0, 2, -1]}
    local_hub("test", columns, list(LABELS))
    corpus = load("snli", "test", tmp_path)
    assert corpus.labels.tolist() == [E, C]
    assert corpus.hypothesis.tolist() == ["A pet.", "None"]
    assert corpus.skipped == {"no gold label": 1}
    assert corpus.source == "hub stanfordnlp/snli@0123abc (test)"


def test_the_hubs_wnli_and_rte_orders(tmp_path, local_hub):
    columns = {"sentence1": ["P", "P"], "sentence2": ["H", "G"], "label": [0, 1]}
    local_hub("validation", columns, ["not_entailment", "entailment"])
    assert load("wnli", "validation", tmp_path).labels.tolist() == [1, 0]


def test_the_hubs_fever_is_turned_round(tmp_path, local_hub, monkeypatch):
    monkeypatch.setitem(SOURCES, "fever", replace(SOURCES["fever"], revision="0123abc"))
    columns = {"premise": ["Oslo is in Peru."], "hypothesis": ["Oslo is in Norway."], "label": [2]}
    local_hub("dev", columns, list(LABELS))
    assert load("fever", "validation", tmp_path).hypothesis.tolist() == ["Oslo is in Peru."]


def test_an_unpinned_copy_of_another_size_is_refused(tmp_path, local_hub):
    columns = {"premise": ["P"], "hypothesis": ["H"], "label": [1]}
    local_hub("validation", columns, ["entailment", "non-entailment"])
    with pytest.raises(CorpusError, match=r"1 rows, but hans validation has 30,000"):
        load("hans", "validation", tmp_path)


def test_planted_is_known_by_name():
    pytest.importorskip("nli_lib.corpora.planted")
    corpus = load("planted", "test", limit=40, seed=3)
    assert (len(corpus), corpus.name, corpus.split) == (40, "planted", "test")


COUNTS = [
    ("snli", "validation", [3329, 3235, 3278], 158),
    ("snli", "test", [3368, 3219, 3237], 176),
    ("snli", "test_hard", [1058, 1068, 1135], 0),
    ("snli", "train", [18937, 16746, 14118], 0),
    ("mnli", "validation_matched", [3479, 3123, 3213], 0),
    ("mnli", "validation_mismatched", [3463, 3129, 3240], 0),
    ("mnli", "train", [13002, 12633, 13340], 1),  # one row of the sample is a text of 105,868 characters
    ("anli", "dev_r1", [334, 333, 333], 0),
    ("anli", "test_r2", [334, 333, 333], 0),
    ("anli", "test_r3", [402, 402, 396], 0),
    ("anli", "test", [1070, 1068, 1062], 0),
    ("wanli", "train", [5001, 5000, 5000], 0),
    ("hans", "validation", [15000, 15000], 0),
    ("fever", "validation", [7983, 8681], 0),
    ("sick", "train", [1299, 2536, 665], 0),
    ("sick", "validation", [144, 282, 74], 0),
    ("sick", "test", [1414, 2793, 720], 0),
    ("cad", "original/test", [146, 123, 131], 0),
    ("cad", "revised_combined/test", [508, 554, 538], 0),
    ("cad", "revised_combined/train", [2208, 2224, 2232], 0),
    ("cad", "revised_premise/test", [254, 277, 269], 0),
    ("cad", "revised_hypothesis/dev", [126, 125, 149], 0),
    ("cad", "all_combined/train", [2770, 2778, 2782], 0),
    ("breaking_nli", "test", [982, 47, 7164], 0),
    ("med", "test", [2705, 2677], 0),
    ("qnli", "validation", [2866, 2866], 0),
    ("rte", "train", [1249, 1241], 0),
    ("rte", "validation", [146, 131], 0),
    ("wnli", "train", [312, 323], 0),
    ("wnli", "validation", [31, 40], 0),
    ("chaosnli", "snli", [421, 813, 280], 0),
    ("chaosnli", "mnli_m", [741, 583, 275], 0),
    ("disco", "e2n", [0, 5698, 0], 0),
    ("disco", "n2c", [0, 0, 3476], 0),
    ("stress", "numerical", [2532, 2532, 2532], 0),
]


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "split", "per_label", "skipped"), COUNTS)
def test_real_counts(name, split, per_label, skipped):
    corpus = load(name, split)
    assert corpus.table["label"].value_counts().reindex(range(len(corpus.classes)), fill_value=0).tolist() == per_label
    assert sum(corpus.skipped.values()) == skipped


@pytest.mark.realdata
def test_real_chaosnli_rows_are_rows_of_snli():
    snli, chaos = load("snli", "validation"), load("chaosnli", "snli")
    joined = chaos.table.merge(snli.table, on="uid", suffixes=("", "_snli"))
    assert len(joined) == 1514
    assert (joined["premise"] == joined["premise_snli"]).all()
    assert (joined["old_label"] == joined["label_snli"].map(dict(enumerate(LABELS)))).all()


@pytest.mark.realdata
def test_real_human_cad_blocks_share_a_side_with_their_original():
    original, revised = load("cad", "original/test"), load("cad", "revised_combined/test")
    row = pd.Series(np.arange(len(original)), index=original.uid)
    origin = row[revised.table["origin_uid"]].to_numpy()
    same = (revised.premise == original.premise[origin]) | (revised.hypothesis == original.hypothesis[origin])
    assert same.mean() > 0.99
    block = pd.DataFrame({"origin": origin, "label": revised.labels})
    seen = pd.concat([block, pd.DataFrame({"origin": range(400), "label": original.labels})])
    assert (seen.groupby("origin")["label"].nunique() == 3).all()


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["entailment", "non-entailment", "not_entailment"], TWO_WAY),
        (["neutral", "entailment"], ("entailment", "neutral")),
        (["contradiction", "entailment", "-"], ("entailment", "contradiction")),
        (["contradiction", "neutral"] * 10 + ["maybe"], ("neutral", "contradiction")),
        (["contradiction", "not-contradiction"], CONTRADICTION_OR_NOT),
        (["contradiction", "neutral", "entailment"], LABELS),
        (["neutral", "neutral"], LABELS),  # one class says nothing of the others
        (["not_entailment"], TWO_WAY),
    ],
)
def test_the_classes_of_a_users_file_are_the_labels_in_it(tmp_path, labels, classes):
    corpus = load(mine(tmp_path, labels))
    assert corpus.classes == classes
    named = [corpus.classes[label] for label in corpus.labels]
    assert named == [canonical(label) for label in labels if canonical(label)]  # the others are counted
    assert sum(corpus.skipped.values()) == len(labels) - len(named)
    if len(classes) == 2:
        assert corpus.source == f"mine.csv (two classes: {', '.join(classes)})"


@pytest.mark.parametrize("other", ["neutral", "contradiction"])
def test_labels_of_two_and_of_three_classes_do_not_mix(tmp_path, other):
    with pytest.raises(CorpusError, match=rf"mine\.csv.*{other}, not_entailment do not belong.*write not_entailment"):
        load(mine(tmp_path, [other, "not_entailment"]))


def mine(folder, labels, name="mine.csv", header="premise,hypothesis,label"):
    rows = "".join(f"A dog runs.,It moves {at}.,{label}\n" for at, label in enumerate(labels))
    (folder / name).write_text(f"{header}\n{rows}")
    return folder / name


def test_rows_left_out_of_a_users_file_are_said(tmp_path, capsys):
    corpus = load(mine(tmp_path, ["neutral", "entailment"] * 15 + ["-"] * 30))
    assert corpus.left_out == "30 of 60 rows were left out: no gold label 30."
    said = capsys.readouterr().out
    assert said.startswith("WARNING: a good part of mine.csv cannot be used. 30 of 60 rows")
    assert corpus[:10].left_out == corpus.left_out
    sample = load(tmp_path / "mine.csv", limit=10)
    assert sample.warnings()[0] == f"More than 5% of the rows cannot be used. {corpus.left_out}"
    assert load(mine(tmp_path, ["neutral", "entailment"] * 15 + ["-"])).left_out.startswith("1 of 31 rows was left")
    assert capsys.readouterr().out.endswith("mine.csv: 1 of 31 rows was left out: no gold label 1.\n")
    assert load(mine(tmp_path, ["neutral", "entailment"])).left_out == capsys.readouterr().out == ""


def test_unknown_labels_are_named_with_their_first_rows(tmp_path, capsys):
    labels = ["neutral", "entailment"] * 40 + ["maybe", "sure", "maybe", "none", "hm", "Sure", "maybe"]
    corpus = load(mine(tmp_path, labels))
    assert corpus.skipped == {"unknown label": 7}
    said = capsys.readouterr().out.split("\n")[0]
    assert said == (
        "mine.csv, field 'label': unknown labels: 'maybe' in 3 of 87 rows, from row 81 (line 82) on; 'sure' in 1 of 87 "
        "rows, from row 82 (line 83) on; 'none' in 1 of 87 rows, from row 84 (line 85) on; and 2 other names. Say what "
        "it means, as in --labels maybe=contradiction, or leave its rows out with --labels maybe=-."
    )


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["entailment", "contradiction", "NotMentioned"], "'NotMentioned' in 10 of 30 rows, from row 3 (line 4) on"),
        (["entailment", "contradiction", "NotMentioned"], "--labels NotMentioned=neutral, or leave"),
        (["entailment", "neutral", "contradiction", "not sure"], "--labels 'not sure=-'."),
        (["entailment", "neutral", "2"], "--labels 2=..., or"),  # a number is not guessed
    ],
)
def test_a_name_that_is_not_known_and_has_many_rows_is_refused(tmp_path, labels, said):
    with pytest.raises(CorpusError) as error:
        load(mine(tmp_path, labels * 10))
    assert said in str(error.value)


def test_a_user_says_what_labels_mean(tmp_path):
    numbers = mine(tmp_path, ["0", "1", "2", "-1"] * 5)
    with pytest.raises(CorpusError, match=r"numbers without names.*--labels 0=\.\.\.,1=\.\.\.,2=\.\.\. on"):
        load(numbers)
    corpus = load(numbers, labels={"0": "contradiction", "1": "Entails", "2": "neutral"})
    assert corpus.labels.tolist() == [2, 0, 1] * 5 and corpus.skipped == {"no gold label": 5}
    names = mine(tmp_path, ["Yes", "NO ", "yes", "unsure"])
    corpus = load(names, labels={"yes": "entailment", "No": "contradiction", "unsure": "-"})
    assert corpus.labels.tolist() == [0, 1, 0] and corpus.classes == ("entailment", "contradiction")
    frame = pd.DataFrame({"premise": ["A", "B"], "hypothesis": ["C", "D"], "label": [0.0, 1.0]})
    assert from_dataset(frame, labels={"0": "neutral", "1": "entailment"}).labels.tolist() == [1, 0]
    with pytest.raises(CorpusError, match="'maybe' is no label: the names are entailment, neutral, contradiction"):
        load(names, labels={"yes": "maybe"})
    with pytest.raises(CorpusError, match="labels= and encoding= are for a user's own file"):
        load("snli", labels={"0": "neutral"})


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("context,claim,label", "A,B,neutral"),
        ("claim,evidence,entailment_label", "B,A,NEUTRAL"),
        ("premise,sentence1,hypothesis,label", " ,A,B,neutral"),
        ("premise,hypothesis,label,gold_label", "A,B,0,neutral"),
        ("premise,hypothesis,label,label_text", "A,B,2,neutral"),
    ],
)
def test_of_several_columns_the_one_that_says_something_is_taken(tmp_path, header, row):
    (tmp_path / "mine.csv").write_text(f"{header}\n{row}\n")
    corpus = load(tmp_path / "mine.csv")
    assert (corpus.premise[0], corpus.hypothesis[0], corpus.labels[0]) == ("A", "B", 1)


def test_declared_numbers_are_labels_like_others(tmp_path):
    (tmp_path / "mine.csv").write_text("premise,hypothesis,label,gold\nA,B,0,neutral\nA,C,1,neutral\n")
    corpus = load(tmp_path / "mine.csv", labels={"0": "entailment", "1": "contradiction"})
    assert corpus.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    "header",
    ["Premise,Hypothesis,Label", "sentence1,sentence2,gold_label", "TEXT_A,text_b,Gold", "sentence_A,sentence_B,gold"],
)
def test_usual_column_names_are_understood_in_capitals_or_not(tmp_path, header):
    assert load(mine(tmp_path, ["neutral", "entailment"], header=header)).labels.tolist() == [1, 0]


@pytest.mark.parametrize("column", ["id", "ID", "pairID", "guid"])
def test_an_id_of_the_users_own_is_the_uid_where_it_names_every_row(tmp_path, column):
    header = f"{column},premise,hypothesis,label\n"
    (tmp_path / "mine.csv").write_text(header + "x1,A,B,neutral\nx2,A,C,entailment\n")
    corpus = load(tmp_path / "mine.csv")
    assert corpus.uid.tolist() == corpus.table[column].tolist() == ["x1", "x2"]
    (tmp_path / "mine.csv").write_text(header + "x1,A,B,neutral\nx1,A,C,entailment\n")
    corpus = load(tmp_path / "mine.csv")
    assert corpus.uid.tolist() == ["mine-train-0", "mine-train-1"]
    assert corpus.table[column].tolist() == ["x1", "x1"]


def test_the_projects_home_has_the_local_corpora(tmp_path, home):
    (home / "data" / "raw").mkdir()
    tiny_snli(home / "data" / "raw")
    assert len(load("snli", "test")) == 20
