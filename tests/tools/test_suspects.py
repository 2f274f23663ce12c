"""`nli-study suspects --fast` and `--probs`, from a file to a list. Alone: pytest tests/tools/test_suspects.py"""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from plain_pairs import plainly
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import concat
from nli_lib.evaluate import export_review, review_list
from nli_lib.measure import giveaways
from nli_lib.measure.giveaways import pair_ngrams
from nli_lib.study import book, runner
from nli_tools import commands, suspects
from nli_tools.suspects import read_page

COLUMNS = "premise=context,hypothesis=claim,label=verdict"
LABELS = ("entailment", "neutral", "contradiction")
WORDS = ("surely", "perhaps", "never")


def call(*words):
    done = CliRunner().invoke(commands.app, ["suspects", *map(str, words)])
    return done


def folder(part="fast"):
    (found,) = paths.EXPORTS.glob(f"*/{part}")
    return found


@pytest.fixture
def mine(home, tmp_path):
    """A file of 300 invented pairs with foreign column names, in which every tenth label is wrong."""

    def make(learnable=True, extra=()):
        random, rows = np.random.default_rng(0), []
        for at in range(300):
            true, wrong = at % 3, at % 10 == 0
            word = WORDS[true] if learnable else random.choice(WORDS)
            rows.append(
                {"pairID": f"n{at}", "context": f"Dog {at} runs.", "claim": f"It {word} moves {at % 7}",
                 "verdict": LABELS[(true + wrong) % 3], **dict.fromkeys(extra, "theirs")}
            )  # fmt: skip
        path = tmp_path / "mine.csv"
        pd.DataFrame(rows).to_csv(path, index=False)
        return path

    return make


def test_wrong_labels_lead_the_list_and_the_console_says_what_was_learnt(mine):
    done = call(mine(), "--fast", "--columns", COLUMNS)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(folder() / "suspects.csv")
    assert sorted(int(uid[1:]) for uid in table["uid"]) == list(range(0, 300, 10))  # those that are wrong, and no other
    assert "of 5 linear models on words" in done.output and "30 of 300 labels are contradicted" in done.output
    assert "The models predict 90.0%" in done.output and "Not better" not in done.output
    assert set(table["models"]) == {"better than the majority"}
    page = read_page(folder() / "suspects.html")
    assert page["warning"] == "" and [row["uid"] for row in page["rows"]] == table["uid"].tolist()
    assert f"nli-study suspects {paths.HOME / 'mine.csv'} --fast --columns {COLUMNS} --decided" in page["command"]
    with np.load(folder() / "cleanlab.npz") as arrays:
        assert arrays["pred_probs"].shape == (300, 3) and set(arrays["fold"]) == set(range(5))


def test_the_command_on_the_page_makes_the_same_list(mine):
    page = call(mine(), "--fast", "--columns", COLUMNS, "--folds", 3, "--scale", "smoke")
    assert page.exit_code == 0, page.output
    said = read_page(folder() / "suspects.html")["command"]
    words = f"--fast --scale smoke --columns {COLUMNS} --folds 3 --decided decisions.csv"
    assert said == f"The same for the whole list: nli-study suspects {paths.HOME / 'mine.csv'} {words}"


