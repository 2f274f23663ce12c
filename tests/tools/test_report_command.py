"""`nli-study report`: contradicted labels, levels, the page. Run alone: pytest tests/tools/test_report_command.py"""

import json

import numpy as np
import pandas as pd
import pytest
from audited import NAMES, WORDS, call, corpus, elements, export, numbers_of, telling, text_of, write
from compared import made, whole
from sklearn.linear_model import LogisticRegression
from tiny_encoder import write_encoder

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, TWO_WAY
from nli_lib.measure.dynamics import dynamics_features, levels
from nli_lib.measure.giveaways import PAIR_PASSES, PAIR_PENALTY, pair_ngrams
from nli_lib.study.runner import version
from nli_tools import compare, report
from nli_tools.report import CONTRADICTED, level_figures
from nli_tools.report import WORDS as LENGTH

NASTY = "<img src=x onerror=alert(1)>"


def values(part):
    """The figures of a part, whose ends hold them, and which are JSON."""
    assert all(
        each["low"] <= each["value"] <= each["high"] for each in part["figures"].values() if each["low"] is not None
    )
    assert json.loads(json.dumps(part, allow_nan=False)) == part
    return {name: each["value"] for name, each in part["figures"].items()}


# ---------------------------------------------------------------- contradicted labels


def contradicted(labels, predicted, classes=LABELS):
    own = corpus([(f"premise {at // 2}", f"text {at}", classes[label]) for at, label in enumerate(labels)], classes)
    sure = np.where(np.eye(len(classes))[predicted] > 0, 0.9, 0.1 / (len(classes) - 1))
    return report.contradicted(own, sure, how="By hand.")


def test_contradicted_labels_by_hand():
    part = contradicted([0, 0, 1, 2, 1, 0], [0, 1, 1, 2, 0, 1])
    found = values(part)
    assert found["accuracy"] == 0.5 and found["contradicted"] == 0.5 and found["majority"] == 0.5
    assert found["predicted neutral, labelled entailment"] == pytest.approx(2 / 6)
    assert found["predicted entailment, labelled neutral"] == pytest.approx(1 / 6)
    assert found["pruned"] == pytest.approx(2 / 6)  # log(.9 / .05) = 2.9 is above 2
    assert [row["uid"] for row in part["rows"]] == ["u1", "u4", "u5"]  # equal gaps, in the corpus's order
    assert part["rows"][0]["gap"]["value"] == pytest.approx(np.log(0.9 / 0.05), abs=1e-4)


def test_models_that_have_learnt_nothing_are_not_acted_on():
    random = np.random.default_rng(0)
    labels = random.integers(3, size=200)
    part = contradicted(labels, random.integers(3, size=200))
    assert not part["learnt"] and part["next"].startswith("Do not act on contradicted labels yet")
    assert len(part["rows"]) == report.MOST_CONTRADICTED
    part = contradicted(labels, labels)
    assert part["learnt"] and part["next"].startswith("Leave the labels as they are") and part["rows"] == []


def test_two_classes_have_no_rule_of_consensus_cleaning():
    labels = np.arange(60) % 2
    part = contradicted(labels, np.where(np.arange(60) < 6, 1 - labels, labels), TWO_WAY)
    assert "pruned" not in part["figures"] and "consensus" not in part["next"]
    assert part["next"].startswith("Read the labels that models contradict, the most contradicted first: 6 of 60")
    assert part["figures"]["predicted not_entailment, labelled entailment"]["value"] == pytest.approx(3 / 60)


# ---------------------------------------------------------------- levels


@pytest.fixture
def two_mixtures(monkeypatch):
    """Of five: each fit takes a tenth of a second or two, and these tests ask for dozens."""
    monkeypatch.setattr(report, "MIXTURES", 2)


def lengths(classes=LABELS):
    texts = (" ".join(["w"] * (1 + at % 4)) for at in range(120))
    return corpus([(f"premise {at // 3}", each, classes[at % len(classes)]) for at, each in enumerate(texts)], classes)


def trainings(own, count, seed=0):
    """Logits of models that learn most pairs at once, some late and every tenth never."""
    random, made = np.random.default_rng(seed), []
    n, classes = len(own), len(own.classes)
    kind = np.where(np.arange(n) % 10 == 0, -4.0, np.where(np.arange(n) % 3 == 0, 1.5, 4.0))
    for _ in range(count):
        views = []
        for strength in (1.0, 0.5):
            gold = np.eye(classes)[own.labels] * (kind * strength)[:, None]
            views.append(np.linspace(0.4, 1, 4)[:, None, None] * gold + random.normal(0, 0.3, (4, n, classes)))
        made.append(tuple(views))
    return made


OWN, WRONG = lengths(), np.arange(120) % 10 == 0


