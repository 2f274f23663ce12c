"""Strict parameters, whole tables, prose without gaps, an honest record. Alone: pytest tests/study/test_notebook.py"""

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
from hypothesis import given
from hypothesis import strategies as st

from nli_lib import paths, tables
from nli_lib.generate.journal import Answer, Journal
from nli_lib.generate.pairs import WANLI, digest_prompt
from nli_lib.stats import Estimate
from nli_lib.store import StoreError
from nli_lib.study import StudyError, begin, dial, runner, standing
from nli_lib.study.dial import ParameterError, check
from nli_lib.study.notebook import fill


def started(namespace=None, name="10_try", **more):
    return begin(name, {"SCALE": "smoke", **(namespace or {})}, **more)


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"SCALE": "smal"}, """SCALE: Input should be 'smoke', 'small' or 'full', got "smal"; did you mean "small"?"""),
        ({"SEEDS": "two"}, 'SEEDS: Input should be a valid integer, got "two"'),
        ({"SEEDS": "3"}, 'SEEDS: Input should be a valid integer, got "3"'),
        ({"SEEDS": 0}, "SEEDS: Input should be greater than or equal to 1, got 0"),
        ({"SEEDS": 21}, "SEEDS: Input should be less than or equal to 20, got 21"),
        ({"SEEDS": True}, "SEEDS: Input should be a valid integer, got True"),
        ({"SEEDS": 2.0}, "got 2.0"),
        (
            {"SEDS": 2},
            'SEDS: no such parameter; did you mean "SEEDS"? (allowed: SCALE, SEEDS, DATA_DIR, CORPUS, COLUMNS, ',
        ),
        ({"CORPUS": "snil"}, 'did you mean "snli"?'),
        ({"CORPUS": "nowhere.csv"}, "no such file: nowhere.csv"),
        ({"CORPUS": 3}, "CORPUS: Input should be a valid string, got 3"),
        ({"K": 200}, "K: Input should be less than or equal to 100, got 200"),
        ({"MODE": "evl"}, """MODE: Input should be 'eval' or 'train', got "evl"; did you mean "eval"?"""),
        ({"RATE": 2.0}, "RATE: Input should be less than or equal to 1, got 2.0"),
        ({"RATE": math.nan}, "RATE: Input should be"),
        ({"LONG": 1}, "LONG: Input should be a valid boolean, got 1"),
    ],
)
def test_wrong_parameters_are_named(given, said):
    extra = {"K": (1, 100), "MODE": ["eval", "train"], "RATE": (0.0, 1.0), "LONG": bool}
    extra = {name: rule for name, rule in extra.items() if name in given}
    with pytest.raises(ParameterError) as caught:
        check(given, extra)
    assert said in str(caught.value)


def test_every_problem_is_told_at_once():
    with pytest.raises(ParameterError) as caught:
        check({"SCALE": "tiny", "SEEDS": "two", "SEDS": 1})
    assert len(str(caught.value).splitlines()) == 3


def test_a_declared_parameter_must_be_set():
    with pytest.raises(ParameterError, match="K: declared, but the parameters cell does not set it"):
        check({}, {"K": (1, 2)})


def test_defaults_and_fine_values():
    assert check({}) == dial.Parameters().model_dump()
    assert check({"SEEDS": 20, "RATE": 1}, {"RATE": (0.0, 1.0)})["RATE"] == 1


@given(st.one_of(st.text(), st.floats(), st.lists(st.integers()), st.integers(max_value=0), st.integers(min_value=21)))
def test_no_value_passes_for_seeds_but_small_whole_numbers(value):
    with pytest.raises(ParameterError, match="^SEEDS: Input should be"):
        check({"SEEDS": value})


def test_the_message_comes_without_a_traceback():
    assert ParameterError("SEEDS: wrong")._render_traceback_() == ["ParameterError: SEEDS: wrong"]


def test_begin_again_leaves_the_notebooks_own_names_alone(home):
    namespace = {"SCALE": "smoke", "In": [], "Out": {}, "_private": 1, "module": os}
    begin("10_try", namespace)
    namespace["rows"] = [1, 2]
    namespace["SEEDS"] = 1
    assert begin("10_try", namespace).params["SCALE"] == "smoke"


# ---------------------------------------------------------------- the study


