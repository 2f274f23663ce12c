"""`nli-study report` on files. Run alone: pytest tests/tools/test_report_command.py"""

import html.parser
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tiny_encoder import write_encoder
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.measure.giveaways import PAIR_PASSES, PAIR_PENALTY, pair_ngrams
from nli_lib.study.runner import version
from nli_tools import compare, own_corpus
from nli_tools import report as reports
from nli_tools.commands import app

LABELS = ("entailment", "neutral", "contradiction")
SIGNS = ("surely", "perhaps", "never")
NAMES = [f"n{at}" for at in range(40)]
NASTY = "<img src=x onerror=alert(1)>"


def write(path, n=150, nasty=""):
    random, rows = np.random.default_rng(0), []
    for at in range(n):
        sign = SIGNS[at % 3] if at % 10 else random.choice(SIGNS)
        rows.append((f"dog {NAMES[at // 2 % 40]} runs {nasty}", f"it {sign} {random.choice(NAMES)}", LABELS[at % 3]))
    pd.DataFrame(rows, columns=["premise", "hypothesis", "label"]).to_csv(path, index=False)
    return path


def call(*words):
    return CliRunner().invoke(app, [str(each) for each in words])


def found():
    (path,) = paths.EXPORTS.glob("*/report.json")
    return json.loads(path.read_text(encoding="utf-8")), path.with_name("report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"), ["dog", "runs", "it", *SIGNS, *NAMES])


def test_without_training_a_report_has_audit_and_suspects(home, tmp_path, monkeypatch):
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda *_args, **_more: pytest.fail("trained"))
    mine = write(tmp_path / "mine.csv")
    done = call("report", mine, "--fast")
    assert done.exit_code == 0, (done.output, done.exception)
    content, page = found()
    assert set(content["missing"]) == {"levels", "comparison"} and "--fast" in content["missing"]["levels"]
    assert "nli-study compare" in content["missing"]["comparison"] and content["missing"]["comparison"][:20] in page
    assert content["next"][:3] == content["audit"]["next"] and content["next"][3] == content["suspects"]["next"]
    names = {path.name for path in paths.EXPORTS.glob("*/*")}
    assert names == {"audit.html", "audit.json", "report.html", "report.json"}

    # the share of contradicted labels by models made here, fold by fold
    corpus = load(str(mine))
    fold = reports.suspects.fold_of_each(corpus, 5)
    features, wrong = pair_ngrams(corpus.premise, corpus.hypothesis), 0
    for at in range(5):
        model = LogisticRegression(C=PAIR_PENALTY, max_iter=PAIR_PASSES).fit(
            features[fold != at], corpus.labels[fold != at]
        )
        wrong += int((model.predict(features[fold == at]) != corpus.labels[fold == at]).sum())
    share = content["suspects"]["figures"]["contradicted"]
    assert share["value"] == pytest.approx(wrong / 150) and f"{100 * wrong / 150:.1f}%" in page
    assert share["unit"] == "share" and share["low"] < share["value"] < share["high"]
    assert content["audit"]["figures"]["pairs"]["value"] == 150 and "150 pairs" in page


@pytest.mark.slow
def test_levels_are_measured_once_and_their_number_is_that_of_the_runs(home, tmp_path, encoder, monkeypatch):
    mine = write(tmp_path / "mine.csv")
    words = ["report", mine, "--encoder", encoder, "--epochs", 3, "--seeds", 2, "--pairs", 120]
    done = call(*words)
    assert done.exit_code == 0, (done.output, done.exception)
    content, page = found()
    levels = content["levels"]
    assert "120 of 150 pairs" in levels["said"] and "small scale" in levels["said"] and levels["said"] in page
    last = [np.load(path / "logits.npy")[-1] for path in paths.RUNS.glob("*_pair_*")]
    labels = [np.load(path / "labels.npy") for path in paths.RUNS.glob("*_pair_*")]
    right = np.mean([(one.argmax(axis=1) == gold).mean() for one, gold in zip(last, labels, strict=True)])
    assert len(last) == 2 and len(labels[0]) == 120
    assert levels["figures"]["fitted by the pair"]["value"] == pytest.approx(right) and f"{100 * right:.1f}%" in page
    first = page
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda *_args, **_more: pytest.fail("trained again"))
    assert call(*words).exit_code == 0
    assert found()[1] == first


