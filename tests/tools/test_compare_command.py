"""`nli-study compare` on files, with a tiny encoder. Run alone: pytest tests/tools/test_compare_command.py"""

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tiny_encoder import write_encoder
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora.corpus import CorpusError
from nli_lib.learn import predict
from nli_lib.store import StoreError
from nli_tools import compare as comparisons
from nli_tools.commands import app
from nli_tools.compare import ARMS, CompareError

THREE, TWO = ("entailment", "neutral", "contradiction"), ("entailment", "not_entailment")
SIGNS = ("surely", "perhaps", "never")
NAMES = [f"n{at}" for at in range(60)]
NASTY = "<script>x</script>"


def rows(n, labels=THREE, start=0, wrong=9):
    """n pairs whose hypotheses say their label by a word, but for every ``wrong``-th."""
    made, random = [], np.random.default_rng(start)
    for at in range(start, start + n):
        label = at % len(labels)
        sign = SIGNS[label] if at % wrong else random.choice(SIGNS[: len(labels)])
        made.append(
            (f"dog {NAMES[at // 2 % 60]} {NAMES[at // 120]} runs", f"it {sign} {random.choice(NAMES)}", labels[label])
        )
    return made


def write(path, pairs):
    pd.DataFrame(pairs, columns=["premise", "hypothesis", "label"]).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    words = ["dog", "runs", "it", *SIGNS, *NAMES]
    return write_encoder(tmp_path_factory.mktemp("encoder"), words)


@pytest.fixture
def call(home, encoder, tmp_path):
    def compare(*words, corpus=None, test=None, quick=True):
        mine = write(tmp_path / "mine.csv", corpus if corpus is not None else rows(150))
        held = write(tmp_path / "held.csv", test if test is not None else rows(120, start=1_000))
        how = ["--seeds", 2, "--folds", 2, "--epochs", 2, "--encoder", encoder] if quick else ["--encoder", encoder]
        return CliRunner().invoke(app, [str(each) for each in ("compare", mine, "--test", held, *how, *words)])

    return compare


@pytest.fixture
def few_arms(monkeypatch):
    monkeypatch.setattr("nli_tools.compare.ARMS", ("base", "random more", "z-filter", "consensus pruning"))


def found():
    (path,) = paths.EXPORTS.glob("*/compare.json")
    return json.loads(path.read_text(encoding="utf-8")), path.parent


def runs():
    return {path.parent.name: path.stat().st_mtime_ns for path in paths.RUNS.glob("*/done.npy")}


