"""The book reads from disk, answers first, hides nothing. Run alone: pytest tests/study/test_book.py"""

import re
import shutil
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from tiny import SAVE, SHOW, write_notebook

from nli_lib.errors import StudyError
from nli_lib.study import book, standing
from nli_lib.study.dial import read_scale
from nli_lib.study.runner import Request

LIMIT = read_scale("smoke").limit

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_the_table_of_contents_names_files_that_exist_and_every_notebook():
    site = book.Site(Request(), ROOT / "book", ROOT / "book")
    pages = site.pages
    beside = [page for page in pages if not page.startswith("chapters/")]
    assert all(list((ROOT / "book").glob(f"{page}.[mr]*")) for page in beside)
    assert {Path(page).name for page in pages if page not in beside} == {*NOTEBOOKS, "status"}
    order = yaml.safe_load((ROOT / "notebooks" / "order.yaml").read_text())
    assert set(site.names) == set(order) == set(NOTEBOOKS)


def test_building_computes_nothing_and_needs_no_network():
    config = yaml.safe_load((ROOT / "book" / "_config.yml").read_text())
    assert config["execute"]["execute_notebooks"] == "off" and config["launch_buttons"]["thebe"] is False
    assert config["sphinx"]["config"]["html_math_renderer"] == "mathml"


def test_every_placeholder_of_a_tracked_page_is_known():
    known = book.words(ROOT / "book" / "nowhere", "no study")
    cells = [cell for path in (ROOT / "notebooks").glob("*.ipynb") for cell in nbformat.read(path, as_version=4).cells]
    known |= {f"figure {cell.metadata.get('mystnb', {}).get('figure', {}).get('name')}": "" for cell in cells}
    for path in (ROOT / "book").glob("**/*.md"):
        if not {"chapters", "_build"} & set(path.parts):
            asked = re.findall(r"\{\{ *([^{}]+?) *\}\}", path.read_text(encoding="utf-8"))
            assert set(asked) <= known.keys(), path.name


# ---------------------------------------------------------------- the page of a chapter

PIXEL = "iVBORw0KGgo="  # the signature of a PNG file is enough


def code(source, *tags, outputs=(), **metadata):
    return new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags), **metadata})


def drawing(name, caption):
    image = new_output("execute_result", data={"image/png": PIXEL, "text/plain": "<Figure>"}, execution_count=1)
    said = new_output("display_data", data={"text/markdown": "Before."})
    return {"outputs": [said, image], "mystnb": {"figure": {"caption": caption, "name": name}}}


@pytest.fixture
def notebook():
    """A chapter in the form that all have: (the notebook, its executed copy without the measuring cells)."""
    text, begun = new_markdown_cell, new_output("stream", text="study smoke")
    cells = [
        text("# A chapter\n\n**Question.** Does it hold?\n\n## What the paper says\n\nIt does."),
        code("SCALE = 1", "parameters"), code("study = begin()", "begin", outputs=[begun]),
        text("## How it was measured\n\nOnce."), code("first()", "measure"), text("Then again."),
        code("second()", "measure"), text("## Two figures"), code("one()", **drawing("one", "The first figure.")),
        text("Between."), code("two()", **drawing("two", "The second figure.")), text("## What we found"),
        code("say()", "answer", **drawing("main", "The main figure.")), code("study.finish()", "finish"),
    ]  # fmt: skip
    drawn = [cell for cell in cells if "measure" not in cell.metadata.get("tags", ())]
    return new_notebook(cells=cells), new_notebook(cells=drawn)


def test_a_page_answers_first_and_folds_its_code(notebook):
    page, image = book.chapter_page(*notebook, boxes=["A box."], foot="The end."), ["text/markdown", "image/png"]
    seen = [cell for cell in page.cells if "hide-input" not in book.tagged(cell)]
    shown = [cell.source if cell.cell_type == "markdown" else next(iter(cell.outputs[0].data)) for cell in seen]
    assert shown == [
        "# A chapter\n\nA box.\n\n**Question.** Does it hold?", *image,  # the answer and its figure
        "## What the paper says\n\nIt does.", "## How it was measured\n\nOnce.", "Then again.", "## Two figures",
        *image, "Between.", *image, "---\n\nThe end.",
    ]  # fmt: skip
    folds = [cell.source.split("\n\n") for cell in page.cells if "hide-input" in book.tagged(cell)]
    measuring = ["SCALE = 1", "study = begin()", "first()", "second()", "study.finish()"]
    assert folds == [measuring, ["one()", "two()", "say()"]], "one fold for the measuring, one for a section"
    assert "## What we found" not in "".join(cell.source for cell in page.cells), "nothing but the answer stood there"
    nbformat.validate(page)


