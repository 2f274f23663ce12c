"""Trainings as parts. Alone: pytest tests/study/test_answers.py"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tiny_encoder import write_encoder
from tiny_words import make_corpus

from nli_lib import paths
from nli_lib.store import RunSpec, StoreError
from nli_lib.study import parts
from nli_lib.study.parts import (
    Trained,
    Training,
    accuracies,
    answers,
    dynamics,
    epochs_in,
    gather,
    guesses,
    logits,
    logits_in,
    packed,
    right,
    right_in,
    there,
    unpacked,
)

CHAPTER = "25_try"


@pytest.fixture(autouse=True)
def place(home):
    return home


STUDY = SimpleNamespace(notebook=CHAPTER, parts=lambda wanted: gather(wanted, "smoke"))


@pytest.fixture
def training(tmp_path):
    corpus = make_corpus(18)
    words = {word for text in [*corpus.premise, *corpus.hypothesis] for word in text.lower().split()}
    model = write_encoder(tmp_path / "encoder", sorted(words))
    spec = RunSpec(corpus="tiny", model=model, epochs=2, batch_size=6, precision="fp32", max_length=24)
    return Training(spec, corpus, {"test": make_corpus(7), "other": make_corpus(5)})


def files():
    return sorted(path.name for path in (paths.RESULTS / "smoke" / f"{CHAPTER}.parts").glob("*.parquet"))


def counted(monkeypatch):
    """How often a model is trained or looked up."""
    made, real = [], Training.run
    monkeypatch.setattr(Training, "run", lambda self: made.append(self.spec.seed) or real(self))
    return made


def test_a_training_is_asked_once_and_never_again(training, monkeypatch):
    made = counted(monkeypatch)
    first = answers(STUDY, {("Z-Aug", 0): training}, right)
    assert made == [0] and there(training)
    for run in paths.RUNS.iterdir():
        run.rename(run.with_name("gone"))
    again = answers(STUDY, {("Z-Aug", 0): training}, right)
    assert made == [0]
    pd.testing.assert_frame_equal(first["Z-Aug", 0], again["Z-Aug", 0])
    bits = right_in(again["Z-Aug", 0])
    assert {title: each.shape for title, each in bits.items()} == {"test": (7,), "other": (5,)}
    assert again["Z-Aug", 0].attrs["seconds"] > 0 and again["Z-Aug", 0].attrs["device"]


def test_equal_trainings_are_one_part_and_other_rows_tests_or_questions_another(training, monkeypatch):
    made = counted(monkeypatch)
    twins = {("D0", 0): training, ("D0, twin", 0): training._replace(spec=training.spec.model_copy())}
    found = answers(STUDY, twins, right)
    assert made == [0] and found["D0", 0].equals(found["D0, twin", 0])
    others = {
        ("rows", 0): training._replace(
            corpus=training.corpus[::-1], spec=training.spec.model_copy(update={"subset": "x"})
        ),
        ("tests", 0): training._replace(tested={"test": make_corpus(6)}),
    }
    answers(STUDY, others, right)
    answers(STUDY, {("D0", 0): training}, accuracies)
    assert len(made) == 4 and len(files()) == 4


def test_what_each_question_answers_is_what_the_model_says(training):
    from nli_lib.learn.predict import predict

    run = training.run()
    said = {title: predict(run, test) for title, test in training.tested.items()}
    asked = {("a", 0): training}
    bits = right_in(answers(STUDY, asked, right)["a", 0])
    table = answers(STUDY, asked, accuracies)["a", 0].set_index("title")
    for title, test in training.tested.items():
        assert np.array_equal(bits[title], said[title].argmax(axis=1) == test.labels)
        assert table.loc[title, "accuracy"] == pytest.approx(bits[title].mean())
    both = logits_in(answers(STUDY, asked, logits)["a", 0])
    assert all(np.array_equal(both[title], said[title]) for title in said)
    assert np.array_equal(epochs_in(answers(STUDY, asked, dynamics)["a", 0], 18), run.logits)
    one = training._replace(tested={"pairs": training.tested["test"]})
    probability = answers(STUDY, {("b", 0): one}, guesses)["b", 0]
    assert np.allclose(probability.sum(axis=1), 1) and list(probability) == list(training.corpus.classes)
    assert np.array_equal(probability.to_numpy().argmax(axis=1), said["test"].argmax(axis=1))


def test_a_training_of_another_chapter_is_asked_as_long_as_it_is_there(training):
    settings = training.spec.model_dump_json(exclude_defaults=True)
    asked = {("student", 0): Trained(settings, {"pairs": training.tested["test"]})}
    with pytest.raises(StoreError, match="run the chapter that trains it"):
        answers(STUDY, asked, logits)
    training.run()
    first = answers(STUDY, asked, logits, chapter="44_try")
    for run in paths.RUNS.iterdir():
        run.rename(run.with_name("gone"))
    again = answers(SimpleNamespace(**{**vars(STUDY), "notebook": "44_try"}), asked, logits)
    assert first["student", 0].equals(again["student", 0])


def test_early_stopping_rests_on_its_validation_pairs(training):
    spec = training.spec.model_copy(update={"patience": 1, "validation": "dev"})
    one, two = (training._replace(spec=spec, validation=make_corpus(count)) for count in (6, 7))
    assert one.decides("right") != two.decides("right") != training.decides("right")


def test_bits_are_packed_whatever_their_number():
    for count in (0, 1, 8, 13):
        bits = np.random.default_rng(count).random(count) < 0.5
        assert np.array_equal(unpacked(packed(bits), count), bits)


def test_no_torch_is_needed_to_read():
    import subprocess
    import sys

    script = f"import sys, {parts.__name__}; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.split() == ["False"]
