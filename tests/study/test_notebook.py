"""Strict parameters, whole tables, an honest record. Alone: pytest tests/study/test_notebook.py"""

import json
import math
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cells import ran

from nli_lib import paths, tables
from nli_lib.corpora.suites import load_each
from nli_lib.errors import StudyError
from nli_lib.generate.journal import Answer, Journal
from nli_lib.generate.pairs import WANLI, digest_prompt
from nli_lib.learn.text import resolve_model
from nli_lib.stats import Estimate
from nli_lib.store import StoreError
from nli_lib.study import begin, dial, runner, standing
from nli_lib.study.dial import check

ONE = pd.DataFrame({"x": [1]})
SHARE = Estimate(0.5, 0.4, 0.6, n=10, seeds=2)
PAIRS = "premise,hypothesis,label\nA dog.,A cat.,neutral\n"


def started(name="10_try", knobs=None, **given):
    return begin(name, {"SCALE": "smoke", **given}, knobs=knobs or {})


def record_of(study):
    """What a study's record says once it has finished."""
    study.finish()
    return standing.read(study.notebook, study.results_name)


@pytest.fixture
def mine(home):
    """A user's file, called as a published corpus is."""
    (home / "snli.csv").write_text(PAIRS)
    return str(home / "snli.csv")


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(("given", "said"), [
    ({"SCALE": "smal"}, """Input should be 'lab', 'smoke', 'small' or 'full', got "smal"; did you mean "small"?"""),
    ({"SCALE": "lab", "CORPUS": "snli"}, "CORPUS: this scale has planted text alone: read snli at smoke or small"),
    *(({"SEEDS": each}, f"SEEDS: Input should be a valid integer, got {said}")
      for each, said in (("two", '"two"'), ("3", '"3"'), (True, "True"), (2.0, "2.0"))),
    ({"SEEDS": 0}, "SEEDS: Input should be greater than or equal to 1, got 0"),
    ({"SEEDS": 21}, "SEEDS: Input should be less than or equal to 20, got 21"),
    ({"SEDS": 2}, 'SEDS: no such parameter; did you mean "SEEDS"? (allowed: SCALE, SEEDS, DATA_DIR, CORPUS, '),
    ({"CORPUS": "snil"}, 'did you mean "snli"?'), ({"CORPUS": "nowhere.csv"}, "no such file: nowhere.csv"),
    ({"CORPUS": 3}, "CORPUS: Input should be a valid string, got 3")])  # fmt: skip
def test_wrong_parameters_are_named(given, said):
    with pytest.raises(StudyError, match=re.escape(said)) as caught:
        check(given)
    assert caught.value._render_traceback_() == [f"StudyError: {caught.value}"]  # without our own frames


def test_parameters_are_complete_and_every_problem_is_told_at_once():
    assert check({}) == dial.Parameters().model_dump() and check({"SEEDS": 20, "RATE": 1}, ["RATE"])["RATE"] == 1
    with pytest.raises(StudyError, match="K: declared, but the parameters cell does not set it"):
        check({}, ["K"])
    with pytest.raises(StudyError) as caught:
        check({"SCALE": "tiny", "SEEDS": "two", "SEDS": 1})
    assert len(str(caught.value).splitlines()) == 3


def test_begin_again_leaves_the_notebooks_own_names_alone(home):
    namespace = {"SCALE": "smoke", "In": [], "Out": {}, "_private": 1, "module": os}
    begin("10_try", namespace)
    namespace |= {"rows": [1, 2], "SEEDS": 1}
    assert begin("10_try", namespace).params["SCALE"] == "smoke"


# ---------------------------------------------------------------- knobs


KNOBS = {"THRESHOLD": "consensus.threshold", "COMPARED": "wanli.compared"}


