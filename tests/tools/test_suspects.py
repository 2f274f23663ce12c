"""`nli-study suspects`: lists, decisions and pages. What they do in a browser: tests/browser.

Run alone: pytest tests/tools/test_suspects.py"""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from audited import WORDS, call, export, ran, refused
from scipy.special import softmax
from scipy.stats import entropy

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, concat
from nli_lib.evaluate import export_review, review_list
from nli_lib.measure.giveaways import pair_ngrams
from nli_lib.store import StoreError
from nli_lib.study import book, runner
from nli_tools import suspects
from nli_tools.explorer import suspects_widget
from nli_tools.own_corpus import ToolError
from nli_tools.suspects import ASIDE, kept, read_decisions, read_page, reorder, worklist, write_page

COLUMNS = "premise=context,hypothesis=claim,label=verdict"
WRONG = list(range(0, 300, 10))  # the rows of `mine` with a wrong label


def ask(path, *words):
    return ran("suspects", path, "--columns", COLUMNS, *words)


def fault(path, *words):
    return str(call("suspects", path, "--columns", COLUMNS, *words).exception)


def listed(part="fast", **how):
    return pd.read_csv(export(part) / "suspects.csv", **how)


def page_of(part="fast"):
    return read_page(export(part) / "suspects.html")


def rows_of(table):
    return sorted(int(uid[1:]) for uid in table["uid"])


@pytest.fixture
def mine(home, tmp_path):
    """A file of 300 invented pairs with foreign column names, in which every tenth label is wrong."""

    def make(learnable=True, extra=()):
        random, at = np.random.default_rng(0), np.arange(300)
        words = np.array(WORDS)[at % 3] if learnable else random.choice(WORDS, 300)
        table = pd.DataFrame({"pairID": [f"n{each}" for each in at], "context": [f"Dog {each} runs." for each in at]})
        table["claim"] = [f"It {word} moves {each % 7}" for word, each in zip(words, at, strict=True)]
        table["verdict"] = np.array(LABELS)[(at + (at % 10 == 0)) % 3]
        table.assign(**dict.fromkeys(extra, "theirs")).to_csv(tmp_path / "mine.csv", index=False)
        return tmp_path / "mine.csv"

    return make


def test_wrong_labels_lead_the_list_and_the_console_says_what_was_learnt(mine):
    said, table, page = ask(mine(), "--fast"), listed(), page_of()
    assert rows_of(table) == WRONG  # those that are wrong, and no other
    assert "of 5 linear models on words" in said and "30 of 300 labels are contradicted" in said
    assert "The models predict 90.0%" in said and "Not better" not in said
    assert set(table["models"]) == {"better than the majority"}
    assert page["warning"] == "" and [row["uid"] for row in page["rows"]] == table["uid"].tolist()
    assert f"nli-study suspects mine.csv --fast --columns {COLUMNS} --decided" in page["command"]
    arrays = suspects.arrays(export("fast"))
    assert arrays["pred_probs"].shape == (300, 3) and set(arrays["fold"]) == set(range(5))
    ask(mine(), "--fast", "--folds", 3, "--scale", "smoke")  # the command on the page makes the same list
    words = f"--fast --scale smoke --columns {COLUMNS} --folds 3 --decided decisions.csv"
    command = read_page(next(paths.EXPORTS.glob("smoke*/fast/suspects.html")))["command"]
    assert command == f"To do this for the whole list: nli-study suspects mine.csv {words}"


