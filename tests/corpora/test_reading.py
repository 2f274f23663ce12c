"""Rows come out of every format as they stand; broken inputs are one clear message or a counted skip, never a
traceback from the depths. Alone: pytest tests/corpora/test_reading.py"""

import csv
import gzip
import json
import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings, strategies as st

from nli_lib.corpora import CorpusError, load
from nli_lib.corpora.reading import BAD_FIELDS, BAD_JSON, LONGEST, OFFICIAL, Rows, build, kind, read
from nli_lib.evaluate import write_jsonl

ROWS = [("A man eats.", "None", "neutral"), ("A man eats.", "n/a", "entailment"), ("NA", "null", "contradiction")]
HEADER = "premise,hypothesis,label\n"
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)


def write(path, data):
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def loaded(path, data, **form):
    return load(str(write(path, data)), **form)


def delimited(separator):
    return "\n".join(separator.join(row) for row in [("premise", "hypothesis", "label"), *ROWS])


def as_jsonl(rows=ROWS):
    return "\n".join(json.dumps(dict(zip(("premise", "hypothesis", "label"), row, strict=True))) for row in rows)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".jsonl", ".jsonl.gz", ".parquet"])
def test_words_that_look_like_gaps_survive_every_format(tmp_path, ending):
    path = tmp_path / f"mine{ending}"
    if ending == ".parquet":
        columns = dict(zip(("premise", "hypothesis", "label"), zip(*ROWS, strict=True), strict=True))
        pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)
    else:
        data = (as_jsonl() if "jsonl" in ending else delimited("," if "csv" in ending else "\t")).encode()
        write(path, gzip.compress(data) if path.suffix == ".gz" else data)
    corpus = load(str(path))
    assert corpus.hypothesis.tolist() == ["None", "n/a", "null"] and corpus.premise.tolist()[2] == "NA"
    assert corpus.labels.tolist() == [1, 0, 2] and corpus.name == "mine"
    assert corpus.uid.tolist() == ["mine-train-0", "mine-train-1", "mine-train-2"]


@pytest.mark.parametrize(("name", "text"), [
    ("a.csv", "\ufeff" + delimited(",").replace("\n", "\r\n") + "\r\n"),  # of Windows, with a byte-order mark
    ("a.tsv", "\ufeff" + delimited("\t").replace("\n", "\r\n") + "\r\n"),
    ("a.jsonl", as_jsonl().replace("\n", "\r\n")),
    ("a.csv", delimited(",").replace("\n", "\r")),  # of an old Macintosh
    ("a.csv", delimited(";")), ("a.CSV", delimited(",")), ("a.txt", delimited(",")), ("a.txt", delimited(";")),
    ("a.csv", delimited("\t")),
    ("a.json", "[" + as_jsonl().replace("\n", ",\n") + "]\n"),  # a list of objects, or one a line
    ("a.json", as_jsonl())])  # fmt: skip
def test_line_ends_and_what_parts_the_fields(tmp_path, name, text):
    assert loaded(tmp_path / name, text).labels.tolist() == [1, 0, 2]


PAIR = '{"premise": "A", "hypothesis": "B", "label": "neutral"}\n'
VERSES = "One, two, three.\n\nFour, five, six; neutral, he said.\nSeven."
VOTES = '"neutral\nneutral\nbecause, he said, nobody knows"'
ODD, RAW = "One\u2028two\x85three\x0bfour\x1b[31m", "tab\there \x01"  # other Unicode line ends, control characters
MARKUP = "<script>alert(1)</script> =HYPERLINK(1)"
THREE = "An A\tA B\tneutral\nA C\tA D\tneutral\tneutral\tneutral\nAn E\tAn F\tneutral\tentailment"
GOLD = "An A\tA B\tneutral\tneutral\nA C\tA D\tneutral\tentailment\tneutral\tentailment\nE\tF\tneutral\tneutral\t-"


