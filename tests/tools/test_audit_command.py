"""`nli-study audit` and `nli-study card` on files. Run alone: pytest tests/tools/test_audit_command.py

With NLI_DATA, real corpora too, as plain files with foreign column names."""

import csv
import gzip
import os
import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from audited import call, export, numbers_of, text_of, write

from nli_lib import paths
from nli_lib.corpora import concat, load
from nli_lib.corpora.corpus import LABELS, CorpusError
from nli_lib.errors import UserError
from nli_lib.study.dial import ParameterError
from nli_lib.study.runner import Request
from nli_tools import audit, audit_page, own_corpus


def pairs(n=90, labels=LABELS):
    """n invented pairs, two a premise at most; *nobody* in those of the last label."""
    given = [labels[at % len(labels)] for at in range(n)]
    who = ["Nobody" if label == labels[-1] else "She" for label in given]
    return [(f"Person {at // 2} walks in town {at % 5}", f"{who[at]} is {at}", given[at]) for at in range(n)]


@pytest.fixture
def here(home, monkeypatch, tmp_path):
    """An empty folder to call from, with a file of `pairs`, mine.csv."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write(folder / "mine.csv", pairs())
    return folder


def test_an_audit_writes_two_files_the_same_each_time_and_tells_its_progress(here, home):
    before, text = set(home.rglob("*")), (here / "mine.csv").read_bytes()
    done = call("audit", "mine.csv")
    assert done.exit_code == 0, done.output
    new = {path for path in home.rglob("*") if path.is_file()} - before
    assert {path.name for path in new} == {"audit.html", "audit.json"}
    assert len({path.parent for path in new}) == 1 and (here / "mine.csv").read_bytes() == text
    assert done.stdout.splitlines()[-2:] == [str(path) for path in sorted(new)]
    content = numbers_of("audit.json")
    assert content["next"] == done.stdout.splitlines()[-5:-2]
    assert content["figures"]["pairs"]["value"] == 90 and content["test"] is None
    assert content["features"][0]["feature"] and content["classes"] == list(LABELS)
    first = {path: path.read_bytes() for path in new}
    stages = [line for line in call("audit", "mine.csv").stderr.splitlines() if line.startswith("[")]
    assert {path: path.read_bytes() for path in paths.EXPORTS.glob("*/*")} == first
    assert [line.split("] ")[1].split(",")[0] for line in stages] == list(audit_page.STAGES)
    assert all("s left" in line for line in stages[1:])


def test_time_left_is_by_what_the_stages_took(capsys, monkeypatch):
    times = iter(range(0, 1000, 10))
    monkeypatch.setattr(audit_page.time, "monotonic", lambda: next(times))
    clock = audit_page.Clock()
    clock.rows = 10_000  # 0.15 s foretold for the repeated pairs, which take 10
    for stage in ("repeated pairs", "z-filter"):
        with clock(stage):
            pass
    first, second = (int(line.rsplit("about ")[1].split()[0]) for line in capsys.readouterr().err.splitlines())
    assert second > 3 * first


def test_a_test_file_is_compared_and_may_have_other_column_names(here, monkeypatch):
    write(here / "test.tsv", [*pairs(6), *[("new", f"text {at}", "neutral") for at in range(18)]], delimiter="\t")
    done = call("audit", "mine.csv", "--test", "test.tsv")
    assert done.exit_code == 0, done.output
    content = numbers_of("audit.json")
    assert content["figures"]["leaked pairs"]["value"] == 0.25
    assert content["test"]["name"] == "test.tsv" and content["test"]["pairs"] == 24
    assert "take the 6 pairs of test.tsv" in content["next"][0]
    assert "Test pairs found here" in text_of("audit.html") and "25.0%" in text_of("audit.html")
    export("audit.json").unlink()
    write(here / "mine.csv", pairs(), header=("context", "claim", "verdict"))
    write(here / "test.csv", pairs(12), header=("sentence1", "sentence2", "gold_label"))
    names = "premise=context,hypothesis=claim,label=verdict"
    done = call("audit", "mine.csv", "--columns", names, "--test", "test.csv")
    assert done.exit_code == 0, done.output
    assert numbers_of("audit.json")["figures"]["leaked pairs"]["value"] == 1.0
    asked = []
    monkeypatch.setattr(own_corpus, "load", lambda name, split, **more: asked.append((name, split)))
    own_corpus.read_test("planted", Request("smoke", "mine.csv"))
    assert asked == [("planted", "test")]


def test_the_list_of_the_filter_is_written_where_it_is_asked_for(here, monkeypatch):
    call("audit", "mine.csv", "--pairs")
    path = export("z_filter.csv")
    table = pd.read_csv(path)
    assert len(table) == 90 and set(table["kept"]) <= {True, False}
    assert (table["kept"] == (table["reason"] == "kept")).all()
    call("audit", "mine.csv")
    assert path.is_file()
    write(here / "mine.csv", pairs(60))
    call("audit", "mine.csv")
    assert not path.exists()  # of another state of the file
    write(here / "mine.csv", pairs(120))
    monkeypatch.setattr(audit, "FEATURES_OF", 90)
    call("audit", "mine.csv", "--pairs")
    (note,) = numbers_of("audit.json")["notes"]
    assert note == "Features and z-filter are those of 90 of 120 pairs, drawn at random by premise."
    assert note in text_of("audit.html") and len(pd.read_csv(path)) == 90


def test_rows_that_cannot_be_used_are_said_everywhere(here):
    write(here / "mine.csv", [*pairs(), *[("A man", "He", "-")] * 30, ("", "empty", "neutral")])
    done = call("audit", "mine.csv")
    assert "31 of 121 rows were left out" in done.output and "Clean first: mend the 31 rows" in done.output
    figures = numbers_of("audit.json")["figures"]
    assert (figures["skipped: no gold label"]["value"], figures["skipped: empty text"]["value"]) == (30, 1)
    assert "no gold label 30" in text_of("audit.html") and "empty text 1" in text_of("audit.html")


NUMBERS = [("a", "b", str(at % 3)) for at in range(90)]
FOREIGN = ("context", "claim", "verdict")


@pytest.mark.parametrize(
    ("rows", "header", "words", "said"),
    [
        (pairs(9), None, [], "an audit: 20 rows of each class are needed, and there are entailment 3"),
        (pairs(90, LABELS[:1]), None, [], "20 rows of each class are needed"),
        (NUMBERS, None, [], "numbers without names"),
        (pairs(), FOREIGN, [], "column 'label'"),
        (pairs(), FOREIGN, ["--columns", "premise"], "--columns"),
        (pairs(), None, ["--columns", "premise=hypothesis,hypothesis=hypothesis"], "stands for two"),
        (pairs(), None, ["--columns", "premise=a,premise=b"], "is named twice"),
        (pairs(), None, ["--test", "gone.csv"], "no such file"),
        (None, None, [], "no such file"),
    ],
)
def test_what_cannot_be_audited_is_one_message_before_anything_is_written(here, rows, header, words, said):
    if rows is None:
        (here / "mine.csv").unlink()
    else:
        write(here / "mine.csv", rows, **({"header": header} if header else {}))
    done = call("audit", "mine.csv", *words)
    assert isinstance(done.exception, CorpusError | ParameterError) and said in str(done.exception)
    assert not list(paths.EXPORTS.rglob("*"))


def test_the_card_is_that_of_the_audit_or_audits_first(here, monkeypatch):
    done = call("card", "mine.csv")
    assert done.exit_code == 0, done.output
    path = export("card.md")
    assert text_of("card.md").startswith("## Data quality\n") and str(path) in done.stdout
    asked, run = [], audit_page.run
    monkeypatch.setattr(audit_page, "run", lambda *words, **more: asked.append(words) or run(*words, **more))

    def audits(*words):
        """How often the card of mine.csv has had it audited so far."""
        assert call("card", "mine.csv", *words).exit_code == 0
        return len(asked)

    assert audits() == 0  # the audit of the same file is there
    write(here / "test.csv", pairs(12))
    assert audits("--test", "test.csv") == 1
    assert "**Leakage:** of 12 test pairs (test.csv), 100.0%" in text_of("card.md")
    assert "changed" not in call("card", "mine.csv").output
    write(here / "test.csv", pairs(15))
    assert "test.csv has changed since the audit that found the leakage" in call("card", "mine.csv").output
    (here / "mine.csv").write_text((here / "mine.csv").read_text().replace("Nobody", "Somebody"))
    assert audits() == 2  # another file than the one that was audited
    export("audit.json").write_text("[1")
    assert audits() == 3
    assert audits("--test", "test.csv") == 4
    assert audits("--test", "planted") == 5 and "test pairs (planted)" in text_of("card.md")
    monkeypatch.setattr(own_corpus, "load", None)
    assert audits("--test", "planted") == 5
    assert call("card", "mine.csv", "--test", "snli").exit_code == 1 and len(asked) == 6  # not the leakage to another


def test_an_audit_of_other_columns_is_another_audit(here):
    rows = [(premise, hypothesis, "It rains.", label) for premise, hypothesis, label in pairs()]
    write(here / "mine.csv", rows, header=("premise", "one", "other", "label"))
    asked = [Request("smoke", "mine.csv", columns={"hypothesis": name}) for name in ("one", "other")]
    first, second = (audit_page.content(each) for each in asked)
    assert first["columns"] == {"hypothesis": "one"} and second["columns"] == {"hypothesis": "other"}
    assert first["digest"] == second["digest"] and first["next"] != second["next"]


def test_every_kind_of_file_gives_the_same_numbers(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # a package that an audit does without
    table = pd.read_csv(here / "mine.csv")
    table.to_json(here / "a.jsonl", orient="records", lines=True)
    table.to_json(here / "a.json", orient="records")
    table.to_parquet(here / "a.parquet")
    write(here / "a.txt", pairs(), delimiter="\t")
    with gzip.open(here / "a.csv.gz", "wt", newline="") as file:
        table.to_csv(file, index=False)
    write(here / "blob", pairs())
    (here / "link.csv").symlink_to(here / "blob")  # is the file that its own name says
    figures = {}
    for name in ("mine.csv", "a.jsonl", "a.json", "a.parquet", "a.txt", "a.csv.gz", "link.csv"):
        assert call("audit", name).exit_code == 0, name
        figures[name] = numbers_of("audit.json")["figures"]
        export("audit.json").unlink()
    assert all(each == figures["mine.csv"] for each in figures.values())


def test_class_numbers_of_a_parquet_file_are_named_by_the_file(here):
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_pandas(pd.read_csv(here / "mine.csv"), preserve_index=False)
    made = made.cast_column("label", datasets.ClassLabel(names=["contradiction", "neutral", "entailment"]))
    made.to_parquet(here / "mine.parquet")
    assert call("audit", "mine.parquet").exit_code == 0
    figures = numbers_of("audit.json")["figures"]
    assert {name: figures[f"label: {name}"]["n"] for name in LABELS} == dict.fromkeys(LABELS, 90)
    (here / "bad.parquet").write_bytes(b"PAR1 no")
    assert "not a readable parquet file" in str(call("audit", "bad.parquet").exception)


def test_a_corpus_without_an_n_gram_in_twenty_pairs_and_texts_without_a_word(here):
    def varied(at):
        return " ".join("".join(chr(0xAC00 + (7 * at + 13 * k) % 9000) for k in range(5)) for _ in range(2))

    write(here / "mine.csv", [(varied(at), varied(at + 500), LABELS[at % 3]) for at in range(90)])
    assert call("audit", "mine.csv").exit_code == 0
    assert numbers_of("audit.json")["figures"]["by chance"]["value"] is None
    write(here / "mine.csv", [(f"Person {at} walks", ("...", "?!")[at % 2], LABELS[at % 3]) for at in range(90)])
    done = call("audit", "mine.csv")
    assert done.exit_code == 0, done.exception


def test_texts_without_blanks_are_said_and_what_needs_blanks_is_refused(here):
    signs, ends = "山水火木金土人口手足目耳", ("对", "许", "没")
    rows = [("".join(signs[at // each % 12] for each in (1, 5, 7, 11)), signs[at % 7] + ends[at % 3] + signs[at % 11])
            for at in range(90)]  # fmt: skip
    write(here / "mine.csv", [(*row, LABELS[at % 3]) for at, row in enumerate(rows)])
    said = "Texts without blanks: characters and pairs of characters stand for words"
    assert f"{said}." in call("audit", "mine.csv").stdout
    content = numbers_of("audit.json")
    assert "predict 100.0%" in content["next"][1]
    assert {"对@hypothesis", "许@hypothesis", "没@hypothesis"} <= {each["feature"] for each in content["features"]}
    call("card", "mine.csv")
    for text in (text_of("audit.html"), text_of("card.md")):
        assert said in text and "“没” in the hypothesis" in text and " of the hypothesis's words" not in text
    for command in ("counterfactuals", "debias"):
        refused = call(command, "mine.csv").exception
        assert isinstance(refused, CorpusError) and "texts without blanks between words; the" in str(refused)
    assert "linear models on words and characters" in call("suspects", "mine.csv", "--fast").stdout


def test_a_large_corpus_is_compared_at_the_size_of_the_curves(here, monkeypatch):
    write(here / "mine.csv", pairs(240))
    curve = audit_page.reference(LABELS, 90)
    monkeypatch.setattr(audit_page, "reference", lambda classes, n: curve)
    assert call("audit", "mine.csv").exit_code == 0
    content = numbers_of("audit.json")
    own = content["own figures at that size"]
    assert content["compared at"] == 90 and own["gain"]["n"] == 90
    assert own["highest z"]["value"] < content["figures"]["highest z"]["value"]  # z grows with the pairs
    assert all(each["low"] <= each["value"] <= each["high"] for each in own.values() if each["value"] is not None)


def test_scripts_and_formulas_stay_text(here):
    nasty = "<img src=x onerror=alert(1)> =cmd|' /C calc'!A0 \u202e"
    write(here / "mine.csv", [(f"{nasty} {p}", f"{nasty} {h}", label) for p, h, label in pairs()])
    assert call("audit", "mine.csv", "--pairs").exit_code == call("card", "mine.csv").exit_code == 0
    page = text_of("audit.html")
    assert "<img" not in page and "\u202e" not in page and "&lt;img" in page
    assert "<img" not in text_of("card.md")


def test_no_space_on_disk_and_no_room_in_memory_are_one_message(here, monkeypatch):
    with monkeypatch.context() as full:
        full.setattr(paths, "EXPORTS", Path("/proc/nobody/writes/here"))
        done = call("audit", "mine.csv")
    assert isinstance(done.exception, UserError | OSError) and "/proc/nobody" in str(done.exception)

    def too_large(*_args, **_options):
        raise MemoryError

    size, request = (here / "mine.csv").stat().st_size, Request(scale="small", corpus=str(here / "mine.csv"))
    with (
        monkeypatch.context() as full,
        pytest.raises(CorpusError, match=r"mine.csv: too large .* at once: take a part"),
    ):
        full.setattr(own_corpus, "load", too_large)
        own_corpus.read(request.corpus, request)
    memory = SimpleNamespace(available=size * own_corpus.TIMES - 1)
    monkeypatch.setattr(own_corpus.psutil, "virtual_memory", lambda: memory)
    with pytest.raises(CorpusError, match=r"mine\.csv: a file of 0\.0 GB takes about 0 GB .*take a part of it"):
        own_corpus.read(request.corpus, request)  # refused before it is read
    memory.available += 1
    assert len(own_corpus.read(request.corpus, request)) == 90


# ---------------------------------------------------------------- real corpora


DATA = os.environ.get("NLI_DATA")  # a home of one's own unsets it
NAMES = {"premise": "passage", "hypothesis": "assertion", "label": "judgement"}
COLUMNS = ",".join(f"{ours}={theirs}" for ours, theirs in NAMES.items())


def theirs(folder, corpus, ending=".csv", n=None):
    """A corpus as a user's file: foreign column names, other spellings of nothing, and a column of their own."""
    table = corpus.table[["premise", "hypothesis"]].assign(label=np.array(corpus.classes, object)[corpus.labels])
    table = pd.DataFrame(np.resize(table.to_numpy(), (n or len(table), 3)), columns=[NAMES[name] for name in table])
    table, path = table.assign(note="ours"), folder / f"theirs{ending}"
    if ending == ".jsonl":
        table.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",", quoting=csv.QUOTE_ALL)
    return path, table


