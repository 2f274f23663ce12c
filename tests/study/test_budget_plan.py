"""Alone: pytest tests/study/test_budget_plan.py"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from cells import functions
from tiny_models import write_encoder

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import overlap
from nli_lib.errors import StudyError
from nli_lib.select.arms import ARM, ARMS, BY_NAME, CLASSIFY, GENERATED, PRODUCT, PRODUCT_TWIN, TrainingSet
from nli_lib.select.selection import TWIN, Selection
from nli_lib.store import RunSpec
from nli_lib.study import budgets, dial
from nli_lib.study.budgets import TWINS, Plan, own_pairs, run_job
from nli_lib.study.parts import files_in, gather, key_of
from nli_lib.study.runner import Request
from nli_tools import compare

ROOT = Path(__file__).resolve().parents[2]
CELLS = functions("61_equal_budgets")
ONE_OF_EACH = ["base", "random more", "z-filter", "Seq-Z", "product of experts", "consensus pruning", "WANLI added"]
ONE_OF_EACH += ["our WANLI swapped in", "DISCO added", "ambiguous third", "hard"]
GROUPS = {
    "hard": {"Planted test": ("planted", "test"), "Planted challenge": ("planted", "challenge")}, "adversarial": {},
    "out of domain": {"Nowhere": ("snli", "test"), "Planted validation": ("planted", "validation")},
}  # fmt: skip
DIAL = vars(dial.read_scale("smoke").budgets) | {"budget": 48, "candidates": 144, "arms": None, "epochs": 6}
DIAL |= {"counterfactuals": {key: [("planted", "validation")] for key in ("DISCO", "Human-CAD")}}
DIAL |= {"groups": GROUPS, "stress": ("adversarial", "planted", "test", 4)}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """Folder of a BERT of one layer with random weights that knows the planted words."""
    corpus = load("planted", "train", limit=300)
    words = {word.strip(".,").lower() for text in [*corpus.premise, *corpus.hypothesis] for word in text.split()}
    return write_encoder(tmp_path_factory.mktemp("encoder"), [".", ",", *sorted(words)])


def generated(part, notebook):
    """What three chapters would have exported."""
    table = load("planted", "challenge", limit=80).table[["uid", "premise", "hypothesis", "label"]]
    table["premise"] += " Indeed."
    if part == "pool":
        return table.assign(seed=0, source=GENERATED, **{"D0 + G*": True})
    return table.assign(kept=np.arange(len(table)) % 2 == 0)


@pytest.fixture
def make(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.delenv("NLI_DATA", raising=False)
    settings = {"model": encoder, "batch_size": 8, "learning_rate": 1e-2, "precision": "fp32", "max_length": 48}

    def plan(exported=generated, **changed):
        own = SimpleNamespace(**{**DIAL, **changed})
        study = {"corpus_name": "planted", "title_of": "Planted".title, "train_split": "train", "results_name": "smoke"}
        study |= {"dial": SimpleNamespace(corpus="planted", budgets=own, consensus=SimpleNamespace(threshold=0.1))}
        study |= {"spec": lambda paper, **fields: RunSpec(**{**settings, **fields}), "exported": exported}
        return Plan(SimpleNamespace(**study, params={"SEEDS": None}, own_file=False, data_dir=None))

    return plan


def recorded(plan, tests, arms=None):
    """The rows of the first seed, trained where no part says them."""
    wanted = {name: part for name, part in plan.parts(tests, arms).items() if name.endswith("training 0")}
    return CELLS.table_of(gather(wanted, plan.study))


def trained():
    return {path.parent.name: path.stat().st_mtime_ns for path in paths.RUNS.glob("*/about.json")}


@pytest.mark.slow
def test_every_arm_is_trained_once_whoever_asks_for_it(make, monkeypatch):
    plan = make(arms=ONE_OF_EACH)
    flat, (sets, absent) = plan.tested, plan.sets(0)
    # of so few pairs, a filter or a level may keep too few, or none of some label
    assert set(absent) <= {"Z-Aug", "Par-Z", "Seq-Z", "hard"}, absent
    assert len(sets) == 2 * (len(ONE_OF_EACH) - len(absent))
    table = recorded(plan, flat)
    right = CELLS.right_of(table, flat)
    shapes = {title: (1, len(test)) for title, test in flat.items()}
    found = {key: {title: each.shape for title, each in rows.items()} for key, rows in right.items()}
    assert found == dict.fromkeys(sets, shapes)
    cost = {"prompt_tokens": 3900, "completion_tokens": 100, "seconds": 40.0}
    spent = CELLS.costs_of(table, {"our WANLI": cost}).set_index("arm")
    assert spent.loc[["our WANLI swapped in", "WANLI added"], "tokens"].tolist() == [1200, 0]
    assert spent.loc[["consensus pruning", "base"], "human labels"].tolist() == [144, 36]
    before = trained()
    assert sum("without-fold" in name for name in before) == DIAL["folds"]  # none more to learn how long they took
    # some of them as jobs, each on a plan of its own, in another order: none is trained twice, and none is new
    for name in ("train-0-hard-twin", "train-0-disco-added", "score-0-fold-1"):
        run_job(make(arms=ONE_OF_EACH), name)
    assert trained() == before
    # where there are parts and no runs nothing is trained, not even what scores the candidates
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(paths, "RUNS", paths.RUNS.with_name("empty"))
        pd.testing.assert_frame_equal(recorded(make(arms=ONE_OF_EACH), flat), table)
        assert not list(paths.RUNS.glob("*"))


def test_code_that_chooses_other_rows_makes_other_parts(make, monkeypatch):
    arms = ["base", "z-filter", "AUM", "easy"]
    plan = make(arms=arms)
    before = plan.parts(plan.tested)
    assert {name.rsplit(",", 1)[0] for name in before} == {*arms, *(f"{each}, twin" for each in arms)}
    assert set(budgets.probe()) == {f"{arm.name}, {which}" for arm in ARMS if arm.needs in budgets.SCORED
                                    for which in (ARM, TWIN)}  # fmt: skip
    real = budgets.choices

    def others(*given, **named):
        made, absent = real(*given, **named)
        return {**made, "AUM": Selection.where(np.arange(budgets.PROBED) % 3 != 1, "chosen otherwise")}, absent

    monkeypatch.setattr(budgets, "choices", others)
    after = budgets.probe.__wrapped__()  # past the cache
    monkeypatch.setattr(budgets, "choices", real)
    monkeypatch.setattr(budgets, "probe", lambda: after)
    changed = {name for name, part in plan.parts(plan.tested).items() if part.decides != before[name].decides}
    assert {name.rsplit(",", 1)[0] for name in changed} == {"AUM", "AUM, twin"}


def test_a_job_alone_trains_what_the_notebook_would_and_nothing_else(make, tmp_path, monkeypatch):
    run_job(make(), "train-0-ambiguous-third-twin")
    one = trained()
    assert len(one) == 2  # the model that scores, and the twin's
    assert len(list(paths.RUNS.glob("*/predictions/*.npy"))) == len(make().tested)  # of the twin's, for every test set
    here = {path.parent.name: np.load(path) for path in paths.RUNS.glob("*/logits.npy")}
    monkeypatch.setattr(paths, "RUNS", tmp_path / "other")
    plan = make()
    plan.training(plan.sets(0, ["ambiguous third"])[0]["ambiguous third", TWIN], 0).run()
    there = {path.parent.name: np.load(path) for path in paths.RUNS.glob("*/logits.npy")}
    assert here.keys() == there.keys() and all(np.array_equal(here[name], there[name]) for name in here)


def test_later_seeds_train_the_base_and_random_more_alone(make):
    assert make().arms_of(1) == ["base", "random more"]
    assert [make().trainings(arm) for arm in ("base", "random more", "AUM")] == [2, 2, 1]


def test_what_is_not_at_hand_is_named_with_the_reason(make):
    def nothing(part, notebook):
        raise FileNotFoundError(notebook)

    plan = make(exported=nothing, released={"WANLI": [("wanli", "train")]}, counterfactuals={})
    _, absent = plan.sets(0, [arm for arm in BY_NAME if arm.startswith(("our", "WANLI", "DISCO", "Z-"))])
    assert absent["our WANLI added"].startswith("13_filter_by_variability has left no pairs")
    assert absent["Z-Aug"].startswith("24_three_datasets has left no pairs")
    assert "wanli" in absent["WANLI added"].lower() and str(Path.home()) not in absent["WANLI added"]
    assert absent["DISCO added"] == "no pairs of DISCO are at hand"
    assert run_job(plan, "train-0-disco-added") == "nothing to train: no pairs of DISCO are at hand"


def test_tests_hold_nothing_that_is_trained_on_and_share_the_room_of_their_group(make):
    tests, sizes, missing = make(tested_limit=60).tests()
    assert list(tests) == ["in distribution", "hard", "adversarial", "out of domain"]
    assert list(tests["hard"]) == ["Planted challenge"]  # the base's own test set stands in one group alone
    assert list(missing) == ["Nowhere"] and "Planted validation" not in tests["out of domain"]  # it is added: WANLI
    table = sizes.set_index("title")
    assert table.loc["Planted validation", "pairs"] == 0
    assert table.loc["Planted validation", "taken out"] == table.loc["Planted validation", "whole"]
    assert table.loc["Planted test", "pairs"] <= 60 and table.loc["Planted test", "whole"] > 60
    candidates = make().candidates(0)
    assert not any(overlap(test, candidates)["pairs"].any() for each in tests.values() for test in each.values())


def test_revisions_come_with_their_originals_which_people_labelled(make):
    plan = make()
    one, other = plan.additions(0), plan.additions(1)
    assert len(one["DISCO"]) == plan.extra == 12 and 0 < one["DISCO"].table["by_people"].sum() < 12
    assert "by_people" not in one["Human-CAD"].table and other["DISCO"].digest != one["DISCO"].digest


def test_own_pairs_are_those_that_the_chapter_kept():
    found = own_pairs("our DISCO", generated("pairs", ""))
    assert len(found) == 40 and found.uid[0] == "our DISCO-0"
    pool = pd.concat([generated("pool", ""), generated("pool", "").assign(seed=1)])
    pool.loc[pool.index[:10], "D0 + G*"] = False
    assert len(own_pairs(GENERATED, pool.reset_index(drop=True))) == 70


def test_what_our_models_copied_from_the_base_is_taken_out_of_their_pairs_and_not_out_of_the_base(make):
    before, copied = make(), load("planted", "train").table[["uid", "premise", "hypothesis", "label"]][:8]

    def copying(part, notebook):
        own = generated(part, notebook)
        extra = copied.assign(premise=copied["premise"].str.upper(), **own.iloc[0].drop(list(copied)))
        return pd.concat([extra, own], ignore_index=True)

    plan = make(exported=copying)
    assert len(own_pairs("our WANLI", copying("pairs", ""))) == 48
    for name in ("our WANLI", "our DISCO", GENERATED):
        assert plan.additions(0)[name].premise.tolist() == before.additions(0)[name].premise.tolist()
    assert plan.candidates(0).digest == before.candidates(0).digest


def test_jobs_wait_for_what_scores_and_need_the_dial_alone():
    waits = Plan.from_scale("small").waits()
    assert waits["train-0-base"] == [] and "train-0-random-more-twin" not in waits  # it is the base
    assert waits["train-2-hard-twin"] == ["score-2-dynamics", "score-2-hypothesis"]
    assert waits["train-0-consensus-pruning"] == [f"score-0-fold-{k}" for k in range(3)]
    assert all(other in waits for before in waits.values() for other in before)
    for name in ("train-9-base", "train-0-nothing", "score-x-dynamics", "score-0-fold-99", "score"):
        with pytest.raises(StudyError, match=f'no job "{name}"'):
            run_job(Plan.from_scale("smoke"), name)


@pytest.fixture
def workflow(home):
    """The Snakefile in a project whose one notebook is chapter 61, and a cluster of scripts."""
    pytest.importorskip("snakemake", reason="pip install -e '.[lab]'")
    shutil.copy(ROOT / "notebooks" / "61_equal_budgets.ipynb", home / "notebooks")
    if (ROOT / "data" / "models").is_dir():
        (home / "data" / "models").symlink_to(ROOT / "data" / "models")
    shutil.copytree(Path(__file__).parent / "slurm", home / "bin")
    path = os.pathsep.join([str(home / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HOME": str(home)}

    def run(*words):
        asked = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(home), *words]
        done = subprocess.run(asked, env=environment, cwd=home, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_a_dry_run_shows_every_training_with_its_resources(workflow, home):
    said = workflow("--dry-run", "--cores", "2", "notebook_61_equal_budgets")
    for job in Plan.from_scale("smoke").waits():
        part = said.partition(f"rule training_{job.replace('-', '_')}:")[2].partition("\nrule ")[0]
        assert "runtime=120" in part and "mem_mb=4000" in part, job
    assert not list((home / "data" / "runs").glob("planted*"))


@pytest.mark.slow
def test_trainings_run_on_a_cluster_two_at_a_time_and_none_twice(workflow, home, monkeypatch):
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="pip install snakemake-executor-plugin-slurm")
    done = [f"data/runs/snakemake/smoke/train-{seed}-base.done" for seed in (0, 1)]
    workflow("--executor", "slurm", "--jobs", "2", "--slurm-init-seconds-before-status-checks", "1", *done)
    submitted = [path.read_text() for path in (home / "bin").glob("job-*.args")]
    assert len(submitted) == 2 and all("--mem" in each and "-t" in each for each in submitted)
    monkeypatch.setattr(paths, "RUNS", home / "data" / "runs")
    before, plan = trained(), Plan.from_scale("smoke")
    assert len(before) == 2
    for seed in (0, 1):
        plan.training(plan.sets(seed, ["base"])[0]["base", ARM], seed).run()
    assert trained() == before  # the notebook finds both


# the last digits of a run's id stand for all of its settings, those of a part's file for all that decides it
SMOKE = """0d26 0f6f 1516 2210 26c2 31c8 3395 393c 3a90 424e 4987 5a7b 5ccd 5d87 6679 78a9 78ef 78fe 7f55 8325 8734
8abe 9712 9dfb b33b b38d ba43 ba92 c3aa c457 c8a7 d68c dee5 eca4 ee94 f51a f998 fb91 fc13"""
PARTS = """07b2 0831 10d4 16f6 1d2f 272a 27a3 28ba 32e6 3535 3c80 47db 4ee7 50f1 53b4 70b4 8949 8d46 9834 9892 9f6e
a492 a6bd bdc9 c086 c97e d2a7 d34e d883 e33d e396 e966 e9d3 ea4f ecdc f30c f9ff fa08"""
FILE = """0507 1012 133a 13b0 211b 2487 2ad4 2b7c 35c2 392c 4180 4532 460a 49e2 4b79 4d43 5241 5db0 6c0f 6cf7 796a
8739 89c1 8ce5 8f8d 93e5 94a3 94d4 9a7d 9edb a0c1 aa37 b14f bbac c855 c93a ce6f d1b5 d661 d791 ea82 f420 f9ac"""


def made_up(key, corpus, *shape):
    """Logits (..., N, C) that lean to the gold label, other ones for each key."""
    random = np.random.default_rng(int(hashlib.sha256(key.encode()).hexdigest()[:8], 16))
    gold = np.eye(len(corpus.classes))[corpus.labels]
    return random.normal(size=(*shape, len(corpus), len(corpus.classes))) + 1.5 * gold * random.random((len(corpus), 1))


@pytest.fixture
def asked(home, monkeypatch):
    """The ids of all trainings that are asked for, in order; none is done."""
    from nli_lib.learn import fit, predict

    monkeypatch.chdir(home)
    ids = []

    def run_of(spec, corpus, keep=None, **more):
        ids.append(spec.id)
        about = SimpleNamespace(read_json=lambda name: {"seconds": 1.0, "device": "none"})
        logits = made_up(spec.id, corpus, spec.epochs)
        return SimpleNamespace(spec=spec, folder=spec.folder, model=spec.folder, store=about, logits=logits)

    def cross_score(spec, corpus, fold, **more):
        ids.extend(each.id for at in range(int(fold.max()) + 1) for each in predict.fold_specs(spec, fold, [at]))
        return made_up(spec.id, corpus)

    monkeypatch.setattr(fit, "fit", run_of)
    monkeypatch.setattr(predict, "cross_score", cross_score)
    monkeypatch.setattr(predict, "predict", lambda run, corpus: made_up(run.spec.id, corpus))
    return ids


def ends(ids):
    return sorted({each[-4:] for each in ids})


@pytest.mark.slow
def test_no_training_of_the_chapter_becomes_another_one(asked, monkeypatch):
    monkeypatch.setattr(dial.read_scale("smoke").budgets, "arms", None)  # its own and all others
    plan = Plan.from_scale("smoke")
    monkeypatch.setattr(plan, "exported", generated)
    parts = plan.parts(plan.tested)
    for part in parts.values():
        part.make()
    assert len(parts) == 40 and ends(map(key_of, parts.values())) == PARTS.split() and ends(asked) == SMOKE.split()


@pytest.mark.slow
def test_no_training_of_a_user_s_comparison_becomes_another_one(asked, monkeypatch):
    corpus = load("planted", "train", limit=300)
    table = corpus.table[["premise", "hypothesis"]].assign(label=np.array(corpus.classes)[corpus.labels])
    for name, rows in {"mine": table[:180], "more": table[180:240], "held": table[240:]}.items():
        rows.to_csv(f"{name}.csv", index=False)
    plan = compare.Plan(budget=48, seeds=2, folds=2, anyway=True, changes={"epochs": 2})
    monkeypatch.setattr(compare, "comparison", None)  # all is trained by then
    with pytest.raises(TypeError):
        compare.run(Request("smoke", "mine.csv"), "held.csv", {"more": "more.csv"}, plan)
    assert ends(asked) == FILE.split()


@pytest.mark.parametrize(("study", "corpus"), [("small", None), ("small-mnli", "mnli")])
def test_what_is_recorded_at_small_is_what_is_asked_for(study, corpus):
    """Recipe, choice of rows and test sets of every part; the rows themselves need the corpora."""
    folder, plan = ROOT / "data" / "results" / study / "61_equal_budgets.parts", Plan.from_scale("small", corpus)
    wanted = json.loads((folder / "wanted.json").read_text())
    assert plan.study == study and len(wanted) > 100
    for name, file in wanted.items():
        arm, _, seed = name.rpartition(", training ")
        arm, which, seed = arm.removesuffix(TWINS), TWIN if arm.endswith(TWINS) else ARM, int(seed)
        found = json.loads(pq.read_schema(files_in(folder / file)[0]).metadata[b"PANDAS_ATTRS"])["decides"]
        rows = SimpleNamespace(name="x", split="train", digest=found["rows"], classes=tuple(found["classes"]))
        tests = {title: SimpleNamespace(digest=digest) for title, digest in found["tested"].items()}
        plan._candidates[seed], made = rows, None
        plan.exports = {BY_NAME[arm].source: found["added"]} if "added" in found else {}
        if "arm" not in found:
            objective = {ARM: PRODUCT, TWIN: PRODUCT_TWIN}[which] if arm == "product of experts" else CLASSIFY
            made = TrainingSet(rows, 1, objective)
        assert json.loads(json.dumps(plan.decides(seed, arm, which, made, tests))) == found, name