CAPTIONS = ["The main figure.", "The first figure.", "The second figure."]


def test_a_caption_stands_with_its_image_alone_is_its_alternative_text_and_counts_the_images_of_a_cell(notebook):
    counted = [f"{CAPTIONS[1]} ({at} of 2)" for at in (1, 2)]
    for expected in (CAPTIONS, [CAPTIONS[0], *counted, CAPTIONS[2]]):
        drawn = [cell for cell in book.chapter_page(*notebook).cells if book.caption_of(cell)]
        assert [book.caption_of(cell) for cell in drawn] == expected
        assert [cell.metadata["mystnb"]["image"]["alt"] for cell in drawn] == expected
        assert all("image/png" in cell.outputs[0].data for cell in drawn)
        twice = next(cell for cell in notebook[1].cells if cell.source == "one()")
        twice.outputs = [*twice.outputs, twice.outputs[-1]]


def test_the_answer_is_read_from_the_page(notebook):
    page = book.chapter_page(*notebook)
    assert [book.answer(page), book.answer(page, "headline"), book.answer(new_notebook())] == [["Before."], [], []]


def test_a_section_called_the_answer_moves_up_whole(notebook):
    source, drawn = notebook
    source.cells[-3].source = "## The answer\n\nIn short."
    cells = book.chapter_page(source, drawn).cells
    assert [cells[0].source, cells[3].source] == ["# A chapter\n\n**Question.** Does it hold?", "In short."]
    assert "## The answer" not in "".join(cell.source for cell in cells)


def test_an_interactive_figure_brings_its_data_and_no_script_of_its_own(notebook):
    source, drawn = notebook
    figure = {"data": [{"x": [1], "text": ["</script><script>alert(1)</script>"]}], "layout": {}, "config": {}}
    drawn.cells[-2].outputs = [new_output("display_data", data={book.PLOTLY: figure, "text/plain": "x"})]
    (shown,) = [cell for cell in book.chapter_page(source, drawn).cells if "answer" in book.tagged(cell)]
    html = shown.outputs[0].data["text/html"]
    assert html.count("</script>") == 1 and len(html) < 1_000


# ---------------------------------------------------------------- a small book

# a premise as nobody should write it: tags, links and roles that would come alive, control characters, no space to wrap
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)></td> {download}`/etc/hostname` {{ answer 4_new }} "
    "[x](javascript:alert(3)) \x07\x1b[31m <!-- ``` ::: | " + "long" * 500
)
SHOW_TEXT = """
from plotly.graph_objects import Figure, Scatter
from nli_lib.study import show_interactive
table = study.table("texts")
study.show(table.set_axis(["premise", table["premise"][0]], axis=1).set_index("premise"), index=True)
show_interactive(Figure(Scatter(x=[1], y=[1], text=table["premise"])))
"""
GLOSSARY = "# Terms\n\n:::{glossary}\ngap\n  How far & wide.\n\nrow\nline\n  Of a table.\n:::\n"
FORMULA = r"`gap`, gapped, *gaps*, a gap: $\sqrt{x}$\n\n$$\unknown$$".replace(r"\n", "\n")
ANSWER_TEXT = 'study.say("Its premise is {text}, once.", text=study.table("texts")["premise"][0])'


@pytest.fixture
def small_book(home):
    """A book of five chapters: one finished, one to become stale, one failed, one never run, one without its table."""
    source = home / "book"
    for name in ("_config.yml", "references.bib", "_ext", "_static"):
        copy = shutil.copytree if (ROOT / "book" / name).is_dir() else shutil.copy
        copy(ROOT / "book" / name, source / name)
    asked = ("answer 1_fine", "answer 4_new", "headline 1_fine", "verdict x")
    (source / "index.md").write_text("\n\n".join(["# The gap", *(f"{{{{ {each} }}}}" for each in asked), FORMULA]))
    (source / "notation.md").write_text(GLOSSARY)
    pages = [{"file": f"chapters/{name}"} for name in ("1_fine", "2_stale", "3_failed", "4_new", "5_lost", "status")]
    parts = [{"caption": "All", "chapters": [{"file": "notation"}, *pages]}]
    toc = {"format": "jb-book", "root": "index", "parts": parts}
    (source / "_toc.yml").write_text(yaml.safe_dump(toc))
    notebooks, results = home / "notebooks", home / "data" / "results" / "smoke"
    answered = write_notebook(notebooks, "1_fine", SAVE, SHOW, SHOW_TEXT, ANSWER_TEXT)
    results.mkdir()
    pd.DataFrame({"premise": [HOSTILE], "label": ["neutral"]}).to_csv(results / "1_fine.texts.csv", index=False)
    notebook, tags = nbformat.read(answered, as_version=4), {ANSWER_TEXT: ["answer", "headline"], SHOW: ["answer"]}
    for cell in [cell for cell in notebook.cells if cell.source in tags]:
        cell.metadata["tags"] = tags[cell.source]
    nbformat.write(notebook, answered)
    fine, failed = recorded(answered), write_notebook(notebooks, "3_failed")
    stale = recorded(write_notebook(notebooks, "2_stale", SAVE, SHOW), cells="another digest")
    write_notebook(notebooks, "4_new", SAVE)
    lost = recorded(write_notebook(notebooks, "5_lost", SAVE, SHOW))
    for record in (fine, stale, recorded(failed, state="failed", reason="ValueError: the <b>reason</b>"), lost):
        standing.write(record)
        (results / f"{record['notebook']}.scores.csv").write_text("x\n1\n2\n")
    (results / "5_lost.scores.csv").unlink()
    return home


