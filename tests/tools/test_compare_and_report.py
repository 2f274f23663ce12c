"""`nli-study compare` and `report`: their numbers, and on files with a tiny encoder.

Run alone: pytest tests/tools/test_compare_and_report.py"""

import json
import sys
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import yaml
from audited import NAMES, WORDS, call, corpus, elements, export, lines, numbers_of, ran, telling, text_of, write
from compared import PREMISES, TITLE, TRUTH, N, S, made, whole
from sklearn.linear_model import LogisticRegression
from tiny_models import write_encoder

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, TWO_WAY
from nli_lib.learn import predict
from nli_lib.measure.dynamics import dynamics_features, levels
from nli_lib.measure.giveaways import PAIR_PASSES, PAIR_PENALTY, pair_ngrams
from nli_lib.select.arms import ARM, TWIN
from nli_lib.stats import Estimate
from nli_lib.store import StoreError
from nli_lib.study.runner import version
from nli_tools import compare, report
from nli_tools.audit import distance, points
from nli_tools.compare import ARMS, BETTER, OPEN, SAME, UNLEARNT, WORSE, Noise, pairs_needed, smallest
from nli_tools.own_corpus import ToolError
from nli_tools.report import CONTRADICTED, level_figures

NOISE, WIDE = Noise(0.01, 0.45), Noise(1.0, 1)


def test_the_pairs_that_are_needed_are_the_fewest_that_are_enough_and_are_told():
    for trainings, family, worth in ((5, 7, 0.1), (3, 1, 0.08), (10, 9, 0.05)):
        n = pairs_needed(NOISE, trainings=trainings, family=family, worth=worth)
        found = [smallest(NOISE, n=each, trainings=trainings, family=family) for each in (n - 1, n)]
        assert found[0] > worth >= found[1]
    assert pairs_needed(Noise(0.01, 0.01), trainings=5, family=1, worth=0.5) == 1
    assert pairs_needed(NOISE, trainings=2, family=7, worth=0.05) is None
    more = compare.trainings_needed(NOISE, family=7, worth=0.05)
    assert more > 3 and compare.trainings_needed(WIDE, family=7, worth=0.001) is None

    def told(noise=NOISE, n=50, trainings=5, worth=0.1, title=""):
        return compare.too_small(noise, n=n, trainings=trainings, family=7, worth=worth, title=title)

    needed, said = pairs_needed(NOISE, trainings=5, family=7, worth=0.1), told(title="mine.csv")
    assert f"{needed:,} test pairs are needed" in said and "mine.csv: with 50 test pairs and 5 trainings" in said
    assert told(n=needed) == "" and f"is enough for that: {more} trainings" in told(n=10_000, trainings=2, worth=0.05)
    assert "No number of trainings" in told(WIDE, n=9, worth=0.001)
    assert np.isnan(smallest(Noise(0.0, 0.0), n=9, trainings=3, family=1))
    assert told(Noise(0.0, 0.0), n=9) == ""  # nothing varies
    assert distance(None) == distance(np.nan) == "an unknown size"
    assert (distance(0.0312), points(-0.0001), points(0.0001)) == ("3.1 points", "0.0 points", "0.0 points")


def test_verdicts_by_hand():
    for gap, holm, verdict in [
        ((0.05, 0.01, 0.09), 0.01, BETTER),
        ((-0.05, -0.09, -0.01), 0.01, WORSE),
        ((0.05, 0.01, 0.09), 0.2, SAME),  # corrected for the other arms
        ((0.05, -0.01, 0.11), 0.2, OPEN),
        ((0.0, np.nan, np.nan), np.nan, OPEN),
    ]:
        assert compare.verdict(Estimate(*gap, 9), holm, 0.1) == verdict, gap