def test_a_list_that_was_cut_short_is_scored_again(mine, monkeypatch):
    path = mine()
    call(path, "--fast", "--columns", COLUMNS)
    first = (folder() / "suspects.csv").read_text()
    path.write_text(path.read_text().replace("surely", "certainly"))

    def cut(*given):
        export_review(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(suspects, "export_review", cut)
        call(path, "--fast", "--columns", COLUMNS)
    path.write_text(path.read_text().replace("certainly", "surely"))
    assert "Scored by an earlier run" not in call(path, "--fast", "--columns", COLUMNS).output
    assert (folder() / "suspects.csv").read_text() == first


def test_a_damaged_file_of_a_list_is_one_message(mine):
    path = mine()
    call(path, "--fast", "--columns", COLUMNS)
    for name, damage in (("cleanlab.npz", b"PK"), ("suspects.json", b"{")):
        (folder() / name).write_bytes(damage)
        said = str(call(path, "--fast", "--columns", COLUMNS).exception)
        assert f"{name} cannot be read" in said and "delete its folder and run nli-study suspects again" in said


def test_models_that_learnt_nothing_are_named_everywhere(mine):
    done = call(mine(learnable=False), "--fast", "--columns", COLUMNS)
    assert "Not better than the majority. The models predict" in done.output
    assert set(pd.read_csv(folder() / "suspects.csv")["models"]) == {"not better than the majority"}
    assert read_page(folder() / "suspects.html")["warning"].startswith("Not better than the majority.")
    assert json.loads((folder() / "suspects.json").read_text())["models"] == "not better than the majority"


def test_decisions_stay_until_they_are_taken_back(mine, tmp_path, monkeypatch):
    path = mine(extra=("note", "models", "rank", "votes"))  # the corpus's own columns of these names
    first = call(path, "--fast", "--columns", COLUMNS)
    assert first.exit_code == 0, first.output
    table = pd.read_csv(folder() / "suspects.csv")
    assert set(table["note (own)"]) == set(table["models (own)"]) == {"theirs"} and "note" not in table
    assert set(table["rank (own)"]) == set(table["votes (own)"]) == {"theirs"} and "votes" not in table
    a, b = table["uid"][:2]
    decided = tmp_path / "decisions.csv"
    decided.write_text(f"uid,decision,fix_to,note\n{a},keep,,=hm\n{b},fix,contradiction,\n")
    monkeypatch.setattr(suspects, "out_of_fold", None)  # nothing is scored again
    done = call(path, "--fast", "--columns", COLUMNS, "--decided", decided)
    assert done.exit_code == 0, done.output
    assert "Scored by an earlier run" in done.output and "2 decisions (1 fix, 1 keep, 0 ambiguous)" in done.output
    again = pd.read_csv(folder() / "suspects.csv", keep_default_na=False).set_index("uid")
    assert again.index.tolist()[-2:] == [a, b] and again.loc[a, "note"] == "'=hm"
    assert again.loc[b, "fix_to"] == "contradiction" and set(again["note (own)"]) == {"theirs"}
    made = dict(read_page(folder() / "suspects.html")["made"])
    assert (made[a]["note"], made[b]["fix_to"], made[a]["learnt"]) == ("=hm", "contradiction", "yes")
    assert "2 decisions" in call(path, "--fast", "--columns", COLUMNS).output  # those in the list itself are kept
    decided.write_text(f"uid,decision\n{b},ambiguous\n")
    done = call(path, "--fast", "--columns", COLUMNS, "--decided", decided)
    assert "2 decisions (0 fix, 1 keep, 1 ambiguous)" in done.output  # what stands in the list is not lost
    again[["decision", "fix_to", "note"]] = ""
    again.reset_index().to_csv(folder() / "suspects.csv", index=False)
    assert "decisions (" not in call(path, "--fast", "--columns", COLUMNS).output
    last = pd.read_csv(folder() / "suspects.csv")
    assert last.equals(table) and read_page(folder() / "suspects.html")["made"] == []


def test_a_label_to_fix_to_is_one_of_the_corpus(mine, tmp_path):
    decided = tmp_path / "decisions.csv"
    for row, said in [
        (
            "n0,fix,neutrall",
            "row 2, fix_to 'neutrall': write a label of the corpus (entailment, neutral, contradiction)",
        ),
        ("n0,keep,neutral", "row 2, fix_to 'neutral' stands beside the decision 'keep'"),
    ]:
        decided.write_text(f"uid,decision,fix_to\n{row}\n")
        assert said in str(call(mine(), "--fast", "--columns", COLUMNS, "--decided", decided).exception)


def test_probabilities_of_ones_own_make_a_list_of_their_own(mine, tmp_path):
    path, probs = mine(), tmp_path / "probs.csv"
    call(path, "--fast", "--columns", COLUMNS)
    before = (folder() / "suspects.csv").read_bytes()
    true = np.eye(3)[np.arange(300) % 3] * 0.7 + 0.1
    table = pd.DataFrame(true[:, ::-1], columns=["p_contradiction", "p_neutral", "p_entailment"])
    table.assign(pairID=[f"n{at}" for at in range(300)]).sample(frac=1, random_state=0).to_csv(probs, index=False)
    done = call(path, "--probs", probs, "--columns", COLUMNS)
    assert done.exit_code == 0, done.output
    assert "Whether they are out of sample cannot be seen" in done.output
    assert "labels, which they may have trained on" in " ".join(done.output.split())
    listed = pd.read_csv(folder("probs") / "suspects.csv")
    assert sorted(int(uid[1:]) for uid in listed["uid"]) == list(range(0, 300, 10))
    np.testing.assert_allclose(listed["gap"], np.log(8), atol=1e-4)
    assert (folder() / "suspects.csv").read_bytes() == before
    # and what one list leaves is probabilities again
    done = call(path, "--probs", folder() / "cleanlab.npz", "--columns", COLUMNS)
    assert done.exit_code == 0, done.output
    fast, same = (pd.read_csv(folder(part) / "suspects.csv") for part in ("fast", "probs"))
    assert same["uid"].tolist() == fast["uid"].tolist()


def test_a_corpus_whose_labels_nothing_contradicts_has_an_empty_list(mine, tmp_path):
    path, probs = mine(), tmp_path / "probs.csv"
    given = pd.read_csv(path)
    sure = {label: np.where(given["verdict"] == label, 0.9, 0.05) for label in LABELS}
    given[["pairID"]].assign(**sure).to_csv(probs, index=False)
    done = call(path, "--probs", probs, "--columns", COLUMNS)
    assert done.exit_code == 0 and "0 of 300 labels are contradicted" in done.output
    listed = pd.read_csv(folder("probs") / "suspects.csv")
    assert len(listed) == 0 and {"gap", "rank"} <= set(listed) and (folder("probs") / "suspects.html").is_file()


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
    done = call(path, "--columns", COLUMNS)
    assert done.exit_code == 0, done.output
    assert (
        "by one of 10 trained models that did not see it" in done.output and "The models predict 90.0%" in done.output
    )
    assert set(pd.read_csv(folder("suspects.csv"))["when (own)"]) == {"theirs"}
    page = read_page(folder("suspects.html"))
    assert len(page["rows"]) == 30 and page["command"].endswith(f"--columns {COLUMNS} --decided decisions.csv")


def test_embeddings_make_a_list_of_their_own(mine, monkeypatch):
    monkeypatch.setattr(suspects, "_vectors", lambda corpus: pair_ngrams(corpus.premise, corpus.hypothesis).toarray())
    path = mine()
    for words in ((), ("--embeddings",)):
        done = call(path, "--fast", *words, "--columns", COLUMNS)
        assert done.exit_code == 0, (done.output, done.exception)
    assert "of 5 linear models on sentence embeddings that" in done.output
    one, other = (pd.read_csv(folder(part) / "suspects.csv") for part in ("fast", "embeddings"))
    assert set(one["uid"]) == set(other["uid"])
    assert "--fast --embeddings --columns" in read_page(folder("embeddings") / "suspects.html")["command"]
    assert "--embeddings goes with --fast" in str(call(path, "--embeddings", "--columns", COLUMNS).exception)


def test_a_corpus_by_name_is_the_split_that_the_study_trains_on(home):
    done = call("planted", "--fast", "--scale", "smoke")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "labels are contradicted" in done.output


def test_what_cannot_be_done_is_one_message(mine, tmp_path):
    path = mine()
    for words in (("--fast", "--seeds", "2"), ("--fast", "--probs", "x.csv"), ("--probs", "x.csv", "--seeds", "2")):
        assert "stand alone" in str(call(path, "--columns", COLUMNS, *words).exception)
    few = tmp_path / "few.csv"
    few.write_text("premise,hypothesis,label\n" + "".join(f"a,b {at},{LABELS[at % 3]}\n" for at in range(30)))
    assert "20 rows of each class are needed" in str(call(few, "--fast").exception)
    few.write_text("premise,hypothesis,label\n" + "".join(f"a,b {at},{LABELS[at % 3]}\n" for at in range(90)))
    said = str(call(few, "--fast").exception)
    assert "its 90 pairs have 1 different premises, which cannot be divided into 5 folds" in said and "has none" in said


def test_a_fast_list_needs_no_torch(mine, tmp_path):
    """In a process of its own, in which nothing heavy can be imported."""
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "sentence_transformers", "datasets"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
sys.argv = ["nli-study", "suspects", {str(mine())!r}, "--fast", "--columns", {COLUMNS!r}]
from nli_tools.commands import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder() / "suspects.html").is_file()