def test_scale_decides_corpus_splits_and_seeds(home):
    small = begin("10_try", {"SCALE": "small"})
    named = (small.results_name, small.corpus_name, small.train_split, small.seeds)
    assert named == ("small", "snli", "validation", (0, 1, 2))
    assert begin("10_try", {"SCALE": "small", "CORPUS": "snli"}).results_name == "small"
    other = begin("10_try", {"SCALE": "small", "CORPUS": "wanli", "SEEDS": 1})
    assert (other.results_name, other.train_split, other.seeds) == ("small-wanli", "train", (0,))
    spec = small.spec("wanli", seed=2, view="hypothesis", epochs=1)
    assert (spec.corpus, spec.split, spec.view, spec.seed, spec.epochs) == ("snli", "validation", "hypothesis", 2, 1)
    spec = small.spec("wanli", corpus="mnli", split="test", limit=7)
    assert (spec.corpus, spec.split, spec.limit) == ("mnli", "test", 7)


def test_tables_of_other_corpora_at_the_same_scale_are_found(home, tmp_path):
    """Not the study's own, not another scale's, not another part's, and no user's file."""
    mine = tmp_path / "mine.csv"
    mine.write_text("premise,hypothesis,label\n")
    for scale, corpus, part in (
        ("small", None, "gains"),
        ("small", "mnli", "gains"),
        ("small", "wanli", "other"),
        ("full", "anli", "gains"),
        ("small", str(mine), "gains"),
    ):
        folder = paths.RESULTS / standing.study_name(scale, corpus)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"10_try.{part}.csv").write_text(f"value\n{len(corpus or '')}\n")
    found = begin("10_try", {"SCALE": "small"}).elsewhere("gains")
    assert {title: table["value"].tolist() for title, table in found.items()} == {"MultiNLI": [4]}


def test_a_users_file_has_a_study_of_its_own(home, tmp_path):
    names = []
    for folder in ("one", "two"):
        path = tmp_path / folder / "my corpus.csv"
        path.parent.mkdir()
        path.write_text("premise,hypothesis,label\n")
        names.append(started({"CORPUS": str(path)}).results_name)
    assert all(re.fullmatch("smoke-my-corpus-[0-9a-f]{4}", name) for name in names)
    assert names[0] != names[1]


def test_corpus_is_limited_by_the_scale_and_recorded(home):
    study = started()
    assert len(study.corpus(limit=30)) == 30
    study.finish()
    entry = standing.read("10_try", "smoke")["corpora"]["planted train"]
    assert entry["rows"] == 30
    assert entry["digest"]


# ---------------------------------------------------------------- tables


def test_tables_come_back_as_they_went(home):
    study = started()
    table = pd.DataFrame({"word": ["NA", "null", "a,b\nc"], "x": [0.1, np.nan, 1 / 3], "n": [1, 2, 3]})
    path = study.save(table, "scores")
    assert path.name == "10_try.scores.csv"
    pd.testing.assert_frame_equal(study.table("scores"), table, check_dtype=False)
    by_word = study.save(table.set_index("word"), "scores")
    pd.testing.assert_frame_equal(tables.read_table(by_word), table, check_dtype=False)


def test_long_tables_become_parquet_and_replace_the_csv(home):
    study = started()
    study.save(pd.DataFrame({"x": [1]}), "scores")
    path = study.save(pd.DataFrame({"x": np.arange(30_000, dtype=np.int32)}), "scores")
    assert path.suffix == ".parquet"
    assert not path.with_suffix(".csv").exists()
    assert len(study.table("scores")) == 30_000


def test_a_table_over_a_megabyte_is_refused_and_the_old_one_stays(home):
    study = started()
    study.save(pd.DataFrame({"x": [1]}), "scores")
    noise = np.random.default_rng(0).random((30_000, 20))
    with pytest.raises(StoreError, match=r"10_try.scores \(30,000 rows, 20 columns\) is over 1,048,576 bytes"):
        study.save(pd.DataFrame(noise), "scores")
    assert len(study.table("scores")) == 1


def test_a_failing_write_leaves_the_old_table(home, monkeypatch):
    study = started()
    path = study.save(pd.DataFrame({"x": [1]}), "scores")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        study.save(pd.DataFrame({"x": [2]}), "scores")
    monkeypatch.undo()
    assert path.read_text() == '"x"\n1\n'
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []


