"""Every notebook of the study: clean as committed, whole at scale smoke. Run alone: pytest tests/test_notebooks.py"""

import ast
import builtins
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from nli_lib.claims import read_claims
from nli_lib.corpora.planted import make_split
from nli_lib.study import runner
from nli_lib.study.dial import Parameters
from nli_lib.study.runner import Request
from nli_lib.tables import find_table, read_table

LONGEST_LINE, TYPICAL_CELL = 100, 7
FEWEST, MOST = 400, 45_000  # words of prose: of a notebook on average; of all that a reader sees
LONGEST_FUNCTION = 25  # lines
ONCE = ("parameters", "begin", "finish")
ROOT = Path(__file__).resolve().parents[1]
BOOK, README = ROOT / "book", ROOT / "README.md"
PAGES = [*sorted(BOOK.glob("*.md")), *sorted(BOOK.glob("parts/*.md")), *sorted(BOOK.glob("recipes/*.md")), README]
RULES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
AVOIDED = "|".join(line.split("`")[1] for line in RULES if "` -> " in line)
FOLDER = ROOT / "notebooks"
MODULES = sorted([*ROOT.glob("nli_lib/**/*.py"), *ROOT.glob("nli_tools/*.py")])
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
EVIDENCE = {claim.id: set(claim.evidence) for claim in read_claims()}