def test_numbers_are_those_of_a_plain_computation_and_planted_differences_are_found():
    right, content = made()
    arms = {each["arm"]: each for each in content["arms"]}
    assert list(arms) == list(TRUTH)
    for name, each in arms.items():
        own, twin = (right[name, which][TITLE].mean() for which in (ARM, TWIN))
        assert each["accuracy"]["value"] == pytest.approx(own)
        assert each["difference"]["value"] == pytest.approx(own - twin)
        assert each["difference"]["low"] <= own - twin <= each["difference"]["high"]
        if name != "base":
            assert each["above the base"]["value"] == pytest.approx(own - right["base", ARM][TITLE].mean())
    assert arms["z-filter"]["verdict"] == BETTER and arms["hard"]["verdict"] == WORSE and arms["base"]["verdict"] == ""
    # Holm by hand: the smallest of four p counts four times, the next three
    (p, holm), (next_p, next_holm) = sorted((arms[name]["difference"]["p"], arms[name]["difference"]["p, Holm"])
        for name in arms if name != "base")[:2]  # fmt: skip
    assert (holm, next_holm) == pytest.approx((min(1, 4 * p), min(1, max(4 * p, 3 * next_p))))
    assert arms["z-filter"]["rank"]["value"] == 1 and arms["hard"]["rank"]["value"] == 5
    first = "Keep the pairs that the z-filter keeps: the resulting model is better on held.csv"
    assert content["next"].startswith(first)
    assert content["next"].endswith("Do not choose pairs by: hard (worse than random ones).")
    noise = compare.measured_noise(right, PREMISES, TITLE)
    gaps = right["base", ARM][TITLE].mean(axis=1) - right["base", TWIN][TITLE].mean(axis=1)
    assert noise.spread == pytest.approx(gaps.std(ddof=1)) and 0.2 < noise.unit < 1
    limits = content["detectable"]
    assert limits["of all"]["value"] == pytest.approx(smallest(noise, n=N, trainings=S, family=4))
    assert limits["alone"]["value"] < limits["of all"]["value"]
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_where_nothing_helps_the_corpus_is_left_as_it_is():
    _, content = made(dict.fromkeys(TRUTH, (0.6, 0.6)))
    assert content["next"].startswith("Leave the corpus as it is: of 4 interventions, none trains a better model")
    _, content = made(dict.fromkeys(TRUTH, (0.5, 0.5)))
    assert content["next"].startswith("Do not act on the comparison") and not content["learnt"]
    assert {each["verdict"] for each in content["arms"][1:]} == {UNLEARNT}
    assert "have not learnt the task" in compare.page(whole(content))
    # one arm whose models, like its twin's, give one label: that they are alike says nothing
    _, content = made(dict.fromkeys(TRUTH, (0.6, 0.6)) | {"hard": (0.5, 0.5), "z-filter": (0.4, 0.6)})
    verdicts = {each["arm"]: each["verdict"] for each in content["arms"]}
    assert verdicts["hard"] == UNLEARNT and verdicts["z-filter"] == WORSE and SAME in verdicts.values()
    assert "Trained on so few pairs, models learnt nothing with: hard." in content["next"]


def test_a_name_is_text_on_the_page_and_the_page_shows_the_numbers_of_the_file():
    content = whole(made()[1])
    page = compare.page(content)
    assert not {"script", "b", "i", "u"} & set(elements(page)[0]) and "&lt;b&gt;mine" in page
    assert all(f"{100 * each['accuracy']['value']:.1f}%" in page for each in content["arms"])
    assert "without 2 that are also in the training data" in page and "none is &lt;u&gt;" in page
    table = compare.table(content).set_index("arm")
    assert table.loc["hard", "difference"] == pytest.approx(content["arms"][2]["difference"]["value"], abs=1e-5)
    assert table.loc["easy", "verdict"] == "left out: none is <u>"


# ---------------------------------------------------------------- command: compare


NASTY = "<script>x</script>"


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"), ["dog", "runs", "it", *WORDS, *NAMES])


@pytest.fixture
def ask(home, encoder, tmp_path):
    def asked(*words, corpus=None, test=None, run=call):
        mine = write(tmp_path / "mine.csv", corpus or telling(150))
        held = write(tmp_path / "held.csv", test or telling(120, start=1_000))
        how = ["--seeds", 2, "--folds", 2, "--epochs", 2, "--encoder", encoder]
        return run("compare", mine, "--test", held, *how, *words)

    return asked


@pytest.fixture
def untrained(monkeypatch):
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda *_args, **_more: pytest.fail("trained"))


