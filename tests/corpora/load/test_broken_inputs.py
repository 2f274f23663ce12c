"""A folder of broken inputs: each is one clear message or a counted skip, never a traceback from the depths."""

import gzip
import json
import os

import numpy as np
import pytest

from nli_lib.corpora import CorpusError, load
from nli_lib.corpora.reading import LONGEST, OFFICIAL, UNCLOSED, Rows, build

HEADER = "premise,hypothesis,label\n"
GOOD = "A man eats.,A man sleeps.,contradiction\n"
ENOUGH = GOOD * 30  # beside which one bad row is one in thirty
LINES = '{"premise": "A", "hypothesis": "B", "label": "neutral"}\n' * 30

ERRORS = {
    "wrong_columns.csv": (
        "text,target\nA man eats.,1\n",
        ["'premise' or 'sentence1'", "is missing", "'text', 'target'", "--columns premise=..."],
    ),
    "list_label.jsonl": (
        '{"premise": "A", "hypothesis": "B", "label": ["neutral"]}',
        ["row 1", "['neutral']", "known"],
    ),
    "no_list.json": ('[{"premise": "A"', ["not a JSON list", "line 1 column"]),
    "numbers.json": ("[1, 2]", ["no row can be read", "bad JSON line: 2"]),
    "bomb.csv.gz": (gzip.compress((HEADER + GOOD).encode() + b"\n" * 2**25), ["unpacks to more than 100 times"]),
    "unknown_labels.csv": (HEADER + "A,B,maybe\nC,D,surely\n", ["row 1", "'label'", "'maybe', 'surely'", "entailment"]),
    "label_0.csv": (HEADER + "A,B,LABEL_0\nC,D,LABEL_2\n", ["row 1", "'LABEL_0'", "numbers without names", "neutral"]),
    "integers.jsonl": ('{"premise": "A", "hypothesis": "B", "label": 1}', ["row 1", "'1'", "numbers without names"]),
    "empty.csv": ("", ["the file is empty"]),
    "blank.jsonl": ("\n \n", ["the file is empty"]),
    "mark.csv": ("\ufeff", ["the file is empty"]),
    "mark.tsv": ("\ufeff\r\n\r\n", ["the file is empty"]),
    "separator_only.csv": ("sep=;\n", ["a header and no rows"]),
    "header_only.csv": (HEADER, ["a header and no rows"]),
    "header_only.tsv": (HEADER.replace(",", "\t"), ["a header and no rows"]),
    "utf16_without_mark.csv": ((HEADER + GOOD).encode("utf-16-le"), ["NUL", "--encoding utf-16-le"]),
    "other_content.jsonl": ("premise,hypothesis\nno,json\n", ["no row can be read", "bad JSON line: 2"]),
    "one_field.csv": (HEADER + "just a text\nand another\n", ["no row can be read", "wrong number of fields: 2"]),
    "twice.csv": ("premise,premise,hypothesis,label\nA,B,C,neutral\n", ["'premise' twice"]),
    "cut.csv.gz": (gzip.compress((HEADER + GOOD * 50).encode())[:-20], ["not a whole gzip file"]),
    "not_gzip.csv.gz": (HEADER + GOOD, ["not a whole gzip file"]),
    "broken.parquet": ("PAR1 and nothing more", ["not a readable parquet file"]),
    "no_gold.csv": (HEADER + "A,B,-\nC,D,-\n", ["no usable row", "no gold label: 2"]),
    "latin1.csv": (
        (HEADER + "Café,Thé,neutral\n").encode("latin-1"),
        ["1 of 1 rows", "row 1 (line 2)", "looks like Windows-1252 ('Café')", "Save", "--encoding cp1252"],
    ),
    "halves.jsonl": (
        '{"premise": "\\ud83d", "hypothesis": "B", "label": "neutral"}\n' * 3,
        ["3 of 3 rows", "row 1 (line 1)", "not UTF-8"],
    ),
    "latin1_header.csv": ("prémisse,hypothesis,label\nA,B,neutral\n".encode("latin-1"), ["is missing", "'pr?misse'"]),
    "two_texts_of_one_uid.csv": (
        "uid," + HEADER + "x,A,B,neutral\ny,C,D,neutral\nx,E,F,neutral\n",
        ["rows 1, 3", "'uid'", "'x'", "make it unique"],
    ),
    "texts_are_numbers.jsonl": ('{"premise": 1, "hypothesis": 2, "label": "neutral"}', ["text is not a string: 1"]),
}

