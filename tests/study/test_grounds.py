"""What a headline rests on. Alone: pytest tests/study/test_grounds.py"""

import itertools

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from nli_lib import paths
from nli_lib.study import book

CELLS = [
    ('study.save(table, "left_out")\nkept = study.table("measured")', ["measure"]),
    ('kept = study.table("points").query("n > 1")\nother = study.table("others")', []),
    ('aside = study.table("aside")', []),
    ('shown = kept.merge(study.table("judged", notebook="20_two"))', []),
    ('study.say("{n}", n=len(shown))', ["answer", "headline"]),
    ('shown = study.table("later")', []),
]


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    cells = [new_code_cell(source, metadata={"tags": tags}) for source, tags in CELLS]
    nbformat.write(new_notebook(cells=cells), tmp_path / "10_one.ipynb")
    folder = tmp_path / "results" / "small"
    folder.mkdir(parents=True)
    return folder


def test_only_the_tables_that_the_headline_is_computed_from(chapter):
    assert book.headline_tables("10_one") == ["10_one.points", "10_one.others", "20_two.judged"]


def test_a_headline_without_its_tables_rests_on_nothing(chapter):
    rows = [("10_one", "a", "held"), ("10_one", "b", "not held"), ("20_two", "c", "held")]
    ledger = pd.DataFrame(rows, columns=["notebook", "id", "verdict"])
    for table in ("10_one.points", "10_one.others", "20_two.judged"):
        assert book.rests_on("10_one", "small", ledger) == ""
        (chapter / f"{table}.csv").write_text("a\n1\n")
    said = book.rests_on("10_one", "small", ledger)
    assert said.count("{download}`") == 3 and "20_two.judged.csv>`" in said
    assert '<a href="chapters/63_claims.html#a">1 held, 1 did not hold</a>' in said
    for others in (ledger[:0], ledger[2:]):
        assert "no claim on this chapter" in book.rests_on("10_one", "small", others)


def test_every_statement_of_the_front_page_names_its_grounds():
    page = (paths.BOOK / "index.md").read_text(encoding="utf-8")
    said = [pair for pair in itertools.pairwise(page.split("\n\n")) if "{{ headline" in pair[0]]
    assert len(said) == 6, "five papers, and all of them side by side"
    for statement, evidence in said:
        name = statement.split("{{ headline ")[1].split()[0]
        assert evidence.startswith(":::{container} evidence\n")
        assert f"(chapters/{name})" in evidence and f"{{{{ rests {name} }}}}" in evidence and book.headline_tables(name)
    assert sum('href="chapters/63_claims.html#ledger-' in evidence for _, evidence in said) == 5, "one a paper"