def runs():
    return {path.parent.name: path.stat().st_mtime_ns for path in paths.RUNS.glob("*/done.npy")}


@pytest.mark.slow
def test_a_comparison_from_a_file_to_a_page_and_again_at_no_cost(ask, tmp_path, request):
    added = write(tmp_path / "new.csv", telling(60, start=2_000))
    words, leaked = ["--anyway", "--added", f"{NASTY}={added}"], [*telling(120, start=1_000), *telling(4)]
    said = ask(*words, test=leaked, run=ran).splitlines()
    content, folder = numbers_of("compare.json"), export("compare.json").parent
    names = ["compare.csv", "compare.html", "compare.json", "compare_pairs.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names and said[-5] == content["next"]
    arms = {each["arm"]: each for each in content["arms"]}
    named = {"base", *ARMS, f"{NASTY} added", f"{NASTY} swapped in"}
    assert set(arms) | set(content["absent"]) == named and {"base", "random more", f"{NASTY} added"} <= set(arms)
    assert {"taken out": 4, "pairs": 120, "name": "held.csv"}.items() <= content["test"].items()
    assert content["settings"]["rows of a training set"] == 50 and content["settings"]["candidates"] == 150

    # one number by an independent computation, from the predictions that the runs have stored
    gold = pd.read_csv(tmp_path / "held.csv")[:120]["label"].map(LABELS.index).to_numpy()
    stored = [np.load(path) for path in paths.RUNS.glob("*_train_s*/predictions/logits-*.npy")]
    singles = [(each.argmax(axis=1) == gold).mean() for each in stored if len(each) == 120]
    both = [(a + b) / 2 for a in singles for b in singles]
    assert all(np.isclose(both, each["accuracy"]["value"]).any() for each in arms.values())
    own, twin = (arms["base"][name]["value"] for name in ("accuracy", "accuracy of the twin"))
    assert np.isclose(own - twin, arms["base"]["difference"]["value"])

    page = (folder / "compare.html").read_text(encoding="utf-8")
    assert NASTY not in page and "&lt;script&gt;x&lt;/script&gt; added" in page
    pairs = pd.read_csv(folder / "compare_pairs.csv")
    assert len(pairs) == 150 and pairs["kept by z-filter"].between(0, 1).all()
    assert not list(paths.RUNS.rglob("*.safetensors"))  # the weights are not kept

    before, files = runs(), {path: path.read_bytes() for path in folder.iterdir()}
    request.getfixturevalue("untrained")
    ask(*words, test=leaked, run=ran)
    assert runs() == before and {path: path.read_bytes() for path in folder.iterdir()} == files


FEW_ARMS = ("base", "random more", "z-filter", "consensus pruning")


@pytest.mark.slow
def test_two_classes_are_compared_and_what_needs_neutral_says_so(ask, tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "ARMS", FEW_ARMS)
    three = write(tmp_path / "three.csv", telling(60, start=2_000))
    one = write(tmp_path / "new.csv", [(p, h, "neutral") for p, h, _ in telling(60, start=3_000)])
    ask("--anyway", "--added", f"three={three}", "--added", f"one={one}", corpus=telling(150, TWO_WAY), run=ran)
    content = numbers_of("compare.json")
    assert content["classes"] == list(TWO_WAY)
    assert "entailments that models call neutral" in content["absent"]["consensus pruning"]
    assert "entailment, not_entailment" in content["absent"]["consensus pruning"]
    assert "three added" in {each["arm"] for each in content["arms"]}  # its three labels are read as two
    assert content["test"]["pairs"] == 120


HELD = [row[:2] for row in telling(60, start=1_000)]
OTHER = [(*row, ("contradiction", "non_contradiction")[at % 2]) for at, row in enumerate(HELD)]
ONE = [(*row, "neutral") for row in HELD]


REFUSED = [
    ([], {}, "a difference below 67.5 points would not be found, but you ask for 10.0 points"),
    (["--seeds", 5], {}, "test pairs are needed for that. Or name a larger difference with --worth"),
    ([], {"corpus": telling(63)}, "63 different pairs are too few to compare training sets on: 72 are needed"),
    ([], {"corpus": telling(45)}, "a comparison: 20 rows of each class are needed, and there are entailment 15"),
    (["--budget", 140], {}, "a budget of 140 pairs needs 24 at least, and 210 candidates, better 420"),
    (["--anyway"], {"test": telling(90)}, "all of its usable pairs are also in the training data"),
    (["--anyway"], {"corpus": telling(150, TWO_WAY), "test": OTHER}, "a model of one cannot be tested on"),
    (["--anyway"], {"test": ONE}, "its pairs have the same label"),
    (["--anyway", "--encoder", "minilm"], {}, "ships in a package that is not installed"),
    (["--added", "mine"], {}, "--added mine: write NAME=FILE"),
    (["--anyway", "--added", "few=few.csv"], {}, "--added few: few has 6 pairs for this arm, and")]  # fmt: skip


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(("words", "given", "said"), REFUSED)
def test_what_cannot_be_compared_is_refused_before_anything_is_trained(ask, tmp_path, monkeypatch, words, given, said):
    monkeypatch.setattr("nli_lib.learn.text.OFFLINE_MODELS", {"minilm": ("no_such_package", "model")})
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "few.csv", telling(6, start=2_000))
    done = ask(*words, **given)
    assert said in str(done.exception), (done.output, done.exception)
    assert not runs() and not list(paths.EXPORTS.rglob("*"))