def test_a_turned_knob_is_what_the_dial_says_and_its_results_have_a_folder_of_their_own(home):
    started("09_before").save(ONE, "facts")
    unturned = {"THRESHOLD": None, "COMPARED": None}
    kept = started(knobs=KNOBS, **unturned)  # leaves the dial's value and the study's folder
    assert kept.dial.consensus.threshold == dial.read_scale("smoke").consensus.threshold
    assert kept.folder == paths.RESULTS / "smoke"
    kept.save(2 * ONE, "facts")
    study = started(knobs=KNOBS, THRESHOLD=0.75, COMPARED={"planted": "test"})
    assert (study.dial.consensus.threshold, study.dial.wanli.compared) == (0.75, {"planted": "test"})
    study.save(3 * ONE, "facts")
    record = record_of(study)
    assert study.folder.name == "smoke+compared=planted-test+threshold=0.75"
    places = (study, None), (started(knobs=KNOBS, **unturned), None), (study, "09_before")
    assert [each.table("facts", notebook)["x"].item() for each, notebook in places] == [3, 2, 1]
    assert record["turned"] == {"consensus.threshold": 0.75, "wanli.compared": {"planted": "test"}}
    assert not [why for why in standing.why_stale(record) if "dial" in why]
    into = started(knobs=KNOBS, INTO="smoke-own", **unturned | {"THRESHOLD": 0.5})  # of a command that sizes chapters
    assert (into.folder.name, into.standard, into.dial.consensus.threshold) == ("smoke-own", "smoke-own", 0.5)
    for wrong in ("../smoke", "a/b", ""):
        with pytest.raises(StudyError, match="INTO: "):
            check({"INTO": wrong})


@pytest.mark.parametrize(("given", "told"), [
    ({"EPOCHS": "much"}, "EPOCHS: epochs: a number is needed, and 'much' is a text"),
    ({"EPOCHS": [1]}, "a number is needed"),
    ({"PAIRS": 3}, "PAIRS: planted.start: 3 does not lie between 299 and"),
    ({"PAIRS": math.nan}, "nan does not lie"),
    ({"PAIRS": "300"}, "PAIRS: planted.start: a number is needed, and '300' is a text")])  # fmt: skip
def test_a_value_of_another_kind_is_refused_and_by_the_runner_before_anything_starts(home, given, told):
    asked = {"EPOCHS": None, "PAIRS": None, **given}
    with pytest.raises(StudyError, match=told):
        begin("00_start_here", asked, knobs={"EPOCHS": "epochs", "PAIRS": "planted.start"})
    shutil.copy(Path(__file__).parents[2] / "notebooks" / "00_start_here.ipynb", home / "notebooks")
    with pytest.raises(StudyError, match=told):
        runner.run(["00"], runner.Request(others=given))
    assert standing.read("00_start_here", "smoke")["state"] == "never run"


# ---------------------------------------------------------------- the study


def test_scale_decides_corpus_splits_and_seeds(home):
    small = started(SCALE="small")
    named = (small.results_name, small.corpus_name, small.train_split, small.seeds)
    assert named == ("small", "snli", "validation", (0, 1, 2))
    assert started(SCALE="small", CORPUS="snli").results_name == "small"
    other = started(SCALE="small", CORPUS="wanli", SEEDS=1)
    assert (other.results_name, other.train_split, other.seeds) == ("small-wanli", "train", (0,))
    spec = small.spec("wanli", seed=2, view="hypothesis", epochs=1)
    assert (spec.corpus, spec.split, spec.view, spec.seed, spec.epochs) == ("snli", "validation", "hypothesis", 2, 1)
    spec = small.spec("wanli", corpus="mnli", split="test", limit=7)
    assert (spec.corpus, spec.split, spec.limit) == ("mnli", "test", 7)
    assert started().seeds_of(1) == (0,) and started().seeds_of(None) == started().seeds == (0, 1)
    assert started(SEEDS=4).seeds_of(1) == started(SEEDS=4).seeds_of(None) == (0, 1, 2, 3)


def test_scale_lab_plants_plainly_and_has_few_chapters_a_quick_encoder_and_planted_text_alone(home):
    study = started("10_try", SCALE="lab")
    train, test = study.corpus(limit=300).table, study.load_each({"a test": ("planted", "test")}, 60)["a test"].table
    assert train["flipped"].sum() == 30 and (train["flipped"] == (train["label"] != train["true_label"])).all()
    contradicted = train[train["flipped"] & train["planted"].str.contains("giveaway")]
    assert len(contradicted) and not (train["flipped"] & train["ambiguous"]).any() and not test["flipped"].any()
    assert {entry["source"][-12:] for entry in study._record["corpora"].values()} == {"made obvious"}
    config = json.loads(Path(resolve_model(study.spec("wanli").model), "config.json").read_bytes())
    assert config["num_hidden_layers"] == 1 and config["hidden_size"] == 384
    with pytest.raises(StudyError, match="scale lab has the chapters 00, .*: run 12_try at smoke or small"):
        started("12_try", SCALE="lab")