def test_a_list_that_was_cut_short_is_scored_again_and_a_damaged_one_is_one_message(mine, monkeypatch):
    path = mine()
    ask(path, "--fast")
    first = (export("fast") / "suspects.csv").read_text()
    path.write_text(path.read_text().replace("surely", "certainly"))

    def cut(*given):
        export_review(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(suspects, "export_review", cut)
        call("suspects", path, "--columns", COLUMNS, "--fast")
    path.write_text(path.read_text().replace("certainly", "surely"))
    assert "Scored by an earlier run" not in ask(path, "--fast")
    assert (export("fast") / "suspects.csv").read_text() == first
    for name, damage in (("cleanlab.npz", b"PK"), ("suspects.json", b"{")):
        (export("fast") / name).write_bytes(damage)
        said = fault(path, "--fast")
        assert f"{name} cannot be read" in said and "delete its folder and run nli-study suspects again" in said


def test_models_that_learnt_nothing_are_named_everywhere(mine):
    assert "Not better than the majority. The models predict" in ask(mine(learnable=False), "--fast")
    assert set(listed()["models"]) == {"not better than the majority"}
    assert page_of()["warning"].startswith("Not better than the majority.")
    assert suspects.recorded(export("fast"))["models"] == "not better than the majority"


def test_decisions_stay_until_they_are_taken_back(mine, tmp_path, monkeypatch):
    path = mine(extra=("note", "models", "rank", "votes"))  # the corpus's own columns of these names
    ask(path, "--fast")
    table = listed()
    for name in ("note", "models", "rank", "votes"):
        assert set(table[f"{name} (own)"]) == {"theirs"}
    assert not {"note", "votes"} & set(table)
    (a, b), decided = table["uid"][:2], tmp_path / "decisions.csv"
    decided.write_text(f"uid,decision,fix_to,note\n{a},keep,,=hm\n{b},fix,contradiction,\n")
    monkeypatch.setattr(suspects, "out_of_fold", None)  # nothing is scored again
    said = ask(path, "--fast", "--decided", decided)
    assert "Scored by an earlier run" in said and "2 decisions (1 fix, 1 keep, 0 ambiguous)" in said
    again = listed(keep_default_na=False).set_index("uid")
    assert again.index.tolist()[-2:] == [a, b] and again.loc[a, "note"] == "'=hm"
    assert again.loc[b, "fix_to"] == "contradiction" and set(again["note (own)"]) == {"theirs"}
    made = dict(page_of()["made"])
    assert (made[a]["note"], made[b]["fix_to"], made[a]["learnt"]) == ("=hm", "contradiction", "yes")
    assert "2 decisions" in ask(path, "--fast")  # those in the list itself are kept
    decided.write_text(f"uid,decision\n{b},ambiguous\n")
    assert "2 decisions (0 fix, 1 keep, 1 ambiguous)" in ask(path, "--fast", "--decided", decided)
    again[["decision", "fix_to", "note"]] = ""
    again.reset_index().to_csv(export("fast") / "suspects.csv", index=False)
    assert "decisions (" not in ask(path, "--fast") and listed().equals(table) and page_of()["made"] == []
    decided.write_text("uid,decision,fix_to\nn0,fix,neutrall\n")
    said = "row 2, fix_to 'neutrall': write a label of the corpus (entailment, neutral, contradiction)"
    assert said in fault(path, "--fast", "--decided", decided)


def test_probabilities_of_ones_own_make_a_list_of_their_own(mine, tmp_path):
    path, probs = mine(), tmp_path / "probs.csv"
    ask(path, "--fast")
    before = (export("fast") / "suspects.csv").read_bytes()
    true = np.eye(3)[np.arange(300) % 3] * 0.7 + 0.1
    table = pd.DataFrame(true[:, ::-1], columns=["p_contradiction", "p_neutral", "p_entailment"])
    table.assign(pairID=[f"n{at}" for at in range(300)]).sample(frac=1, random_state=0).to_csv(probs, index=False)
    said = ask(path, "--probs", probs)
    assert "Whether they are out of sample cannot be seen" in said
    assert "labels, which they may have trained on" in " ".join(said.split()) and rows_of(listed("probs")) == WRONG
    np.testing.assert_allclose(listed("probs")["gap"], np.log(8), atol=1e-4)
    assert (export("fast") / "suspects.csv").read_bytes() == before
    ask(path, "--probs", export("fast") / "cleanlab.npz")  # what one list leaves is probabilities again
    assert listed("probs")["uid"].tolist() == listed()["uid"].tolist()
    # labels that nothing contradicts make an empty list
    given = pd.read_csv(path)
    sure = {label: np.where(given["verdict"] == label, 0.9, 0.05) for label in LABELS}
    given[["pairID"]].assign(**sure).to_csv(probs, index=False)
    assert "0 of 300 labels are contradicted" in ask(path, "--probs", probs)
    assert len(listed("probs")) == 0 and {"gap", "rank"} <= set(listed("probs")) and page_of("probs")["rows"] == []


def test_a_list_of_trained_models_gets_its_page_too(mine, monkeypatch):
    """The chapters that train are played by what they leave behind."""
    path = mine(extra=("when",))

    def chapters(names, request, jobs=1):
        corpus = load(str(path), columns=request.columns)
        logits, fold = np.log(np.eye(3)[np.arange(300) % 3] * 0.7 + 0.1), np.arange(300) % 10
        export_review(paths.EXPORTS / request.study, review_list(corpus, logits, fold), corpus, logits, fold)
        return [runner.Outcome(names[0], "finished", ran=True)]

    monkeypatch.setattr(runner, "run", chapters)
    monkeypatch.setattr(book, "build", lambda request: "the book")
    said = ask(path)
    assert "by one of 10 trained models that did not see it" in said and "The models predict 90.0%" in said
    assert set(pd.read_csv(export("suspects.csv"))["when (own)"]) == {"theirs"}
    page = read_page(export("suspects.html"))
    assert len(page["rows"]) == 30 and page["command"].endswith(f"--columns {COLUMNS} --decided decisions.csv")


def test_embeddings_make_a_list_of_their_own(mine, monkeypatch):
    monkeypatch.setattr(suspects, "_vectors", lambda corpus: pair_ngrams(corpus.premise, corpus.hypothesis).toarray())
    path = mine()
    ask(path, "--fast")
    assert "of 5 linear models on sentence embeddings that" in ask(path, "--fast", "--embeddings")
    assert rows_of(listed()) == rows_of(listed("embeddings"))
    assert "--fast --embeddings --columns" in page_of("embeddings")["command"]


def test_what_cannot_be_done_is_one_message(mine, tmp_path):
    path = mine()
    for words in (("--fast", "--seeds", "2"), ("--fast", "--probs", "x.csv"), ("--probs", "x.csv", "--seeds", "2")):
        assert "cannot be combined" in fault(path, *words)
    assert "--embeddings needs --fast" in fault(path, "--embeddings")
    few, said = tmp_path / "few.csv", {}
    for count in (30, 90):
        few.write_text("premise,hypothesis,label\n" + "".join(f"a,b {at},{LABELS[at % 3]}\n" for at in range(count)))
        said[count] = str(call("suspects", few, "--fast").exception)
    assert "20 rows of each class are needed" in said[30] and "has none" in said[90]
    assert "its 90 pairs have 1 different premises, which cannot be divided into 5 folds" in said[90]
    # a corpus by name is the split that the study trains on
    assert "labels are contradicted" in ran("suspects", "planted", "--fast", "--scale", "smoke")


def test_a_fast_list_needs_no_torch(mine, tmp_path):
    """In a process of its own, in which nothing heavy can be imported."""
    for name in ("torch", "transformers", "sentence_transformers", "datasets"):
        (tmp_path / f"{name}.py").write_text("raise ModuleNotFoundError(__name__, name=__name__)")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    words = [sys.executable, "-m", "nli_tools", "suspects", str(mine()), "--fast", "--columns", COLUMNS]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and (export("fast") / "suspects.html").is_file(), done.stderr


def test_a_pair_on_which_people_split_or_models_doubt_is_shown_as_such(mine):
    logits, drawn = np.random.default_rng(0).normal(scale=2, size=(4_000, 3)), np.random.default_rng(1)
    labels = (drawn.gumbel(size=(4_000, 3)) + logits).argmax(axis=1)  # by the softmax of these logits
    plain, table = entropy(softmax(logits, axis=1), axis=1) / np.log(3), pd.DataFrame(index=range(4_000))
    for heat in (0.25, 1, 4):  # models that are not sure enough, or too sure
        found = suspects.variation(table, table.index, softmax(logits * heat, axis=1), labels, LABELS)
        assert set(found["variation_by"]) == {"models"} and np.abs(found["variation"] - plain).max() < 0.04
    several = {"label1": ["neutral", "", "x"], "label 2": ["Entailment", "neutral", ""], "source": "neutral, neutral"}
    table = pd.DataFrame({**several, "annotator_labels": ["['neutral', \"neutral\"]", "neutral|neutral", "neutral"]})
    found = suspects.variation(table.set_axis([3, 1, 0]), [3, 1, 0], softmax(logits, axis=1), labels, LABELS)
    assert found["variation_by"] == ["people: entailment 1, neutral 3", "people: neutral 3", "models"]
    assert found["variation"] == pytest.approx([entropy([1, 3]) / np.log(3), 0, plain[0]], abs=0.04)
    path = mine(extra=("variation",))
    pd.read_csv(path).assign(label1="neutral", label2="neutral").to_csv(path, index=False)
    ask(path, "--fast")
    rows = [(row["variation_by"], row["variation"]) for row in page_of()["rows"]]
    assert set(rows) == {("people: neutral 2", 0)} and set(listed()["variation (own)"]) == {"theirs"}


# ---------------------------------------------------------------- decisions


SUSPECTS = {"a": 6.0, "b": 5.0, "c": 4.0, "d": 3.0, "e": 2.0, "=f": 1.0}  # uid -> gap: the first order


@pytest.fixture
def folder(tmp_path):
    rows = pd.DataFrame({"rank": range(1, 7), "uid": [*SUSPECTS], "premise": "P", "hypothesis": "-H"})
    rows = rows.assign(kind=["P0G2", "P1G0"] * 3, gap=[*SUSPECTS.values()])
    rows.to_json(tmp_path / "suspects.jsonl", orient="records", lines=True)
    return tmp_path


def decide(folder, text):
    path = folder / "decided.csv"
    path.write_text(text, encoding="utf-8-sig")  # as a spreadsheet saves it
    return read_decisions(path)


def columns_of(folder):
    return pd.read_csv(folder / "suspects.csv", keep_default_na=False).set_index("uid")


def test_the_kind_that_was_right_goes_to_the_end(folder):
    said = reorder(folder, decide(folder, "uid,decision\na,keep\nb, Fix \nc,\nd,\n"))
    assert said == "2 decisions (1 fix, 1 keep, 0 ambiguous). The other 4 suspects are in the order learnt from them."
    table = columns_of(folder)
    assert table.index.tolist() == ["d", "'=f", "c", "e", "a", "b"] and table["rank"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["decision"].tolist() == ["", "", "", "", "keep", "fix"]
    lines = [json.loads(line) for line in (folder / "suspects.jsonl").read_text().splitlines()]
    row = {"rank": 2, "uid": "=f", "premise": "P", "hypothesis": "-H", "kind": "P1G0", "gap": 1.0}
    assert lines[1] == row | {"decision": "", "learnt": ""}
    assert reorder(folder, decide(folder, "uid,decision\na,keep\nb,fix\n")) == said  # again, the same


def test_the_gap_is_measured_beside_the_label_alone():
    """All wrong labels are neutral, and within neutral the gap knows nothing: the label alone is as good."""
    gold, wrong = np.repeat(["neutral", "entailment"], 20), np.r_[np.tile([1.0, 0.0], 10), np.zeros(20)]
    table = pd.DataFrame({"gold": gold, "gap": np.r_[np.ones(20), np.zeros(20)], "premise": range(40)})
    said = suspects.beside_label(table, wrong)
    assert said.startswith("Among the 40 decided labels, the order by gap has an average precision of 0.50 (label")
    assert said.endswith("(label alone: 0.50), within a label 0.50 [0.28, 0.72] (chance: 0.50).")
    better = suspects.beside_label(table.assign(gap=table["gap"] + wrong), wrong)
    assert better.endswith("1.00 (label alone: 0.50), within a label 1.00 [1.00, 1.00] (chance: 0.50).")
    assert suspects.beside_label(table[:19], wrong[:19]) == suspects.beside_label(table, 0 * wrong) == ""
    assert suspects.beside_label(table, np.full(40, np.nan)) == ""


def test_without_both_answers_the_order_is_that_of_the_gap(folder):
    said = reorder(folder, decide(folder, "uid,decision\nb,fix\nc,ambiguous\nz,keep\n"))
    assert f"2 decisions (1 fix, 0 keep, 1 ambiguous; set aside in {ASIDE}, because" in said and "list: 1)." in said
    assert said.endswith("in the order of the gap until at least one label is fixed and one is kept.")
    assert columns_of(folder).index.tolist() == ["a", "d", "e", "'=f", "b", "c"]


NO_DECISIONS = [
    ("uid\na\n", "has no column 'decision'. Add a column named decision to suspects.csv, and write fix, keep"),
    ("id,decision\na,fix\n", "has no column 'uid'"),
    ("uid,decision\na,keep\nb,wrong\n", "decided.csv, row 3, decision 'wrong': write fix, keep, ambiguous or"),
    ("uid,decision\na,keep\na,fix\n", "row 3, uid 'a' is decided twice"),
    ("uid,decision,fix_to\na,,neutral\n", "row 2, fix_to 'neutral' needs the decision fix, not ''"),
    ("", "cannot be read as a csv: No columns"),
    (None, r"decided.csv cannot be read as a csv: .*No such file")]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), NO_DECISIONS)