@pytest.mark.parametrize(("name", "text", "expected"), [
    # a comma in the name of a column parts no fields
    ("a.csv", "premise;hypothesis;label;note, free\nA;He eats.;entailment;x\n", {"hypothesis": ["He eats."]}),
    # a field of csv may hold commas, quotes and line ends, and several lines are no unclosed quote
    ("a.csv", HEADER + '"One, ""two""\nthree",Four,neutral\n', {"premise": ['One, "two"\nthree']}),
    ("a.csv", f'{HEADER}"{VERSES}",Four,neutral\nA,"{VERSES}",neutral\n',
     {"premise": [VERSES, "A"], "hypothesis": ["Four", VERSES]}),
    ("a.csv", f"premise,hypothesis,label,votes\nA,B,neutral,{VOTES}\nC,D,entailment,{VOTES}\n", {"label": [1, 0]}),
    # fields behind the label do not cost the row
    ("a.csv", HEADER + "An A,A B,neutral,a note,\nA C,A D,entailment\nAn E,An F,neutral,,\n", {"label": [1, 0, 1]}),
    # of several annotators' labels the last is the gold one where the header says so; else nobody knows which
    ("a.tsv", f"premise\thypothesis\tlabel1\tgold_label\n{GOLD}",
     {"label": [1, 0], "skipped": {"no gold label": 1}}),
    ("a.tsv", f"premise\thypothesis\tlabel\n{THREE}", {"label": [1, 1], "skipped": {BAD_FIELDS: 1}}),
    # a text with a separator is not taken for two
    ("a.csv", "label,premise,hypothesis\nneutral,A,B\nneutral,A man, old,B\n",
     {"premise": ["A"], "skipped": {BAD_FIELDS: 1}}),
    ("a.csv", HEADER + "A,B,neutral\nA, b,C,neutral\n", {"premise": ["A"], "skipped": {BAD_FIELDS: 1}}),
    # bad lines of JSON are counted, and positions kept
    ("mine.jsonl", PAIR + "{broken\n[1, 2]\n\n" + PAIR[:-1] + "," + PAIR + PAIR.replace("A", "C"),
     {"skipped": {BAD_JSON: 3}, "uid": ["mine-train-0", "mine-train-4"]}),
    ("a.jsonl", as_jsonl([(ODD, "H", "neutral")]), {"premise": [ODD]}),
    ("a.jsonl", PAIR.replace('"A"', f'"{RAW}"'), {"premise": [RAW]}),
    ("a.tsv", f"premise\thypothesis\tlabel\n{ODD}\tH\tneutral", {"premise": [ODD]}),
    ("a.csv", HEADER + f"{MARKUP},B,neutral\n", {"premise": [MARKUP]}),  # is only text
    # bytes that are not UTF-8 outside the texts do not cost the row
    ("mine.csv", ("uid,source," + HEADER).encode() + b"caf\xe9,caf\xe9,A,B,neutral\n",
     {"uid": ["mine-train-0"], "source": ["caf?"]}),
    ("a.csv", HEADER + "a" * LONGEST + ",B,neutral\n", {"premise": ["a" * LONGEST]})])  # fmt: skip
def test_a_row_says_what_stands_in_the_file(tmp_path, name, text, expected):
    corpus = loaded(tmp_path / name, text)
    found = {what: corpus.table[what].tolist() for what in expected if what != "skipped"}
    assert found | {"skipped": corpus.skipped} == {"skipped": {}} | expected


def test_quotes_in_a_tsv_are_letters_or_wrappers(tmp_path):
    letters = write(tmp_path / "letters.tsv", 'premise\thypothesis\tlabel\n"Up" is a film.\tA 12" disc.\tneutral\n')
    assert load(str(letters)).premise[0] == '"Up" is a film.'
    wrapped = write(tmp_path / "wrapped.tsv", 'premise\thypothesis\tlabel\n"He said ""hi""."\tHe spoke.\tentailment\n')
    assert load(str(wrapped)).premise[0] == 'He said "hi".'
    assert read(wrapped, quoted=False).table["premise"][0] == '"He said ""hi""."'


def test_a_quote_that_is_never_closed_is_named(tmp_path):
    with pytest.raises(CorpusError, match=r"mine\.csv.*row 2 is never closed"):
        loaded(tmp_path / "mine.csv", 'premise,hypothesis,label\nA,B,neutral\n"C,D,neutral\nE,F,neutral\n')


