"""`nli-study review`: the widget, MTurk, Label Studio, and the corpus that comes of it.

Run alone: pytest tests/tools/test_review_command.py"""

import csv
import html
import json
import string
from unittest.mock import Mock

import nbformat
import numpy as np
import pandas as pd
import pytest
from audited import exit_code, export, label_studio, refused
from small_reviews import NASTY, both, corpus

from nli_lib.corpora import load
from nli_lib.generate.review import NEEDED, SIDES, Review, annotations, pairs, queue
from nli_tools import review as people
from nli_tools.review import TASKS, read_export, read_results

MADE = pairs(corpus([*NASTY, "+1 day", "A dog runs."]))


def judged(pair, annotator, label, left=None):
    """One row of annotations, as `nli_lib.generate.review` takes them."""
    texts = {f"revised_{side}": (left or {}).get(side, pair[side]) for side in SIDES}
    discarded = label == "discard"
    return {**pair, "annotator": annotator, **texts, "label": None if discarded else label, "discarded": discarded}


def check_equal(found, rows):
    pd.testing.assert_frame_equal(found, pd.DataFrame(rows, columns=list(NEEDED)), check_dtype=False)


# ---------------------------------------------------------------- widget


@pytest.fixture
def widget(tmp_path):
    return people.ReviewWidget(Review(pairs(corpus(NASTY)), tmp_path, "anna"))


def test_messages_are_answers(widget, tmp_path):
    first = widget.state["pair"]
    widget.take({"act": "label", "label": "neutral", **first})
    assert widget.state["done"] == 1 and widget.state["pair"]["item"] != first["item"]
    widget.take({"act": "discard", "item": widget.state["pair"]["item"]})
    widget.take({"act": "undo"})
    assert (widget.state["done"], widget.state["turn"], widget.state["fault"]) == (1, 4, "")
    while widget.state["pair"]:
        widget.take({"act": "label", "label": "entailment", **widget.state["pair"]})
    assert widget.state["done"] == widget.state["pairs"] == len(annotations(tmp_path)) == len(NASTY)


def test_what_cannot_be_taken_or_written_is_said_and_the_pair_stays(widget, monkeypatch, tmp_path):
    pair = widget.state["pair"]
    answer = {"act": "label", "label": "neutral", **pair}
    wrong = {"premise must have": {"premise": " "}, "field label": {"label": "x"}, "unknown message": {"act": "x"}}
    for said, changes in wrong.items():
        widget.take(answer | changes)
        assert said in widget.state["fault"] and widget.state["pair"] == pair and annotations(tmp_path).empty

    with monkeypatch.context() as disk:
        disk.setattr("os.fsync", Mock(side_effect=OSError(28, "No space left on device")))
        widget.take({"act": "discard", "item": pair["item"]})
    assert "Not saved: [Errno 28] No space left" in widget.state["fault"] and widget.state["done"] == 0
    assert (tmp_path / "answers.anna.jsonl").read_bytes() == b""  # half an answer is none
    widget.take(answer)
    assert widget.state["done"] == 1 and widget.state["fault"] == ""


# ---------------------------------------------------------------- adjudication


TRUE = np.random.default_rng(0).choice(["entailment", "neutral", "contradiction"], 400)
ERRS, RANDOM = {"anna": 0.1, "bert": 0.3}, np.random.default_rng(1)  # in so many pairs the label is drawn anew
GIVEN = both(
    *(np.where(RANDOM.random(400) < share, RANDOM.permutation(TRUE), TRUE) for share in ERRS.values()), [*ERRS]
)
SOME = GIVEN[["item", *SIDES]].drop_duplicates()


def settling(folder, given=GIVEN, annotator="carl", seed=5):
    return people.Adjudication(SOME, folder, given, annotator, seed=seed)


def settle(folder, change, given=GIVEN):
    """What is on disk after a csv was filled in, which an earlier call has written."""
    table = change(settling(folder, given).table().reset_index())
    settling(folder, given).read(people.write_csv(folder / "settled.csv", table))
    return annotations(folder / people.SETTLED).set_index("item")