def audited(path):
    for command in ("audit", "card"):
        done = call(command, path, "--columns", COLUMNS)
        assert done.exit_code == 0, (done.output, done.exception)
    assert done.stdout.startswith("## Data quality")
    return numbers_of("audit.json"), text_of("audit.html"), done.stdout


def check(table, content, page, card):
    """Two numbers of the page by an independent computation: the majority, and the share of the strongest word, which
    is looked for by the definition, one letter after the other."""
    words = [each for each in content["features"] if re.fullmatch(r"\S+@hypothesis", each["feature"])]
    best = max(words, key=lambda each: each["z"]["value"])
    word, label = best["feature"].removesuffix("@hypothesis"), table[NAMES["label"]]
    signs = str.maketrans("", "", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    has = table[NAMES["hypothesis"]].map(lambda text: word in text.lower().translate(signs).split())
    share, n = (label[has] == best["label"]).mean(), int(has.sum())
    assert (best["share"]["value"], best["pairs"]["value"]) == (pytest.approx(share), n)
    counts = Counter(label)
    base, most = counts[best["label"]] / len(table), max(counts.values()) / len(table)
    assert best["z"]["value"] == pytest.approx((share - base) / np.sqrt(base * (1 - base) / n))
    assert content["figures"]["majority"]["value"] == pytest.approx(most)
    for text in (page, card):
        assert f"{100 * most:.1f}%" in text and f"“{word}”" in text and f"{100 * share:.1f}%" in text
    assert content["figures"]["pairs"]["value"] == len(table) and set(content["classes"]) == set(counts)
    return content["figures"]


REAL = ("snli", "test", ".csv"), ("wanli", "train", ".jsonl"), ("med", "test", ".tsv"), ("fever", "validation", ".csv")


def real(test):
    """Of the corpora in NLI_DATA, where there are any."""
    there = pytest.mark.skipif(not DATA, reason="NLI_DATA is not set")
    return pytest.mark.realdata(pytest.mark.slow(there(test)))


@real
@pytest.mark.parametrize(("corpus", "split", "ending"), REAL)
def test_a_corpus_gives_right_numbers(home, tmp_path, corpus, split, ending):
    given = load(corpus, split, data_dir=DATA)
    path, table = theirs(tmp_path, given, ending)
    content, page, card = audited(path)
    alone = check(table, content, page, card)["hypothesis only"]
    assert len(given.classes) == len(content["classes"]) and len(content["reference"]) == 3
    assert alone["low"] <= alone["value"] <= alone["high"]
    if corpus == "snli":  # more than a quarter of the labels are given away, as everybody has found
        assert content["figures"]["gain"]["low"] > 0.2 and content["features"][0]["label"] == "entailment"


@real
def test_sixty_nine_rows_give_a_page_or_one_refusal(home, tmp_path):
    rte = load("rte", "train", data_dir=DATA)
    path, table = theirs(tmp_path, rte[np.arange(69)])
    content, page, card = audited(path)
    most = table["judgement"].value_counts().max() / 69
    assert content["figures"]["majority"]["value"] == pytest.approx(most) and content["figures"]["pairs"]["value"] == 69
    assert any("Fewer than 100 rows of a class" in warning for warning in content["warnings"])
    assert "expect wide intervals" in page and "69 pairs" in card
    done = call("audit", theirs(tmp_path, rte[np.arange(30)])[0], "--columns", COLUMNS)
    assert "an audit: 20 rows of each class are needed, and there are" in str(done.exception)


@real
def test_a_hundred_thousand_rows(home, tmp_path):
    names = {"snli": ("train", "validation", "test"), "mnli": ("train", "validation_matched"), "wanli": ("train",)}
    parts = [load(name, split, data_dir=DATA) for name, splits in names.items() for split in splits]
    path, table = theirs(tmp_path, concat(parts, name="all"), n=100_000)
    content, page, card = audited(path)
    figures, own = check(table, content, page, card), content["own figures at that size"]
    assert figures["pairs"]["value"] == 100_000 and content["compared at"] == 15_000 and "at 15,000" in page
    assert set(own) >= {"gain", "highest z", "dropped", "above"}
    assert own["highest z"]["value"] < figures["highest z"]["value"]
    fitted = "The hypothesis-only model is fitted to 50,000 of 100,000 pairs, drawn at random by premise."
    assert content["notes"] == [fitted]
