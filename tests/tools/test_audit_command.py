"""`nli-study audit` and `nli-study card` on files. Run alone: pytest tests/tools/test_audit_command.py"""

import csv
import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import CorpusError
from nli_lib.errors import UserError
from nli_lib.study.dial import ParameterError
from nli_lib.study.runner import Request
from nli_tools import audit, audit_page, own_corpus
from nli_tools.commands import app

LABELS = ("entailment", "neutral", "contradiction")


def call(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def pairs(n=90, labels=LABELS):
    """n invented pairs, two a premise at most; *nobody* in those of the last label."""
    given = [labels[at % len(labels)] for at in range(n)]
    who = ["Nobody" if label == labels[-1] else "She" for label in given]
    return [(f"Person {at // 2} walks in town {at % 5}", f"{who[at]} is {at}", given[at]) for at in range(n)]


def write(path, rows, header=("premise", "hypothesis", "label"), delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path


@pytest.fixture
def here(home, monkeypatch, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def found():
    (path,) = paths.EXPORTS.glob("*/audit.json")
    return json.loads(path.read_text(encoding="utf-8"))


def test_an_audit_writes_two_files_and_touches_nothing_else(here, home):
    file = write(here / "mine.csv", pairs())
    before, text = set(home.rglob("*")), file.read_bytes()
    done = call("audit", "mine.csv")
    assert done.exit_code == 0, done.output
    new = {path for path in home.rglob("*") if path.is_file()} - before
    assert {path.name for path in new} == {"audit.html", "audit.json"}
    assert len({path.parent for path in new}) == 1 and file.read_bytes() == text
    assert done.stdout.splitlines()[-2:] == [str(path) for path in sorted(new)]
    content = found()
    assert content["next"] == done.stdout.splitlines()[-5:-2]
    assert content["figures"]["pairs"]["value"] == 90 and content["test"] is None
    assert content["features"][0]["feature"] and content["classes"] == list(LABELS)


def test_the_same_file_gives_the_same_bytes(here):
    write(here / "mine.csv", pairs())
    call("audit", "mine.csv")
    first = {path: path.read_bytes() for path in paths.EXPORTS.glob("*/*")}
    assert len(first) == 2
    call("audit", "mine.csv")
    assert {path: path.read_bytes() for path in paths.EXPORTS.glob("*/*")} == first


def test_progress_is_told_on_the_error_stream(here):
    write(here / "mine.csv", pairs())
    told = call("audit", "mine.csv").stderr.splitlines()
    stages = [line for line in told if line.startswith("[")]
    assert [line.split("] ")[1].split(",")[0] for line in stages] == list(audit_page.STAGES)
    assert all("s left" in line for line in stages[1:])


def test_time_left_is_by_what_the_stages_took(capsys, monkeypatch):
    times = iter(range(0, 1000, 10))
    monkeypatch.setattr(audit_page.time, "monotonic", lambda: next(times))
    clock = audit_page.Clock()
    clock.rows = 10_000  # 0.15 s foretold for the repeated pairs, which take 10
    with clock("repeated pairs"):
        pass
    with clock("z-filter"):
        pass
    first, second = (int(line.rsplit("about ")[1].split()[0]) for line in capsys.readouterr().err.splitlines())
    assert second > 3 * first


def test_a_test_file_is_compared(here):
    write(here / "mine.csv", pairs())
    write(here / "test.tsv", [*pairs(6), *[("new", f"text {at}", "neutral") for at in range(18)]], delimiter="\t")
    done = call("audit", "mine.csv", "--test", "test.tsv")
    assert done.exit_code == 0, done.output
    content = found()
    assert content["figures"]["leaked pairs"]["value"] == 0.25
    assert content["test"]["name"] == "test.tsv" and content["test"]["pairs"] == 24
    assert "take the 6 pairs of test.tsv" in content["next"][0]
    page = next(paths.EXPORTS.glob("*/audit.html")).read_text(encoding="utf-8")
    assert "Test pairs found here" in page and "25.0%" in page


def test_a_test_file_may_have_other_column_names(here):
    write(here / "mine.csv", pairs(), header=("context", "claim", "verdict"))
    write(here / "test.csv", pairs(12), header=("sentence1", "sentence2", "gold_label"))
    done = call(
        "audit", "mine.csv", "--columns", "premise=context,hypothesis=claim,label=verdict", "--test", "test.csv"
    )
    assert done.exit_code == 0, done.output
    assert found()["figures"]["leaked pairs"]["value"] == 1.0


def test_the_list_of_the_filter_is_written_where_it_is_asked_for(here):
    write(here / "mine.csv", pairs())
    call("audit", "mine.csv", "--pairs")
    (path,) = paths.EXPORTS.glob("*/z_filter.csv")
    table = pd.read_csv(path)
    assert len(table) == 90 and set(table["kept"]) <= {True, False}
    assert (table["kept"] == (table["reason"] == "kept")).all()
    call("audit", "mine.csv")
    assert path.is_file()
    write(here / "mine.csv", pairs(60))
    call("audit", "mine.csv")
    assert not path.exists()  # of another state of the file


def test_rows_that_cannot_be_used_are_said_everywhere(here):
    write(here / "mine.csv", [*pairs(), *[("A man", "He", "-")] * 30, ("", "empty", "neutral")])
    done = call("audit", "mine.csv")
    assert "31 of 121 rows were left out" in done.output and "Clean first: mend the 31 rows" in done.output
    content = found()
    assert content["figures"]["skipped: no gold label"]["value"] == 30
    assert content["figures"]["skipped: empty text"]["value"] == 1
    page = next(paths.EXPORTS.glob("*/audit.html")).read_text(encoding="utf-8")
    assert "no gold label 30" in page and "empty text 1" in page


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (pairs(9), "an audit: 20 rows of each class are needed, and there are entailment 3"),
        (pairs(90, LABELS[:1]), "20 rows of each class are needed"),
        ([("a", "b", str(at % 3)) for at in range(90)], "numbers without names"),
    ],
)
def test_what_cannot_be_audited_is_refused_before_anything_is_written(here, rows, said):
    write(here / "mine.csv", rows)
    done = call("audit", "mine.csv")
    assert isinstance(done.exception, CorpusError) and said in str(done.exception)
    assert not list(paths.EXPORTS.rglob("*"))


def test_wrong_names_are_one_message(here):
    write(here / "mine.csv", pairs(), header=("context", "claim", "verdict"))
    assert "column 'label'" in str(call("audit", "mine.csv").exception)
    assert isinstance(call("audit", "mine.csv", "--columns", "premise").exception, ParameterError)
    write(here / "fine.csv", pairs())
    twice = {"premise=hypothesis,hypothesis=hypothesis": "stands for two", "premise=a,premise=b": "is named twice"}
    for columns, said in twice.items():
        assert said in str(call("audit", "fine.csv", "--columns", columns).exception)
    assert "no such file" in str(call("audit", "yours.csv").exception)
    write(here / "fine.csv", pairs())
    assert "no such file" in str(call("audit", "fine.csv", "--test", "gone.csv").exception)


def test_the_card_is_that_of_the_audit_or_audits_first(here, monkeypatch):
    file = write(here / "mine.csv", pairs())
    done = call("card", "mine.csv")
    assert done.exit_code == 0, done.output
    (path,) = paths.EXPORTS.glob("*/card.md")
    assert path.read_text(encoding="utf-8").startswith("## Data quality\n") and str(path) in done.stdout
    asked, run = [], audit_page.run
    monkeypatch.setattr(audit_page, "run", lambda *words, **more: asked.append(words) or run(*words, **more))
    call("card", "mine.csv")
    assert not asked  # the audit of the same file is there
    write(here / "test.csv", pairs(12))
    call("card", "mine.csv", "--test", "test.csv")
    assert len(asked) == 1 and "**Leakage:** of 12 test pairs (test.csv), 100.0%" in path.read_text(encoding="utf-8")
    assert "changed" not in call("card", "mine.csv").output
    write(here / "test.csv", pairs(15))
    assert "test.csv has changed since the audit that found the leakage" in call("card", "mine.csv").output
    file.write_text(file.read_text().replace("Nobody", "Somebody"))
    call("card", "mine.csv")
    assert len(asked) == 2  # another file than the one that was audited
    next(paths.EXPORTS.glob("*/audit.json")).write_text("[1")
    call("card", "mine.csv")
    assert len(asked) == 3
    call("card", "mine.csv", "--test", "test.csv")
    call("card", "mine.csv", "--test", "planted")
    assert len(asked) == 5 and "test pairs (planted)" in path.read_text(encoding="utf-8")
    monkeypatch.setattr(own_corpus, "load", None)
    assert call("card", "mine.csv", "--test", "planted").exit_code == 0 and len(asked) == 5
    assert call("card", "mine.csv", "--test", "snli").exit_code == 1 and len(asked) == 6  # not the leakage to another


def test_an_audit_of_other_columns_is_another_audit(here):
    rows = [(premise, hypothesis, "It rains.", label) for premise, hypothesis, label in pairs()]
    write(here / "mine.csv", rows, header=("premise", "one", "other", "label"))
    asked = [Request("smoke", "mine.csv", columns={"hypothesis": name}) for name in ("one", "other")]
    first, second = (audit_page.content(each) for each in asked)
    assert first["columns"] == {"hypothesis": "one"} and second["columns"] == {"hypothesis": "other"}
    assert first["digest"] == second["digest"] and first["next"] != second["next"]


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".csv.gz", ".parquet", ".txt"])
def test_every_kind_of_file_gives_the_same_numbers(here, ending, monkeypatch):
    table = pd.DataFrame(pairs(), columns=["premise", "hypothesis", "label"])
    path = here / f"mine{ending}"
    if ending == ".parquet":
        monkeypatch.setitem(sys.modules, "datasets", None)  # a package that an audit does without
        table.to_parquet(path)
    elif ending in (".jsonl", ".json"):
        table.to_json(path, orient="records", lines=ending == ".jsonl")
    elif ending == ".txt":
        write(path, pairs(), delimiter="\t")
    else:
        with gzip.open(path, "wt", newline="") as file:
            table.to_csv(file, index=False)
    write(here / "plain.csv", pairs())
    assert call("audit", path.name).exit_code == 0
    mine = found()["figures"]
    next(paths.EXPORTS.glob("*/audit.json")).unlink()
    call("audit", "plain.csv")
    assert found()["figures"] == mine