BASES = {"It has not learnt the task": [0] * 4, "would not be found": [0.4, 1, 1, 0.4]}


@pytest.mark.parametrize(("said", "shares"), BASES.items())
def test_a_base_that_has_learnt_nothing_or_differs_too_much_ends_it_early(ask, monkeypatch, said, shares):
    turn = iter(shares)
    answers = lambda self, spec, corpus: np.arange(len(self.test)) < next(turn) * len(self.test)  # noqa: E731
    monkeypatch.setattr(compare.Work, "answers", answers)
    monkeypatch.setattr(compare.Work, "score", lambda *_args: pytest.fail("scored the candidates"))
    done = ask("--worth", 100)
    assert isinstance(done.exception, ToolError) and said in str(done.exception)


@pytest.mark.parametrize("name", ["torch", "transformers"])
def test_without_a_package_of_the_study_it_says_what_to_install(ask, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "nli_lib.learn.model", raising=False)
    assert str(ask().exception) == f"{name} is not installed: pip install 'nli-quality-study[study,offline]'"


def test_a_model_whose_weights_are_gone_is_trained_again_for_another_test_file(ask, monkeypatch):
    def twice(self):
        spec = self.spec(self.whole, 0, capture="train")
        first, self.test = self.answers(spec, self.whole), self.test[:50]
        assert not list(spec.folder.rglob("*.safetensors"))
        assert np.array_equal(self.answers(spec, self.whole), first[:50])
        self.plan = replace(self.plan, keep=True)
        other = spec.model_copy(update={"seed": 1})
        self.answers(other, self.whole)
        trained = (other.folder / "about.json").stat().st_mtime_ns
        with monkeypatch.context() as full:  # a disk that is full costs no training
            full.setattr(predict, "predict", Mock(side_effect=StoreError("No space left on device")))
            with pytest.raises(StoreError, match="No space left"):
                self.answers(other, self.whole)
        assert (other.folder / "about.json").stat().st_mtime_ns == trained
        raise ToolError("seen")

    monkeypatch.setattr(compare.Work, "everything", twice)
    assert str(ask("--anyway").exception) == "seen"


def values(part):
    """The figures of a part, whose ends hold them, and which are JSON."""
    known = [each for each in part["figures"].values() if each["low"] is not None]
    assert all(each["low"] <= each["value"] <= each["high"] for each in known)
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
    assert part["next"].startswith("Review the labels that models contradict, starting with the most contradicted: 6")
    assert part["figures"]["predicted not_entailment, labelled entailment"]["value"] == pytest.approx(3 / 60)


# ---------------------------------------------------------------- levels


@pytest.fixture(autouse=True)
def two_mixtures(monkeypatch):
    """Of five: each fit takes a tenth of a second or two, and these tests ask for dozens."""
    monkeypatch.setattr(report, "MIXTURES", 2)


