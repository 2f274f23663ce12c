"""Files that are read whole or not at all. Run alone: pytest tests/corpora/test_whole.py"""

import json

import pytest
from pydantic import BaseModel

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.sources import every_row, refuse


class Row(BaseModel, strict=True):
    name: str
    votes: list[int]


def written(folder, *rows):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_row_as_its_model(tmp_path):
    path = written(tmp_path, {"name": "a", "votes": [1]}, {"name": "b", "votes": [], "more": "is not read"})
    assert [(row.name, row.votes) for row in every_row(path, Row)] == [("a", [1]), ("b", [])]


def test_the_first_row_that_is_not_one_is_named_with_the_place_in_it(tmp_path):
    path = written(tmp_path, {"name": "a", "votes": [1]}, {"name": "b", "votes": [2, "3"]}, {"name": 1, "votes": []})
    with pytest.raises(
        CorpusError, match=r"rows\.jsonl: row 2, field votes\.1: Input should be a valid integer.*Fetch"
    ):
        every_row(path, Row)


def test_a_line_that_cannot_be_read_is_not_left_out(tmp_path):
    path = written(tmp_path, {"name": "a", "votes": []})
    path.write_text(path.read_text() + "{broken\n")
    with pytest.raises(CorpusError, match="some of its lines cannot be read"):
        every_row(path, Row)


def test_what_the_rows_together_must_be(tmp_path):
    path, shown = tmp_path / "rows.jsonl", ["a", "b", "b"]
    refuse(path, {"name": ([False] * 3, shown, "stands twice")})
    with pytest.raises(CorpusError, match=r"row 3, field name: b stands twice\. Fetch the file again"):
        refuse(path, {"votes": ([False] * 3, shown, "is odd"), "name": ([False, False, True], shown, "stands twice")})