def test_decisions_that_cannot_be_used_are_one_message(folder, text, said):
    with pytest.raises(ToolError if text else StoreError, match=said):
        read_decisions(folder / "decided.csv") if text is None else decide(folder, text)


def test_decisions_in_the_list_itself_are_kept(folder):
    assert kept(folder) is None  # there is no list yet
    reorder(folder, decide(folder, "uid,decision\na,keep\nb,fix\n=f,keep\n"))
    assert "'=f" in (folder / "suspects.csv").read_text()  # as a spreadsheet shows it, and saves it
    assert kept(folder)["decision"].to_dict() == {"a": "keep", "b": "fix", "=f": "keep"}
    for text, decisions in {
        "uid,decision\na,\nb,\n": None,
        '"uid";"decision"\n"a";"fix"\n': {"a": "fix"},  # as some spreadsheets save a csv
        "uid,gap\na,1\n": None,
    }.items():
        (folder / "suspects.csv").write_text(text)
        found = kept(folder)
        assert (found if found is None else found["decision"].to_dict()) == decisions
    (folder / "suspects.csv").write_text("uid,decision\na,fixx\n")
    refused(r"suspects.csv, row 2, decision 'fixx'", kept, folder)


def test_a_note_without_a_decision_stays_with_its_label(folder):
    said = reorder(folder, decide(folder, "uid,decision,note\na,keep,sure\nb,fix,\nc,,ask Eva\nz,,gone\n"))
    assert said.startswith("2 decisions (1 fix, 1 keep, 0 ambiguous). The other 4")
    written = columns_of(folder)
    assert written["note"].to_dict() == {"a": "sure", "b": "", "c": "ask Eva", "d": "", "e": "", "'=f": ""}
    assert written.loc["c", "decision"] == ""
    again = kept(folder)
    assert again["note"].to_dict() == {"z": "gone", "c": "ask Eva", "a": "sure", "b": ""}
    later = suspects.joined(again, decide(folder, "uid,decision,note\na,,only a thought\nd,,new\n"))
    assert later["decision"].to_dict() == {"z": "", "c": "", "a": "keep", "b": "fix", "d": ""}