@pytest.mark.usefixtures("two_mixtures")
def test_shares_of_levels_are_those_of_a_plain_count():
    runs = trainings(OWN, 2)
    part = level_figures(OWN, runs, contradicted=WRONG, said="two trainings")
    found = values(part)
    level = [levels(dynamics_features(*each, OWN.labels), seed=0) for each in runs]
    words = np.array([len(text.split()) for text in OWN.hypothesis])
    for at, name in enumerate(("easy", "ambiguous", "hard")):
        inside = [each == at for each in level]
        plain = {name: 1, f"{name}: neutral": OWN.labels == 1, f"{name}: {LENGTH}": words}
        plain[f"{name}: {CONTRADICTED}"] = WRONG
        for called, each in plain.items():
            means = [rows.mean() if called == name else each[rows].mean() for rows in inside]
            assert found[called] == pytest.approx(np.mean(means))
    assert sum(found[name] for name in ("easy", "ambiguous", "hard")) == pytest.approx(1)
    right = np.mean([each[0][-1].argmax(axis=1) == OWN.labels for each in runs])
    assert found["fitted by the pair"] == pytest.approx(right)
    shares = [each for each in part["figures"].values() if each["unit"] == "share"]
    assert all(0 <= each["low"] <= each["high"] <= 1 for each in shares)
    assert {each["trainings"] for each in shares} == {2} and "trainings" in part["figures"]["easy"]["over"]


@pytest.mark.usefixtures("two_mixtures")
def test_wrong_labels_that_gather_in_the_hard_level_are_found_and_shown():
    runs = trainings(OWN, 2)
    part = level_figures(OWN, runs, contradicted=WRONG)
    assert part["learnt"] and part["next"].startswith("Review the ") and "wrong labels gather there" in part["next"]
    assert {int(row["uid"][1:]) % 10 for row in part["rows"]} == {0}
    elsewhere = level_figures(OWN, runs, contradicted=np.roll(WRONG, 1))
    assert elsewhere["next"].startswith("Do not take the ")
    few = level_figures(OWN, runs, contradicted=np.isin(np.arange(120), [0, 20, 41, 61]))
    assert "which may be chance" in few["next"]
    without = level_figures(OWN, runs[:1])
    assert without["next"].startswith("Look at the ") and "another training" not in without["figures"]
    assert f"hard: {CONTRADICTED}" not in without["figures"]


@pytest.mark.usefixtures("two_mixtures")
def test_levels_of_models_that_have_learnt_nothing_or_never_agree_are_not_read():
    random = np.random.default_rng(3)
    part = level_figures(OWN, [tuple(random.normal(size=(2, 4, 120, 3))) for _ in range(2)])
    assert not part["learnt"] and part["next"].startswith("Do not read the levels yet")
    moved = []
    for at in range(2):
        order = random.permutation(120)
        pair, hypothesis = trainings(OWN, 1, seed=at)[0]
        scale = np.abs(pair).max(axis=(0, 2))[order] + 0.5
        gold = np.eye(3)[OWN.labels] * scale[:, None] * np.linspace(0.4, 1, 4)[:, None, None]
        moved.append((gold, hypothesis[:, random.permutation(120)]))
    assert level_figures(OWN, moved)["next"].startswith("Do not cut the corpus by difficulty")
    two = lengths(TWO_WAY)
    part = level_figures(two, trainings(two, 1), contradicted=np.zeros(120, bool))
    assert "easy: not_entailment" in part["figures"] and part["figures"]["easy"]["trainings"] == 1
    with pytest.raises(ValueError, match="groups"):  # equal pairs have none
        level_figures(two, [(np.zeros((4, 120, 2)), np.zeros((4, 120, 2)))])


# ---------------------------------------------------------------- command


@pytest.fixture
def mine(home, tmp_path):
    return write(tmp_path / "mine.csv", telling(150, wrong=10))


@pytest.fixture
def untrained(monkeypatch):
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda *_args, **_more: pytest.fail("trained"))


def reported(*words):
    """The numbers and the page of a report without a training, or as the words say."""
    done = call("report", *(words if len(words) > 1 else (*words, "--fast")))
    assert done.exit_code == 0, (done.output, done.exception)
    return numbers_of("report.json"), text_of("report.html")