def test_text_of_the_corpus_stays_text(home, tmp_path):
    assert call("report", write(tmp_path / "mine.csv", nasty=NASTY), "--fast").exit_code == 0
    tags = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)
    parser.feed(found()[1])
    assert "img" not in tags and "script" not in tags and "&lt;img" in found()[1]


def test_a_list_of_this_very_corpus_is_taken_and_another_is_not(home, tmp_path):
    mine = write(tmp_path / "mine.csv")
    table = pd.read_csv(mine)
    gold = np.eye(3)[table["label"].map(LABELS.index)] * 0.9 + 0.1 / 3
    gold[0] = gold[0][[1, 0, 2]]  # one label is contradicted
    probs = pd.DataFrame(gold, columns=[f"p_{name}" for name in LABELS])
    pd.concat([table, probs], axis=1).to_csv(tmp_path / "probs.csv", index=False)
    assert call("suspects", mine, "--probs", tmp_path / "probs.csv").exit_code == 0
    assert call("report", mine, "--fast").exit_code == 0
    content, page = found()
    assert (
        content["suspects"]["figures"]["accuracy"]["value"] == pytest.approx(149 / 150)
        and "probs.csv" in content["suspects"]["how"]
    )
    assert content["suspects"]["page"] == "probs/suspects.html" and "probs/suspects.html" in page
    mine.write_text(mine.read_text(encoding="utf-8").replace("dog", "cat"), encoding="utf-8")
    assert call("report", mine, "--fast").exit_code == 0
    assert "linear models" in found()[0]["suspects"]["how"]


def test_a_comparison_of_the_file_as_it_is_now_is_a_part(home, tmp_path):
    mine = write(tmp_path / "mine.csv")
    assert call("report", mine, "--fast").exit_code == 0
    share = {"value": 0.5, "low": 0.4, "high": 0.6, "unit": "share", "n": 9, "over": "premises", "trainings": 2}
    arm = {"arm": "base", "do": "", "distinct": {"value": 9}, "accuracy": share, "accuracy of the twin": share}
    arm |= {"difference": share | {"p": 0.1, "p, Holm": None}, "rank": {"value": 1, "low": 1, "high": 1}, "verdict": ""}
    content = {
        "format": compare.FORMAT,
        "version": version(),
        "corpus": "mine",
        "digest": found()[0]["digest"],
        "learnt": True,
        "figures": {"majority": share, "all candidates": share},
        "detectable": {"alone": {"value": 0.01}, "of all": {"value": None}, "arms": 7},
        "worth": {"value": 0.1},
        "arms": [arm],
        "absent": {"hard": "too few"},
        "next": "Leave the corpus as it is, by a comparison.",
        "settings": {"rows of a training set": 50, "candidates": 150, "trainings": 2, "encoder": "x", "epochs": 1},
        "test": {"name": "held.csv", "pairs": 9, "premises": 9, "taken out": 0},
    }
    (folder,) = paths.EXPORTS.iterdir()
    (folder / compare.NUMBERS).write_text(json.dumps(content), encoding="utf-8")
    assert call("report", mine, "--fast").exit_code == 0
    report, page = found()
    assert report["comparison"] == content and report["next"][-1] == content["next"]
    assert "50.0% [40.0%, 60.0%]" in page and "an unknown size" in page and "Left out" in page
    shutil.copy(mine, tmp_path / "old.csv")
    mine.write_text(mine.read_text(encoding="utf-8").replace("runs", "sits"), encoding="utf-8")
    assert call("report", mine, "--fast").exit_code == 0
    assert "comparison" in found()[0]["missing"]


@pytest.mark.parametrize("name", ["torch", "transformers"])
def test_what_cannot_be_measured_is_named_and_the_rest_is_there(home, tmp_path, monkeypatch, name):
    mine = write(tmp_path / "mine.csv")

    def fail(*_args, **_more):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(reports, "measure_levels", fail)
    assert call("report", mine).exit_code == 0
    assert found()[0]["missing"]["levels"].startswith(f"{name} is not installed") and "pip install" in found()[1]
    done = call("report", write(tmp_path / "few.csv", n=30))
    assert "an audit: 20 rows of each class are needed" in str(done.exception)
    assert own_corpus.digest(str(mine), reports.Request(scale="small", corpus=str(mine)))