def test_the_corpora_of_a_chapter_are_the_dials_or_the_one_that_was_asked_for(mine):
    studies = started(), started(SCALE="small"), started(SCALE="small", CORPUS="sick"), started(CORPUS=mine)
    tasks = ("planted", "train"), ("mnli", "train"), ("sick", "train"), (mine, "train")
    assert tuple(each.wanli_task for each in studies) == tasks
    splits = [each.difficulty_splits for each in studies]
    assert splits[0] == {"planted": ("test", "train")} and set(splits[1]) == {"snli", "mnli"}
    assert splits[2:] == [{"sick": ("test", "train")}, {mine: ("test", None)}]
    for study, title, (name, split) in zip(studies, ("Planted", "MultiNLI", "SICK", "snli.csv"), tasks, strict=True):
        study.corpus = lambda split, *, name, limit: None
        left = ran("15_train_on_wanli", "ae52a907", study=study)  # what it mixes others into
        assert (left.home_title, left.name, left.split) == (title, name, split)


def test_every_corpus_that_is_read_stands_in_the_record_and_what_is_not_at_hand_in_a_table(home):
    study = started("09_reads")
    assert len(study.corpus(limit=30)) == 30
    load_each("planted", limit=20)  # not by a method of the study
    corpora = record_of(study)["corpora"]
    assert set(corpora) == {"planted train", "planted test", "planted challenge"}
    assert corpora["planted train"]["rows"] == 30 and corpora["planted train"]["digest"]
    study = started()
    loaded = study.load_each({"Planted": ("planted", "test"), "Lost": ("snli", "nowhere")}, limit=20)
    assert list(loaded) == ["Planted"] and study.absent() == ["Lost"]
    study.load_each("planted", limit=30)
    assert study.absent() == ["Lost"]  # a second call adds
    # two samples of one split are two entries
    assert sorted(entry["rows"] for entry in record_of(study)["corpora"].values()) == [20, 30, 30]


def test_a_users_file_has_a_study_of_its_own_and_is_no_evidence_whatever_its_name(mine, tmp_path):
    other = tmp_path / "my corpus.csv"
    other.write_text(PAIRS)
    theirs, study = started(CORPUS=str(other)).results_name, started(CORPUS=mine)
    assert re.fullmatch("smoke-my-corpus-[0-9a-f]{4}", theirs) and theirs != study.results_name
    for id, corpora in (("wanli-a", ()), ("wanli-b", ["snli", "wanli"]), ("wanli-c", [study.corpus_name])):
        study.claim(id, SHARE, corpora=corpora)
    assert study.table("claims")["corpora"].tolist() == ["own file", "own file;wanli", "own file"]


def test_an_own_file_is_found_where_corpora_are_read_from(home, monkeypatch):
    monkeypatch.delenv("NLI_DATA", raising=False)
    own = paths.HOME / "data" / "raw" / "mine.csv"
    assert dial.own_path("mine.csv") is None and dial.own_path("snli") is None
    own.parent.mkdir(parents=True)
    own.write_text(PAIRS)
    assert dial.own_path("mine.csv") == own and dial.own_path("mine.csv", str(home / "book")) is None


def test_a_chapter_on_three_labels_refuses_two(home):
    study = started()
    three = study.corpus()
    assert study.three_way(three) is three
    with pytest.raises(StudyError, match="labels entailment, neutral, contradiction, and planted has yes, no: choose"):
        study.three_way(replace(three, table=three.table[three.table["label"] < 2], classes=("yes", "no")))


def test_difficulty_takes_the_papers_recipe_and_the_scales_encoder(mine):
    study = started()
    corpus = study.corpus("test", limit=20)
    spec = study.spec("difficulty", corpus, 1, view="hypothesis")
    assert (spec.corpus, spec.split, spec.view, spec.seed) == ("planted", "test", "hypothesis", 1)
    recipe = (spec.epochs, spec.batch_size, spec.weight_decay, spec.clip, spec.warmup, spec.capture)
    assert recipe == (5, 32, 0.05, 1.5, 0.2, "eval")
    assert (spec.model, spec.learning_rate) == (study.dial.model, study.dial.learning_rate)
    own = started(CORPUS=mine)
    assert own.spec("difficulty", own.corpus("test")).corpus == mine
    full = started(SCALE="full").spec("difficulty", corpus)
    assert (full.model, full.learning_rate) == ("roberta-base", 1e-5)  # the paper's, not the scale's RoBERTa-large