def test_rows_with_other_numbers_of_fields_are_counted(tmp_path, capsys):
    corpus = loaded(tmp_path / "mine.tsv", delimited("\t") + "\nonly one\na\tb\td\tneutral\n\nx\ty\tneutral\n")
    assert corpus.skipped == {BAD_FIELDS: 2} and corpus.uid.tolist()[-1] == "mine-train-5"
    said = "mine.tsv: row 4 is the first of 2 whose fields are not those of the header (1, not 3)"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(("text", "said"), [
    ("sep=;\r\npremise;hypothesis;label\r\nA, b;C;neutral\r\n", ""),
    ('"sep=,"\npremise,hypothesis,label\n"A, b",C,neutral\n', ""),
    ("premise;hypothesis;label;;\nA, b;C;neutral;;\n", ""),
    ("premise;hypothesis;label;;\nA, b;C;neutral\n", ""),
    (";premise;hypothesis;;label\n;A, b;C;;neutral\n", ""),
    ("Our pairs, 24;;\n;;\npremise;hypothesis;label\nA, b;C;neutral\n", "'Our pairs, 24;; ;;' above the header"),
    ('"Our pairs, 2024",,\npremise,hypothesis,label\n"A, b",C,neutral\n', "above the header is taken for a title"),
    ("Our pairs\npremise;hypothesis;label\nA, b;C;neutral\n", "'Our pairs' above the header is taken")])  # fmt: skip
def test_what_a_spreadsheet_puts_around_a_table_is_no_part_of_it(tmp_path, capsys, text, said):
    corpus = loaded(tmp_path / "mine.csv", "\ufeff" + text)
    assert (corpus.premise.tolist(), corpus.hypothesis.tolist(), corpus.labels.tolist()) == (["A, b"], ["C"], [1])
    assert said in capsys.readouterr().out and corpus.skipped == {}


def test_a_header_of_two_lines_or_of_one_column_is_no_title(tmp_path):
    path = write(tmp_path / "mine.csv", '"premise\n(a text)",hypothesis,label\n"A, b, c",B,neutral\n')
    assert load(str(path), columns={"premise": "premise\n(a text)"}).premise.tolist() == ["A, b, c"]
    assert read(write(tmp_path / "one.csv", 'text\n"A, b, c"\n')).table["text"].tolist() == ["A, b, c"]


def test_a_file_without_a_header_has_numbers_for_names(tmp_path, capsys):
    places = {"premise": "2", "hypothesis": "3", "label": "1"}
    text = "neutral,A,B,A,\nneutral,C,D,C,\nentailment,E,F,,\n"
    corpus = loaded(tmp_path / "mine.csv", text, columns=places)
    assert (corpus.premise.tolist(), corpus.labels.tolist()) == (["A", "C", "E"], [1, 1, 0])
    assert corpus.table["4"].tolist() == ["A", "C", ""]
    corpus = loaded(tmp_path / "mine.csv", "gold,text,text,,\n" + text, columns=places)
    assert "row 1 is taken for a header ('text', 'text', 'gold', ''" in capsys.readouterr().out
    corpus = loaded(tmp_path / "mine.csv", text.replace("neutral,A", "contradiction,A"), columns=places)
    assert corpus.labels.tolist() == [2, 1, 0]  # a label that stands only in the first row is no header
    with pytest.raises(CorpusError, match="A file without a header has numbers for names: premise=1,"):
        loaded(tmp_path / "mine.csv", "neutral,A,B\nentailment,E,F\n")


def test_utf_16_with_a_mark_and_an_encoding_that_is_named(tmp_path, capsys):
    text = "premise\thypothesis\tlabel\nUn café\tThé “noir”\tneutral\n"
    for encoding in ("utf-16", "utf-8-sig"):
        assert loaded(tmp_path / "a.tsv", text.encode(encoding)).hypothesis[0] == "Thé “noir”"
    for encoding in ("cp1252", "utf-16-le", "utf-7", "shift_jis"):
        given = text if encoding != "shift_jis" else text.replace("é", "茶")
        corpus = loaded(tmp_path / "a.tsv", given.encode(encoding), encoding=encoding)
        assert corpus.premise[0] in ("Un café", "Un caf茶")
    assert capsys.readouterr().out == "" and loaded(tmp_path / "a.tsv", text, encoding="cp1252").premise[0] == "Un café"
    assert "a.tsv is UTF-8 and not cp1252" in capsys.readouterr().out
    assert loaded(tmp_path / "a.tsv", text.encode("cp1252"), encoding="utf-8").premise[0] == "Un caf\ufffd"
    assert "4 characters cannot be read as utf-8" in capsys.readouterr().out
    with pytest.raises(CorpusError, match='encoding="cp99" is not known'):
        load(str(tmp_path / "a.tsv"), encoding="cp99")


def test_a_json_object_may_hold_the_list(tmp_path):
    rows = [json.loads(line) for line in as_jsonl().split("\n")]
    for held in ({"version": "1", "authors": ["A"], "data": rows}, {"train": rows, "test": []}):
        for indent in (None, 2):
            path = write(tmp_path / "mine.json", json.dumps(held, indent=indent))
            assert load(str(path)).labels.tolist() == [1, 0, 2]
    with pytest.raises(CorpusError, match="'train', 'test'"):
        loaded(tmp_path / "mine.json", json.dumps({"train": rows, "test": rows}, indent=2))
    assert len(loaded(tmp_path / "mine.json", json.dumps(rows[0]))) == 1