def test_a_decision_waits_while_its_label_is_not_in_the_list(folder):
    reorder(folder, decide(folder, "uid,decision,note\na,keep,sure\nb,fix,\n"))
    whole = (folder / "suspects.jsonl").read_text()
    lines = [line for line in whole.splitlines() if json.loads(line)["uid"] not in "ab"]
    (folder / "suspects.jsonl").write_text("\n".join(lines) + "\n")  # another list, of other models
    assert "0 decisions" in reorder(folder, kept(folder)) and len(pd.read_csv(folder / ASIDE)) == 2
    (folder / "suspects.jsonl").write_text(whole)
    assert reorder(folder, kept(folder)).startswith("2 decisions (1 fix, 1 keep, 0 ambiguous).")
    assert columns_of(folder).loc["a", "note"] == "sure" and not (folder / ASIDE).exists()
    # without ids of its own a corpus names its pairs by their rows: one before them is gone, and b is another text
    text = "uid,decision,premise,hypothesis\na,keep,P,'-H\nb,fix,Q,'-H\nc,keep,,\nd,fix, P ,'-H\n"
    said = reorder(folder, decide(folder, text))
    assert said.startswith(f"3 decisions (1 fix, 2 keep, 0 ambiguous; set aside in {ASIDE}")
    decided = columns_of(folder)["decision"].to_dict()
    assert decided == {"b": "", "e": "", "'=f": "", "a": "keep", "c": "keep", "d": "fix"}
    assert pd.read_csv(folder / ASIDE)["premise"].tolist() == ["Q"]