def lengths(classes=LABELS):
    texts = (" ".join(["w"] * (1 + at % 4)) for at in range(120))
    return corpus([(f"premise {at // 3}", each, classes[at % len(classes)]) for at, each in enumerate(texts)], classes)


def trainings(own, count, seed=0):
    """Logits of models that learn most pairs at once, some late and every tenth never."""
    random, made, n, classes = np.random.default_rng(seed), [], len(own), len(own.classes)
    kind = np.where(np.arange(n) % 10 == 0, -4.0, np.where(np.arange(n) % 3 == 0, 1.5, 4.0))
    for _ in range(count):
        views = []
        for strength in (1.0, 0.5):
            gold = np.eye(classes)[own.labels] * (kind * strength)[:, None]
            views.append(np.linspace(0.4, 1, 4)[:, None, None] * gold + random.normal(0, 0.3, (4, n, classes)))
        made.append(tuple(views))
    return made


OWN, WRONG = lengths(), np.arange(120) % 10 == 0


def test_shares_of_levels_are_those_of_a_plain_count():
    runs = trainings(OWN, 2)
    part = level_figures(OWN, runs, contradicted=WRONG, said="two trainings")
    found, level = values(part), [levels(dynamics_features(*each, OWN.labels), seed=0) for each in runs]
    words = np.array([len(text.split()) for text in OWN.hypothesis])
    for at, name in enumerate(("easy", "ambiguous", "hard")):
        inside = [each == at for each in level]
        plain = {name: 1, f"{name}: neutral": OWN.labels == 1, f"{name}: {report.WORDS}": words}
        plain[f"{name}: {CONTRADICTED}"] = WRONG
        for called, each in plain.items():
            means = [rows.mean() if called == name else each[rows].mean() for rows in inside]
            assert found[called] == pytest.approx(np.mean(means))
    assert sum(found[name] for name in ("easy", "ambiguous", "hard")) == pytest.approx(1)
    assert sorted(uid for uids in part["pairs"].values() for uid in uids) == sorted(OWN.uid)
    assert level_figures(OWN, runs[:1])["pairs"]["hard"] == OWN.uid[level[0] == 2].tolist()
    right = np.mean([each[0][-1].argmax(axis=1) == OWN.labels for each in runs])
    assert found["fitted by the pair"] == pytest.approx(right)
    shares = [each for each in part["figures"].values() if each["unit"] == "share"]
    assert all(0 <= each["low"] <= each["high"] <= 1 for each in shares)
    assert {each["trainings"] for each in shares} == {2} and "trainings" in part["figures"]["easy"]["over"]


def test_wrong_labels_that_gather_in_the_hard_level_are_found_and_shown():
    runs = trainings(OWN, 2)
    part = level_figures(OWN, runs, contradicted=WRONG)
    assert part["learnt"] and part["next"].startswith("Review the ") and "labels are concentrated" in part["next"]
    assert {int(row["uid"][1:]) % 10 for row in part["rows"]} == {0}
    assert level_figures(OWN, runs, contradicted=np.roll(WRONG, 1))["next"].startswith("Do not assume that the ")
    few = level_figures(OWN, runs, contradicted=np.isin(np.arange(120), [0, 20, 41, 61]))
    assert "a difference that may be chance" in few["next"]
    without = level_figures(OWN, runs[:1])
    assert without["next"].startswith("Look at the ") and "another training" not in without["figures"]
    assert f"hard: {CONTRADICTED}" not in without["figures"]


def test_levels_of_models_that_have_learnt_nothing_or_never_agree_are_not_read():
    random = np.random.default_rng(3)
    part = level_figures(OWN, [tuple(random.normal(size=(2, 4, 120, 3))) for _ in range(2)])
    assert not part["learnt"] and part["next"].startswith("Do not use the levels yet")
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


# ---------------------------------------------------------------- command: report


@pytest.fixture
def mine(home, tmp_path):
    return write(tmp_path / "mine.csv", telling(150, wrong=10))