def cells(path, kind="code"):
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def markdown(path):
    """The Markdown of a page, or of a notebook's cells."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    return "\n\n".join("".join(cell["source"]) for cell in cells(path, "markdown"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_parameters_are_four_to_eight_literals(path):
    tagged = [cell for cell in cells(path) if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    statements = ast.parse("".join(tagged[0]["source"])).body
    assert all(isinstance(statement, ast.Assign | ast.AnnAssign) for statement in statements)
    found = runner.declared_parameters(path.stem)
    assert 4 <= len(found) <= 8
    named = set(Parameters.model_fields) - {"COLUMNS", "LABELS", "ENCODING", "INTO"}  # set by the command line
    assert named <= set(found), "every notebook takes the standard parameters"
    assert found["SCALE"] == "smoke"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_chapter_begins_asks_answers_and_finishes(path):
    sources = ["".join(cell["source"]) for cell in cells(path)]
    assert f'begin("{path.stem}", globals()' in sources[1] and sources[-1].strip().endswith("study.finish()")
    tags = [tag for cell in cells(path) for tag in cell["metadata"].get("tags", [])]
    assert set(tags) <= {*ONCE, "measure", "parts", "answer", "headline"}
    assert all(tags.count(tag) == 1 for tag in ONCE) and "answer" in tags
    assert re.match(r"# (?s:.*)\*\*Question\.\*\*", "".join(cells(path, "markdown")[0]["source"]))
    answer = [cell for cell in cells(path) if "answer" in cell["metadata"].get("tags", [])]
    said = "".join("".join(cell["source"]) for cell in answer)
    assert "study.answer(" in said, "the answer begins with a computed verdict"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_are_clean_and_can_be_read_and_their_functions_are_short(path):
    for cell in cells(path):
        assert cell["outputs"] == [] and cell["execution_count"] is None
        assert cell.get("id"), "cells keep their ids (nbstripout --keep-id)"
        source = "".join(cell["source"])
        assert max(map(len, source.splitlines())) <= LONGEST_LINE, source
        nodes = list(ast.walk(ast.parse(source)))
        for node in nodes:
            assert not isinstance(node, ast.ClassDef), source
            assert not isinstance(node, ast.FunctionDef) or node.end_lineno - node.lineno < LONGEST_FUNCTION, source
        assert not any(word in source for word in ("SCALE ==", "SHOW_ONLY", "fmt: skip")), source
        # inside `rc_context` a cell's last expression is not the figure, so the page would stay without it
        assert "plt.subplots" not in source or source.rstrip().splitlines()[-1] == "figure", source
        # `study.notebook` escapes what stands in a corpus; a Styler, `to_html` or `HTML` would let it run in the book
        methods = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not methods & {"style", "to_html"} and not names & {"Styler", "HTML"}, source


def test_cells_are_short_and_prose_is_long_enough():
    lengths = [len("".join(cell["source"]).splitlines()) for path in NOTEBOOKS for cell in cells(path)]
    assert statistics.median(lengths) <= TYPICAL_CELL
    words = [sum(prose("".join(cell["source"])) for cell in cells(path, "markdown")) for path in NOTEBOOKS]
    assert statistics.mean(words) >= FEWEST
    pages = [path for path in BOOK.rglob("*.md") if not {"_build", "chapters"} & set(path.parts)]
    said = [text for path in NOTEBOOKS for cell in cells(path) for text in texts_of(cell, "say", "answer")]
    assert sum(words) + sum(map(prose, [*said, *(path.read_text(encoding="utf-8") for path in pages)])) <= MOST


def prose(text):
    """How many words a Markdown text has, without code, tables, formulas and markup."""
    text = re.sub(r"(?ms)```.*?```|\$\$.*?\$\$|^(?:    |\|).*?$|<[^>]+>|\{\{[^}]*\}\}|\]\([^)]*\)", "", text)
    return len(re.findall(r"\w[\w'’.-]*", text))


def texts_of(cell, *calls):
    """What a code cell shows: the strings with a blank in it, or in these calls, and the caption of its figure."""
    tree = ast.parse(re.sub(r"(?m)^\s*[%!?].*$", "", "".join(cell["source"])))
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func)[6:] in calls]
    nodes = itertools.chain(*map(ast.walk, called if calls else [tree]))
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    caption = cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "")
    return [text for text in (*found, caption) if " " in text and text not in docstrings]


SHOWN = [BOOK / "lessons.yaml", BOOK / "exhibits.yaml"]


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PAGES, *MODULES, *SHOWN], ids=lambda path: path.stem)
def test_usual_words(path):
    """CONTRIBUTING's word list, in all that a reader of the book sees; a docstring begins with no question word."""
    texts = [markdown(path)] if path.suffix != ".py" else []
    if path.suffix == ".ipynb":
        drawn = [cell for cell in cells(path) if "measure" not in cell["metadata"].get("tags", ())]
        texts += itertools.chain(*map(texts_of, drawn))
    elif path.suffix == ".py":
        nodes, kinds = ast.walk(ast.parse(path.read_bytes())), ast.Module | ast.ClassDef | ast.FunctionDef
        public = [each for each in nodes if isinstance(each, kinds) and getattr(each, "name", "")[:1] != "_"]
        texts = [re.sub("`[^`]*`", "", ast.get_docstring(each) or "") for each in public]
        assert not [text for text in texts if re.match(r"(Whether|How|What|Where|When|Which|Who)\b", text)]
    found = [hit[0] for text in texts for hit in re.finditer(rf"\b({AVOIDED})\b", text, re.IGNORECASE)]
    assert not found


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PAGES], ids=lambda path: path.stem)
def test_formulas_can_be_set(path):
    """The book sets them as MathML when it is built, by docutils, which does not know all of LaTeX."""
    setter = pytest.importorskip("docutils.utils.math.latex2mathml")
    for display, inline in re.findall(r"(?s)\$\$(.+?)\$\$|\$([^$\n]+)\$", markdown(path)):
        assert setter.tex2mathml((display or inline).strip())


