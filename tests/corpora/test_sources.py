"""Every source in its official format, the folders it is looked for in, the hub, a user's own file, the real files.

Alone: pytest tests/corpora/test_sources.py"""

import csv
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from huggingface_hub import HfApi

from nli_lib.corpora import CorpusError, from_dataset, load, names, sources
from nli_lib.corpora.corpus import CONTRADICTION_OR_NOT, LABELS, SUPPORTED_OR_REFUTED, TWO_WAY, C, E, N, canonical
from nli_lib.corpora.sources import SOURCES

KNOWN = yaml.safe_load(Path(__file__).with_name("sources.yaml").read_text(encoding="utf-8"))


def write(folder, name, rows):
    """A file of dictionaries, one a line in JSON, or of lists, parted by tabs."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) if isinstance(row, dict) else "\t".join(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- official formats


@pytest.mark.parametrize("case", KNOWN["formats"], ids=lambda case: " ".join([*case["place"], case["file"]]))
def test_a_known_pair_in_its_official_format(tmp_path, case):
    (name, split), file, expected = case["place"], case["file"], case["expected"]
    write(tmp_path, file, case["rows"])
    corpus = load(name, split, tmp_path)
    assert {column: corpus.table[column].tolist() for column in expected} == expected
    assert corpus.classes == (SUPPORTED_OR_REFUTED if file.endswith("fever_val.jsonl") else SOURCES[name].classes)
    assert corpus.skipped == ({"no gold label": 1} if name == "snli" else {}) and "sentence1_parse" not in corpus.table
    assert load(name, split.replace("validation", "dev"), tmp_path).digest == corpus.digest


def test_classes_are_those_of_the_source():
    two_way = {name for name, source in SOURCES.items() if source.classes == TWO_WAY}
    assert two_way == {"hans", "med", "qnli", "rte", "wnli"}
    assert {source.classes for name, source in SOURCES.items() if name not in two_way} == {LABELS}


def test_anli_rounds_and_their_union(tmp_path):
    for i, letter in enumerate("enc", start=1):
        row = {"uid": f"u{i}", "context": "Lyon is in France.", "hypothesis": f"Claim {i}.", "label": letter}
        write(tmp_path, f"anli_v1.0/R{i}/test.jsonl", [row | {"reason": "so"}])
    assert load("anli", "test_r3", tmp_path).labels.tolist() == [C]
    corpus = load("anli", "test", tmp_path)
    assert corpus.labels.tolist() == [E, N, C] and corpus.table["round"].tolist() == [1, 2, 3]
    assert corpus.premise[0] == "Lyon is in France." and corpus.table["split"].unique().tolist() == ["test"]


@pytest.mark.parametrize("folder", ["revised_premise", "revised_hypothesis", "revised_combined"])
def test_revisions_of_human_cad_stand_in_twos_and_fours(tmp_path, folder):
    origins = [0, 0, 0, 0, 1] if folder == "revised_combined" else [0, 0, 1, 1, 2]
    write(tmp_path, f"cad/{folder}/test.tsv", [["sentence1", "sentence2", "gold_label"], *[["A", "B", "neutral"]] * 5])
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
    assert corpus.premise[0] == 'A sign says "open".' and corpus.labels.tolist() == [E, N, E, N]
    assert corpus.table[["origin_corpus", "maker"]].drop_duplicates().to_numpy().tolist() == [["cad", "worker"]]
    assert corpus.table["intended_label"].tolist() == [LABELS[label] for label in corpus.labels]
    assert corpus.uid[3] == "cad-revised_premise/test-3"


def test_the_stress_tests_numbers_in_equates_copy(tmp_path):
    path = tmp_path / "stress/equate_StressTest_quantitative.csv"
    path.parent.mkdir()
    row = '"6 dogs , 2 cats","more than 1 dogs , 2 cats",entailment,0'
    path.write_text(f"premise,hypothesis,label,sample_index\n{row}\n")
    numerical = load("stress", "numerical", tmp_path)
    assert numerical.premise[0] == "6 dogs , 2 cats" and numerical.labels.tolist() == [E]


@pytest.mark.parametrize("counts", [
    [100], None, [30.5, 60, 9.5], [-1, 60, 41], [0, 0, 0], ["30", "60", "10"], [True, 0, 0]])  # fmt: skip
def test_chaosnli_with_broken_counts(tmp_path, counts):
    chaos = next(case["rows"][0] for case in KNOWN["formats"] if case["place"] == ["chaosnli", "snli"])
    write(tmp_path, "chaosNLI_snli.jsonl", [chaos, {**chaos, "uid": "x", "label_count": counts}])
    with pytest.raises(CorpusError, match=r"row 2, field 'label_count'"):
        load("chaosnli", "snli", tmp_path)


@pytest.mark.parametrize(("place", "said"), [
    (("snli", "test"), r"snli/snli_1\.0_test\.jsonl.*HF_HUB_OFFLINE is set"),
    (("snli", "test_hard"), "no faithful copy"),
    (("anli", "validation_r1"), r"anli/R1/dev\.jsonl"),
    (("stress", "antonym/mismatched"), "multinli_0.9_antonym_mismatched.jsonl"),
    (("hans", "test"), 'split="test" is not one of train, validation'),
    (("fever", "test"), r"test_fitems\.jsonl: no usable row \(no gold label: 1\)"),  # its labels are hidden
    (("snly",), 'Did you mean "snli"')])  # fmt: skip
def test_what_is_not_there_is_an_error_at_once_with_what_is_wanted(tmp_path, monkeypatch, place, said):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(HfApi, "dataset_info", lambda *_, **__: pytest.fail("the hub was asked"))
    write(tmp_path, "fever/test_fitems.jsonl", [{"cid": 1, "query": "A.", "context": "B.", "label": "hidden"}])
    with pytest.raises(CorpusError, match=said):
        load(*place, data_dir=tmp_path)
    with pytest.raises(CorpusError, match="data_dir is not a folder"):
        load("snli", data_dir=tmp_path / "gone")
    assert set(SOURCES) < set(names())


# ---------------------------------------------------------------- places


def tiny_snli(folder, name="snli/snli_1.0_test.jsonl", rows=20):
    row = {"sentence1": "A boy reads.", "gold_label": "neutral"}
    write(folder, name, [{**row, "sentence2": f"Text {i}.", "pairID": f"p{i:02d}"} for i in range(rows)])


@pytest.mark.parametrize("place", ["", "snli", "snli_1.0"])
def test_official_names_are_found_flat_and_in_the_corpus_folder(tmp_path, place, monkeypatch):
    tiny_snli(tmp_path / place, "snli_1.0_test.jsonl")
    assert len(load("snli", "test", tmp_path)) == 20
    monkeypatch.setenv("NLI_DATA", str(tmp_path))
    assert load("snli", "test").source.endswith("snli_1.0_test.jsonl")


def test_a_name_that_says_nothing_counts_only_in_the_corpus_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    row = {"id": 1, "premise": "P", "hypothesis": "H", "gold": "neutral"}
    write(tmp_path, "train.jsonl", [row])
    with pytest.raises(CorpusError, match=r"wanli/train\.jsonl"):
        load("wanli", "train", tmp_path)
    write(tmp_path, "wanli_train.jsonl", [row])
    assert len(load("wanli", "train", tmp_path)) == 1
    write(tmp_path, "wanli/train.jsonl", [row, {**row, "id": 2}])
    assert len(load("wanli", "train", tmp_path / "wanli")) == 2


def test_a_sample_is_read_only_where_the_official_file_is_not_there(tmp_path):
    tiny_snli(tmp_path, "snli/snli_1.0_train_sample.jsonl", 3)
    sample = load("snli", "train", tmp_path)
    assert sample.split == "train" and sample.source == "snli/snli_1.0_train_sample.jsonl (a sample of train)"
    tiny_snli(tmp_path, "snli_1.0_train.jsonl", 4)
    assert load("snli", "train", tmp_path).source == "snli_1.0_train.jsonl"


def test_a_limit_is_a_seeded_sample_in_file_order(tmp_path):
    tiny_snli(tmp_path)
    first, again, other = (load("snli", "test", tmp_path, limit=8, seed=seed) for seed in (0, 0, 1))
    assert len(first) == 8 and first.digest == again.digest
    assert first.digest != other.digest and first.uid.tolist() == sorted(first.uid)
    assert "8 of 20 examples, seed 0" in first.source
    assert load("snli", "test", tmp_path, limit=50).digest == load("snli", "test", tmp_path).digest
    for wrong in (0, -1, 2.5, True, "many"):
        with pytest.raises(CorpusError, match="whole number"):
            load("snli", "test", tmp_path, limit=wrong)


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
    assert corpus.labels.tolist() == [E, C] and corpus.hypothesis.tolist() == ["A pet.", "None"]
    assert corpus.skipped == {"no gold label": 1} and corpus.source == "hub stanfordnlp/snli@0123abc (test)"


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


def test_the_projects_home_has_the_local_corpora(tmp_path, home):
    (home / "data" / "raw").mkdir()
    tiny_snli(home / "data" / "raw")
    assert len(load("snli", "test")) == 20


# ---------------------------------------------------------------- a user's own file


def test_a_users_file_with_other_column_names(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("id,text_a,text_b,gold,split,label\n1,A cat.,A pet.,Entailment,dev,ok\n", encoding="utf-8")
    corpus = load(str(path), columns={"uid": "id", "premise": "text_a", "hypothesis": "text_b", "label": "gold"})
    assert corpus.uid.tolist() == ["1"] and corpus.labels.tolist() == [E]
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
    write(tmp_path, "mine.jsonl", [row])
    corpus = load("mine.jsonl", "challenge", tmp_path)
    assert (corpus.name, corpus.split) == ("mine", "challenge") and corpus.table["genre"].tolist() == ["x"]


@pytest.mark.parametrize(("labels", "classes"), [
    (["entailment", "non-entailment", "not_entailment"], TWO_WAY),
    (["neutral", "entailment"], ("entailment", "neutral")),
    (["contradiction", "entailment", "-"], ("entailment", "contradiction")),
    (["contradiction", "neutral"] * 10 + ["maybe"], ("neutral", "contradiction")),
    (["contradiction", "not-contradiction"], CONTRADICTION_OR_NOT),
    (["contradiction", "neutral", "entailment"], LABELS),
    (["neutral", "neutral"], LABELS),  # one class says nothing of the others
    (["not_entailment"], TWO_WAY)])  # fmt: skip
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


@pytest.mark.parametrize(("labels", "said"), [
    (["entailment", "contradiction", "NotMentioned"], "'NotMentioned' in 10 of 30 rows, from row 3 (line 4) on"),
    (["entailment", "contradiction", "NotMentioned"], "--labels NotMentioned=neutral, or leave"),
    (["entailment", "neutral", "contradiction", "not sure"], "--labels 'not sure=-'."),
    # a number is not guessed
    (["entailment", "neutral", "2"], "--labels 2=..., or")])  # fmt: skip
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


@pytest.mark.parametrize(("header", "row"), [
    ("Premise,Hypothesis,Label", "A,B,neutral"),  # in capitals or not
    ("sentence1,sentence2,gold_label", "A,B,neutral"),
    ("TEXT_A,text_b,Gold", "A,B,neutral"),
    ("sentence_A,sentence_B,gold", "A,B,neutral"),
    ("context,claim,label", "A,B,neutral"),
    ("claim,evidence,entailment_label", "B,A,NEUTRAL"),
    ("premise,sentence1,hypothesis,label", " ,A,B,neutral"),  # of several columns the one that says something
    ("premise,hypothesis,label,gold_label", "A,B,0,neutral"),
    ("premise,hypothesis,label,label_text", "A,B,2,neutral")])  # fmt: skip
def test_usual_column_names_are_understood(tmp_path, header, row):
    (tmp_path / "mine.csv").write_text(f"{header}\n{row}\n")
    corpus = load(tmp_path / "mine.csv")
    assert (corpus.premise[0], corpus.hypothesis[0], corpus.labels[0]) == ("A", "B", 1)


def test_declared_numbers_are_labels_like_others(tmp_path):
    (tmp_path / "mine.csv").write_text("premise,hypothesis,label,gold\nA,B,0,neutral\nA,C,1,neutral\n")
    corpus = load(tmp_path / "mine.csv", labels={"0": "entailment", "1": "contradiction"})
    assert corpus.labels.tolist() == [0, 1]


@pytest.mark.parametrize("column", ["id", "ID", "pairID", "guid"])
@pytest.mark.parametrize(("second", "uids"), [("x2", ["x1", "x2"]), ("x1", ["mine-train-0", "mine-train-1"])])
def test_an_id_of_the_users_own_is_the_uid_where_it_names_every_row(tmp_path, column, second, uids):
    rows = f"x1,A,B,neutral\n{second},A,C,entailment\n"
    (tmp_path / "mine.csv").write_text(f"{column},premise,hypothesis,label\n{rows}")
    corpus = load(tmp_path / "mine.csv")
    assert corpus.uid.tolist() == uids and corpus.table[column].tolist() == ["x1", second]


# ---------------------------------------------------------------- real data

COUNTS = KNOWN["counts"]  # of each label, and how many are left out


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "split"), [(name, split) for name, splits in COUNTS.items() for split in splits])
def test_real_counts(name, split):
    corpus = load(name, split)
    assert [*corpus.counts.values(), sum(corpus.skipped.values())] == COUNTS[name][split]


@pytest.mark.realdata
def test_real_chaosnli_rows_are_rows_of_snli():
    snli, chaos = load("snli", "validation"), load("chaosnli", "snli")
    joined = chaos.table.merge(snli.table, on="uid", suffixes=("", "_snli"))
    assert len(joined) == 1514 and (joined["premise"] == joined["premise_snli"]).all()
    assert (joined["old_label"] == joined["label_snli"].map(dict(enumerate(LABELS)))).all()
