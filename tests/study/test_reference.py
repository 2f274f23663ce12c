"""The reference is made from the docstrings, all of them. Run alone: pytest tests/study/test_reference.py"""

import importlib.util
import io
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("reference", ROOT / "book" / "_ext" / "reference.py")
reference = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(reference)


def told(text):
    lines = text.splitlines()
    reference.docstring(None, "function", "name", None, None, lines)
    return "\n".join(lines).strip()


def test_every_room_has_its_page():
    rooms = {path.name for path in (ROOT / "nli_lib").iterdir() if (path / "__init__.py").is_file()}
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text())
    listed = [page["file"] for part in toc["parts"] for page in part["chapters"]]
    for room in rooms:
        assert f"reference/{room}" in listed
        page = (ROOT / "book" / "reference" / f"{room}.rst").read_text()
        assert reference.LINE.findall(page) == [f"nli_lib.{room}"]
        assert len([line for line in page.splitlines() if line.strip()]) == 3  # a title and the line: no prose by hand


def test_every_public_module_is_listed():
    listed = reference.modules("nli_lib.measure")
    files = {path.stem for path in (ROOT / "nli_lib" / "measure").glob("*.py")} - {"__init__"}
    assert set(listed) == {"nli_lib.measure", *(f"nli_lib.measure.{name}" for name in files)}
    assert "nli_lib.corpora.load.sources" in reference.modules("nli_lib.corpora")


def test_rows_of_names_become_definitions():
    text = "Do it.\n\nlabels   (N,) gold labels,\n         all of them\nfold     which model"
    assert told(text) == "Do it.\n\n\n``labels``\n    (N,) gold labels,\n    all of them\n\n``fold``\n    which model"


def test_words_that_mean_something_to_sphinx_are_escaped():
    assert told("Of `x_y` and a_b: 2 * 3 | 4.\n*Departures*: `a`s.") == (
        "Of ``x_y`` and a\\_b: 2 \\* 3 \\| 4. *Departures*: ``a``\\ s."
    )


def test_examples_stay_as_they_are():
    assert told("So:\n\n    run = fit(spec, *parts)\n    run.logits") == (
        "So:\n\n::\n\n        run = fit(spec, *parts)\n        run.logits"
    )


@pytest.mark.slow
def test_a_page_is_built_without_a_warning(tmp_path):
    application = pytest.importorskip("sphinx.application")
    source = tmp_path / "source"
    (source / "reference").mkdir(parents=True)
    (source / "index.rst").write_text("Index\n=====\n\n.. toctree::\n\n   reference/select\n")
    (source / "reference" / "select.rst").write_text((ROOT / "book" / "reference" / "select.rst").read_text())
    (source / "conf.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT / 'book' / '_ext')!r})\n")
    said = io.StringIO()
    sphinx = application.Sphinx(
        str(source), str(source), str(tmp_path / "html"), str(tmp_path / "doctrees"), "html",
        confoverrides={"extensions": ["reference"]}, status=None, warning=said,
    )  # fmt: skip
    sphinx.build()
    assert not said.getvalue()
    page = (tmp_path / "html" / "reference" / "select.html").read_text()
    for words in ('id="nli_lib.select.selection.Selection"', "random_twin", "What a selection step answers"):
        assert words in page