# ---------------------------------------------------------------- page and widget


NASTY = '</script><script>alert(1)</script><!-- {{ 7*7 }} \u2028 "q" é'
FIX = {"decision": "fix", "fix_to": "entailment", "note": "=x", "when": "2026", "learnt": ""}


def table(count=6):
    rows = {"rank": np.arange(1, count + 1), "uid": [f"u{at}" for at in range(count)]}
    texts = {"premise": NASTY, "hypothesis": "=1+1", "gold": "neutral", "predicted": "entailment", "kind": "P0G1"}
    return pd.DataFrame(rows).assign(**texts, gap=np.arange(count, 0, -1.0), p_gold=0.1, fold=0, pruned=False)


def made(rows, **more):
    return worklist(rows, **{"classes": LABELS, "title": "<b>", **more})


def test_a_page_holds_the_list_and_no_text_of_it_is_markup(tmp_path):
    found = made(table(), said=["One."], warning="Not better.")
    page = write_page(tmp_path / "suspects.html", found)
    text = page.read_text(encoding="utf-8")
    assert read_page(page) == found and found["rows"][0]["premise"] == NASTY
    assert len(re.findall("<script", text)) == 2 and "alert(1)</script>" not in text and "<!--" not in text
    assert "<title>&lt;b&gt;</title>" in text and "default-src 'none'" in text
    assert re.search(r"https?://", re.sub(r"http://www.w3.org\S*", "", text)) is None  # nothing is fetched