def test_many_columns_are_read_and_not_all_named(tmp_path):
    names = [f"c{at}" for at in range(2_000)]
    with pytest.raises(CorpusError, match="and 1,982 more") as error:
        loaded(tmp_path / "mine.csv", ",".join(["premise", "hypothesis", *names]) + "\nA,B" + ",x" * 2_000 + "\n")
    assert len(str(error.value)) < 700
    text = (tmp_path / "mine.csv").read_text().replace("c1999", "label")[:-2] + "neutral\n"
    assert loaded(tmp_path / "mine.csv", text).table.shape == (1, 2_005)


def test_class_numbers_in_parquet_are_read_by_the_names_the_file_states(tmp_path):
    names = ["contradiction", "entailment", "neutral"]
    features = {"label": {"names": names, "_type": "ClassLabel"}, "premise": {"dtype": "string", "_type": "Value"}}
    features["votes"] = [{"dtype": "string", "_type": "Value"}]  # as older versions write a list
    table = pa.table({"premise": ["P"] * 4, "hypothesis": list("abcd"), "label": [0, 1, 2, -1]})
    description = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(description), tmp_path / "named.parquet")
    corpus = load(str(tmp_path / "named.parquet"))
    assert corpus.labels.tolist() == [2, 0, 1] and corpus.skipped == {"no gold label": 1}
    pq.write_table(table, tmp_path / "bare.parquet")
    with pytest.raises(CorpusError, match="numbers without names"):
        load(str(tmp_path / "bare.parquet"))


FAR = pa.array([10**7, 1], pa.int32()).cast(pa.date32())  # the year 29349
KINDS = {
    "date": FAR, "milliseconds": pa.array([10**15, 1]).cast(pa.date64()),
    "time": pa.array([10**13, 1]).cast(pa.timestamp("s")), "nanoseconds": pa.array([1, 2]).cast(pa.timestamp("ns")),
    "zone": pa.array([1, 2]).cast(pa.timestamp("us", tz="Europe/Paris")), "bytes": pa.array([b"\xff", b"a"]),
    "duration": pa.array([2**62, 1]).cast(pa.duration("s")), "dictionary": pa.array(["a", "b"]).dictionary_encode(),
    "decimal": pa.array([Decimal("1.5"), None], pa.decimal256(70, 3)), "view": pa.array(["a", None], pa.string_view()),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64()))}  # fmt: skip
LEFT_OUT = {
    "zone": pa.array([1, 2]).cast(pa.timestamp("us", tz="Nowhere/At_all")),
    "list": pa.array([[10**13], []], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("s"))),
    "struct": pa.StructArray.from_arrays([FAR], names=["day"]),
}


@pytest.mark.parametrize("kept", [True, False])
def test_columns_that_nobody_asks_for_do_not_end_the_reading(tmp_path, capsys, kept):
    others = KINDS if kept else LEFT_OUT
    texts = {"premise": ["A man eats."] * 2, "hypothesis": ["B", "He eats."], "label": ["neutral", "entailment"]}
    pq.write_table(pa.table(texts | others), tmp_path / "mine.parquet")
    corpus = load(str(tmp_path / "mine.parquet"))
    assert corpus.labels.tolist() == [1, 0] and set(others) & set(corpus.table) == set(others if kept else ())
    said = capsys.readouterr().out
    parts = ("left out", "zone (timestamp[us", "list (", "struct (")
    assert said == "" if kept else all(name in said for name in parts)
    assert len(write_jsonl(tmp_path / "mine.jsonl", corpus.table).read_text().splitlines()) == 2


def test_the_format_comes_from_the_name(tmp_path):
    assert kind(tmp_path / "a.CSV") == ".csv" and kind(tmp_path / "snli_1.0_dev.jsonl.gz") == ".jsonl"
    assert kind(tmp_path / "a.xlsx") == ""
    with pytest.raises(CorpusError, match=r"must end in \.csv"):
        read(write(tmp_path / "a.xlsx", "x"))