def test_class_numbers_of_a_parquet_file_are_named_by_the_file(here, monkeypatch):
    datasets = pytest.importorskip("datasets")
    rows = pd.DataFrame(pairs(), columns=["premise", "hypothesis", "label"])
    made = datasets.Dataset.from_pandas(rows, preserve_index=False)
    made = made.cast_column("label", datasets.ClassLabel(names=["contradiction", "neutral", "entailment"]))
    made.to_parquet(here / "mine.parquet")
    assert call("audit", "mine.parquet").exit_code == 0
    assert {name: found()["figures"][f"label: {name}"]["n"] for name in LABELS} == dict.fromkeys(LABELS, 90)
    (here / "bad.parquet").write_bytes(b"PAR1 no")
    assert "not a readable parquet file" in str(call("audit", "bad.parquet").exception)


def test_a_corpus_without_an_n_gram_in_twenty_pairs_and_texts_without_a_word(here):
    def varied(at):
        return " ".join("".join(chr(0xAC00 + (7 * at + 13 * k) % 9000) for k in range(5)) for _ in range(2))

    write(here / "varied.csv", [(varied(at), varied(at + 500), LABELS[at % 3]) for at in range(90)])
    assert call("audit", "varied.csv").exit_code == 0
    assert found()["figures"]["by chance"]["value"] is None
    next(paths.EXPORTS.glob("*/audit.json")).unlink()
    write(here / "dots.csv", [(f"Person {at} walks", ("...", "?!")[at % 2], LABELS[at % 3]) for at in range(90)])
    done = call("audit", "dots.csv")
    assert done.exit_code == 0, done.exception