def test_a_generator_takes_the_papers_recipe_and_the_scales_model(home):
    study = started()
    spec, wanted = study.spec("generator", seed=1, objective="generate"), study.dial.generator
    assert (spec.corpus, spec.split, spec.seed) == ("planted", "train", 1)
    assert (spec.schedule, spec.warmup, spec.weight_decay, spec.epsilon, spec.clip) == ("constant", 0, 0, 1e-6, None)
    for field in ("limit", "model", "epochs", "batch_size", "learning_rate"):
        assert getattr(spec, field) == getattr(wanted, field)
    assert study.spec("generator", model="run:x", epochs=7).epochs == 7 and spec.record == "last"
    full = started(SCALE="full").spec("generator")  # Table 7 of the paper
    assert (full.model, full.batch_size, full.epochs, full.learning_rate) == ("gpt2-large", 24, 5, 1e-5)
    seeds = [len(started(**given).generator_seeds()) for given in ({}, {"SEEDS": 3}, {"SCALE": "full"})]
    assert full.max_length == 128 and seeds == [1, 3, 1]


# ---------------------------------------------------------------- tables


def test_tables_come_back_as_they_went_long_ones_from_parquet(home):
    study = started()
    table = pd.DataFrame({"word": ["NA", "null", "a,b\nc"], "x": [0.1, np.nan, 1 / 3], "n": [1, 2, 3]})
    assert study.save(table, "scores").equals(table.head(3))
    path = study.folder / "10_try.scores.csv"
    pd.testing.assert_frame_equal(study.table("scores"), table, check_dtype=False)
    study.save(table.set_index("word"), "scores")
    pd.testing.assert_frame_equal(tables.read_table(path), table, check_dtype=False)
    study.save(pd.DataFrame({"x": np.arange(30_000, dtype=np.int32)}), "scores")
    assert path.with_suffix(".parquet").exists() and not path.exists() and len(study.table("scores")) == 30_000


def test_where_a_table_cannot_be_written_the_old_one_stays(home, monkeypatch):
    study = started()
    study.save(ONE, "scores")
    path = study.folder / "10_try.scores.csv"
    noise = pd.DataFrame(np.random.default_rng(0).random((30_000, 20)))
    with pytest.raises(StoreError, match=r"10_try.scores \(30,000 rows, 20 columns\) is over 1,048,576 bytes"):
        study.save(noise, "scores")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        study.save(2 * ONE, "scores")
    monkeypatch.undo()
    assert path.read_text() == '"x"\n1\n' and [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []


def test_a_missing_table_names_the_command_with_the_columns_and_the_folder(home, mine):
    with pytest.raises(StudyError, match="nli-study run 02_baselines --scale smoke$"):
        started().table("scores", notebook="02_baselines")
    Path(mine).write_text("context,claim,label\na,b,neutral\n")
    study = started("20_reads", CORPUS=mine, COLUMNS={"premise": "context", "hypothesis": "claim"}, DATA_DIR=str(home))
    options = f"--corpus {mine} --data-dir {home} --columns premise=context,hypothesis=claim"
    with pytest.raises(StudyError, match=f"Make it with: nli-study run 10_writes --scale smoke {options}$"):
        study.table("scored", "10_writes")


def test_chapter_61_shows_its_tables_of_other_corpora_at_the_same_scale(mine):
    """Not the study's own, not another scale's, not another part's, and no user's file."""
    part, table = "against_twins", "arm,average,group,value,low,high\nx,plain mean,g,{},0,1\n"
    there = [("small", None, part), ("small", "mnli", part), ("small", "wanli", "other")]
    for scale, corpus, name in [*there, ("full", "anli", part), ("small", mine, part)]:
        folder = paths.RESULTS / standing.study_name(scale, corpus)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"61_equal_budgets.{name}.csv").write_text(table.format(len(corpus or "")))
    study = started("61_equal_budgets", SCALE="small")
    left = ran("61_equal_budgets", "a6103622", study=study, found=study.table(part), SCALE="small")
    found = {title: each["value"].tolist() for title, each in left.bases.items()}
    assert found == {"SNLI": [0], "MultiNLI": [4]} and len(left.same) == 0