def recorded(path, **changes):
    """The record that a finished run of a notebook leaves."""
    record = {"notebook": path.stem, "study": "smoke", "state": "finished", **standing.code_of(path)}
    record |= {"seconds": 3.0, "ended": "2026-01-02T03:04:05", "device": "a CPU", "seeds": [0, 1]}
    record |= {"dial": {"limit": LIMIT}, "corpora": {"planted train": {"rows": 1200, "digest": "0"}}}
    environment = {"python": "3.11.7", "revision": "abc1234"}
    return {**record, "environment": environment, "parameters": {"SCALE": "smoke"}, **changes}


@pytest.mark.slow
def test_a_book_of_five_ends(small_book, capsys, monkeypatch):
    from bs4 import BeautifulSoup  # comes with jupyter-book

    first, lost = book.site(Request()).first, "5_lost could not be drawn: "
    with pytest.raises(StudyError, match=f"(?s)^{lost}code cell 4 of .*nli-study run 5_lost --scale smoke$") as raised:
        book.build(Request())
    html = {path.stem: path.read_text() for path in first.parent.rglob("*.html")}
    text = {name: re.sub(r"<[^>]+>", "", page) for name, page in html.items()}
    warnings = [line for line in capsys.readouterr().out.splitlines() if "WARNING" in line]
    assert "no such placeholder: {{ verdict x }}" in warnings[0] and "Unknown LaTeX command" in warnings[1]
    assert "<msqrt><mi>x</mi></msqrt></math>" in html["index"] and r"<code>\unknown</code>" in html["index"]
    told = re.findall(r'<dfn tabindex="0" aria-description="([^"]+)" class="term">(\w+)</dfn>', html["index"])
    assert sorted(told) == [("How far &amp; wide.", "gaps"), ("Of a table.", "rows")] and "<dfn" not in html["notation"]
    assert all("There are 2 rows." in text[name] for name in ("index", "1_fine", "2_stale"))
    assert text["index"].count("Its premise is") == 2
    assert text["index"].count("not recorded at this scale") == 2  # nothing in a premise is taken for a placeholder
    assert "Run it again" not in html["1_fine"] and "measuring cells changed" in text["2_stale"]
    reasons = {"3_failed": "ValueError: the &lt;b&gt;reason", "5_lost": "code cell 4 of "}
    for name, reason in reasons.items():
        assert "State: <strong>failed</strong>" in html[name] and reason in html[name]
    assert "nli-study run 4_new --scale smoke" in text["4_new"]
    assert all("Smoke scale: proves the machinery" in html[name] for name in ("index", "1_fine", "status"))
    states = ("finished", "finished, stale", "failed", "never run")
    assert all(f"<p>{state}</p>" in html["status"] for state in states)
    assert f"limit = {LIMIT}" in text["status"] and "planted train = 1,200 rows" in text["status"]
    assert '<a href="../_static/notebooks/1_fine.ipynb" download>' in html["1_fine"]
    assert (first.parent / "_static" / "notebooks" / "1_fine.ipynb").is_file()
    for name in ("index", "1_fine"):
        page = BeautifulSoup(html[name], "html.parser")
        assert "javascript:alert(3)" in text[name], "the text is there, and only as text"
        assert not [each for each in page("script") if (each.string or "").strip().startswith("alert")]
        links = [str(element.get("href", "")) for element in page(True)]
        assert not page(onerror=True) and not [at for at in links if at.startswith("javascript") or "hostname" in at]
    for name, page in html.items():
        remote = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:https?:)?//[^>]*>", page)
        assert not (remote or "unpkg.com" in page or "jsdelivr" in page), f"{name} fetches from elsewhere"
    with_plotly = {name for name, page in html.items() if "plotly.min.js" in page}
    assert with_plotly == {name for name, page in html.items() if 'class="interactive"' in page} == {"1_fine"}

    problem, asked = str(raised.value).removeprefix(lost), []
    monkeypatch.setattr(book, "draw", lambda names, _: asked.extend(names) or dict.fromkeys(names, (None, problem)))
    with pytest.raises(StudyError, match=lost):
        book.build(Request())
    assert asked == ["5_lost"] and "nothing changed" in capsys.readouterr().out