def test_texts_without_blanks_are_said_and_what_needs_blanks_is_refused(here):
    signs, ends = "山水火木金土人口手足目耳", ("对", "许", "没")
    rows = [("".join(signs[at // each % 12] for each in (1, 5, 7, 11)), signs[at % 7] + ends[at % 3] + signs[at % 11])
            for at in range(90)]  # fmt: skip
    write(here / "mine.csv", [(*row, LABELS[at % 3]) for at, row in enumerate(rows)])
    done = call("audit", "mine.csv")
    assert "Texts without blanks: characters and pairs of characters stand for words." in done.stdout
    assert "predict 100.0%" in found()["next"][1]
    assert {"对@hypothesis", "许@hypothesis", "没@hypothesis"} <= {each["feature"] for each in found()["features"]}
    for name in ("audit.html", "card.md"):
        call("card", "mine.csv")
        text = next(paths.EXPORTS.glob(f"*/{name}")).read_text(encoding="utf-8")
        assert "Texts without blanks: characters and pairs of characters stand for words" in text
        assert "“没” in the hypothesis" in text and " of the hypothesis's words" not in text
    for command in ("counterfactuals", "debias"):
        refused = call(command, "mine.csv").exception
        assert isinstance(refused, CorpusError) and "texts without blanks between words; the" in str(refused)
    done = call("suspects", "mine.csv", "--fast")
    assert "linear models on words and characters" in done.stdout


def test_a_link_is_the_file_that_its_own_name_says(here):
    write(here / "blob", pairs())
    (here / "mine.csv").symlink_to(here / "blob")
    assert call("audit", "mine.csv").exit_code == 0
    assert "90 pairs" in call("audit", "mine.csv", "--test", "mine.csv").stdout


def test_a_test_set_by_name_is_its_test_split(here, monkeypatch):
    write(here / "mine.csv", pairs())
    asked = []
    monkeypatch.setattr(
        own_corpus, "load", lambda name, split, **more: asked.append((name, split)) or load(name, split)
    )
    own_corpus.read_test("planted", Request("smoke", "mine.csv"))
    assert asked == [("planted", "test")]


def test_a_large_corpus_is_compared_at_the_size_of_the_curves(here, monkeypatch):
    write(here / "mine.csv", pairs(240))
    curve = audit_page.reference(LABELS, 90)
    monkeypatch.setattr(audit_page, "reference", lambda classes, n: curve)
    assert call("audit", "mine.csv").exit_code == 0
    content = found()
    own = content["own figures at that size"]
    assert content["compared at"] == 90 and own["gain"]["n"] == 90
    assert own["highest z"]["value"] < content["figures"]["highest z"]["value"]  # z grows with the pairs
    assert all(each["low"] <= each["value"] <= each["high"] for each in own.values() if each["value"] is not None)


def test_scripts_and_formulas_stay_text(here):
    nasty = "<img src=x onerror=alert(1)> =cmd|' /C calc'!A0 \u202e"
    write(here / "mine.csv", [(f"{nasty} {p}", f"{nasty} {h}", label) for p, h, label in pairs()])
    assert call("audit", "mine.csv", "--pairs").exit_code == 0
    page = next(paths.EXPORTS.glob("*/audit.html")).read_text(encoding="utf-8")
    assert "<img" not in page and "\u202e" not in page and "&lt;img" in page
    assert call("card", "mine.csv").exit_code == 0
    assert "<img" not in next(paths.EXPORTS.glob("*/card.md")).read_text(encoding="utf-8")


def test_samples_of_a_larger_corpus_are_said_on_the_page(here, monkeypatch):
    write(here / "mine.csv", pairs(120))
    monkeypatch.setattr(audit, "FEATURES_OF", 90)
    call("audit", "mine.csv", "--pairs")
    (note,) = found()["notes"]
    assert note == "Features and z-filter are those of 90 of 120 pairs, drawn at random by premise."
    assert note in next(paths.EXPORTS.glob("*/audit.html")).read_text(encoding="utf-8")
    assert len(pd.read_csv(next(paths.EXPORTS.glob("*/z_filter.csv")))) == 90


def test_no_space_is_one_message(here, monkeypatch):
    write(here / "mine.csv", pairs())
    monkeypatch.setattr(paths, "EXPORTS", Path("/proc/nobody/writes/here"))
    done = call("audit", "mine.csv")
    assert isinstance(done.exception, UserError | OSError)
    assert "/proc/nobody" in str(done.exception)


def test_a_file_that_memory_does_not_hold_is_one_message(tmp_path, monkeypatch):
    def too_large(*_args, **_options):
        raise MemoryError

    path = tmp_path / "mine.csv"
    path.write_text("premise,hypothesis,label\na,b,neutral\n")
    monkeypatch.setattr(own_corpus, "load", too_large)
    with pytest.raises(CorpusError, match="mine.csv: too large to be read here at once: take a part of it"):
        own_corpus.read(str(path), Request(scale="small", corpus=str(path)))


def test_a_file_that_the_memory_does_not_hold_is_refused_before_it_is_read(home, tmp_path, monkeypatch):
    path = tmp_path / "mine.csv"
    path.write_text("premise,hypothesis,label\n" + "A man eats.,He eats.,neutral\n" * 100)
    monkeypatch.setattr(own_corpus.psutil, "virtual_memory", lambda: SimpleNamespace(available=50_000))
    with pytest.raises(CorpusError, match=r"mine\.csv: a file of 0\.0 GB takes about 0 GB .*take a part of it"):
        own_corpus.read(str(path), Request(scale="small", corpus=str(path)))
    monkeypatch.setattr(own_corpus.psutil, "virtual_memory", lambda: SimpleNamespace(available=100_000))
    assert len(own_corpus.read(str(path), Request(scale="small", corpus=str(path)))) == 100
