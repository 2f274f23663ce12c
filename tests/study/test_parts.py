"""Trainings that last, and what is asked of them. Alone: pytest tests/study/test_parts.py"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
from tiny import place_home, write_notebook
from tiny_models import make_language_model, write_encoder
from tiny_words import make_corpus

from nli_lib import paths
from nli_lib.learn.predict import predict
from nli_lib.store import RunSpec, StoreError
from nli_lib.study import parts, runner
from nli_lib.study.parts import Generator, MissingPartsError, Part, Trained, Training, answers, gather, written

CHAPTER = "22_try"


@pytest.fixture(autouse=True)
def place(home, monkeypatch):
    monkeypatch.setenv(parts.ONLY, "")


def part(made, seed, *, table=None, **more):
    """A part that says in `made` when it is made."""

    def make():
        made.append(seed)
        return pd.DataFrame({"x": [0.1 * seed, np.nan], "text": ["a", None]}) if table is None else table

    return Part(CHAPTER, {"recipe": {"seed": seed, **more}}, make)


def three(made):
    return {f"longer, training {seed}": part(made, seed) for seed in range(3)}


def in_a_child(action):
    """Start `action` in a forked process."""
    if (pid := os.fork()) == 0:
        action()
        os._exit(0)
    return pid


def test_a_part_is_made_once_and_both_ways_give_the_same_bits():
    made = []
    first, again = gather(three(made), "smoke"), gather(three(made), "smoke")
    assert made == [0, 1, 2]
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, again[name], check_exact=True)
        assert table.attrs == again[name].attrs and table.attrs["seconds"] >= 0
    assert first["longer, training 2"].attrs["decides"] == {"recipe": {"seed": 2}}


def test_killed_in_the_middle_nothing_half_written_is_taken():
    def killed_when_it_is_put_in_place():
        real, places = Path.replace, iter([False, True])
        Path.replace = lambda path, to: os.kill(os.getpid(), signal.SIGKILL) if next(places) else real(path, to)
        gather(three([]), "smoke")

    assert os.waitpid(in_a_child(killed_when_it_is_put_in_place), 0)[1] == signal.SIGKILL
    made = []
    assert len(gather(three(made), "smoke")) == 3 and made == [1, 2]  # the first was whole


def test_a_full_disk_is_one_sentence_and_loses_nothing(monkeypatch):
    made, real = [], Path.write_bytes

    def full(path, data):
        real(path, data[:10])
        if len(made) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(StoreError, match=r"longer-training-1-\w{8}.parquet cannot be written \(No space left"):
            gather(three(made), "smoke")
    assert len(gather(three(made), "smoke")) == 3 and made == [0, 1, 1, 2]


def test_two_processes_share_the_parts_and_wait_for_the_last(monkeypatch):
    (begun, begin), (released, release), made = os.pipe(), os.pipe(), []
    wanted, name = three(made), "longer, training 0"

    def held():
        os.write(begin, b"x")
        os.read(released, 1)
        return pd.DataFrame({"x": [7.0]})

    child = in_a_child(lambda: gather({name: wanted[name]._replace(make=held)}, "smoke"))
    os.read(begun, 1)  # the child makes the first part

    def said(*words, **options):
        if "waiting" in words[0]:
            assert made == [1, 2]  # all that nobody else makes comes first
            os.write(release, b"x")

    with pytest.raises(MissingPartsError, match="1 of 3 parts are missing, longer, training 0"):
        gather(wanted, "smoke", parts.TRAIN)  # which leaves it to the other process
    monkeypatch.setattr(parts, "print", said, raising=False)
    assert gather(wanted, "smoke")[name]["x"].tolist() == [7.0] and os.waitpid(child, 0)[1] == 0 and made == [1, 2]


def test_a_part_of_another_recipe_is_named_and_left_aside(capsys):
    made, name = [], "longer, training 1"
    gather({name: part(made, 1)}, "smoke")
    gather({name: part(made, 1, epochs=9), "longer, training 10": part(made, 10)}, "smoke")
    (said,) = [line for line in capsys.readouterr().out.splitlines() if "left aside" in line]
    assert "longer-training-1-" in said
    gather({name: part(made, 1)}, "smoke")  # the first is still there
    assert made == [1, 1, 10]


@pytest.mark.parametrize("harm", ["cut", "a bit", "renamed"])
def test_a_damaged_part_is_named_with_its_cure(harm):
    made, name = [], "longer, training 0"
    each = part(made, 0, table=pd.DataFrame({"x": np.arange(5000) ** 2}))
    gather({name: each}, "smoke")
    path = parts.file_of(name, each, "smoke")
    data = bytearray(path.read_bytes())
    if harm == "renamed":
        each = part(made, 5)
        path.rename(parts.file_of(name, each, "smoke"))
    else:
        data[200] ^= 1
        path.write_bytes(data[:100] if harm == "cut" else data)
    with pytest.raises(StoreError, match=r"longer-training-0-\w{8}.parquet .*delete it, and it is made again"):
        gather({name: each}, "smoke")
    assert made == [0]  # nothing is trained behind the user's back


def test_a_large_part_is_cut_into_files_and_taken_as_a_whole(monkeypatch):
    monkeypatch.setattr(parts, "MOST_BYTES", 20_000)
    table = pd.DataFrame({"x": np.random.default_rng(0).random(8_000)})
    wanted = {"margins": part([], 0, table=table)}
    made = gather(wanted, "smoke")["margins"]
    assert made["x"].equals(table["x"]) and gather(wanted, "smoke")["margins"].equals(made)
    pieces = parts.files_in(parts.file_of("margins", wanted["margins"], "smoke"))
    assert len(pieces) == 4 and max(piece.stat().st_size for piece in pieces) <= 20_000
    parts.take("margins", wanted["margins"], "smoke", "smoke+epochs=1")
    there = parts.file_of("margins", wanted["margins"], "smoke+epochs=1")
    assert [each.read_bytes() for each in parts.files_in(there)] == [each.read_bytes() for each in pieces]
    for lost in (pieces[1], pieces[3]):
        aside = lost.rename(paths.RESULTS / "aside")
        with pytest.raises(StoreError, match="is not what its name says"):
            gather(wanted, "smoke")
        aside.rename(lost)


def test_what_decides_is_content():
    corpus, settings = make_corpus(12), {"model": "minilm", "seed": 1}
    spec, decided = RunSpec(corpus="tiny", **settings), parts.decided
    first = decided(spec, corpus)
    assert first == decided(RunSpec(corpus="renamed", split="test", limit=12, **settings), corpus)
    started = decided(spec, corpus, first)
    others = [decided(spec.model_copy(update={"epochs": 9}), corpus), decided(spec, corpus[::-1]), started]
    assert first not in [*others, decided(spec, corpus, tested="a digest")]
    assert started["recipe"]["model"] == first  # in place of the id of a run


MEASURE = """
import pandas as pd
from nli_lib.study.parts import Part
def make(seed):
    print(f"training {seed} is made")
    return pd.DataFrame({"x": [seed]})