SKIPS = {
    "unknown_label.csv": (HEADER + ENOUGH + "A,B,maybe\n", {"unknown label": 1}),
    "one_label_0.csv": (HEADER + ENOUGH + "A,B,LABEL_0\n", {"unknown label": 1}),
    "no_gold.csv": (HEADER + ENOUGH + "A,B,-\nC,D,\n", {"no gold label": 2}),
    "empty_text.csv": (HEADER + ENOUGH + ",B,neutral\nA,  ,neutral\n", {"empty text": 2}),
    "mixed_encodings.csv": ((HEADER + ENOUGH).encode() + "Café,Thé,neutral\n".encode("latin-1"), {"not UTF-8": 1}),
    "mixed_encodings.tsv": (
        (HEADER + ENOUGH).replace(",", "\t").encode() + "Café\tThé\tneutral\n".encode("cp1252"),
        {"not UTF-8": 1},
    ),
    "mixed_encodings.jsonl": (
        LINES.encode() + b'{"premise": "Caf\xe9", "hypothesis": "B", "label": "neutral"}\n',
        {"not UTF-8": 1},
    ),
    "latin1_label.csv": ((HEADER + ENOUGH).encode() + b"A,B,neutr\xe9\n", {"unknown label": 1}),
    "half_a_pair.jsonl": (LINES + '{"premise": "\\ud83d", "hypothesis": "B", "label": "neutral"}\n', {"not UTF-8": 1}),
    "nul.csv": (HEADER + ENOUGH + "A\0B,C,neutral\n", {"NUL character": 1}),
    "nul.tsv": ((HEADER + ENOUGH).replace(",", "\t") + "A\0B\tC\tneutral\n", {"NUL character": 1}),
    "nul.jsonl": (LINES + '{"premise": "A\\u0000", "hypothesis": "B", "label": "neutral"}\n', {"NUL character": 1}),
    "long.csv": (HEADER + ENOUGH + "word " * 200_000 + ",B,neutral\n", {f"longer than {LONGEST:,} characters": 1}),
    "long.jsonl": (
        LINES + json.dumps({"premise": "A", "hypothesis": "word " * 200_000, "label": "neutral"}),
        {f"longer than {LONGEST:,} characters": 1},
    ),
    "list_label.jsonl": (LINES + '{"premise": "A", "hypothesis": "C", "label": ["e"]}', {"unknown label": 1}),
    "unclosed_quote.csv": (
        HEADER + ENOUGH + '"C,D,neutral\nE,F,neutral\nG said ""hi"",H,neutral\nI said "ho",J,neutral\n',
        {UNCLOSED: 4},
    ),
    "unclosed_quote_of_two.csv": (HEADER + ENOUGH + 'C,"D,neutral\nE said "hi",F,neutral\n', {UNCLOSED: 2}),
    "unclosed_in_the_middle.csv": (HEADER + ENOUGH + 'C,"D,neutral\nE,"F",neutral\n', {UNCLOSED: 2}),
    "same_row_twice.csv": (
        "uid," + HEADER + "".join(f"{at},A,B,neutral\n" for at in [0, *range(30)]),
        {"duplicate row": 1},
    ),
    "several_labels.csv": (
        HEADER + ENOUGH + 'A,B,"neutral, entailment"\nA,B,neutral/contradiction\n',
        {"several labels in one cell": 2},
    ),
    "several_labels.jsonl": (
        LINES + '{"premise": "A", "hypothesis": "C", "label": ["entailment", "neutral"]}',
        {"several labels in one cell": 1},
    ),
    "deep.jsonl": (LINES + "[" * 100_000, {"bad JSON line": 1}),
}


def broken(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", ERRORS)
def test_a_broken_file_is_one_clear_message(tmp_path, name):
    content, expected = ERRORS[name]
    with pytest.raises(CorpusError) as error:
        load(str(broken(tmp_path, name, content)))
    message = str(error.value)
    assert name in message
    assert len(message) < 600
    assert "\n" not in message
    for part in expected:
        assert part in message


@pytest.mark.parametrize("name", SKIPS)
def test_a_broken_row_is_a_counted_skip(tmp_path, name):
    content, skipped = SKIPS[name]
    corpus = load(str(broken(tmp_path, name, content)))
    assert len(corpus) == 30
    assert corpus.skipped == skipped
    report = corpus.report()
    assert report.loc[report["kind"] == "skipped", "count"].sum() == sum(skipped.values())


def test_a_file_that_is_not_there_and_a_folder(tmp_path):
    with pytest.raises(CorpusError, match=r"gone\.csv: no such file"):
        load(str(tmp_path / "gone.csv"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(CorpusError, match=r"folder\.csv: cannot be read"):
        load(str(tmp_path / "folder.csv"))
    for nothing in ("", " ", ".", str(tmp_path)):
        with pytest.raises(CorpusError, match="is neither a corpus"):
            load(nothing)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "mine.csv")
    with pytest.raises(CorpusError, match=r"mine\.csv: cannot be read \(not a regular file\)"):
        load(str(tmp_path / "mine.csv"))


def test_markup_is_only_text(tmp_path):
    text = "<script>alert(1)</script> =HYPERLINK(1)"
    corpus = load(str(broken(tmp_path, "markup.csv", HEADER + f"{text},B,neutral\n")))
    assert corpus.premise[0] == text


def test_bytes_that_are_not_utf8_outside_the_texts_do_not_cost_the_row(tmp_path):
    content = ("uid,source," + HEADER).encode() + b"caf\xe9,caf\xe9,A,B,neutral\n"
    corpus = load(str(broken(tmp_path, "mine.csv", content)))
    assert corpus.uid.tolist() == ["mine-train-0"]
    assert corpus.table["source"].tolist() == ["caf?"]


def test_a_text_of_the_greatest_length_is_kept(tmp_path):
    corpus = load(str(broken(tmp_path, "long.csv", HEADER + GOOD + "a" * LONGEST + ",B,neutral\n")))
    assert len(corpus) == 2 and corpus.skipped == {}


def test_a_published_corpus_keeps_the_limit_that_its_recorded_numbers_rest_on():
    texts = {"premise": ["A man eats.", "a" * (OFFICIAL + 1)], "hypothesis": ["He eats."] * 2, "label": ["neutral"] * 2}
    rows, place = Rows.of(texts, np.arange(2), "file"), {"name": "mnli", "split": "train", "source": "file"}
    assert build(rows, **place).skipped == {"longer than 20,000 characters": 1}
    assert len(build(rows, **place, own=True)) == 2