@pytest.mark.usefixtures("untrained")
def test_without_training_a_report_has_audit_and_suspects(mine):
    content, page = reported(mine)
    assert set(content["missing"]) == {"levels", "comparison"} and "--fast" in content["missing"]["levels"]
    assert "nli-study compare" in content["missing"]["comparison"] and content["missing"]["comparison"][:20] in page
    assert content["next"] == [*content["audit"]["next"], content["suspects"]["next"]]
    names = {path.name for path in paths.EXPORTS.glob("*/*")}
    assert names == {"audit.html", "audit.json", "report.html", "report.json"}

    # the share of contradicted labels by models made here, fold by fold
    own = load(str(mine))
    fold, wrong = report.suspects.fold_of_each(own, 5), 0
    features, model = pair_ngrams(own.premise, own.hypothesis), LogisticRegression(C=PAIR_PENALTY, max_iter=PAIR_PASSES)
    for here in (fold == at for at in range(5)):
        wrong += (model.fit(features[~here], own.labels[~here]).predict(features[here]) != own.labels[here]).sum()
    share = content["suspects"]["figures"]["contradicted"]
    assert share["value"] == pytest.approx(wrong / 150) and f"{100 * wrong / 150:.1f}%" in page
    assert share["unit"] == "share" and share["low"] < share["value"] < share["high"]
    assert content["audit"]["figures"]["pairs"]["value"] == 150 and "150 pairs" in page


@pytest.mark.slow
def test_levels_are_measured_once_and_their_number_is_that_of_the_runs(mine, tmp_path, request):
    encoder = write_encoder(tmp_path / "encoder", ["dog", "runs", "it", *WORDS, *NAMES])
    words = [mine, "--encoder", encoder, "--epochs", 3, "--seeds", 2, "--pairs", 120]
    content, page = reported(*words)
    levels = content["levels"]
    assert "120 of 150 pairs" in levels["said"] and "small scale" in levels["said"] and levels["said"] in page
    last = [np.load(path / "logits.npy")[-1] for path in paths.RUNS.glob("*_pair_*")]
    labels = [np.load(path / "labels.npy") for path in paths.RUNS.glob("*_pair_*")]
    right = np.mean([(one.argmax(axis=1) == gold).mean() for one, gold in zip(last, labels, strict=True)])
    assert len(last) == 2 and len(labels[0]) == 120
    assert levels["figures"]["fitted by the pair"]["value"] == pytest.approx(right) and f"{100 * right:.1f}%" in page
    request.getfixturevalue("untrained")
    assert reported(*words)[1] == page


def test_text_of_the_corpus_stays_text(mine):
    page = reported(write(mine, telling(150, wrong=10, more=f" {NASTY}")))[1]
    assert not {"img", "script"} & set(elements(page)[0]) and "&lt;img" in page


def test_a_list_of_this_very_corpus_is_taken_and_another_is_not(mine, tmp_path):
    table = pd.read_csv(mine)
    gold = np.eye(3)[table["label"].map(LABELS.index)] * 0.9 + 0.1 / 3
    gold[0] = gold[0][[1, 0, 2]]  # one label is contradicted
    table.assign(**{f"p_{name}": gold[:, at] for at, name in enumerate(LABELS)}).to_csv(tmp_path / "probs.csv")
    assert call("suspects", mine, "--probs", tmp_path / "probs.csv").exit_code == 0
    content, page = reported(mine)
    found = content["suspects"]
    assert found["figures"]["accuracy"]["value"] == pytest.approx(149 / 150) and "probs.csv" in found["how"]
    assert found["page"] == "probs/suspects.html" and "probs/suspects.html" in page
    mine.write_text(mine.read_text(encoding="utf-8").replace("dog", "cat"), encoding="utf-8")
    assert "linear models" in reported(mine)[0]["suspects"]["how"]


def test_a_comparison_of_the_file_as_it_is_now_is_a_part(mine):
    first, _ = reported(mine)
    content = whole(made()[1]) | {"format": compare.FORMAT, "version": version(), "digest": first["digest"]}
    content["detectable"]["of all"]["value"] = None
    (export("report.json").parent / compare.NUMBERS).write_text(json.dumps(content), encoding="utf-8")
    found, page = reported(mine)
    assert found["comparison"] == content and found["next"][-1] == content["next"]
    assert f"{100 * content['arms'][0]['accuracy']['value']:.1f}%" in page
    assert "an unknown size" in page and "Left out" in page
    mine.write_text(mine.read_text(encoding="utf-8").replace("runs", "sits"), encoding="utf-8")
    assert "comparison" in reported(mine)[0]["missing"]


@pytest.mark.parametrize("name", ["torch", "transformers"])
def test_what_cannot_be_measured_is_named_and_the_rest_is_there(mine, monkeypatch, name):
    def fail(*_args, **_more):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(report, "measure_levels", fail)
    assert call("report", mine).exit_code == 0
    assert numbers_of("report.json")["missing"]["levels"].startswith(f"{name} is not installed")
    assert "pip install" in text_of("report.html")
    write(mine, telling(30))
    assert "an audit: 20 rows of each class are needed" in str(call("report", mine).exception)