# ---------------------------------------------------------------- real corpora, written as plain files


def foreign(corpus, path):
    """A corpus as a plain file with column names of no standard; its rows (premise, hypothesis, label name)."""
    names = np.array(corpus.classes)[corpus.labels]
    table = pd.DataFrame({"Nr": range(len(corpus)), "text_one": corpus.premise, "text_two": corpus.hypothesis})
    table["gilt"] = names
    if path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",", quoting=csv.QUOTE_MINIMAL)
    return table


def real(name):
    if name == "wnli-69":
        return load("wnli", "validation", limit=69)
    if name == "mixed-100k":
        parts = [("snli", "train"), ("snli", "test"), ("snli", "validation"), ("mnli", "train")]
        whole = concat([load(*part) for part in parts], name=name)
        return whole[np.sort(np.random.default_rng(0).choice(len(whole), 100_000, replace=False))]
    return load(*name.split("/"))


CORPORA = {
    "wnli-69": ".tsv",  # two classes
    "fever/validation": ".jsonl",  # two classes
    "sick/train": ".csv",
    "snli/test": ".csv",
    "mixed-100k": ".csv",
}


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA is not set")
@pytest.mark.parametrize("name", CORPORA)
def test_a_real_corpus_with_foreign_names(name, tmp_path, monkeypatch):
    """The accuracy and the number of suspects, from the file by another road than the library's; the first suspect."""
    monkeypatch.setattr(paths, "EXPORTS", tmp_path / "exports")
    corpus = real(name)
    path = tmp_path / f"theirs{CORPORA[name]}"
    rows = foreign(corpus, path)
    done = call(path, "--fast", "--columns", "uid=Nr,premise=text_one,hypothesis=text_two,label=gilt")
    assert done.exit_code == 0, (done.output, done.exception)
    record, listed = json.loads((folder() / "suspects.json").read_text()), pd.read_csv(folder() / "suspects.csv")
    with np.load(folder() / "cleanlab.npz") as arrays:
        uid, probs, fold, classes = (arrays[part] for part in ("uid", "pred_probs", "fold", "classes"))
    rows = rows.set_index(rows["Nr"].astype(str)).loc[uid]  # repeated pairs of a user's file are left out
    gold = rows["gilt"].to_numpy()
    if len(rows) <= 5_000:  # the model itself once more, on the features of the plain definition
        table = sparse.csr_array(plainly(rows["text_one"], rows["text_two"]))
        again = np.zeros_like(probs)
        for number in range(5):
            here = fold == number
            fitted = LogisticRegression(C=giveaways.PAIR_PENALTY, max_iter=giveaways.PAIR_PASSES).fit(
                table[~here], gold[~here]
            )
            again[np.ix_(here, [list(classes).index(each) for each in fitted.classes_])] = fitted.predict_proba(
                table[here]
            )
        np.testing.assert_allclose(again, probs, atol=0.02)  # the solver stops after so many passes
        probs = again
    said = classes[probs.argmax(axis=1)]
    near = 0 if len(rows) > 5_000 else (np.sort(probs, axis=1)[:, -2:] @ [-1, 1] < 0.04).sum()
    assert abs((said != gold).sum() - len(listed)) <= near and len(listed) == record["suspects"]
    assert abs((said == gold).mean() - record["accuracy"]["value"]) <= near / len(rows)
    counts = rows["gilt"].value_counts()
    assert record["majority"] == pytest.approx(counts.max() / len(rows))
    groups = pd.Series(fold).groupby(rows["text_one"].to_numpy()).nunique()
    assert (groups == 1).all()  # no premise is in two folds
    first = listed.iloc[0]
    at = list(uid).index(str(first["uid"]))
    own = probs[at, list(classes).index(rows["gilt"].iloc[at])]
    assert first["gap"] == pytest.approx(np.log(probs[at].max() / own), abs=0.3 if near else 1e-3)
    word = "better" if record["accuracy"]["low"] > record["majority"] else "not better"
    assert set(listed["models"]) == {f"{word} than the majority"}
    assert word == ("not better" if name == "wnli-69" else "better")  # 69 rows teach nothing