def test_a_missing_table_names_the_command(home):
    with pytest.raises(StudyError, match="nli-study run 02_baselines --scale smoke"):
        started().table("scores", notebook="02_baselines")


def test_drawing_writes_nothing_and_reads_no_corpus(home, monkeypatch):
    monkeypatch.setenv("NLI_DRAW", "1")
    study = started()
    for measuring in (
        lambda: study.save(pd.DataFrame({"x": [1]}), "scores"),
        lambda: study.claim("wanli-a", Estimate(0.5, 0.4, 0.6, 10)),
        lambda: study.corpus(),
    ):
        with pytest.raises(StudyError, match="tag the cell `measure`"):
            measuring()
    study.finish()
    assert list((home / "data" / "results").rglob("*")) == []


def test_claims_are_gathered_from_all_notebooks(home):
    one, two = started(name="10_one"), started(name="20_two")
    one.claim("wanli-a", Estimate(0.5, 0.4, 0.6, n=10, seeds=2))
    one.claim("wanli-a", Estimate(0.6, 0.5, 0.7, n=10, seeds=2, over="trainings"))
    two.claim("zfilter-b", Estimate(2, math.nan, math.nan, n=5), corpora=["snli", "chaosnli"])
    table = started(name="63_claims").gather("claims")
    assert table[["notebook", "id", "value", "over", "corpora"]].values.tolist() == [
        ["10_one", "wanli-a", 0.6, "trainings", "planted"],
        ["20_two", "zfilter-b", 2.0, "pairs", "snli;chaosnli"],
    ]


def test_a_claim_in_parts_is_a_row_a_part_and_recorded_anew_replaces_them_all(home):
    one, two = started(name="10_one"), started(name="20_two")
    estimate = Estimate(0.5, 0.4, 0.6, n=10, seeds=2)
    one.claim("wanli-a", dict.fromkeys(("HANS", "QNLI", "ANLI"), estimate))
    one.claim("wanli-a", {"HANS": estimate, "QNLI": estimate})
    two.claim("wanli-b", estimate)
    table = started(name="63_claims").gather("claims").fillna("")
    assert table[["id", "part"]].values.tolist() == [["wanli-a", "HANS"], ["wanli-a", "QNLI"], ["wanli-b", ""]]
    with pytest.raises(StudyError, match="claim wanli-a: the interval's low end 0.6 lies above 0.4"):
        one.claim("wanli-a", {"HANS": estimate, "QNLI": Estimate(0.5, 0.6, 0.4, n=10)})


def test_an_interval_whose_ends_are_exchanged_is_refused(home):
    study = started(name="10_one")
    with pytest.raises(StudyError, match="claim wanli-a: the interval's low end 0.6 lies above 0.4"):
        study.claim("wanli-a", Estimate(0.5, 0.6, 0.4, n=10))
    with pytest.raises(StudyError, match="no table 10_one.claims"):
        study.table("claims")


def test_a_users_file_is_no_evidence_whatever_its_name(home):
    mine = home / "snli.csv"
    mine.write_text("premise,hypothesis,label\nA dog.,A cat.,neutral\n")
    study = started({"CORPUS": str(mine)})
    for id, corpora in (("wanli-a", None), ("wanli-b", ["snli", "wanli"]), ("wanli-c", [study.corpus_name])):
        study.claim(id, Estimate(0.5, 0.4, 0.6, n=10), corpora=corpora)
    assert study.table("claims")["corpora"].tolist() == ["own file", "own file;wanli", "own file"]


def test_every_corpus_that_is_read_stands_in_the_record(home):
    from nli_lib.corpora.suites import load_each

    study = started()
    load_each("planted", limit=20)  # not by a method of the study
    study.finish()
    assert set(standing.read("10_try", "smoke")["corpora"]) == {"planted test", "planted challenge"}


def test_what_is_not_at_hand_stands_in_a_table(home):
    study = started()
    loaded = study.load_each({"Planted": ("planted", "test"), "Lost": ("snli", "nowhere")}, limit=20)
    assert list(loaded) == ["Planted"]
    assert study.absent() == ["Lost"]
    study.load_each("planted", limit=30)
    assert study.absent() == ["Lost"]  # a second call adds
    study.finish()
    corpora = standing.read("10_try", "smoke")["corpora"]
    rows = sorted(entry["rows"] for entry in corpora.values())
    assert rows == [20, 30, 30]  # two samples of one split are two entries


