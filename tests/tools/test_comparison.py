"""`nli-study compare`: numbers, page, files with a tiny encoder. Run alone: pytest tests/tools/test_comparison.py"""

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from audited import NAMES, WORDS, call, elements, export, numbers_of, telling, write
from compared import PREMISES, TITLE, TRUTH, N, S, made, whole
from tiny_encoder import write_encoder

from nli_lib import paths
from nli_lib.corpora.corpus import LABELS, TWO_WAY
from nli_lib.learn import predict
from nli_lib.select.arms import ARM, TWIN
from nli_lib.stats import Estimate
from nli_lib.store import StoreError
from nli_tools import compare
from nli_tools.audit import distance, points
from nli_tools.compare import ARMS, BETTER, OPEN, SAME, UNLEARNT, WORSE, CompareError, Noise, pairs_needed, smallest

NOISE = Noise(0.01, 0.45)
WIDE = Noise(1.0, 1)


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

    needed = pairs_needed(NOISE, trainings=5, family=7, worth=0.1)
    said = told(title="mine.csv")
    assert f"{needed:,} test pairs are needed" in said and "mine.csv: with 50 test pairs and 5 trainings" in said
    assert told(n=needed) == ""
    assert f"with 2 trainings: {more} trainings" in told(n=10_000, trainings=2, worth=0.05)
    assert "No number of trainings" in told(WIDE, n=9, worth=0.001)
    assert np.isnan(smallest(Noise(0.0, 0.0), n=9, trainings=3, family=1))
    assert told(Noise(0.0, 0.0), n=9) == ""  # nothing varies
    assert distance(None) == distance(np.nan) == "an unknown size"
    assert (distance(0.0312), points(-0.0001), points(0.0001)) == ("3.1 points", "0.0 points", "0.0 points")


@pytest.mark.parametrize(
    ("gap", "holm", "verdict"),
    [
        ((0.05, 0.01, 0.09), 0.01, BETTER),
        ((-0.05, -0.09, -0.01), 0.01, WORSE),
        ((0.05, 0.01, 0.09), 0.2, SAME),  # corrected for the other arms
        ((0.05, -0.01, 0.11), 0.2, OPEN),
        ((0.0, np.nan, np.nan), np.nan, OPEN),
    ],
)
def test_verdicts_by_hand(gap, holm, verdict):
    assert compare.verdict(Estimate(*gap, 9), holm, 0.1) == verdict


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
            above = own - right["base", ARM][TITLE].mean()
            assert each["above the base"]["value"] == pytest.approx(above)
    assert arms["z-filter"]["verdict"] == BETTER and arms["hard"]["verdict"] == WORSE and arms["base"]["verdict"] == ""
    # Holm by hand: the smallest of four p counts four times, the next three
    (p, holm), (next_p, next_holm) = sorted(
        (arms[name]["difference"]["p"], arms[name]["difference"]["p, Holm"]) for name in arms if name != "base"
    )[:2]
    assert (holm, next_holm) == pytest.approx((min(1, 4 * p), min(1, max(4 * p, 3 * next_p))))
    assert arms["z-filter"]["rank"]["value"] == 1 and arms["hard"]["rank"]["value"] == 5
    first = "Keep the pairs that the z-filter keeps: the model trained so predicts held.csv better"
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
    assert "From so few pairs nothing was learnt with: hard." in content["next"]


def test_a_name_is_text_on_the_page_and_the_page_shows_the_numbers_of_the_file():
    content = whole(made()[1])
    page = compare.page(content)
    assert not {"script", "b", "i", "u"} & set(elements(page)[0]) and "&lt;b&gt;mine" in page
    assert all(f"{100 * each['accuracy']['value']:.1f}%" in page for each in content["arms"])
    assert "without 2 that stand in what is trained on" in page and "none is &lt;u&gt;" in page
    table = compare.table(content).set_index("arm")
    assert table.loc["hard", "difference"] == pytest.approx(content["arms"][2]["difference"]["value"], abs=1e-5)
    assert table.loc["easy", "verdict"] == "left out: none is <u>"


# ---------------------------------------------------------------- command


NASTY = "<script>x</script>"


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"), ["dog", "runs", "it", *WORDS, *NAMES])


@pytest.fixture
def ask(home, encoder, tmp_path):
    def asked(*words, corpus=None, test=None):
        mine = write(tmp_path / "mine.csv", corpus or telling(150))
        held = write(tmp_path / "held.csv", test or telling(120, start=1_000))
        how = ["--seeds", 2, "--folds", 2, "--epochs", 2, "--encoder", encoder]
        return call("compare", mine, "--test", held, *how, *words)

    return asked


@pytest.fixture
def few_arms(monkeypatch):
    monkeypatch.setattr(compare, "ARMS", ("base", "random more", "z-filter", "consensus pruning"))


@pytest.fixture
def untrained(monkeypatch):
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda *_args, **_more: pytest.fail("trained"))


def runs():
    return {path.parent.name: path.stat().st_mtime_ns for path in paths.RUNS.glob("*/done.npy")}