def bound(tree):
    """Names that a cell gives a value."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.asname or node.name.split(".")[0] for node in nodes if isinstance(node, ast.alias)}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_drawing_cells_use_nothing_that_measuring_cells_compute(path):
    """The book leaves the measuring cells out, with their imports."""
    known = {*dir(builtins), "display"}
    for cell in cells(path):
        if "measure" not in cell["metadata"].get("tags", []):
            tree = ast.parse("".join(cell["source"]))
            nodes = list(ast.walk(tree))
            known |= bound(tree) | {each.arg for each in nodes if isinstance(each, ast.arg)}
            imports = [each for each in nodes if isinstance(each, ast.Import | ast.ImportFrom)]
            known |= {each.asname or each.name.split(".")[0] for line in imports for each in line.names}
            functions = [each for each in nodes if isinstance(each, ast.FunctionDef)]
            known |= {each.name for each in functions}
            called = {id(each) for function in functions for each in ast.walk(function)}
            loaded = [each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
            used = {each.id for each in loaded if id(each) not in called}
            assert not used - known, f"a drawing cell uses what only measuring cells give: {used - known}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_claim_that_needs_other_corpora_than_snli_names_them(path):
    """Without `corpora` a claim rests on the study's own corpus, and the ledger would find nothing to judge."""
    calls = [node for cell in cells(path) for node in ast.walk(ast.parse("".join(cell["source"])))]
    calls = [node for node in calls if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "claim"]
    for call in calls:
        if isinstance(call.args[0], ast.Constant) and EVIDENCE[call.args[0].value] - {"snli"}:
            assert "corpora" in {keyword.arg for keyword in call.keywords}, call.args[0].value


@pytest.mark.notebooks
@pytest.mark.slow
def test_all_finish_at_scale_smoke():
    """In the project's own store: what still stands is not run again, so that a second call costs seconds."""
    outcomes = runner.run([], Request())
    failed = [runner.tell(outcome) for outcome in outcomes if outcome.state != "finished"]
    assert not failed, "\n".join(failed)
    assert {outcome.notebook for outcome in outcomes} == {path.stem for path in NOTEBOOKS}


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """A home of its own, and what runs a chapter there: its seconds of CPU time."""
    home = tmp_path_factory.mktemp("home")
    for name in ("notebooks", "book"):
        (home / name).symlink_to(ROOT / name)
    given = {name: value for name, value in os.environ.items() if name != "NLI_DATA"} | {"NLI_HOME": str(home)}

    def run(*words):
        command, before = [sys.executable, "-m", "nli_lib", "run", *words], os.times().children_user
        done = subprocess.run(command, cwd=home, env=given, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return os.times().children_user - before

    return home, run


@pytest.mark.notebooks
@pytest.mark.slow
def test_a_data_map_of_ones_own_file_is_drawn_to_its_end(apart):
    """Nobody has judged its pairs, and no other corpus is at hand: a part without anything to show must not end it."""
    home, run = apart
    corpus = make_split("train", 48)
    table = corpus.table[["premise", "hypothesis"]].assign(label=np.array(corpus.classes)[corpus.labels])
    table.to_csv(home / "mine.csv", index=False)
    run("10", "--corpus", str(home / "mine.csv"), "--seeds", "1", "-p", "EPOCHS=2", "-p", "PAIRS=24")


LAB = yaml.safe_load(Path(__file__).with_name("lab.yaml").read_text(encoding="utf-8"))
DRILL = [pytest.param(chapter, marks=pytest.mark.drill) for chapter in LAB if chapter != "20"]


@pytest.mark.slow
@pytest.mark.parametrize("chapter", ["20", *DRILL])
def test_what_was_planted_is_found_at_scale_lab(apart, chapter):
    """Alone or after the chapters that it reads, in less than two minutes of one core; `make drill` has them all."""
    home, run = apart
    seconds = run(chapter, "--scale", "lab")

    def table(name):
        return read_table(find_table(home / "data" / "results" / "lab" / name))

    def claim(name, id):  # the lower end of its interval
        return table(f"{name}.claims").set_index("id")["low"][id]

    for said, (expression, least) in LAB[chapter].items():
        assert eval(expression, {"table": table, "claim": claim}) > least, said
    assert seconds < 120