def test_a_long_list_keeps_its_first_rows_and_every_decided_one_under_the_key_of_the_list():
    found = made(table().assign(decision=[*[""] * 5, "keep"], note=["", "", "", "hm", "", ""], when=""), most=2)
    assert [row["uid"] for row in found["rows"]] == ["u0", "u1", "u3", "u5"]
    decided = [(uid, each["decision"], each["note"]) for uid, each in found["made"]]
    assert decided == [("u3", "", "hm"), ("u5", "keep", "")]
    assert all(each["when"] for _, each in found["made"])  # else a browser could not tell which decision is the later
    assert found["said"] == ["This page has 4 of 6 suspects; suspects.csv has all of them."]
    rows = table()
    key = made(rows)["key"]
    assert made(rows.iloc[::-1].assign(decision="keep"))["key"] == key  # not of its order
    assert made(rows.assign(predicted="contradiction"))["key"] != key != made(rows, title="other")["key"]


def test_the_widget_writes_what_is_decided_and_reads_it_again(tmp_path):
    refused("has no suspects.html", suspects_widget, tmp_path)
    write_page(tmp_path / "suspects.html", made(table().assign(uid=["=u0", *(f"u{at}" for at in range(1, 6))])))
    widget = suspects_widget(tmp_path)
    assert widget.made == [] and not widget.file.exists()
    widget.made = [["=u0", FIX], ["u3", {**FIX, "decision": "", "fix_to": "", "note": ""}]]  # one taken back
    found = pd.read_csv(widget.file, keep_default_na=False)
    assert found["uid"].tolist() == ["'=u0"] and found["note"].tolist() == ["'=x"]
    assert found["premise"].tolist() == [NASTY] and found["hypothesis"].tolist() == ["'=1+1"]
    assert suspects_widget(tmp_path).made == [["=u0", FIX]]
    widget.file.write_text("id\n1\n")
    refused("decisions.csv has no column 'uid'", suspects_widget, tmp_path)
    widget.file = tmp_path / "suspects.html" / "decisions.csv"  # below a file
    widget.made = [["u1", FIX]]
    assert widget.fault.startswith("Not saved: ")