# ---------------------------------------------------------------- the record


def test_the_record_says_what_was_done(home):
    (home / "notebooks" / "10_try.ipynb").write_text(json.dumps({"cells": []}))
    study = started({"DATA_DIR": "/somewhere/private"})
    assert standing.end_state(standing.read("10_try", "smoke"))[0] == "running"
    study.save(pd.DataFrame({"x": [1]}), "scores")
    study.finish()
    record = standing.read("10_try", "smoke")
    assert record["state"] == "finished"
    unsaid = dict.fromkeys(("CORPUS", "SEEDS", "COLUMNS", "LABELS", "ENCODING"))
    assert record["parameters"] == {"SCALE": "smoke", **unsaid}
    assert "/somewhere/private" not in json.dumps(record)
    assert {"seconds", "device", "environment", "definitions", "seeds", "cells", "uses", "ended"} <= record.keys()
    assert record["environment"]["python"]
    assert list(record["outputs"]) == ["smoke/10_try.scores.csv"]


def test_a_second_process_is_told_of_the_first(home):
    started()
    record = standing.read("10_try", "smoke")
    standing.write({**record, "pid": os.getppid()})
    with pytest.raises(StudyError, match=f"process {os.getppid()} has been running this notebook"):
        started()


def test_a_running_record_whose_process_is_gone_was_interrupted(home):
    started()
    record = standing.read("10_try", "smoke")
    standing.write({**record, "pid": 2**22 - 1})
    assert standing.end_state(standing.read("10_try", "smoke"))[0] == "interrupted"
    started()


def test_a_process_that_began_after_the_run_is_not_its_own(home):
    started()
    record = standing.read("10_try", "smoke")
    assert standing.end_state(record)[0] == "running"
    assert standing.end_state({**record, "started": "2001-01-01T00:00:00+00:00"})[0] == "interrupted"
    assert standing.end_state({**record, "pid": None})[0] == "interrupted"


def test_a_notebook_with_the_marks_of_a_merge_is_named(home):
    path = home / "notebooks" / "10_try.ipynb"
    path.write_text("<<<<<<< ours\n{}\n")
    with pytest.raises(StoreError, match=f"{path} cannot be read .*marks of a merge"):
        standing.cells(path)


@pytest.mark.parametrize(("text", "said"), [("{half", "Expecting property name"), ("[1]", "not a mapping")])
def test_a_damaged_record_says_so(home, text, said):
    path = standing.record_path("10_try", "smoke")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    state, reason = standing.end_state(standing.read("10_try", "smoke"))
    assert state == "unreadable"
    assert str(path) in reason and said in reason and "delete it and run the notebook again" in reason


# ---------------------------------------------------------------- what the difficulty paper sorts


def test_the_splits_to_sort_are_the_scales_or_the_corpus_that_was_asked_for(home):
    assert started().difficulty_splits == {"planted": ("test", "train")}
    assert set(begin("10_try", {"SCALE": "small"}).difficulty_splits) == {"snli", "mnli"}
    assert begin("10_try", {"SCALE": "small", "CORPUS": "sick"}).difficulty_splits == {"sick": ("test", "train")}
    mine = home / "mine.csv"
    mine.write_text("premise,hypothesis,label\nA dog.,A cat.,neutral\n")
    assert begin("10_try", {"CORPUS": str(mine)}).difficulty_splits == {str(mine): ("test", None)}