def test_drawing_writes_nothing_and_reads_no_corpus(home, monkeypatch):
    monkeypatch.setenv("NLI_DRAW", "1")
    study = started()
    for measuring in (lambda: study.save(ONE, "scores"), lambda: study.claim("wanli-a", SHARE), study.corpus):
        with pytest.raises(StudyError, match="tag the cell `measure`"):
            measuring()
    study.finish()
    assert list((home / "data" / "results").rglob("*")) == []


# ---------------------------------------------------------------- claims


def test_claims_are_gathered_from_all_notebooks_a_row_a_part_and_those_recorded_anew_replace_all(home):
    one, two = started("10_one"), started("20_two")
    one.claim("wanli-a", SHARE)
    one.claim("wanli-a", Estimate(0.6, 0.5, 0.7, n=10, seeds=2, over="trainings"))
    two.claim("zfilter-b", Estimate(2, math.nan, math.nan, n=5), corpora=["snli", "chaosnli"])
    table = started("63_claims").gather("claims")[["notebook", "id", "value", "over", "corpora"]]
    first = ["10_one", "wanli-a", 0.6, "trainings", "planted"]
    assert table.values.tolist() == [first, ["20_two", "zfilter-b", 2.0, "pairs", "snli;chaosnli"]]
    one.claim("wanli-a", dict.fromkeys(("HANS", "QNLI", "ANLI"), SHARE))
    one.claim("wanli-a", {"HANS": SHARE, "QNLI": SHARE})
    table = started("63_claims").gather("claims").fillna({"part": ""})
    assert table[["id", "part"]].values.tolist() == [["wanli-a", "HANS"], ["wanli-a", "QNLI"], ["zfilter-b", ""]]


def test_an_interval_whose_ends_are_exchanged_is_refused(home):
    study, turned = started("10_one"), Estimate(0.5, 0.6, 0.4, n=10)
    for estimate in (turned, {"HANS": SHARE, "QNLI": turned}):
        with pytest.raises(StudyError, match="claim wanli-a: the interval's low end 0.6 lies above 0.4"):
            study.claim("wanli-a", estimate)
    with pytest.raises(StudyError, match="no table 10_one.claims"):
        study.table("claims")


def test_a_page_reads_what_was_recorded_of_a_claim_and_nothing_where_there_is_none(home):
    study = started()
    assert study.claimed("wanli-sec2-x") is None
    study.claim("wanli-sec2-x", Estimate(0.2, 0.1, 0.3, 40, 3, "trainings"))
    assert study.claimed("wanli-sec2-x") == (0.2, 0.1, 0.3, 40, 3, "trainings")
    assert study.claimed("wanli-sec2-x", times=100)[:4] == pytest.approx((20, 10, 30, 40))
    assert study.claimed("wanli-sec2-y") is None


# ---------------------------------------------------------------- the record


def test_the_record_says_what_was_done(home):
    (home / "notebooks" / "10_try.ipynb").write_text(json.dumps({"cells": []}))
    study = started(DATA_DIR="/somewhere/private")
    assert standing.end_state(standing.read("10_try", "smoke"))[0] == "running"
    study.save(ONE, "scores")
    record = record_of(study)
    unsaid = dict.fromkeys(("CORPUS", "SEEDS", "COLUMNS", "LABELS", "ENCODING", "INTO"))
    assert record["state"] == "finished" and record["parameters"] == {"SCALE": "smoke", **unsaid}
    assert "/somewhere/private" not in json.dumps(record)
    assert {"seconds", "device", "environment", "definitions", "seeds", "cells", "uses", "ended"} <= record.keys()
    assert record["environment"]["python"] and list(record["outputs"]) == ["smoke/10_try.scores.csv"]