def test_a_third_person_sees_no_name_and_agreement_follows_from_the_planted_errors(tmp_path):
    review, wide = settling(tmp_path), GIVEN.pivot(index="item", columns="annotator", values="label")
    shown = review.shown
    assert set(shown.index) == set(wide.index[wide["anna"] != wide["bert"]]) and len(shown) > 80
    first, second = (shown[name] == wide["anna"][shown.index] for name in people.PLACES)
    assert (first ^ second).all() and 0.35 < first.mean() < 0.65
    assert not any(name in str([review.pair, *shown.to_numpy().ravel()]) for name in ERRS)
    # the order of a pair depends on the seed and on no other pair
    part, other = (people.differing(GIVEN[GIVEN["item"].isin(shown.index[:90])], seed)[0]["label"] for seed in (5, 6))
    assert part.equals(shown["first"][part.index]) and 0.3 < (other == part).mean() < 0.7
    refused("order of the answers was drawn with seed 5: give --seed 5", settling, tmp_path, seed=6)
    refused("anna has annotated these pairs: name a third person", settling, tmp_path, annotator="anna")
    true = dict(zip(sorted(wide.index), TRUE, strict=True))
    final = settle(tmp_path, lambda table: table.assign(settled=table["item"].map(true)))["label"]
    wide[""] = final.reindex(wide.index).fillna(wide["anna"])
    found = people.agreement(GIVEN, annotations(tmp_path / people.SETTLED))
    for name, two in {"": ["anna", "bert"], "anna": ["anna", ""], "bert": ["bert", ""]}.items():
        raw, kappa = found.pop(name)
        assert raw.value == wide[two].eq(wide[two[0]], axis=0).all(axis=1).mean() and raw.low < raw.value < raw.high
        chance = (wide[two].stack().value_counts(normalize=True) ** 2).sum()
        assert kappa.value == pytest.approx((raw.value - chance) / (1 - chance)) and kappa.low < kappa.high < 1
        assert raw.value == pytest.approx(1 - ERRS.get(name, 0.4) * 2 / 3, abs=0.06)  # a drawn label may be right
    assert not found


def test_what_was_settled_can_be_changed_and_a_csv_that_cannot_be_used_settles_nothing(tmp_path):
    given = GIVEN[:4].assign(label=["neutral", "entailment", None, "neutral"], revised_hypothesis=[*"=bbb"])
    given["discarded"] = given["label"].isna()
    for said, change in {
        "settled.csv has no column 'settled': fill in the csv": lambda table: table.drop(columns="settled"),
        "settled.csv, row 2, settled 'nuetral': write first, second": lambda table: table.assign(settled="nuetral"),
        "row 2, item: there is no pair 'x'": lambda table: table.assign(item="x"),
        "row 2, premise: the text of pair '00.' has changed": lambda table: table.assign(premise="x"),
        "row 4, item '00.' appears twice": lambda table: pd.concat([table, table[:1]]).assign(settled="first"),
    }.items():
        refused(said, settle, tmp_path, change, given)
    assert annotations(tmp_path / people.SETTLED).empty
    place = settling(tmp_path, given).shown.loc["000"].eq("neutral").idxmax()
    for words, labels in ({"000": place}, "neutral"), ({"000": "Contradiction", "001": "discard"}, "contradiction "), (
            {"001": "neutral"}, "contradiction neutral"):  # fmt: skip
        left = settle(tmp_path, lambda table, words=words: table.assign(settled=table["item"].map(words)), given)
        assert " ".join(left["label"].fillna("").sort_index()) == labels
        assert left.loc["000", "revised_hypothesis"] == ("=" if labels == "neutral" else "b")
    refused("another person has begun. Continue under that name", settling, tmp_path, given, annotator="dora")


# ---------------------------------------------------------------- mturk