@pytest.mark.slow
def test_a_comparison_from_a_file_to_a_page_and_again_at_no_cost(ask, tmp_path, request):
    added = write(tmp_path / "new.csv", telling(60, start=2_000))
    words = ["--anyway", "--added", f"{NASTY}={added}"]
    leaked = [*telling(120, start=1_000), *telling(4)]
    done = ask(*words, test=leaked)
    assert done.exit_code == 0, (done.output, done.exception)
    content, folder = numbers_of("compare.json"), export("compare.json").parent
    names = ["compare.csv", "compare.html", "compare.json", "compare_pairs.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert done.stdout.splitlines()[-5] == content["next"]
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
    again = ask(*words, test=leaked)
    assert again.exit_code == 0, (again.output, again.exception)
    assert runs() == before and {path: path.read_bytes() for path in folder.iterdir()} == files


@pytest.mark.slow
@pytest.mark.usefixtures("few_arms")
def test_two_classes_are_compared_and_what_needs_neutral_says_so(ask, tmp_path):
    three = write(tmp_path / "three.csv", telling(60, start=2_000))
    one = write(tmp_path / "new.csv", [(p, h, "neutral") for p, h, _ in telling(60, start=3_000)])
    done = ask("--anyway", "--added", f"three={three}", "--added", f"one={one}", corpus=telling(150, TWO_WAY))
    assert done.exit_code == 0, (done.output, done.exception)
    content = numbers_of("compare.json")
    assert content["classes"] == list(TWO_WAY)
    assert "entailments that models call neutral" in content["absent"]["consensus pruning"]
    assert "entailment, not_entailment" in content["absent"]["consensus pruning"]
    assert "three added" in {each["arm"] for each in content["arms"]}  # its three labels are read as two
    assert content["test"]["pairs"] == 120


@pytest.mark.slow
@pytest.mark.usefixtures("few_arms")
def test_stopped_it_continues(ask, monkeypatch):
    seen, answers = [], compare.Work.answers

    def stop(self, spec, corpus):
        seen.append(spec.id)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return answers(self, spec, corpus)

    with monkeypatch.context() as patch:
        patch.setattr(compare.Work, "answers", stop)
        assert ask("--anyway").exit_code != 0
    there = runs()
    assert there and not list(paths.EXPORTS.rglob("compare.*"))
    done = ask("--anyway")
    assert done.exit_code == 0, (done.output, done.exception)
    assert there.items() <= runs().items()


HELD = [row[:2] for row in telling(60, start=1_000)]
OTHER = [(*row, ("contradiction", "non_contradiction")[at % 2]) for at, row in enumerate(HELD)]
ONE = [(*row, "neutral") for row in HELD]


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        ([], {}, "a difference below 67.5 points would not be found, and 10.0 points are asked for"),
        (["--seeds", 5], {}, "test pairs are needed for that. Or name a larger difference with --worth"),
        ([], {"corpus": telling(63)}, "63 different pairs are too few to compare training sets on: 72 are needed"),
        ([], {"corpus": telling(45)}, "a comparison: 20 rows of each class are needed, and there are entailment 15"),
        (["--budget", 140], {}, "a budget of 140 pairs needs 24 at least, and 210 candidates, better 420"),
        (["--anyway"], {"test": telling(90)}, "all of its pairs that can be used stand in what is trained on"),
        (["--anyway"], {"corpus": telling(150, TWO_WAY), "test": OTHER}, "a model of one cannot be judged by"),
        (["--anyway"], {"test": ONE}, "its pairs have one label"),
        (["--anyway", "--encoder", "minilm"], {}, "ships in a package that is not installed"),
        (["--added", "mine"], {}, "--added mine: write NAME=FILE"),
        (["--anyway", "--added", "few=few.csv"], {}, "--added few: few has 6 pairs for this arm, and"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_trained(ask, tmp_path, monkeypatch, words, given, said):
    monkeypatch.setattr("nli_lib.learn.text.OFFLINE_MODELS", {"minilm": ("no_such_package", "model")})
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "few.csv", telling(6, start=2_000))
    done = ask(*words, **given)
    assert said in str(done.exception), (done.output, done.exception)
    assert not runs() and not list(paths.EXPORTS.rglob("*"))


@pytest.mark.parametrize(
    ("shares", "said"), [([0] * 4, "It has not learnt the task"), ([0.4, 1, 1, 0.4], "would not be found")]
)
def test_a_base_that_has_learnt_nothing_or_differs_too_much_ends_it_early(ask, monkeypatch, shares, said):
    turn = iter(shares)
    answers = lambda self, spec, corpus: np.arange(len(self.test)) < next(turn) * len(self.test)  # noqa: E731
    monkeypatch.setattr(compare.Work, "answers", answers)
    monkeypatch.setattr(compare.Work, "score", lambda *_args: pytest.fail("scored the candidates"))
    done = ask("--worth", 100)
    assert isinstance(done.exception, CompareError) and said in str(done.exception)


@pytest.mark.parametrize("name", ["torch", "transformers"])
def test_without_a_package_of_the_study_it_says_what_to_install(ask, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "nli_lib.learn.model", raising=False)
    assert str(ask().exception) == f"{name} is not installed: pip install 'nli-quality-study[study,offline]'"


def test_a_model_whose_weights_are_gone_is_trained_again_for_another_test_file(ask, monkeypatch):
    def broken(*given):
        raise StoreError("logits.npy cannot be written (No space left on device)")

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
            full.setattr(predict, "predict", broken)
            with pytest.raises(StoreError, match="No space left"):
                self.answers(other, self.whole)
        assert (other.folder / "about.json").stat().st_mtime_ns == trained
        raise CompareError("seen")

    monkeypatch.setattr(compare.Work, "everything", twice)
    assert str(ask("--anyway").exception) == "seen"
