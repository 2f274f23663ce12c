"""From a file to the corpus that a review leaves. Alone: pytest tests/tools/test_review_command.py"""

import json
from functools import partial

import nbformat
import pytest
from audited import exit_code

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.generate.review import Review, ReviewError, pairs
from nli_tools import review as people
from nli_tools.review import TASKS


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A file of six pairs, =1+1 among them, in a project of its own; its path."""
    monkeypatch.setattr(paths, "EXPORTS", tmp_path / "exports")
    monkeypatch.delenv("NLI_DATA", raising=False)
    rows = [
        {"id": f"p{at}", "premise": f"Dog {at} runs.", "hypothesis": "=1+1", "label": "neutral", "maker": "gpt"}
        | {"genre": "letters", "page": at if at else None}
        for at in range(6)
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


call = partial(exit_code, "review")


def folder():
    (found,) = paths.EXPORTS.glob("*/review")
    return found


def answer(mine, annotator, count, label="neutral"):
    review = Review(pairs(load(str(mine))), folder(), annotator)
    for _ in range(count):
        review.label(review.pair["item"], label, premise=review.pair["premise"], hypothesis="It moves.")


def test_a_notebook_is_written_and_opened_and_says_where_the_answers_are(mine, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(people, "open_lab", lambda path: opened.append(path) or 0)
    assert call(monkeypatch, mine, "--annotator", "anna", "--seed", "3") == 0
    assert f"Answers are written to {folder()}" in capsys.readouterr().out
    assert opened == [folder() / "review.anna.ipynb"]
    *_, cell = nbformat.read(opened[0], 4).cells
    shown = {}
    exec(cell.source.replace("review_widget(\n", "shown['widget'] = review_widget(\n"), {"shown": shown})
    widget = shown["widget"]
    assert widget.state["annotator"] == "anna" and widget.state["pairs"] == 6
    widget.take({"act": "discard", "item": widget.state["pair"]["item"]})
    assert (folder() / "answers.anna.jsonl").read_text().count("\n") == 1


def test_answers_become_a_corpus_that_loads(mine, monkeypatch, capsys):
    monkeypatch.setattr(people, "open_lab", lambda path: 0)
    call(monkeypatch, mine)
    answer(mine, "anna", 6)
    assert call(monkeypatch, mine, "--aggregate") == 2
    assert "no pair of 6 has two annotations (6 annotations in all)" in capsys.readouterr().err
    answer(mine, "bert", 4, "contradiction")
    assert call(monkeypatch, mine, "--aggregate") == 0
    said = capsys.readouterr().out
    assert "4 of 6 pairs have two annotations; 4 of them are kept." in said and "both revised" in said
    assert "In 4 of those kept the annotators' labels differ" in said and "more than two" not in said
    corpus = load(str(folder() / people.REVIEWED))
    assert len(corpus) == 4 and set(corpus.hypothesis) == {"It moves."}
    one = corpus.table.iloc[0]
    assert one[["maker", "intended_label", "origin_corpus"]].tolist() == ["gpt, worker", "neutral", "mine"]
    assert one["origin_uid"] == one["uid"] and one["uid"].startswith("p")
    assert corpus.table["genre"].eq("generated_revised").all()  # WANLI's; what the file called so is kept beside it
    assert corpus.table["genre (own)"].eq("letters").all()
    assert {f"p{page}" for page in corpus.table["page"].dropna()} <= set(corpus.uid)  # a whole number, and with a gap


def test_files_go_out_and_answers_from_outside_are_aggregated_too(mine, monkeypatch, tmp_path, capsys):
    assert call(monkeypatch, mine, "--export", "mturk") == 0
    assert call(monkeypatch, mine, "--export", "label-studio") == 0
    assert str(folder() / TASKS) in capsys.readouterr().out
    assert {path.name for path in folder().iterdir()} >= {"mturk_input.csv", "mturk_page.html", "label_studio.xml"}
    answer(mine, "anna", 6)
    tasks = json.loads((folder() / TASKS).read_text())
    choice = {"from_name": "label", "type": "choices", "value": {"choices": ["neutral"]}}
    for task in tasks:
        task["annotations"] = [{"completed_by": 1, "result": [choice]}]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks))
    assert call(monkeypatch, mine, "--aggregate", "--answers", export) == 0
    said = capsys.readouterr().out
    assert "6 of 6 pairs have two annotations" in said and "one revised: the other's text and label: 6" in said
    assert "kappa" not in said  # nobody left a pair as it was twice
    assert "labels differ" not in said  # both say neutral
    answer(mine, "carl", 2)
    assert call(monkeypatch, mine, "--aggregate", "--answers", export) == 0
    assert "2 of those kept have more than two annotations" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--export", "excel"], "--export excel: write label-studio or mturk"),
        (["--annotator", "../x"], "annotator '../x': write 1 to 64"),
        (["--export", "mturk", "--aggregate"], "--export and --aggregate are two steps"),
    ],
)
def test_what_cannot_be_done_is_said(mine, monkeypatch, capsys, words, said):
    assert call(monkeypatch, mine, *words) == 2
    assert said in capsys.readouterr().err


def test_a_file_of_two_classes_is_refused(tmp_path, home, monkeypatch, capsys):
    path = tmp_path / "two.csv"
    path.write_text("premise,hypothesis,label\nA,B,entailment\nC,D,not_entailment\n")
    assert call(monkeypatch, path, "--export", "mturk") == 2
    assert "the file has the labels entailment, not_entailment" in capsys.readouterr().err


def test_other_files_are_refused_and_a_missing_lab_is_said(mine, monkeypatch, tmp_path):
    queue = pairs(load(str(mine)))
    with pytest.raises(ReviewError, match="answers.txt is neither an export of Label Studio"):
        people.collect(queue, tmp_path, [tmp_path / "answers.txt"])
    monkeypatch.setattr(people.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ReviewError, match="jupyterlab is not installed, .* make lab"):
        people.open_lab(tmp_path / "x.ipynb")
