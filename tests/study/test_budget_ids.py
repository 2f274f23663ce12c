"""No training of a comparison at equal budgets becomes another one. Alone: pytest tests/study/test_budget_ids.py"""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from nli_lib.corpora import load
from nli_lib.select.arms import ARM, BY_NAME, CLASSIFY, GENERATED, PRODUCT, PRODUCT_TWIN, TrainingSet
from nli_lib.select.selection import TWIN
from nli_lib.study import budgets
from nli_lib.study.budgets import TWINS, Plan
from nli_lib.study.dial import read_scale
from nli_lib.study.parts import files_in, key_of
from nli_lib.study.runner import Request
from nli_tools import compare as comparisons

ROOT = Path(__file__).resolve().parents[2]
# the last eight digits of a run's id stand for all of its settings, those of a part's file for all that decides it
SMOKE = """
0269f08a 1bb328dc 3023f495 34eb5508 3aa7a07a 41432233 4bb9920b 4c48cb07 4fb37a08 50969223 5d012ed6 65980f11 765600d2
806a332f 86943b5a 8cb18cc7 8fb8648a 97aa7056 9fba6dac a43e12be a6189544 a6c5a51b b2cabcca b83137ce c0c0d0dd cf3e860e
d2c8020e d53711c5 d5ba7796 dd70ef65 e1f9a4b6 e7c99487 ed3f5dd2 ee8c8a80 f18fbb16 f8b1fb36 fb26ff76 fb4bc1c5
"""
PARTS = """
008d1b8b 0265cb44 0c667c5a 0d0cb271 0d59dd9a 0e764467 15d17dfa 1a0123ff 2a0ce5c0 2c3b5753 32e6129e 35605f26 3d68d07c
4172acb3 47a6049c 47ac4a8f 4d6fd659 50d8b9c7 51c3cfe5 55f14f2d 5603b188 69b1d208 6a6260ae 72f495ce 753105d6 7977f332
7f7eeaee 8021479e 9164d710 938fd7ff 94706d7a a312c7a4 af78db13 ba1004e3 db4e2a57 dc12d6c0 f254e3a2 ffc8ea52
"""
NAMED = """
009204d8 05122101 0cfddb47 14224173 1846164f 1a0597ab 1c1f2fb9 24e2cca7 296ad573 36ad9ce2 3cabe8c8 3fc226df 40bfec0e
42071783 5217eaa0 5586d2a5 569cad45 5a63f8d9 62ee483f 6694819a 6e7a87ed 6feb8ba6 80b728d3 82c03179 8c6ecf7c 950dba8b
9b40cea0 a5b45af8 ad4fea4e aff24d49 b3a4bc11 bd1d968f c171ed65 c52f79cb d84b212a e054fd6b e5d3b39a e5e1be71 e80633f6
e9981fda f0287384 f6fd940f fc44cc33
"""
FILE = """
016552e7 01eef700 099753c6 09e69709 0a3db129 14ad0322 1bc9eca2 1dd5a704 21ee8708 29a89779 31f673f2 323d2584 3f5b7237
4ce9845a 5453449d 5b941a3a 5daa4f2c 6a7aebe0 6a81f91c 71a5633f 765f0fba 83984862 87e7a266 8b2835f4 951a8489 a6b906b9
a813ef25 ac898271 b2c33ba7 b78f899a b854e884 b9cc29da ba6a3527 c2a3a9de c2a819ad cf3b3509 d73d42c8 dca9b8d2 dee074b6
e08bb90f ea560296 eb44d0da ee750c75 f429ac34 f91875af f98d77b8
"""


def made_up(key, corpus, *shape):
    """Logits (..., N, C) that lean to the gold label, other ones for each key."""
    random = np.random.default_rng(int(hashlib.sha256(key.encode()).hexdigest()[:8], 16))
    gold = np.eye(len(corpus.classes))[corpus.labels]
    return random.normal(size=(*shape, len(corpus), len(corpus.classes))) + 1.5 * gold * random.random((len(corpus), 1))


@pytest.fixture
def trained(home, monkeypatch):
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


def written(part, notebook):
    """What three chapters would have exported."""
    table = load("planted", "challenge", limit=80).table[["uid", "premise", "hypothesis", "label"]]
    table["premise"] += " Indeed."
    return table.assign(seed=0, source=GENERATED, kept=True, **{"D0 + G*": True})


def ends(ids):
    return sorted({each.rsplit("_", 1)[1] for each in ids})


@pytest.mark.slow
def test_chapter_61_at_smoke(trained, monkeypatch):
    scale = read_scale("smoke")
    scale.budgets.arms = None  # its own and all others
    monkeypatch.setattr(budgets, "read_scale", lambda name: scale)
    plan = Plan.from_scale("smoke")
    monkeypatch.setattr(plan, "exported", written)
    parts = plan.parts(plan.tested)
    for part in parts.values():
        part.make()
    assert len(parts) == 40 and sorted(set(map(key_of, parts.values()))) == PARTS.split()
    assert ends(trained) == SMOKE.split()


@pytest.mark.slow
def test_compare_with_a_corpus_by_name_and_with_a_file(trained, monkeypatch):
    corpus = load("planted", "train", limit=300)
    gold = np.array(corpus.classes)[corpus.labels]
    table = corpus.table[["premise", "hypothesis"]].assign(label=gold)
    for name, rows in {"mine": table[:180], "more": table[180:240], "held": table[240:]}.items():
        rows.to_csv(f"{name}.csv", index=False)
    plan = comparisons.Plan(budget=48, seeds=2, folds=2, anyway=True, changes={"epochs": 2})

    def stop(*_given, **_named):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparisons, "comparison", stop)  # all is trained
    for name, ids in {"planted": NAMED, "mine.csv": FILE}.items():
        trained.clear()
        with pytest.raises(KeyboardInterrupt):
            comparisons.run(Request("smoke", name), "held.csv", {"more": "more.csv"}, plan)
        assert ends(trained) == ids.split()


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
        now = json.loads(json.dumps(plan.decides(seed, arm, which, made, tests)))
        assert now == found, name