wanted = {f"longer, training {seed}": Part("22_try", {"seed": seed}, lambda seed=seed: make(seed),
                                           lambda seed=seed: seed > 0) for seed in range(3)}
tables = study.parts(wanted)
study.save(pd.concat(tables.values()), "scores")
"""


def test_parts_alone_are_made_without_table_or_record(home, capsys):
    path = write_notebook(paths.NOTEBOOKS, CHAPTER, MEASURE, "1 / 0")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].metadata["tags"], notebook.cells[3].metadata["tags"] = ["begin"], ["measure", "parts"]
    nbformat.write(notebook, path)
    assert parts.progress(CHAPTER, "smoke") == "" and not runner.make_parts([], runner.Request(), parts.TAKE)
    said = capsys.readouterr().out
    assert [seed for seed in range(3) if f"training {seed} is made" in said] == [1, 2]
    assert "22_try: 2 of 3 parts are there; the others cost some 0.0 h, as on " in said
    path = parts.file_of("longer, training 9", Part(CHAPTER, {"seed": 9}, None), "smoke")
    wanted = json.loads((path.parent / parts.WANTED).read_text())
    (path.parent / parts.WANTED).write_text(json.dumps({**wanted, "debiased, training 9": path.name}))
    assert parts.progress(CHAPTER, "smoke").endswith(", besides 1 of a kind that was not timed yet")
    assert runner.make_parts([], runner.Request()) and capsys.readouterr().out.count("is made") == 1
    assert [file.name for file in (home / "data" / "results" / "smoke").iterdir()] == ["22_try.parts"]
    assert parts.progress(CHAPTER, "smoke") == "3 of 3 parts are there"


# ---------------------------------------------------------------- questions


STUDY = SimpleNamespace(notebook=CHAPTER, parts=lambda wanted: gather(wanted, "smoke"))


@pytest.fixture
def training(tmp_path):
    corpus = make_corpus(18)
    words = {word for text in [*corpus.premise, *corpus.hypothesis] for word in text.lower().split()}
    model = write_encoder(tmp_path / "encoder", sorted(words))
    spec = RunSpec(corpus="tiny", model=model, epochs=2, batch_size=6, precision="fp32", max_length=24)
    return Training(spec, corpus, {"test": make_corpus(7), "other": make_corpus(5)})


@pytest.fixture
def made(monkeypatch):
    """How often a model is trained or looked up."""
    made, real = [], Training.run
    monkeypatch.setattr(Training, "run", lambda self: made.append(self.spec.seed) or real(self))
    return made


def lose_runs():
    for run in paths.RUNS.iterdir():
        run.rename(run.with_name("gone"))


def test_a_training_is_asked_once_and_never_again(training, made):
    first = answers(STUDY, {("Z-Aug", 0): training}, parts.right)["Z-Aug", 0]
    assert parts.there(training)
    lose_runs()
    again = answers(STUDY, {("Z-Aug", 0): training}, parts.right)["Z-Aug", 0]
    assert made == [0] and again.attrs["seconds"] > 0 and again.attrs["device"]
    pd.testing.assert_frame_equal(first, again)


def test_equal_trainings_are_one_part_and_other_rows_tests_or_questions_another(training, made):
    twins = {("D0", 0): training, ("D0, twin", 0): training._replace(spec=training.spec.model_copy())}
    found = answers(STUDY, twins, parts.right)
    assert made == [0] and found["D0", 0].equals(found["D0, twin", 0])
    spec = training.spec.model_copy(update={"subset": "x"})
    rows, tests = training._replace(corpus=training.corpus[::-1], spec=spec), {"test": make_corpus(6)}
    answers(STUDY, {("rows", 0): rows, ("tests", 0): training._replace(tested=tests)}, parts.right)
    answers(STUDY, {("D0", 0): training}, parts.accuracies)
    assert len(made) == 4 == len(list((paths.RESULTS / "smoke" / f"{CHAPTER}.parts").glob("*.parquet")))
    # and early stopping rests on its validation pairs
    spec = training.spec.model_copy(update={"patience": 1, "validation": "dev"})
    one, two = (training._replace(spec=spec, validation=make_corpus(count)) for count in (6, 7))
    assert one.decides("right") != two.decides("right") != training.decides("right")


def test_what_each_question_answers_is_what_the_model_says(training):
    run = training.run()
    said = {title: predict(run, test) for title, test in training.tested.items()}

    def asked(question, **changed):
        return answers(STUDY, {("a", 0): training._replace(**changed)}, question)["a", 0]

    bits, table = parts.right_in(asked(parts.right)), asked(parts.accuracies).set_index("title")
    both = parts.logits_in(asked(parts.logits))
    for title, test in training.tested.items():
        assert np.array_equal(bits[title], said[title].argmax(axis=1) == test.labels)
        assert table.loc[title, "accuracy"] == pytest.approx(bits[title].mean())
        assert np.array_equal(both[title], said[title])
    assert np.array_equal(parts.epochs_in(asked(parts.dynamics), 18), run.logits)
    probability = asked(parts.guesses, tested={"pairs": training.tested["test"]})
    assert np.allclose(probability.sum(axis=1), 1) and list(probability) == list(training.corpus.classes)
    assert np.array_equal(probability.to_numpy().argmax(axis=1), said["test"].argmax(axis=1))


def test_a_training_of_another_chapter_is_asked_as_long_as_it_is_there(training):
    settings = training.spec.model_dump_json(exclude_defaults=True)
    asked = {("student", 0): Trained(settings, {"pairs": training.tested["test"]})}
    with pytest.raises(StoreError, match="run the chapter that trains it"):
        answers(STUDY, asked, parts.logits)
    training.run()
    first = answers(STUDY, asked, parts.logits, chapter="44_try")
    lose_runs()
    again = answers(SimpleNamespace(**{**vars(STUDY), "notebook": "44_try"}), asked, parts.logits)
    assert first["student", 0].equals(again["student", 0])


@pytest.mark.parametrize("count", [0, 1, 8, 13])
def test_bits_are_packed_whatever_their_number(count):
    bits = np.random.default_rng(count).random(count) < 0.5
    assert np.array_equal(parts.unpacked(parts.packed(bits), count), bits)


# ---------------------------------------------------------------- generators


@pytest.fixture
def generators(tmp_path):
    """One, and another that goes on from it with what a filter kept."""
    corpus, model, learnt = make_corpus(16), make_language_model(tmp_path / "model"), parts.ordinary(0.0)
    settings = {"corpus": "tiny", "batch_size": 4, "learning_rate": 1e-2, "max_length": 48, "precision": "fp32"}
    spec = RunSpec(**settings, model=model, epochs=6, objective=learnt.name, record="last", seed=3)
    first = Generator("plain, training 3", CHAPTER, spec, corpus, learnt)
    words = [sum(len(text.split()) for text in texts) for texts in (corpus.premise, corpus.hypothesis)]
    mask = [np.zeros(count, bool) for count in (*words, len(corpus))]
    debias = parts.debiasing(np.arange(len(corpus)) > 2, mask, 0.0)
    start = {"model": f"run:{spec.id}", "epochs": 1, "objective": debias.name}
    second = Generator("kept only, training 3", CHAPTER, spec.model_copy(update=start), corpus, debias, first)
    return {"plain": first, "kept only": second}


def asking(only=None):
    dial = SimpleNamespace(generator=SimpleNamespace(samples=40, at_once=20))
    return SimpleNamespace(dial=dial, parts=lambda wanted: gather(wanted, "smoke", only))


def test_generators_move_to_another_machine_and_nothing_is_trained(tmp_path, monkeypatch, generators):
    found, here = written(asking(), generators), paths.RESULTS
    assert found["plain"].logits.shape == (1, 16, 3) and len(found["plain"].log) == 6
    place_home(tmp_path / "there", monkeypatch)
    shutil.copytree(here, paths.RESULTS, dirs_exist_ok=True)
    moved = written(asking(), generators)
    for name, each in found.items():
        pd.testing.assert_frame_equal(each.samples, moved[name].samples, check_exact=True)
        pd.testing.assert_frame_equal(each.log, moved[name].log, check_exact=True)
        assert np.array_equal(each.logits, moved[name].logits)
    assert not list(paths.RUNS.iterdir())


def test_finished_runs_are_taken_over_without_training(capsys, generators):
    first, taking = generators["plain"], asking(parts.TAKE)
    run = first.trained()
    with pytest.raises(MissingPartsError, match="3 of 4 parts are missing, plain, training 3, samples"):
        written(taking, generators)  # nothing was sampled yet
    draws = {name: each.make() for name, each in first.parts(40, 20).items()}
    with pytest.raises(MissingPartsError, match="2 of 4 parts are missing, kept only"):
        written(taking, generators)
    assert [path.name for path in paths.RUNS.iterdir() if path.is_dir()] == [run.folder.name]
    taken = written(asking(), {"plain": first})["plain"]
    assert np.array_equal(taken.logits, run.logits) and len(draws) == 2
    assert "trained first" not in capsys.readouterr().out
    shutil.rmtree(run.folder)
    written(asking(), generators)
    assert "kept only, training 3: the generator that it starts from is not on this machine" in capsys.readouterr().out


@pytest.mark.notebooks
@pytest.mark.slow
def test_chapter_22_comes_out_equal_from_its_parts_alone(tmp_path):
    """In a fresh home, whose store of runs stays empty, beside what the study itself recorded at scale smoke."""
    here, there = paths.RESULTS / "smoke", tmp_path / "data" / "results" / "smoke"
    if not (here / "22_generator.json").is_file():
        pytest.skip("the study was not run at scale smoke here")
    for name in ("notebooks", "book"):
        (tmp_path / name).symlink_to(Path(__file__).resolve().parents[2] / name)
    shutil.copytree(here / "22_generator.parts", there / "22_generator.parts")
    given = {**os.environ, "NLI_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-m", "nli_lib", "run", "22"], env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    one, other = ({path.name: path.read_bytes() for path in each.glob("22_generator.*.csv")} for each in (here, there))
    assert len(one) > 8 and one == other and not list((tmp_path / "data" / "runs").glob("*/spec.json"))
    record = json.loads((there / "22_generator.json").read_text())
    assert sum(".parts/" in name for name in record["inputs"]) >= 6
