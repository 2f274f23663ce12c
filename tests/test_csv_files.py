"""What is written into a csv comes back, and no spreadsheet runs it. Run alone: pytest tests/test_csv_files.py"""

import ast
import csv
import io
import re
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, strategies as st

from nli_lib import tables
from nli_lib.tables import as_csv, read_csv, read_table, write_csv, write_table

NASTY = [
    "He sleeps.\r=HYPERLINK(1)", "She waits.\n=1", "\r\n+1+1", " =1+1", "\u3000\uff1d1+1", "\u200b\ufeff=1", "\uff0bA1",
    "\uff20SUM(A1)", "\u2212A1", "a;=1+1", 'a;"=1+1', 'a\t "-A1', "a,\u00a0@b", "\tA dog.", "'=1", "''+A1;'=2", "-1+1",
    "- He said no.", '"quoted", and, so on', "-5;+cmd(1)", "it's - as ever - all right; no sign"]  # fmt: skip
NUMBERS = ["-5", "+0.5", "-1e-05", "-.5"]
UNSEEN = ("Z", "C")  # categories of characters: blanks, control and format signs


def starts(text):
    """What a spreadsheet makes of the first character that it sees."""
    seen = [letter for letter in text if letter != '"' and unicodedata.category(letter)[0] not in UNSEEN]
    return unicodedata.normalize("NFKC", seen[0]).replace("\u2212", "-") if seen else ""


def formulas(text):
    """Fields that a spreadsheet would run, whichever sign it takes to part fields."""
    rows = [row for sign in ",;\t" for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign)]
    fields = [field for row in rows for field in row if starts(field) in tuple("=+-@")]
    # no formula begins with a number and a text in quotes, as a row does that is parted at another sign than the comma
    return [field for field in fields if not re.match(r'\s*[-+][\d.]+([eE][-+]?\d+)?"?(\Z|,)', field)]


def check(table, path):
    """The table through a csv for people and through a recorded one."""
    text = write_csv(path / "t.csv", table).read_bytes().decode()
    assert not formulas(text)
    assert len(list(csv.reader(io.StringIO(text, newline="")))) == len(table) + 1  # no text begins a record
    pd.testing.assert_frame_equal(read_csv(path / "t.csv"), table, check_dtype=False)
    recorded = read_table(write_table(table.assign(word="kept"), path / "t"))  # a column of numerals becomes numbers
    pd.testing.assert_frame_equal(recorded[["word"]], pd.DataFrame({"word": ["kept"] * len(table)}))
    for name in table:
        missing, numbers = recorded[name].isna().all(), recorded[name].map(type).ne(str).all()
        assert missing or numbers or recorded[name].fillna("").tolist() == table[name].tolist()


@pytest.mark.parametrize("text", [*NASTY, *NUMBERS], ids=ascii)
def test_a_text_is_run_by_no_spreadsheet_and_comes_back(text, tmp_path):
    check(pd.DataFrame({"uid": ["a", text], "text": [text, "A cat."], "text " + text: [text, text]}), tmp_path)


LETTERS = st.sampled_from("=+-@\uff1d\uff0d\u2212'\"; ,\t\r\n\u200b\u3000\x00\x0b\x85\u2028a1.e")


@example([("", ";"), ("-1", "")])
@given(st.lists(st.tuples(st.text(LETTERS, max_size=9), st.text(LETTERS, max_size=9)), min_size=1, max_size=3))
def test_any_texts_are_run_by_no_spreadsheet_and_come_back(tmp_path_factory, rows):
    check(pd.DataFrame(rows, columns=["uid", "text"]), tmp_path_factory.mktemp("csv"))


def test_texts_are_quoted_and_numbers_stand_as_they_are():
    table = pd.DataFrame({"text": ["-5", None, ""], "n": [-5, 2, 3], "x": np.array([0.1, np.nan, -2e-7], "float32")})
    table = table.assign(yes=[True, False, True], mixed=[-1.5, "-1", None], kind=pd.Categorical(["=a", "b", None]))
    assert as_csv(table).splitlines() == [
        '"text","n","x","yes","mixed","kind"', '"-5",-5,0.1,True,-1.5,"\'=a"', ',2,,False,"-1","b"',
        '"",3,-2e-07,True,,']  # fmt: skip
    assert as_csv(pd.DataFrame({"alone": [np.nan, 1.5]})) == '"alone"\n""\n1.5\n'


def test_a_recorded_table_of_the_same_fields_stays_as_it_is(tmp_path):
    table, path = pd.DataFrame({"title": ["A, b", "c"], "value": [0.5, -1]}), tmp_path / "t.csv"
    table.to_csv(path, index=False)  # as tables were written before each text was quoted
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert write_table(table, tmp_path / "t") == path and (path.read_bytes(), path.stat().st_mtime_ns) == before
    live = table.assign(title=["=1", "c\rd"])
    live.to_csv(path, index=False)
    write_table(live, tmp_path / "t")
    assert path.read_text() == '"title","value"\n"\'=1",0.5\n"c\rd",-1.0\n'.replace("\r", "\n")  # as text mode reads it
    assert read_table(path).equals(live)


def test_every_csv_is_written_here_and_the_page_of_suspects_writes_the_same():
    library = Path(tables.__file__).parent
    for path in [*library.rglob("*.py"), *(library.parent / "nli_tools").glob("*.py")]:
        names = {getattr(node, "attr", "") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))}
        assert path.name == "notebook.py" or not names & {"to_csv", "writer", "DictWriter"}, path  # a digest, no file
    script = (library.parent / "nli_tools" / "worklist.js").read_text(encoding="utf-8")
    number = tables._NUMBER.replace(r"\A", "^").replace(r"\Z", "$")
    assert f"`{tables._RUN}`" in script and f"`{number}`" in script and f"[{tables._PARTS}]" in script