def test_what_others_are_mixed_into_is_the_dials_or_what_was_asked_for(home, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("premise,hypothesis,label\n")
    assert started().mixing_base == ("Planted", "planted", "train")
    assert begin("10_try", {"SCALE": "small"}).mixing_base == ("MultiNLI", "mnli", "train")
    assert begin("10_try", {"SCALE": "small", "CORPUS": "sick"}).mixing_base == ("SICK", "sick", "train")
    assert begin("10_try", {"CORPUS": str(mine)}).mixing_base == ("mine.csv", str(mine), "train")


def test_difficulty_takes_the_papers_recipe_and_the_scales_encoder(home):
    study = started()
    corpus = study.corpus("test", limit=20)
    spec = study.spec("difficulty", corpus, 1, view="hypothesis")
    assert (spec.corpus, spec.split, spec.view, spec.seed) == ("planted", "test", "hypothesis", 1)
    recipe = (spec.epochs, spec.batch_size, spec.weight_decay, spec.clip, spec.warmup, spec.capture)
    assert recipe == (5, 32, 0.05, 1.5, 0.2, "eval")
    assert (spec.model, spec.learning_rate) == (study.dial.model, study.dial.learning_rate)
    mine = home / "mine.csv"
    mine.write_text("premise,hypothesis,label\nA dog.,A cat.,neutral\n")
    own = begin("10_try", {"CORPUS": str(mine)})
    assert own.spec("difficulty", own.corpus("test")).corpus == str(mine)
    full = begin("10_try", {"SCALE": "full"}).spec("difficulty", corpus)
    assert (full.model, full.learning_rate) == ("roberta-base", 1e-5)  # the paper's, not the scale's RoBERTa-large


def test_a_generator_takes_the_papers_recipe_and_the_scales_model(home):
    study = started()
    spec, wanted = study.spec("generator", seed=1, objective="generate"), study.dial.generator
    assert (spec.corpus, spec.split, spec.limit, spec.seed) == ("planted", "train", wanted.limit, 1)
    assert (spec.schedule, spec.warmup, spec.weight_decay, spec.epsilon, spec.clip) == ("constant", 0, 0, 1e-6, None)
    chosen = (spec.model, spec.epochs, spec.batch_size, spec.learning_rate)
    assert chosen == (wanted.model, wanted.epochs, wanted.batch_size, wanted.learning_rate)
    assert study.spec("generator", model="run:x", epochs=7).epochs == 7 and spec.record == "last"
    assert study.generator_seeds() == (0,)
    assert begin("10_try", {"SEEDS": 3}).generator_seeds() == (0, 1, 2)
    full = begin("10_try", {"SCALE": "full"}).spec("generator")  # Table 7 of the paper
    assert (full.model, full.batch_size, full.epochs, full.learning_rate) == ("gpt2-large", 24, 5, 1e-5)
    assert full.max_length == 128 and begin("10_try", {"SCALE": "full"}).generator_seeds() == (0, 1, 2, 3, 4)


# ---------------------------------------------------------------- what a ledger rests on


def test_a_table_recorded_later_and_a_changed_declaration_make_the_ledger_stale(home):
    (home / "book" / "claims.yaml").write_text("- one")
    (home / "notebooks" / "63_try.ipynb").write_text(json.dumps({"cells": []}))
    first = started(name="10_one")
    first.save(pd.DataFrame({"x": [1]}), "claims")
    ledger = started(name="63_try")
    ledger.gather("claims")
    assert ledger.book_file("claims.yaml") == home / "book" / "claims.yaml"
    ledger.finish()
    record = standing.read("63_try", "smoke")
    assert standing.why_stale(record) == []
    started(name="20_two").save(pd.DataFrame({"x": [2]}), "claims")
    assert standing.why_stale(record) == ["20_two has recorded claims since"]
    (home / "book" / "claims.yaml").write_text("- one\n- two")
    assert standing.why_stale(record) == ["20_two has recorded claims since", "claims.yaml changed"]


def test_a_users_file_in_the_folder_of_corpora_that_changes_makes_its_chapters_stale(home, tmp_path):
    (home / "notebooks" / "10_try.ipynb").write_text(json.dumps({"cells": []}))
    file = tmp_path / "corpora" / "mine.csv"
    file.parent.mkdir()
    file.write_text("premise,hypothesis,label\n")
    given = {"CORPUS": "mine.csv", "DATA_DIR": str(file.parent)}
    study = started(given, name="10_try")
    study.finish()
    record = standing.read("10_try", study.results_name)
    assert standing.why_stale(record, given) == []
    file.write_text("premise,hypothesis,label\na,b,entailment\n")
    assert standing.why_stale(record, given) == ["the corpus file mine.csv changed"]


def test_the_command_that_makes_a_table_names_the_columns_and_the_folder(home, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("context,claim,label\na,b,neutral\n")
    given = {"CORPUS": str(mine), "COLUMNS": {"premise": "context", "hypothesis": "claim"}, "DATA_DIR": str(tmp_path)}
    with pytest.raises(StudyError) as caught:
        started(given, name="20_reads").table("scored", "10_writes")
    options = f"--corpus {mine} --data-dir {tmp_path} --columns premise=context,hypothesis=claim"
    assert str(caught.value).endswith(f"Make it with: nli-study run 10_writes --scale smoke {options}")


def test_what_is_exported_is_found_by_another_notebook_and_no_other_file_passes_for_it(home):
    writer, table = started(name="12_writes"), pd.DataFrame({"text": ["=cmd", "two\nlines"], "n": [1, 2]})
    path = writer.export(table, "pairs")
    writer.finish()
    assert path == home / "data/exports/smoke/12_writes.pairs.parquet"
    reader = started(name="13_reads")
    assert reader.exported("pairs", "12_writes").equals(table)
    reader.finish()
    digest = standing.digest_file(path)
    for name in ("12_writes", "13_reads"):
        assert standing.read(name, "smoke")["exports"] == {path.name: digest}
        assert standing.why_stale(standing.read(name, "smoke")) == []
    path.write_bytes(b"other")
    with pytest.raises(StudyError, match="is not what its chapter recorded. Make it with: nli-study run 12_writes"):
        reader.exported("pairs", "12_writes")
    for name in ("12_writes", "13_reads"):
        assert standing.why_stale(standing.read(name, "smoke")) == [f"{path.name} changed"]
    path.unlink()
    with pytest.raises(StudyError, match="pairs.parquet is not there"):
        reader.exported("pairs", "12_writes")
    assert standing.why_stale(standing.read("13_reads", "smoke")) == []  # it is not tracked, and a clone lacks it


def test_the_record_names_journal_and_prompt_by_digest(home):
    study = started(name="12_asks")
    fields = {"api": "completions", "started": "2026-01-01T00:00:00+00:00", "seconds": 1.0, "served": "m"}
    with Journal(study.exports / "j.jsonl") as journal:
        journal.add(Answer(key="a", text="x", **fields))
        journal.add(Answer(key="b", text=None, reason="busy", **fields))
    study.log_journal(journal, ["a", "b"], WANLI)
    study.finish()
    entry = standing.read("12_asks", "smoke")["journals"]["j.jsonl"]
    assert entry == {**journal.summary(["a", "b"]), "prompt": {WANLI: digest_prompt(WANLI)}}
    assert (entry["answered"], entry["failed"], entry["served"]) == (1, 1, ["m"])


def test_a_chapter_with_failed_requests_is_not_finished_until_they_are_answered(home):
    fields = {"api": "completions", "started": "2026-01-01T00:00:00+00:00", "seconds": 1.0}
    for text, state in ((None, standing.INCOMPLETE), ("x", standing.FINISHED)):
        study = started(name="12_asks")
        with Journal(study.exports / "j.jsonl") as journal:
            journal.add(Answer(key="a", text="y", **fields))
            journal.add(Answer(key="b", text=text, reason="" if text else "429 Too Many Requests", **fields))
        study.log_journal(journal, ["a", "b"], WANLI)
        study.finish()
        record = standing.read("12_asks", "smoke")
        assert standing.end_state(record)[0] == state
        assert record["reason"].startswith("1 of 2 requests to the language model failed, most with 429") == (not text)


def test_the_task_model_learns_the_dials_corpus_or_the_one_that_was_asked_for(home):
    assert started(name="11_a").wanli_task == ("planted", "train")
    assert begin("11_b", {"SCALE": "small"}).wanli_task == ("mnli", "train")
    assert begin("11_c", {"SCALE": "small", "CORPUS": "wanli"}).wanli_task == ("wanli", "train")


def test_a_page_reads_what_was_recorded_of_a_claim_and_nothing_where_there_is_none(home):
    study = begin("10_try", {"SCALE": "smoke"})
    assert study.claimed("wanli-sec2-x") is None
    study.claim("wanli-sec2-x", Estimate(0.2, 0.1, 0.3, 40, 3, "trainings"))
    assert study.claimed("wanli-sec2-x") == (0.2, 0.1, 0.3, 40, 3, "trainings")
    assert study.claimed("wanli-sec2-x", times=100)[:4] == pytest.approx((20, 10, 30, 40))
    assert study.claimed("wanli-sec2-y") is None


def test_an_own_file_is_found_where_corpora_are_read_from(home, monkeypatch):
    monkeypatch.delenv("NLI_DATA", raising=False)
    raw = paths.HOME / "data" / "raw"
    raw.mkdir(parents=True)
    assert dial.own_path("mine.csv") is None and dial.own_path("snli") is None
    (raw / "mine.csv").write_text("premise,hypothesis,label\n")
    assert dial.own_path("mine.csv") == raw / "mine.csv"
    other = home / "other"
    other.mkdir()
    assert dial.own_path("mine.csv", str(other)) is None


# ---------------------------------------------------------------- parts of the study


def test_seeds_are_those_asked_for_then_the_dials_own_then_the_scales():
    assert started().seeds_of(1) == (0,) and started().seeds_of(None) == started().seeds == (0, 1)
    assert started({"SEEDS": 4}).seeds_of(1) == started({"SEEDS": 4}).seeds_of(None) == (0, 1, 2, 3)


def test_a_chapter_on_three_labels_refuses_two():
    study = started()
    three = study.corpus()
    assert study.three_way(three) is three
    with pytest.raises(StudyError, match="labels entailment, neutral, contradiction, and planted has yes, no: choose"):
        study.three_way(replace(three, table=three.table[three.table["label"] < 2], classes=("yes", "no")))


def test_one_format_writes_an_interval():
    gap = {"value": 0.0123, "low": -0.0004, "high": 0.03}
    want = "gap +1.2% [0.0%, +3.0%]"
    for said in (gap, pd.Series(gap), Estimate(*gap.values(), n=3)):
        assert fill("gap {gap:ci+.1%}", {"gap": said}) == want
    with pytest.raises(StudyError, match="no such number"):
        fill("{gap:ci.2f}", {"gap": {**gap, "low": float("nan")}})


# ---------------------------------------------------------------- knobs


KNOBS = {"THRESHOLD": "consensus.threshold", "COMPARED": "wanli.compared"}


def turned(**values):
    return begin("10_try", {"THRESHOLD": None, "COMPARED": None, **values}, knobs=KNOBS)


def test_a_knob_that_is_not_turned_leaves_the_dials_value_and_the_studys_folder(home):
    study = turned()
    assert study.dial.consensus.threshold == dial.read_scale("smoke").consensus.threshold
    assert study.folder == paths.RESULTS / "smoke"


def test_a_turned_knob_is_what_the_dial_says_and_its_results_have_a_folder_of_their_own(home):
    usual = begin("09_before", {})
    usual.save(pd.DataFrame({"x": [1]}), "facts")
    kept = turned()
    kept.save(pd.DataFrame({"x": [2]}), "facts")
    study = turned(THRESHOLD=0.75, COMPARED={"planted": "test"})
    assert (study.dial.consensus.threshold, study.dial.wanli.compared) == (0.75, {"planted": "test"})
    study.save(pd.DataFrame({"x": [3]}), "facts")
    study.finish()
    assert study.folder.name == "smoke+compared=planted-test+threshold=0.75"
    assert study.table("facts")["x"].item() == 3 and turned().table("facts")["x"].item() == 2
    assert study.table("facts", "09_before")["x"].item() == 1
    record = standing.read("10_try", study.results_name)
    assert record["turned"] == {"consensus.threshold": 0.75, "wanli.compared": {"planted": "test"}}
    assert not [why for why in standing.why_stale(record) if "dial" in why]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"EPOCHS": "much"}, "EPOCHS: epochs: a number is needed, and 'much' is a text"),
        ({"EPOCHS": [1]}, "a number is needed"),
        ({"PAIRS": 3}, "PAIRS: Input should be greater than or equal to 300, got 3"),
    ],
)
def test_a_value_of_another_kind_is_refused_and_by_the_runner_before_anything_starts(home, given, told):
    asked = {"EPOCHS": None, "PAIRS": 300, **given}
    with pytest.raises(ParameterError, match=told):
        begin("00_start_here", asked, knobs={"EPOCHS": "epochs"}, extra={"PAIRS": (300, 100_000)})
    shutil.copy(Path(__file__).parents[2] / "notebooks" / "00_start_here.ipynb", home / "notebooks")
    with pytest.raises(ParameterError, match=told):
        runner.run(["00"], runner.Request(others=given))
    assert standing.read("00_start_here", "smoke")["state"] == "never run"
