"""The book reads from disk, hides nothing, shows finished records only. Run alone: pytest tests/test_book.py"""

import re
import shutil
from pathlib import Path

import nbformat
import pytest
import yaml
from tiny import SAVE, SHOW, write_notebook

from nli_lib.study import book, standing
from nli_lib.study import manifest as records
from nli_lib.study.schedule import Request

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_the_table_of_contents_names_files_that_exist():
    for page in book.toc_pages():
        if page.startswith("chapters/"):
            assert page in ("chapters/status",) or Path(page).name in NOTEBOOKS
        else:
            assert (ROOT / "book" / f"{page}.md").is_file(), page


def test_every_notebook_is_a_chapter_and_has_a_place_in_the_order():
    assert set(book.toc_chapters()) == set(NOTEBOOKS)
    declared = yaml.safe_load((ROOT / "notebooks" / "order.yaml").read_text())
    assert set(declared) == set(NOTEBOOKS)


def test_building_computes_nothing_and_needs_no_network():
    config = yaml.safe_load((ROOT / "book" / "_config.yml").read_text())
    assert config["execute"]["execute_notebooks"] == "off"
    assert config["launch_buttons"]["thebe"] is False
    assert "dollarmath" not in config["parse"]["myst_enable_extensions"]


@pytest.fixture
def small_book(home):
    """A book of four chapters: one finished, one to become stale, one failed, one never run."""
    source = home / "book"
    for name in ("_config.yml", "references.bib", "_ext"):
        copy = shutil.copytree if (ROOT / "book" / name).is_dir() else shutil.copy
        copy(ROOT / "book" / name, source / name)
    (source / "index.md").write_text("# A small book\n")
    chapters = ["1_fine", "2_stale", "3_failed", "4_new"]
    pages = [{"file": f"chapters/{name}"} for name in [*chapters, "status"]]
    toc = {"format": "jb-book", "root": "index", "parts": [{"caption": "All", "chapters": pages}]}
    (source / "_toc.yml").write_text(yaml.safe_dump(toc))
    notebooks = home / "notebooks"
    fine = recorded(write_notebook(notebooks, "1_fine", SAVE, SHOW))
    stale = recorded(write_notebook(notebooks, "2_stale", SAVE, SHOW), cells="another digest")
    failed = recorded(write_notebook(notebooks, "3_failed"), state="failed", reason="ValueError: the <b>reason</b>")
    write_notebook(notebooks, "4_new", SAVE)
    for record in (fine, stale, failed):
        records.write(record)
        (home / "data" / "results" / "smoke" / f"{record['notebook']}.scores.csv").write_text("x\n1\n2\n")
    return home


def recorded(path, **changes):
    """The record that a finished run of a notebook leaves."""
    record = {"notebook": path.stem, "study": "smoke", "state": "finished", **standing.code_of(path)}
    record |= {"seconds": 3.0, "ended": "2026-01-02T03:04:05", "device": "a CPU", "seeds": [0, 1]}
    return {**record, "environment": {"python": "3.11.7"}, "parameters": {"SCALE": "smoke"}, **changes}


@pytest.mark.slow
def test_a_book_of_four_ends(small_book, capsys):
    first = book.build(Request())
    html = {path.stem: path.read_text() for path in first.parent.rglob("*.html")}
    words = {name: re.sub(r"<[^>]+>", "", text) for name, text in html.items()}
    warnings = [line for line in capsys.readouterr().out.splitlines() if "WARNING" in line]
    assert warnings == []
    assert "There are 2 rows." in html["1_fine"]
    assert "Run it again" not in html["1_fine"]
    assert "the code of its measuring cells changed" in words["2_stale"].replace("'", "’")
    assert "There are 2 rows." in html["2_stale"]
    assert "state is: <strong>failed</strong>" in html["3_failed"]
    assert "ValueError: the &lt;b&gt;reason" in html["3_failed"]
    assert "nli-study run 4_new --scale smoke" in words["4_new"]
    assert all("Smoke scale: proves the machinery" in html[name] for name in ("index", "1_fine", "status"))
    for state in ("finished", "finished, stale", "failed", "never run"):
        assert f"<p>{state}</p>" in html["status"]
    for name, text in html.items():
        remote = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:https?:)?//[^>]*>", text)
        assert remote == [], f"{name} fetches from elsewhere"
        assert "unpkg.com" not in text
        assert "jsdelivr" not in text

    book.build(Request())
    assert "nothing changed" in capsys.readouterr().out


def test_a_chapter_without_its_table_is_replaced_and_named(small_book):
    (small_book / "data" / "results" / "smoke" / "1_fine.scores.csv").unlink()
    (small_book / "book" / "chapters").mkdir()
    _, _, problem = book.chapter("1_fine", Request(), {})
    assert "1_fine could not be drawn: failed: code cell 4 of 5" in problem
    assert "nli-study run 1_fine --scale smoke" in problem
    assert (small_book / "book" / "chapters" / "1_fine.md").is_file()


def test_a_broken_build_is_told_in_its_own_words(home):
    shutil.copy(ROOT / "book" / "_config.yml", home / "book")
    (home / "book" / "_toc.yml").write_text("format: jb-book\nroot: nowhere\nparts: []\n")
    with pytest.raises(book.BookError, match="jupyter-book failed"):
        book.build(Request())


def test_other_environments_are_stamped(home):
    record = recorded(write_notebook(home / "notebooks", "1_fine"))
    (home / "constraints.txt").write_text("numpy==2.4.6\n")
    records.write({**record, "environment": {"numpy": "1.26.0"}})
    assert book.stamps("1_fine", Request()) == [
        "The numbers here come from another environment: numpy 1.26.0 then, 2.4.6 here."
    ]
    records.write({**record, "environment": {"numpy": "2.4.6"}})
    assert book.stamps("1_fine", Request()) == []


def test_the_readme_takes_its_figures_from_drawn_chapters(home):
    pixel = "iVBORw0KGgo="  # the signature of a PNG file is enough
    page = home / "book" / "chapters" / "1_fine.ipynb"
    page.parent.mkdir(parents=True)
    cell = nbformat.v4.new_code_cell("1", metadata={"mystnb": {"figure": {"name": "data-map"}}})
    cell.outputs = [nbformat.v4.new_output("display_data", data={"image/png": pixel})]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), page)
    (written,) = book.export_figures(Request(), ["data-map"])
    assert written.read_bytes() == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(book.BookError, match="competency"):
        book.export_figures(Request(), ["data-map", "competency"])