@settings(max_examples=60)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
def test_any_text_survives_csv_and_jsonl(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("texts")
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("premise", "hypothesis", "label"), *((*pair, "neutral") for pair in pairs)])
    write(folder / "a.jsonl", as_jsonl([(*pair, "neutral") for pair in pairs]))
    for name in ("a.csv", "a.jsonl"):
        corpus = load(str(folder / name))
        assert list(zip(corpus.premise, corpus.hypothesis, strict=True)) == pairs


# ---------------------------------------------------------------- broken inputs

GOOD = "A man eats.,A man sleeps.,contradiction\n"
ENOUGH = GOOD * 30  # beside which one bad row is one in thirty
LINES, LONG, TOO_LONG = PAIR * 30, "word " * 200_000, {f"longer than {LONGEST:,} characters": 1}
BROKEN = yaml.safe_load(Path(__file__).with_name("broken.yaml").read_text(encoding="utf-8"))

ERRORS = {name: (case["text"], case["said"]) for name, case in BROKEN["errors"].items()} | {
    "bomb.csv.gz": (gzip.compress((HEADER + GOOD).encode() + b"\n" * 2**25), ["unpacks to more than 100 times"]),
    "mark.csv": ("\ufeff", ["the file is empty"]),
    "mark.tsv": ("\ufeff\r\n\r\n", ["the file is empty"]),
    "utf16_without_mark.csv": ((HEADER + GOOD).encode("utf-16-le"), ["NUL", "--encoding utf-16-le"]),
    "cut.csv.gz": (gzip.compress((HEADER + GOOD * 50).encode())[:-20], ["not a whole gzip file"]),
    "latin1.csv": ((HEADER + "Café,Thé,neutral\n").encode("latin-1"),
                   ["1 of 1 rows", "row 1 (line 2)", "looks like Windows-1252 ('Café')", "Save", "--encoding cp1252"]),
    "latin1_header.csv": ("prémisse,hypothesis,label\nA,B,neutral\n".encode("latin-1"), ["is missing", "'pr?misse'"]),
}  # fmt: skip

FIRST = {"csv": HEADER + ENOUGH, "jsonl": LINES}  # thirty good rows
SKIPS = {name: (FIRST[name.split(".")[1]] + each["text"], each["skipped"]) for name, each in BROKEN["skips"].items()}
SKIPS |= {
    "mixed.csv": ((HEADER + ENOUGH).encode() + "Café,Thé,neutral\n".encode("latin-1"), {"not UTF-8": 1}),
    "mixed.tsv": ((HEADER + ENOUGH + "Café,Thé,neutral\n").replace(",", "\t").encode("cp1252"), {"not UTF-8": 1}),
    "mixed.jsonl": ((LINES + PAIR.replace("A", "Café")).encode("latin-1"), {"not UTF-8": 1}),
    "latin1_label.csv": ((HEADER + ENOUGH).encode() + b"A,B,neutr\xe9\n", {"unknown label": 1}),
    "nul.tsv": ((HEADER + ENOUGH).replace(",", "\t") + "A\0B\tC\tneutral\n", {"NUL character": 1}),
    "long.csv": (HEADER + ENOUGH + LONG + ",B,neutral\n", TOO_LONG),
    "long.jsonl": (LINES + PAIR.replace('"B"', json.dumps(LONG)), TOO_LONG),
    "same_row_twice.csv": ("uid," + HEADER + "".join(f"{at},A,B,neutral\n" for at in [0, *range(30)]),
                           {"duplicate row": 1}),
    "deep.jsonl": (LINES + "[" * 100_000, {"bad JSON line": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_a_broken_file_is_one_clear_message(tmp_path, name):
    content, expected = ERRORS[name]
    with pytest.raises(CorpusError) as error:
        loaded(tmp_path / name, content)
    message = str(error.value)
    assert len(message) < 600 and "\n" not in message and all(part in message for part in (name, *expected))


@pytest.mark.parametrize("name", SKIPS)
def test_a_broken_row_is_a_counted_skip(tmp_path, name):
    content, skipped = SKIPS[name]
    corpus = loaded(tmp_path / name, content)
    assert len(corpus) == 30 and corpus.skipped == skipped


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


def test_a_published_corpus_keeps_the_limit_that_its_recorded_numbers_rest_on():
    texts = {"premise": ["A man eats.", "a" * (OFFICIAL + 1)], "hypothesis": ["He eats."] * 2, "label": ["neutral"] * 2}
    rows, place = Rows.of(texts, np.arange(2), "file"), {"name": "mnli", "split": "train", "source": "file"}
    assert build(rows, **place).skipped == {"longer than 20,000 characters": 1}
    assert len(build(rows, **place, own=True)) == 2