def rows_of(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def answers(worker, item):
    """The label that a worker gives a pair, and the texts that they revise."""
    if (worker, item) == ("W2", "p1"):
        return "discard", {}
    return ("neutral", {"premise": 'Revised, "really"\nso.'}) if item == "p2" else ("entailment", {})


def results(path, hits, workers=("W9", "W2"), status="Submitted"):
    """A results csv: each worker answers each HIT."""
    rows = []
    for hit, given in enumerate(hits):
        for worker in workers:
            row = {"Title": "", "Reward": "", "HITId": f"H{hit}", "AssignmentId": f"{hit}{worker}"}
            row |= {"WorkerId": worker, "AssignmentStatus": status, **{f"Input.{k}": v for k, v in given.items()}}
            for at in (at for at in range(1, 6) if given[f"item{at}"]):
                label, left = answers(worker, html.unescape(given[f"item{at}"]))
                shown = {side: html.unescape(given[f"{side}{at}"]).replace("\r\n", "\n") for side in SIDES} | left
                row |= {f"Answer.label{at}": label} | {f"Answer.{side}{at}": shown[side] for side in SIDES}
            rows.append(row | {"Approve": "", "Reject": ""})
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.fixture
def hits(tmp_path):
    return rows_of(people.write_hits(tmp_path, MADE)[0])


def test_what_was_answered_in_hits_comes_back(tmp_path, hits):
    found = read_results([results(tmp_path / "results.csv", hits)], MADE)
    rows = [judged(pair, alias, *answers(worker, pair["item"])) for start in range(0, len(MADE), 5)
        for worker, alias in (("W9", "mturk-2"), ("W2", "mturk-1"))
        for pair in queue(MADE)[start : start + 5]]  # fmt: skip
    check_equal(found, rows)
    # rejected and unqualified work does not count
    one = results(tmp_path / "one.csv", hits, workers=["W2"])
    two = results(tmp_path / "two.csv", hits, workers=["W9"], status="Rejected")
    assert set(read_results([one, two], MADE)["annotator"]) == {"mturk-1"}
    assert set(read_results([tmp_path / "results.csv"], MADE, qualified={"W9"})["annotator"]) == {"mturk-2"}
    assert read_results([], MADE).empty
    # of fewer pairs than a HIT holds, the csv has no column for the answers to examples 3 to 5
    few = rows_of(people.write_hits(tmp_path, MADE.iloc[:2])[0])
    assert read_results([results(tmp_path / "r.csv", few)], MADE.iloc[:2])["item"].nunique() == 2


def test_nothing_in_a_text_is_run_by_a_page_or_a_spreadsheet(tmp_path, hits):
    texts = [text for hit in hits for name, text in hit.items() if not name.startswith("item")]
    assert any("&#60;script&#62;" in text for text in texts)
    for text in filter(None, texts):
        assert text[0] not in "=-+@\t\r\n" and not set(text) & set("<>\"'$\t\r\n") and text.isascii()
    assert {html.unescape(text) for text in texts} - {""} == {*MADE["premise"], *MADE["hypothesis"]}
    assert len((tmp_path / people.INPUT).read_text().splitlines()) == 3  # no line end in a field: header, two HITs
    page = (tmp_path / people.PAGE).read_text()
    wanted = {name.group("braced") for name in string.Template.pattern.finditer(page)}
    assert wanted == set(hits[0]) and len(wanted) == 15  # every column once, and a field for each answer
    assert all(page.count(f'name="label{at}"') == 4 and page.count(f'name="premise{at}"') == 1 for at in range(1, 6))
    assert '<textarea name="premise1" rows="3">\n${premise1}<' in page  # HTML drops one line end after the tag


def test_what_are_no_results_of_this_review_is_named(tmp_path, hits):
    path = results(tmp_path / "r.csv", hits)
    good, text = pd.read_csv(path, dtype=str, keep_default_na=False), path.read_text()
    none = "no answer can be used: label '2', which is none of entailment.* the first in .*r.csv: row 1, example 1"
    for said, table in {
        "column WorkerId is missing": good.drop(columns="WorkerId"),
        "column Answer.label2 is missing": good.drop(columns="Answer.label2"),
        "column Input.premise1 is missing": good.drop(columns="Input.premise1"),
        none: good.assign(**{f"Answer.label{at}": "2" for at in range(1, 6)}),
        "row 1, example 1, item: there is no pair 'x'": good.assign(**{"Input.item1": "x"}),
        "row 1, example 1, premise: the text of pair .* has changed": good.assign(**{"Input.premise1": "x"}),
    }.items():
        table.to_csv(path, index=False)
        refused(f"r.csv: {said}", read_results, [path], MADE)
    header, *rows = text.splitlines()
    for said, data in {
        "is not a csv in UTF-8": b"\xff\xfe\x00",
        ": the rows have more fields than the header": "\n".join([header, *(f"{row},x" for row in rows), ""]).encode(),
        "cannot be read": None,
    }.items():
        path.unlink() if data is None else path.write_bytes(data)
        refused(f"r.csv ?{said}", read_results, [path], MADE)


def test_answers_in_hits_that_say_no_one_label_are_counted(tmp_path, hits, capsys):
    path = results(tmp_path / "r.csv", hits)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    whole = read_results([path], MADE)
    table.loc[0, ["Answer.label1", "Answer.label2"]] = ["", "2"]
    table.loc[3, "WorkerId"] = ""
    pd.concat([table, table.iloc[1:2]]).to_csv(path, index=False)
    found = read_results([path], MADE)
    pd.testing.assert_frame_equal(found, whole.drop(index=[0, 1, *whole.index[-2:]]).reset_index(drop=True))
    at, out = f"(1, the first in {path}: row 1, example", capsys.readouterr().out
    assert out.startswith(f"{path}: left out: no label {at} 1); label '2', which is none of entailment, neutral, con")
    assert f"discard {at} 2); no annotator (2, the" in out and "a repeated answer (5, the first in" in out


# ---------------------------------------------------------------- label studio


def annotated(task, number, by, label, **left):
    """An annotation as Label Studio exports it; a text field that nobody touched submits what was filled in."""
    texts = {side: task["data"][side].replace("\r\n", "\n") for side in SIDES} | left
    fields = [(side, f"shown_{side}", "textarea", {"text": [text]}) for side, text in texts.items()]
    fields.append(("label", "shown_hypothesis", "choices", {"choices": [label]}))
    named = [dict(zip(("from_name", "to_name", "type", "value"), each, strict=True)) for each in fields]
    result = [{"id": f"r{at}", "origin": "manual", **each} for at, each in enumerate(named)]
    return {"id": number, "completed_by": by, "result": result, "was_cancelled": False, "lead_time": 3.5}


@pytest.fixture
def project(tmp_path):
    """(tasks as they are exported with two annotations each, the annotations that they say)."""
    people.write_tasks(tmp_path, MADE)
    tasks, rows = json.loads((tmp_path / TASKS).read_text()), []
    for at, task in enumerate(tasks):
        pair, left = task["data"], {"premise": "Revised."} if at == 0 else {}
        label = "discard" if at == 1 else "entailment"
        one = annotated(task, 2 * at, 7, "neutral", **{"premise": pair["premise"]} | left)
        two = annotated(task, 2 * at + 1, {"id": 8, "email": "a@b.c"}, label)
        task |= {"id": at, "annotations": [one, two], "predictions": []}
        rows += [judged(pair, "label-studio-7", "neutral", left), judged(pair, "label-studio-8", label)]
    return tasks, rows


def read(tmp_path, tasks):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return read_export(path, MADE)


def test_what_was_annotated_comes_back(tmp_path, project):
    tasks, rows = project
    check_equal(read(tmp_path, tasks), rows)
    assert "a@b.c" not in read(tmp_path, tasks).to_csv()
    tasks[0]["annotations"][0]["result"] = tasks[0]["annotations"][0]["result"][2:]
    first = read(tmp_path, tasks).iloc[0]  # a field left empty is no revision
    assert first["revised_premise"] == first["premise"] and first["label"] == "neutral"
    tasks[0]["annotations"][0]["was_cancelled"] = True  # a skipped task has no annotation
    assert len(read(tmp_path, tasks)) == len(rows) - 1 and list(read(tmp_path, [])) == list(NEEDED)
    _, path = people.write_tasks(tmp_path, MADE, seed=3)
    assert [task["data"] for task in json.loads(path.read_text())] == queue(MADE, 3)


def test_label_studio_takes_the_configuration_the_tasks_and_the_annotations(tmp_path, project):
    """Their own code says so; annotators are shown neither the intended label nor the maker."""
    interface = label_studio(people.CONFIGURATION)
    tasks, _ = project
    for task in json.loads((tmp_path / TASKS).read_text()):
        assert set(task) == {"data"} and set(task["data"]) == {"item", *SIDES} and interface.validate_task(task)
    assert all(interface.validate_annotation(each) for task in tasks for each in task["annotations"])
    assert not interface.validate_task({"data": {"premise": "alone"}})
    assert not interface.validate_annotation(annotated(tasks[0], 0, 7, "maybe"))


NO_EXPORTS = [
    (lambda t: t[0].pop("annotations"), "task and field 0.annotations: Field required. Export the project as JSON"),
    (lambda t: t[0]["annotations"][0]["result"][2].update(value={"choices": 5}), "task and field 0.*value.choices"),
    (lambda t: t[0]["annotations"][0]["result"][0].update(value={"text": [5]}), "task and field 0.*value.text"),
    (lambda t: t[0]["annotations"][0]["result"][0].update(value={"text": {}}), "task and field 0.*value.text"),
    (lambda t: t[0]["data"].update(item="x"), "task 1 .id 0., item: there is no pair 'x'"),
    (lambda t: t[1]["data"].update(premise="x"), "task 2 .id 1., premise: the text of pair .* has changed"),
]


@pytest.mark.parametrize(("change", "said"), NO_EXPORTS)
def test_what_is_no_export_of_this_review_is_named(tmp_path, project, change, said):
    tasks, _ = project
    change(tasks)
    refused(f"export.json: {said}", read, tmp_path, tasks)
    refused(r"none.json cannot be read", read_export, tmp_path / "none.json", MADE)


# ---------------------------------------------------------------- command


@pytest.fixture
def mine(home, tmp_path):
    """A file of six pairs, =1+1 among them, in a project of its own; its path."""
    rows = [
        {"id": f"p{at}", "premise": f"Dog {at} runs.", "hypothesis": "=1+1", "label": "neutral", "maker": "gpt"}
        | {"genre": "letters", "page": at if at else None}
        for at in range(6)
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def ask(mine, monkeypatch, capsys):
    """Reviews a file: the exit code, and what is said on both streams. `opened` lists what JupyterLab would open."""
    opened = []
    monkeypatch.setattr(people, "open_lab", lambda path: opened.append(path) or 0)

    def asked(*words, file=mine):
        return exit_code("review", monkeypatch, file, *words), *capsys.readouterr()

    asked.opened = opened
    return asked


def answer(mine, annotator, count, label="neutral"):
    review = Review(pairs(load(str(mine))), export("review"), annotator)
    for _ in range(count):
        review.label(review.pair["item"], label, premise=review.pair["premise"], hypothesis="It moves.")


def test_a_notebook_is_written_and_opened_and_says_where_the_answers_are(ask):
    code, said, _ = ask("--annotator", "anna", "--seed", "3")
    folder = export("review")
    assert code == 0 and f"Answers are written to {folder}" in said and ask.opened == [folder / "review.anna.ipynb"]
    *_, cell = nbformat.read(ask.opened[0], 4).cells
    shown = {}
    exec(cell.source.replace("review_widget(\n", "shown['widget'] = review_widget(\n"), {"shown": shown})
    widget = shown["widget"]
    assert widget.state["annotator"] == "anna" and widget.state["pairs"] == 6
    widget.take({"act": "discard", "item": widget.state["pair"]["item"]})
    assert (folder / "answers.anna.jsonl").read_text().count("\n") == 1


def test_answers_become_a_corpus_that_loads(ask, mine):
    ask()
    answer(mine, "anna", 6)
    code, _, fault = ask("--aggregate")
    assert code == 2 and "no pair of 6 has two annotations (6 annotations in all)" in fault
    answer(mine, "bert", 4, "contradiction")
    code, said, _ = ask("--aggregate")
    assert code == 0 and "4 of 6 pairs have two annotations; 4 of them are kept." in said and "both revised" in said
    assert "In 4 of those kept the annotators' labels differ" in said and "more than two" not in said
    corpus = load(str(export("review") / people.REVIEWED))
    assert len(corpus) == 4 and set(corpus.hypothesis) == {"It moves."}
    one = corpus.table.iloc[0]
    assert one[["maker", "intended_label", "origin_corpus"]].tolist() == ["gpt, worker", "neutral", "mine"]
    assert one["origin_uid"] == one["uid"] and one["uid"].startswith("p")
    assert corpus.table["genre"].eq("generated_revised").all()  # WANLI's; what the file called so is kept beside it
    assert corpus.table["genre (own)"].eq("letters").all()
    assert {f"p{page}" for page in corpus.table["page"].dropna()} <= set(corpus.uid)  # a whole number, and with a gap
    third, path = ("--annotator", "carl", "--adjudicate"), mine.with_name("settled.csv")
    assert "0 of 4 disagreements are settled" in ask(*third, path)[1]
    pd.read_csv(path).assign(settled=["entailment", "discard", None, None]).to_csv(path, index=False)
    assert "2 of 4 disagreements are settled" in ask(*third, path)[1]
    assert ask(*third, "lab")[0] == 0 and ask.opened[-1].parent.name == people.SETTLED
    said, corpus = ask("--aggregate")[1], load(str(export("review") / people.REVIEWED)).table.set_index("rule")
    assert "3 of them are kept." in said and "adjudicated: 2" in said and "In 2 of those kept" in said
    assert corpus.loc[people.SETTLED, "hypothesis"] == "=1+1"  # the third person has not revised it


def test_files_go_out_and_answers_from_outside_are_aggregated_too(ask, mine, tmp_path):
    assert ask("--export", "mturk")[0] == 0
    code, said, _ = ask("--export", "label-studio")
    folder = export("review")
    assert code == 0 and str(folder / TASKS) in said
    assert {path.name for path in folder.iterdir()} >= {"mturk_input.csv", "mturk_page.html", "label_studio.xml"}
    answer(mine, "anna", 6)
    tasks, file = json.loads((folder / TASKS).read_text()), tmp_path / "export.json"
    choice = {"from_name": "label", "type": "choices", "value": {"choices": ["neutral"]}}
    file.write_text(json.dumps([{**task, "annotations": [{"completed_by": 1, "result": [choice]}]} for task in tasks]))
    code, said, _ = ask("--aggregate", "--answers", file)
    assert code == 0
    assert "6 of 6 pairs have two annotations" in said and "one revised: the other's text and label: 6" in said
    assert "kappa" not in said  # nobody left a pair as it was twice
    assert "labels differ" not in said  # both say neutral
    answer(mine, "carl", 2)
    assert "2 of those kept have more than two annotations" in ask("--aggregate", "--answers", file)[1]


def test_what_cannot_be_done_is_said(ask, mine, monkeypatch, tmp_path):
    two = tmp_path / "two.csv"
    two.write_text("premise,hypothesis,label\nA,B,entailment\nC,D,not_entailment\n")
    for said, (file, *words) in {
        "--export excel: write label-studio or mturk": (mine, "--export", "excel"),
        "annotator '../x': write 1 to 64": (mine, "--annotator", "../x"),
        "--export, --adjudicate and --aggregate are separate": (mine, "--export", "mturk", "--aggregate"),
        "--adjudicate labb: write lab, or the name of a csv": (mine, "--adjudicate", "labb"),
        "no two annotators disagree about a pair (0 annotations)": (mine, "--adjudicate", "lab"),
        "the file has the labels entailment, not_entailment": (two, "--export", "mturk"),
    }.items():
        code, _, fault = ask(*words, file=file)
        assert code == 2 and said in fault
    said, other = "answers.txt is neither an export of Label Studio", [tmp_path / "answers.txt"]
    refused(said, people.collect, pairs(load(str(mine))), tmp_path, other)
    monkeypatch.undo()
    monkeypatch.setattr(people.importlib.util, "find_spec", lambda name: None)
    refused("jupyterlab is not installed, .* make lab", people.open_lab, tmp_path / "x.ipynb")
