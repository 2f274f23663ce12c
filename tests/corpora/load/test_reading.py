"""Rows come out of every format as they stand, and unreadable rows are counted."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nli_lib.corpora import CorpusError, load
from nli_lib.corpora.load.reading import BAD_FIELDS, BAD_JSON, kind, read

ROWS = [("A man eats.", "None", "neutral"), ("A man eats.", "n/a", "entailment"), ("NA", "null", "contradiction")]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)


def write(path, data):
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


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
        write(path, as_jsonl() if "jsonl" in ending else delimited("," if "csv" in ending else "\t"))
    corpus = load(str(path))
    assert corpus.hypothesis.tolist() == ["None", "n/a", "null"]
    assert corpus.premise.tolist()[2] == "NA"
    assert corpus.labels.tolist() == [1, 0, 2]
    assert corpus.name == "mine"
    assert corpus.uid.tolist() == ["mine-train-0", "mine-train-1", "mine-train-2"]


def test_windows_line_ends_and_a_byte_order_mark(tmp_path):
    for name, separator in (("a.csv", ","), ("a.tsv", "\t")):
        path = write(tmp_path / name, "\ufeff" + delimited(separator).replace("\n", "\r\n") + "\r\n")
        assert load(str(path)).labels.tolist() == [1, 0, 2]
    assert len(load(str(write(tmp_path / "a.jsonl", as_jsonl().replace("\n", "\r\n"))))) == 3


def test_a_comma_in_the_name_of_a_column_parts_no_fields(tmp_path):
    path = write(tmp_path / "mine.csv", "premise;hypothesis;label;note, free\nA man eats.;He eats.;entailment;x\n")
    assert load(str(path)).hypothesis.tolist() == ["He eats."]


def test_quotes_in_a_tsv_are_letters_or_wrappers(tmp_path):
    letters = write(tmp_path / "letters.tsv", 'premise\thypothesis\tlabel\n"Up" is a film.\tA 12" disc.\tneutral\n')
    assert load(str(letters)).premise[0] == '"Up" is a film.'
    wrapped = write(tmp_path / "wrapped.tsv", 'premise\thypothesis\tlabel\n"He said ""hi""."\tHe spoke.\tentailment\n')
    assert load(str(wrapped)).premise[0] == 'He said "hi".'
    assert read(wrapped, quoted=False).table["premise"][0] == '"He said ""hi""."'


def test_a_csv_field_may_hold_commas_quotes_and_line_ends(tmp_path):
    path = write(tmp_path / "mine.csv", 'premise,hypothesis,label\n"One, ""two""\nthree",Four,neutral\n')
    assert load(str(path)).premise[0] == 'One, "two"\nthree'


def test_a_text_of_several_lines_is_no_unclosed_quote(tmp_path):
    text = "One, two, three.\n\nFour, five, six; neutral, he said.\nSeven."
    path = write(tmp_path / "mine.csv", f'premise,hypothesis,label\n"{text}",Four,neutral\nA,"{text}",neutral\n')
    corpus = load(str(path))
    assert (corpus.premise[0], corpus.hypothesis[1], corpus.skipped) == (text, text, {})


def test_a_last_field_of_several_lines_may_begin_with_a_label(tmp_path):
    votes = '"neutral\nneutral\nbecause, he said, nobody knows"'
    path = write(
        tmp_path / "mine.csv", f"premise,hypothesis,label,votes\nA,B,neutral,{votes}\nC,D,entailment,{votes}\n"
    )
    corpus = load(str(path))
    assert corpus.labels.tolist() == [1, 0] and corpus.skipped == {}


@pytest.mark.parametrize(
    ("name", "delimiter"), [("a.csv", ";"), ("a.CSV", ","), ("a.txt", ","), ("a.txt", ";"), ("a.csv", "\t")]
)
def test_the_header_says_what_parts_the_fields(tmp_path, name, delimiter):
    assert load(str(write(tmp_path / name, delimited(delimiter)))).labels.tolist() == [1, 0, 2]


def test_json_is_a_list_of_objects_or_one_a_line(tmp_path):
    for text in ("[" + as_jsonl().replace("\n", ",\n") + "]\n", as_jsonl()):
        assert load(str(write(tmp_path / "mine.json", text))).labels.tolist() == [1, 0, 2]


def test_a_quote_that_is_never_closed_is_named(tmp_path):
    path = write(tmp_path / "mine.csv", 'premise,hypothesis,label\nA,B,neutral\n"C,D,neutral\nE,F,neutral\n')
    with pytest.raises(CorpusError, match=r"mine\.csv.*row 2 is never closed"):
        load(str(path))


def test_rows_with_other_numbers_of_fields_are_counted(tmp_path):
    path = write(tmp_path / "mine.tsv", delimited("\t") + "\nonly one\na\tb\tneutral\td\n\nx\ty\tneutral\n")
    corpus = load(str(path))
    assert corpus.skipped == {BAD_FIELDS: 2}
    assert corpus.uid.tolist()[-1] == "mine-train-5"


def test_bad_json_lines_are_counted_and_positions_kept(tmp_path):
    lines = as_jsonl().split("\n")
    path = write(
        tmp_path / "mine.jsonl", "\n".join([lines[0], "{broken", "[1, 2]", "", lines[1] + "," + lines[2], lines[2]])
    )
    corpus = load(str(path))
    assert corpus.skipped == {BAD_JSON: 3}
    assert corpus.uid.tolist() == ["mine-train-0", "mine-train-4"]


def test_the_other_unicode_line_ends_and_control_characters_stay_in_the_text(tmp_path):
    odd = "One\u2028two\x85three\x0bfour\x1b[31m"
    assert load(str(write(tmp_path / "a.jsonl", as_jsonl([(odd, "H", "neutral")])))).premise[0] == odd
    raw = '{"premise": "tab\there \x01", "hypothesis": "H", "label": "neutral"}'
    assert load(str(write(tmp_path / "b.jsonl", raw))).premise[0] == "tab\there \x01"
    assert load(str(write(tmp_path / "c.tsv", f"premise\thypothesis\tlabel\n{odd}\tH\tneutral"))).premise[0] == odd


def test_class_numbers_in_parquet_are_read_by_the_names_the_file_states(tmp_path):
    names = ["contradiction", "entailment", "neutral"]
    features = {"label": {"names": names, "_type": "ClassLabel"}, "premise": {"dtype": "string", "_type": "Value"}}
    features["votes"] = [{"dtype": "string", "_type": "Value"}]  # as older versions write a list
    table = pa.table({"premise": ["P"] * 4, "hypothesis": list("abcd"), "label": [0, 1, 2, -1]})
    description = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(description), tmp_path / "named.parquet")
    corpus = load(str(tmp_path / "named.parquet"))
    assert corpus.labels.tolist() == [2, 0, 1]
    assert corpus.skipped == {"no gold label": 1}
    pq.write_table(table, tmp_path / "bare.parquet")
    with pytest.raises(CorpusError, match="numbers without names"):
        load(str(tmp_path / "bare.parquet"))


def test_the_format_comes_from_the_name(tmp_path):
    assert kind(tmp_path / "a.CSV") == ".csv"
    assert kind(tmp_path / "snli_1.0_dev.jsonl.gz") == ".jsonl"
    assert kind(tmp_path / "a.xlsx") == ""
    with pytest.raises(CorpusError, match=r"must end in \.csv"):
        read(write(tmp_path / "a.xlsx", "x"))


@settings(max_examples=60)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
def test_any_text_survives_csv_and_jsonl(tmp_path_factory, pairs):
    import csv

    folder = tmp_path_factory.mktemp("texts")
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("premise", "hypothesis", "label"), *((*pair, "neutral") for pair in pairs)])
    write(folder / "a.jsonl", as_jsonl([(*pair, "neutral") for pair in pairs]))
    for name in ("a.csv", "a.jsonl"):
        corpus = load(str(folder / name))
        assert list(zip(corpus.premise, corpus.hypothesis, strict=True)) == pairs