def reported(*words):
    """The numbers and the page of a report without a training, or as the words say."""
    ran("report", *(words if len(words) > 1 else (*words, "--fast")))
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
def test_levels_are_measured_once_and_their_number_is_that_of_the_runs(mine, encoder, request):
    words = [mine, "--encoder", encoder, "--epochs", 3, "--seeds", 2, "--pairs", 120, "--tasks"]
    content, page = reported(*words)
    assert sum(len(lines(path)) for path in export("tasks").glob("mine_[!u]*.jsonl")) == 150 + 120  # all, and levels
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
    page = reported(write(mine, telling(150, wrong=10, more=" <img src=x>")))[1]
    assert not {"img", "script"} & set(elements(page)[0]) and "&lt;img" in page


def test_a_list_of_this_very_corpus_is_taken_and_another_is_not(mine, tmp_path):
    table = pd.read_csv(mine)
    gold = np.eye(3)[table["label"].map(LABELS.index)] * 0.9 + 0.1 / 3
    gold[0] = gold[0][[1, 0, 2]]  # one label is contradicted
    table.assign(**{f"p_{name}": gold[:, at] for at, name in enumerate(LABELS)}).to_csv(tmp_path / "probs.csv")
    ran("suspects", mine, "--probs", tmp_path / "probs.csv")
    content, page = reported(mine)
    found = content["suspects"]
    assert found["figures"]["accuracy"]["value"] == pytest.approx(149 / 150) and "probs.csv" in found["how"]
    assert found["page"] == "probs/suspects.html" and "probs/suspects.html" in page
    mine.write_text(mine.read_text(encoding="utf-8").replace("dog", "cat"), encoding="utf-8")
    assert "linear models" in reported(mine)[0]["suspects"]["how"]


def test_parts_of_a_file_are_tasks_that_the_harness_runs(mine, tmp_path, monkeypatch):
    ran("suspects", mine, "--fast")
    first, *others = pd.read_csv(export("fast") / "suspects.csv")["uid"]
    decided = write(tmp_path / "decided.csv", [(first, "keep"), (others[0], "fix")], header=("uid", "decision"))
    ran("suspects", mine, "--fast", "--decided", decided)
    ran("report", mine, "--fast", "--tasks")
    folder, two = export("tasks"), replace(corpus([("P", "H.", "not_entailment")], TWO_WAY), name="a b")
    report.write_tasks(folder, two, {"easy": [True]})
    report.write_tasks(folder, two, {"hard": [True], "easy": [False]})
    assert not [*folder.glob("a_b_easy*")]  # it was of before, and is empty now
    files = (folder / f"mine_{part}.jsonl" for part in ("all", "unsuspected"))
    whole, free = ({row["uid"]: row["label"] for row in lines(file)} for file in files)
    assert whole.keys() - free.keys() == {*others} and [*whole.values()] == load(str(mine)).labels.tolist()
    sizes = {"mine_all": 150, "mine_unsuspected": len(free), "a_b_hard": 1}
    for name in sizes:
        task = yaml.safe_load((folder / f"{name}.yaml").read_text())
        words = "True, False, or Neither" if "mine" in name else "True or False"
        assert task["doc_to_text"] == "{{premise}}\nQuestion: {{hypothesis}} " + f"{words}?\nAnswer:"
        assert task["doc_to_choice"] == [word for word in ("True", "Neither", "False") if word in words]
    harness = pytest.importorskip("lm_eval.tasks", reason="lm_eval is not installed: no judge of the tasks")
    monkeypatch.chdir(folder)  # where the tasks find their files
    given = {"task_manager": harness.TaskManager(include_path=".", include_defaults=False)}
    said = pytest.importorskip("lm_eval.evaluator").simple_evaluate("dummy", tasks=["mine_parts", "a_b_hard"], **given)
    assert {name: each["effective"] for name, each in said["n-samples"].items()} == sizes


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
    monkeypatch.setattr(report, "measure_levels", Mock(side_effect=ModuleNotFoundError("No module", name=name)))
    ran("report", mine)
    assert numbers_of("report.json")["missing"]["levels"].startswith(f"{name} is not installed")
    assert "pip install" in text_of("report.html")