def test_another_corpus_gets_a_book_of_its_own(small_book, monkeypatch):
    """Only the chapters that were run on it, a first page that names it, and the project's own book is left alone."""
    mine = small_book / "my *pairs*.csv"
    mine.write_text("premise,hypothesis,label\na,b,entailment\n")
    request = Request(corpus=str(mine))
    site = book.site(request)
    assert small_book / "data" / "exports" in site.first.parents
    changes = {"study": request.study, "parameters": {"BATCH": 10, "CORPUS": str(mine)}, "state": "failed"}
    changes |= {"corpus_file": standing.corpus_file(str(mine)), "reason": "too few"}
    standing.write(standing.read("1_fine", "smoke") | changes)
    monkeypatch.setattr(book, "_render", lambda site: None)
    before = sorted(small_book.joinpath("book").rglob("*"))
    assert book.build(request) == site.first and site.names == ["1_fine"]
    # of which smoke reads a part
    said = ("my \\*pairs\\*\\.csv", "Nothing that it gives is a result about this corpus", "{{ answer 1_fine }}")
    assert [each for each in said if each not in (site.source / "index.md").read_text()] == []
    assert "These are results about this corpus" in book.worth(Request(scale="small", corpus=str(mine)))
    assert "BATCH \\= 10" in (site.chapters / "status.md").read_text()
    assert "too few" in (site.chapters / "1_fine.md").read_text()
    assert sorted(small_book.joinpath("book").rglob("*")) == before
    assert book.site(Request()).source == small_book / "book"


def test_pages_of_a_build_that_was_killed_are_built_anew(small_book, monkeypatch):
    site, seen = book.site(Request()), []

    def render(site):
        seen.append(site.first.is_file())
        site.first.parent.mkdir(parents=True, exist_ok=True)
        site.first.write_text("a page")

    monkeypatch.setattr(book, "chapters", lambda *_: ({}, []))
    monkeypatch.setattr(book, "_render", render)
    book.build(Request())
    (small_book / "book" / "index.md").write_text("# Changed")
    book.build(Request())
    (site.output / "_build" / "built.json").unlink()  # which is written last
    book.build(Request())
    assert seen == [False, True, False]


def test_chapters_that_share_a_kernel_share_no_names_and_measure_nothing_and_its_death_is_told(home):
    sources = {"1_leaves": ("measured = 1", SAVE, "left = 1"), "2_uses": ["left"]}
    sources |= {"3_dies": ["import os; os._exit(3)"], "4_after": ["2"]}
    for name, each in sources.items():
        write_notebook(home / "notebooks", name, *each)
    cells = nbformat.read(home / "notebooks" / "1_leaves.ipynb", as_version=4).cells
    measuring = {cell.id for cell in cells if "measure" in cell.metadata.get("tags", ())}
    drawn = book.draw(sources, Request())
    copy, problem = drawn["1_leaves"]
    assert problem == "" and measuring and not measuring & {cell.id for cell in copy.cells}
    assert "NameError: name 'left' is not defined" in drawn["2_uses"][1]
    assert all("was never executed. Kernel died" in drawn[name][1] for name in ("3_dies", "4_after"))


def test_a_build_that_cannot_be_made_is_told_in_words(home, monkeypatch):
    shutil.copy(ROOT / "book" / "_config.yml", home / "book")
    (home / "book" / "_toc.yml").write_text("format: jb-book\nroot: nowhere\nparts: []\n")
    with pytest.raises(StudyError, match="jupyter-book failed"):
        book.build(Request())
    monkeypatch.setattr(book, "find_spec", lambda name: None)
    with pytest.raises(StudyError, match=r"pip install 'nli-quality-study\[book\]'"):
        book.build(Request())


def test_other_environments_are_stamped(home):
    record = recorded(write_notebook(home / "notebooks", "1_fine"))
    (home / "constraints.txt").write_text("numpy==2.4.6\ntorch==2.13.0\n")
    said = "The numbers here come from another environment: numpy 1.26.0 then, 2.4.6 here."
    assert book.stamps({**record, "environment": {"numpy": "1.26.0"}}) == [said]
    assert book.stamps({**record, "environment": {"numpy": "2.4.6", "torch": "2.13.0+cpu"}}) == []