@pytest.mark.slow
def test_a_comparison_from_a_file_to_a_page_and_again_at_no_cost(call, tmp_path, monkeypatch):
    added = write(tmp_path / "new.csv", rows(60, start=2_000))
    leaked = [*rows(120, start=1_000), *rows(4)]
    done = call("--anyway", "--added", f"{NASTY}={added}", test=leaked)
    assert done.exit_code == 0, (done.output, done.exception)
    content, folder = found()
    names = ["compare.csv", "compare.html", "compare.json", "compare_pairs.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert done.stdout.splitlines()[-5] == content["next"]
    arms = {each["arm"]: each for each in content["arms"]}
    named = {"base", *ARMS, f"{NASTY} added", f"{NASTY} swapped in"}
    assert set(arms) | set(content["absent"]) == named and {"base", "random more", f"{NASTY} added"} <= set(arms)
    facts = {"taken out": 4, "pairs": 120, "name": "held.csv"}
    assert facts.items() <= content["test"].items()
    assert content["settings"]["rows of a training set"] == 50 and content["settings"]["candidates"] == 150

    # one number by an independent computation, from the predictions that the runs have stored
    accuracy = []
    held = pd.read_csv(tmp_path / "held.csv")[:120]
    gold = held["label"].map(THREE.index).to_numpy()
    for run in paths.RUNS.glob("*_train_s*"):
        (stored,) = run.glob("predictions/logits-*.npy")
        if len(np.load(stored)) == 120:
            accuracy.append((np.load(stored).argmax(axis=1) == gold).mean())
    for each in arms.values():
        singles = np.array(accuracy)
        pairs = [(a + b) / 2 for a in singles for b in singles]
        assert np.isclose(pairs, each["accuracy"]["value"]).any()
    assert np.isclose(arms["base"]["accuracy"]["value"] - arms["base"]["accuracy of the twin"]["value"],
                      arms["base"]["difference"]["value"])  # fmt: skip

    page = (folder / "compare.html").read_text(encoding="utf-8")
    assert NASTY not in page and "&lt;script&gt;x&lt;/script&gt; added" in page
    pairs = pd.read_csv(folder / "compare_pairs.csv")
    assert len(pairs) == 150 and pairs["kept by z-filter"].between(0, 1).all()
    assert not list(paths.RUNS.rglob("*.safetensors"))  # the weights are not kept

    before, files = runs(), {path: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda *_args, **_more: pytest.fail("trained again"))
    again = call("--anyway", "--added", f"{NASTY}={added}", test=leaked)
    assert again.exit_code == 0, (again.output, again.exception)
    assert runs() == before and {path: path.read_bytes() for path in folder.iterdir()} == files


@pytest.mark.slow
@pytest.mark.usefixtures("few_arms")
def test_two_classes_are_compared_and_what_needs_neutral_says_so(call, tmp_path):
    three = write(tmp_path / "three.csv", rows(60, start=2_000))
    two = write(tmp_path / "new.csv", [(p, h, "neutral") for p, h, _ in rows(60, start=3_000)])
    done = call("--anyway", "--added", f"three={three}", "--added", f"one={two}", corpus=rows(150, TWO),
                test=rows(120, start=1_000))  # fmt: skip
    assert done.exit_code == 0, (done.output, done.exception)
    content, _ = found()
    assert content["classes"] == list(TWO)
    assert "entailments that models call neutral" in content["absent"]["consensus pruning"]
    assert "entailment, not_entailment" in content["absent"]["consensus pruning"]
    assert "three added" in {each["arm"] for each in content["arms"]}  # its three labels are read as two
    assert content["test"]["pairs"] == 120


@pytest.mark.slow
@pytest.mark.usefixtures("few_arms")
def test_stopped_it_continues(call, monkeypatch):
    seen, answers = [], comparisons.Work.answers

    def stop(self, spec, corpus):
        seen.append(spec.id)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return answers(self, spec, corpus)

    monkeypatch.setattr(comparisons.Work, "answers", stop)
    assert call("--anyway").exit_code != 0
    there = runs()
    assert there and not list(paths.EXPORTS.rglob("compare.*"))
    monkeypatch.setattr(comparisons.Work, "answers", answers)
    done = call("--anyway")
    assert done.exit_code == 0, (done.output, done.exception)
    assert there.items() <= runs().items()


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        ([], {}, "a difference below 67.5 points would not be found, and 10.0 points are asked for"),
        (["--seeds", 5], {}, "test pairs are needed for that. Or name a larger difference with --worth"),
        ([], {"corpus": rows(63)}, "63 different pairs are too few to compare training sets on: 72 are needed"),
        ([], {"corpus": rows(45)}, "a comparison: 20 rows of each class are needed, and there are entailment 15"),
        (["--budget", 140], {}, "a budget of 140 pairs needs 24 at least, and 210 candidates, better 420"),
        (["--anyway"], {"test": rows(90)}, "all of its pairs that can be used stand in what is trained on"),
        (["--anyway"], {"corpus": rows(150, TWO), "test": rows(60, TWO[:1])}, "a model of one cannot be judged by"),
        (["--anyway", "--encoder", "minilm"], {}, "ships in a package that is not installed"),
        (["--added", "mine"], {}, "--added mine: write NAME=FILE"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_trained(call, monkeypatch, words, given, said):
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda *_args, **_more: pytest.fail("trained"))
    monkeypatch.setattr("nli_lib.learn.text.OFFLINE_MODELS", {"minilm": ("no_such_package", "model")})
    if given.get("test") and len(given["test"]) == 60:
        given = {**given, "test": [(p, h, "non_contradiction" if at % 2 else "contradiction")
                                   for at, (p, h, _) in enumerate(rows(60, start=1_000))]}  # fmt: skip
    done = call(*words, **given)
    assert said in str(done.exception), (done.output, done.exception)
    assert not runs() and not list(paths.EXPORTS.rglob("*"))


def test_an_addition_or_a_test_that_decides_the_outcome_is_refused_before_anything_is_trained(call, tmp_path):
    few = write(tmp_path / "few.csv", rows(6, start=2_000))
    done = call("--anyway", "--added", f"few={few}")
    assert "--added few: few has 6 pairs for this arm, and" in str(done.exception)
    one = [(premise, hypothesis, "neutral") for premise, hypothesis, _ in rows(60, start=1_000)]
    assert "its pairs have one label" in str(call("--anyway", test=one).exception)
    assert not runs()


def test_a_base_that_has_learnt_nothing_ends_the_comparison_early(call, monkeypatch):
    monkeypatch.setattr(comparisons.Work, "answers", lambda self, spec, corpus: np.zeros(len(self.test), bool))
    monkeypatch.setattr(comparisons.Work, "score", lambda *_args: pytest.fail("scored the candidates"))
    done = call("--worth", 100)
    assert isinstance(done.exception, CompareError) and "It has not learnt the task" in str(done.exception)


def test_a_base_whose_trainings_differ_too_much_ends_it_too(call, monkeypatch):
    turn = iter([0.4, 1, 1, 0.4])
    monkeypatch.setattr(
        comparisons.Work, "answers", lambda self, spec, corpus: np.arange(len(self.test)) < next(turn) * len(self.test)
    )
    monkeypatch.setattr(comparisons.Work, "score", lambda *_args: pytest.fail("scored the candidates"))
    done = call("--worth", 100)
    assert isinstance(done.exception, CompareError) and "would not be found" in str(done.exception)


@pytest.mark.parametrize("name", ["torch", "transformers"])
def test_without_a_package_of_the_study_it_says_what_to_install(call, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "nli_lib.learn.model", raising=False)
    assert str(call().exception) == f"{name} is not installed: pip install 'nli-quality-study[study,offline]'"
    assert issubclass(CompareError, Exception) and issubclass(CorpusError, Exception)


def test_a_model_whose_weights_are_gone_is_trained_again_for_another_test_file(call, monkeypatch):
    def twice(self):
        spec = self.spec(self.whole, 0, capture="train")
        first, whole = self.answers(spec, self.whole), self.test
        self.test = whole[:50]
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

    def broken(*given):
        raise StoreError("logits.npy cannot be written (No space left on device)")

    monkeypatch.setattr(comparisons.Work, "everything", twice)
    assert str(call("--anyway").exception) == "seen"