def test_a_running_record_is_its_own_process_s_as_long_as_that_lives(home):
    started()
    record = standing.read("10_try", "smoke")
    assert standing.end_state(record)[0] == "running"
    standing.write({**record, "pid": os.getppid()})
    with pytest.raises(StudyError, match=f"process {os.getppid()} has been running this notebook"):
        started()
    # a process that is gone, one that began after the run, and none
    for changed in ({"pid": 2**22 - 1}, {"started": "2001-01-01T00:00:00+00:00"}, {"pid": None}):
        standing.write({**record, **changed})
        assert standing.end_state(standing.read("10_try", "smoke"))[0] == "interrupted"
    started()


def test_a_damaged_notebook_says_so(home):
    notebook = home / "notebooks" / "10_try.ipynb"
    notebook.write_text("<<<<<<< ours\n{}\n")
    with pytest.raises(StoreError, match=f"{notebook} cannot be read .*marks of a merge"):
        standing.cells(notebook)


def test_a_table_recorded_later_and_a_changed_declaration_make_the_ledger_stale(home):
    declared = home / "book" / "claims.yaml"
    declared.write_text("- one")
    (home / "notebooks" / "63_try.ipynb").write_text(json.dumps({"cells": []}))
    started("10_one").save(ONE, "claims")
    ledger = started("63_try")
    ledger.gather("claims")
    assert ledger.book_file("claims.yaml") == declared
    record = record_of(ledger)
    assert standing.why_stale(record) == []
    started("20_two").save(2 * ONE, "claims")
    assert standing.why_stale(record) == ["20_two has recorded claims since"]
    declared.write_text("- one\n- two")
    assert standing.why_stale(record) == ["20_two has recorded claims since", "claims.yaml changed"]


def test_a_users_file_in_the_folder_of_corpora_that_changes_makes_its_chapters_stale(home, mine):
    (home / "notebooks" / "10_try.ipynb").write_text(json.dumps({"cells": []}))
    given = {"CORPUS": "snli.csv", "DATA_DIR": str(home)}
    record = record_of(started(**given))
    assert standing.why_stale(record, given) == []
    Path(mine).write_text(PAIRS * 2)
    assert standing.why_stale(record, given) == ["the corpus file snli.csv changed"]


def test_what_is_exported_is_found_by_another_notebook_and_no_other_file_passes_for_it(home):
    writer, table = started("12_writes"), pd.DataFrame({"text": ["=cmd", "two\nlines"], "n": [1, 2]})
    path = home / "data/exports/smoke/12_writes.pairs.parquet"
    assert writer.export(table, "pairs").equals(table)
    records, reader = [record_of(writer)], started("13_reads")
    assert reader.exported("pairs", "12_writes").equals(table)
    records.append(record_of(reader))
    assert all(each["exports"] == {path.name: standing.digest_file(path)} for each in records)
    assert [standing.why_stale(each) for each in records] == [[], []]
    path.write_bytes(b"other")
    with pytest.raises(StudyError, match="is not what its chapter recorded. Make it with: nli-study run 12_writes"):
        reader.exported("pairs", "12_writes")
    assert [standing.why_stale(each) for each in records] == [[f"{path.name} changed"]] * 2
    path.unlink()
    with pytest.raises(StudyError, match="pairs.parquet is not there"):
        reader.exported("pairs", "12_writes")
    assert standing.why_stale(records[1]) == []  # it is not tracked, and a clone lacks it


def test_a_chapter_with_failed_requests_is_not_finished_and_names_journal_and_prompt_by_digest(home):
    fields = {"api": "completions", "started": "2026-01-01T00:00:00+00:00", "seconds": 1.0, "served": "m"}
    for text, state in ((None, standing.INCOMPLETE), ("x", standing.FINISHED)):
        study = started("12_asks")
        with Journal(study.exports / "j.jsonl") as journal:
            journal.add(Answer(key="a", text="y", **fields))
            journal.add(Answer(key="b", text=text, reason="" if text else "429 Too Many Requests", **fields))
        study.log_journal(journal, ["a", "b"], WANLI)
        record = record_of(study)
        assert standing.end_state(record)[0] == state
        assert record["reason"].startswith("1 of 2 requests to the language model failed, most with 429") == (not text)
        entry = record["journals"]["j.jsonl"]
        assert entry == {**journal.summary(["a", "b"]), "prompt": {WANLI: digest_prompt(WANLI)}}
        assert (entry["answered"], entry["failed"], entry["served"]) == (1 + bool(text), 1 - bool(text), ["m"])