# ---------------------------------------------------------------- real corpora, written as plain files


def real(name):
    if name == "wnli-69":
        return load("wnli", "validation", limit=69)
    if name == "mixed-100k":
        parts = [("snli", "train"), ("snli", "test"), ("snli", "validation"), ("mnli", "train")]
        whole = concat([load(*part) for part in parts], name=name)
        return whole[np.sort(np.random.default_rng(0).choice(len(whole), 100_000, replace=False))]
    return load(*name.split("/"))


# the first two have two classes
REAL = {"wnli-69": "tsv", "fever/validation": "jsonl", "sick/train": "csv", "snli/test": "csv", "mixed-100k": "csv"}


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize(("name", "ending"), REAL.items())
def test_a_real_corpus_with_foreign_names(name, ending, tmp_path, monkeypatch):
    """The accuracy and the number of suspects, from the file by another road than the library's; the first suspect."""
    monkeypatch.setattr(paths, "EXPORTS", tmp_path / "exports")
    corpus, path = real(name), tmp_path / f"theirs.{ending}"
    rows = pd.DataFrame({"Nr": range(len(corpus)), "text_one": corpus.premise, "text_two": corpus.hypothesis})
    rows["gilt"] = np.array(corpus.classes)[corpus.labels]
    if ending == "jsonl":
        rows.to_json(path, orient="records", lines=True)
    else:
        rows.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    ran("suspects", path, "--fast", "--columns", "uid=Nr,premise=text_one,hypothesis=text_two,label=gilt")
    record, found, arrays = suspects.recorded(export("fast")), listed(), suspects.arrays(export("fast"))
    uid, probs, fold, classes = (arrays[part] for part in ("uid", "pred_probs", "fold", "classes"))
    rows = rows.set_index(rows["Nr"].astype(str)).loc[uid]  # repeated pairs of a user's file are left out
    gold = rows["gilt"].to_numpy()
    said = classes[probs.argmax(axis=1)]
    assert (said != gold).sum() == len(found) == record["suspects"]
    assert record["accuracy"]["value"] == pytest.approx((said == gold).mean())
    assert record["majority"] == pytest.approx(rows["gilt"].value_counts().max() / len(rows))
    assert (pd.Series(fold).groupby(rows["text_one"].to_numpy()).nunique() == 1).all()  # no premise is in two folds
    first = found.iloc[0]
    at = list(uid).index(str(first["uid"]))
    own = probs[at, list(classes).index(rows["gilt"].iloc[at])]
    assert first["gap"] == pytest.approx(np.log(probs[at].max() / own), abs=1e-3)
    word = "better" if record["accuracy"]["low"] > record["majority"] else "not better"
    assert set(found["models"]) == {f"{word} than the majority"}
    assert word == ("not better" if name == "wnli-69" else "better")  # 69 rows teach nothing
