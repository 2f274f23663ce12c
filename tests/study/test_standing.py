"""A change makes stale what depends on it, and nothing else. Run alone: pytest tests/study/test_standing.py"""

import json
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml
from tiny import SAVE, SHOW, place_home, run_cells as run, write_notebook

from nli_lib import paths
from nli_lib.store import DEFAULTS
from nli_lib.study import book, dial, standing
from nli_lib.study.notebook import as_text
from nli_lib.study.runner import Request

LIBRARY = standing.LIBRARY
LEDGER = '#| measure\nfrom nli_lib.claims import VERDICTS\nstudy.book_file("claims.yaml")\n'
LEDGER += 'study.save(pd.DataFrame({"verdict": VERDICTS}), "ledger")'
CHAPTERS = {
    "10_scores": (SAVE, "#| measure\nfrom nli_lib.measure.dynamics import scores", SHOW),
    "11_reads": ('#| measure\ntable = study.table("scores", "10_scores")',),
    "30_trains": ('#| measure\nspec = study.spec("consensus", study.corpus(limit=30))',),
    "50_sorts": ('#| measure\nspec = study.spec("difficulty", study.corpus(limit=30))',),
    "63_ledger": ("import pandas as pd", LEDGER),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Five recorded chapters, and a copy of the library that a test may change; recorded once, for speed."""
    home = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        place_home(home, patch)
        patch.setattr(standing, "LIBRARY", home / "nli_lib")
        shutil.copytree(LIBRARY, home / "nli_lib", ignore=shutil.ignore_patterns("__pycache__"))
        (home / "book" / "claims.yaml").write_text("- one\n")
        for name, cells in CHAPTERS.items():
            run(write_notebook(home / "notebooks", name, *cells))
        yield home


@pytest.fixture
def chapters(project):
    """The five chapters, put back as they were after each test."""
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert stale() == {}
    yield project
    for path in {path for path in project.rglob("*") if path.is_file()} - before.keys():
        path.unlink()
    for path, data in before.items():
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)


def stale():
    """{chapter: reasons} of the chapters that no longer stand."""
    found = {name: standing.why_stale(standing.read(name, "smoke")) for name in CHAPTERS}
    return {name: reasons for name, reasons in found.items() if reasons}


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


CLAIMS, DYNAMICS = "nli_lib/claims.py", "nli_lib/measure/dynamics.py"
CHAPTER, IMPORTED = "notebooks/10_scores.ipynb", "measure.dynamics import scores"
CELLS = {"10_scores": ["the code of its measuring cells changed"]}
TABLE = {
    "10_scores": ["smoke/10_scores.scores.csv, which it wrote, changed"],
    "11_reads": ["smoke/10_scores.scores.csv, which it read, changed"],
}


@pytest.mark.parametrize(("file", "old", "new", "expected"), [
    (CLAIMS, "< claim.min_n", "<= claim.min_n", {}),  # the chapter takes the names of the verdicts, and no rule
    (CLAIMS, '"inconclusive"', '"open"', {"63_ledger": ["VERDICTS changed"]}),
    (DYNAMICS, "def scores(", "MORE = 1\n\n\ndef scores(", {}),
    (DYNAMICS, "def margin(", "def margin(*_more, ", {"10_scores": ["margin changed"]}),  # which `scores` calls
    (DYNAMICS, '"""', '"""In other words. ', {}),
    (DYNAMICS, "def scores(", "# a better explanation\n\n\n\ndef scores(", {}),
    ("nli_lib/tables.py", "def write_table(", "def write_table(*_more, ", {}),  # how a table is quoted
    (CHAPTER, IMPORTED, f"{IMPORTED} as other", CELLS),
    (CHAPTER, IMPORTED, "measure.dynamics import (  # why\\n    scores,\\n)", {}),
    (CHAPTER, "There are {n} rows.", "We see {n} rows.", {}),
    (CHAPTER, "# 10_scores", "# Another title", {}),
    (CHAPTER, "globals())", "dict(globals()))", {}),  # how the study begins
    ("book/claims.yaml", "- one", "- one\n- two", {"63_ledger": ["claims.yaml changed"]}),
    ("data/results/smoke/10_scores.scores.csv", "2", "5", TABLE)])  # fmt: skip
def test_what_changes_makes_stale_what_rests_on_it(chapters, file, old, new, expected):
    edit(chapters / file, old, new)
    assert stale() == expected


def test_the_stale_chapters_of_a_study_are_listed(chapters):
    assert standing.stale("smoke") == [] == standing.stale("nowhere")
    edit(chapters / CLAIMS, '"inconclusive"', '"open"')
    assert standing.stale("smoke") == ["63_ledger"]
    standing.write({**standing.read("63_ledger", "smoke"), "state": standing.INTERRUPTED})
    assert standing.stale("smoke") == [], "what did not finish has nothing that could be stale"


def test_what_a_measure_uses(chapters):
    """Also inside functions, by an alias, and through other modules."""
    dynamics = chapters / DYNAMICS
    late = "    from nli_lib.measure import consensus as late\n\n    late.mismatch\n"
    edit(dynamics, "def scores(", "def helper():\n" + late + "\n\ndef scores(")
    dynamics.write_text(dynamics.read_text() + "\n\nscores.helper = helper\n")
    for name in ("10_scores", "11_reads"):
        run(chapters / "notebooks" / f"{name}.ipynb")
    edit(chapters / "nli_lib" / "measure" / "consensus.py", "def mismatch(", "def mismatch(*_more, ")
    assert stale() == {"10_scores": ["mismatch changed"]}


def test_what_moves_to_another_module_changes_nothing(chapters):
    moved = (chapters / DYNAMICS).rename(chapters / "nli_lib" / "measure" / "moved.py")
    for path in (chapters / "nli_lib").rglob("*.py"):
        path.write_text(path.read_text().replace("nli_lib.measure.dynamics", "nli_lib.measure.moved"))
    edit(chapters / CHAPTER, "nli_lib.measure.dynamics", "nli_lib.measure.moved")
    assert stale() == {}
    edit(moved, "def margin(", "def margin(*_more, ")
    assert stale() == {"10_scores": ["margin changed"]}


def test_words_that_a_module_reads_from_a_file_beside_it(chapters):
    words = chapters / "nli_lib" / "measure" / "words.yaml"
    words.write_text("- one\n")
    edit(chapters / DYNAMICS, "def scores(", 'WORDS = "words.yaml"\n\n\ndef scores(*_more, _words=WORDS, ')
    run(chapters / CHAPTER)
    words.write_text("- two\n")
    assert stale() == {"10_scores": ["words.yaml changed"]}


def test_a_table_that_was_read_and_is_gone(chapters):
    record = standing.read("11_reads", "smoke")
    standing.write({**record, "inputs": {**record["inputs"], "smoke/gone.csv": "a digest"}})
    assert stale() == {"11_reads": ["smoke/gone.csv, which it read, is missing"]}


def test_a_recipe(chapters, monkeypatch):
    monkeypatch.setattr(dial, "FILE", chapters / "nli_lib" / "study" / "recipes.yaml")
    edit(dial.FILE, "consensus: {epochs: 3", "consensus: {epochs: 4")
    dial.recipes.cache_clear()
    found = stale()
    monkeypatch.undo()
    dial.recipes.cache_clear()
    assert list(found) == ["30_trains"] and found["30_trains"][0].startswith("the recipe of consensus: ")


def scales(folder, **changes):
    """A copy of the dial with other values of some keys of its section `consensus`."""
    shutil.copytree(dial.FOLDER, folder, dirs_exist_ok=True)
    for path in (folder / "full.yaml", folder / "smoke.yaml"):  # the one names every key
        values = yaml.safe_load(path.read_text())
        values["consensus"].update(changes)
        path.write_text(yaml.safe_dump(values))
    return lambda name: dial.read_scale.__wrapped__(name, folder)


def test_a_value_of_the_dial(chapters, monkeypatch):
    before = dial.read_scale("smoke").consensus.limit
    monkeypatch.setattr(standing, "read_scale", scales(chapters / "scales", limit=before + 1))
    said = f"the dial's consensus.limit: {before} then, {before + 1} now"
    assert stale() == {"30_trains": [said]}
    names = standing.read("30_trains", "smoke")["definitions"]
    cells = standing.code_of(paths.NOTEBOOKS / "30_trains.ipynb")["cells"]
    other = {"cells": cells, "definitions": dict.fromkeys(names, "another")}
    monkeypatch.setattr(standing, "code_of", lambda *given: other)
    assert stale()["30_trains"] == [said, *(f"{name} changed" for name in sorted(names))]


def test_a_new_key_or_field_makes_nothing_stale_and_another_default_what_trains(chapters, monkeypatch):
    monkeypatch.setattr(standing, "read_scale", scales(chapters / "scales", more=2))
    assert standing.read_scale("smoke").consensus.more == 2
    edit(chapters / "nli_lib" / "store.py", '    view: View = "pair"', '    view: View = "pair"\n    more: int = 1')
    monkeypatch.setattr(standing, "DEFAULTS", {**DEFAULTS, "more": 1})
    assert stale() == {}
    monkeypatch.setattr(standing, "DEFAULTS", {**DEFAULTS, "batch_size": 16})
    reasons = ["RunSpec's default of batch_size: 32 then, 16 now"]
    assert stale() == {"30_trains": reasons, "50_sorts": reasons}


def test_a_module_that_a_drawing_cell_imports_counts_where_a_measuring_cell_uses_it(chapters):
    imports = "from nli_lib.measure.dynamics import scores\nfrom nli_lib.measure.consensus import mismatch"
    path = write_notebook(chapters / "notebooks", "1_try", imports, "#| measure\nfunction = scores")
    assert standing.code_of(path)["definitions"].keys() & {"scores", "mismatch"} == {"scores"}


@pytest.mark.parametrize(("cells", "counts"), [
    (("half = 0.5", "rate = half / 2", "half = 1", "#| measure\nstudy.params = rate", "rate = 3", "other = rate"),
     [True, True, False, True, False, False]),
    (("def half(x):\n    return x / 2", "#| measure\nstudy.params = half(3)"), [True, True])])  # fmt: skip
def test_a_drawing_cell_counts_where_a_measuring_cell_uses_what_it_bound(chapters, cells, counts):
    found = []
    for changed in (None, *range(len(cells))):
        sources = [cell + " + 1" if place == changed else cell for place, cell in enumerate(cells)]
        path = write_notebook(chapters / "notebooks", "1_try", *sources)
        found.append(standing.code_of(path)["cells"])
    assert [digest != found[0] for digest in found[1:]] == counts


# ---------------------------------------------------------------- confirming


@pytest.fixture
def recorded_small(chapters):
    """Records at scale small of the format before, and smoke tables of the revision before."""
    before, small = chapters / "before", paths.RESULTS / "small"
    shutil.copytree(paths.RESULTS / "smoke", before, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json"))
    small.mkdir(exist_ok=True)
    for name in ("10_scores", "63_ledger"):
        for table in before.glob(f"{name}.*.csv"):
            shutil.copy(table, small)
        record = standing.read(name, "smoke")
        old = {key: record[key] for key in ("notebook", "state", "device", "seconds", "started", "ended", "declared")}
        outputs = {key.replace("smoke/", "small/"): digest for key, digest in record["outputs"].items()}
        old |= {"study": "small", "cells": "of old", "modules": {"nli_lib.record": "old"}, "roots": [], "inputs": {}}
        old |= {"gathered": {}, "environment": {"revision": "abc"}, "outputs": outputs}
        standing.write({**old, "parameters": {"SCALE": "small", "CORPUS": None, "SEEDS": None, "SHOW_ONLY": False}})
    return before


EQUAL = "confirmed: the smoke tables before and after are equal"


def said_of_scores(before):
    return standing.confirm("small", before)["10_scores"]


def change(study, **fields):
    """Change some fields of a record, and give the whole as it was."""
    record = standing.read("10_scores", study)
    standing.write({**record, **fields})
    return record


def test_equal_smoke_tables_confirm_a_record(recorded_small, chapters):
    assert standing.why_stale(standing.read("10_scores", "small"))
    assert standing.confirm("small", recorded_small) == dict.fromkeys(("10_scores", "63_ledger"), EQUAL)
    record = standing.read("10_scores", "small")
    assert standing.why_stale(record) == [] and record["parameters"]["SCALE"] == "small"
    assert "SHOW_ONLY" not in record["parameters"]
    (entry,) = record["confirmed"]
    assert entry.keys() == {"revision", "date", "definitions"} and entry["definitions"] == []  # of an older record
    assert "roots" not in record and "modules" not in record and "scores" in record["definitions"]
    edit(chapters / DYNAMICS, "def margin(", "def margin(*_more, ")
    run(chapters / CHAPTER)
    assert said_of_scores(recorded_small) == EQUAL
    record = standing.read("10_scores", "small")
    assert record["confirmed"][-1]["definitions"] == ["margin"]
    page = book.status_page(["10_scores"], Request(scale="small"))
    assert as_text("Recorded at revision abc; 1 name has changed in the code since") in page
    assert set(standing.confirm("small", recorded_small).values()) == {"stands"}


def test_a_stale_smoke_run_confirms_nothing(recorded_small):
    here = change("smoke", cells="of other code")
    assert said_of_scores(recorded_small) == "left: its smoke run here is missing or stale"
    standing.write(here)
    assert said_of_scores(recorded_small) == EQUAL


def test_how_long_it_took_and_where_is_no_obstacle(recorded_small):
    here = paths.RESULTS / "smoke" / "10_scores.scores.csv"
    for path, took in ((here, 1.5), (recorded_small / here.name, 2.5)):
        told = {"seconds": took, "machine seconds": took, "tokens_per_second": 1 / took, "device": f"{took:g} cores"}
        pd.read_csv(path).assign(**told).to_csv(path, index=False)
    change("smoke", outputs={f"smoke/{here.name}": standing.digest_file(here)})
    assert said_of_scores(recorded_small) == EQUAL


def test_how_a_table_is_quoted_is_no_obstacle(recorded_small):
    old = recorded_small / "10_scores.scores.csv"
    pd.read_csv(old).to_csv(old, index=False)
    assert old.read_bytes() != (paths.RESULTS / "smoke" / old.name).read_bytes()
    assert said_of_scores(recorded_small) == EQUAL


def test_what_has_come_since_is_no_obstacle_and_a_lost_table_is(recorded_small):
    (recorded_small / "63_ledger.ledger.csv").rename(recorded_small / "63_ledger.lost.csv")
    smoke = paths.RESULTS / "smoke" / "10_scores.scores.csv"
    pd.read_csv(recorded_small / smoke.name).assign(over="pairs").to_csv(smoke, index=False)
    (smoke.parent / "10_scores.since.csv").write_text("x\n1\n")
    change("smoke", outputs={f"smoke/{smoke.name}": standing.digest_file(smoke)})
    done = standing.confirm("small", recorded_small)
    assert done == {"10_scores": EQUAL, "63_ledger": "left: the smoke tables differ: lost"}


def test_a_table_that_only_the_record_read_confirms_nothing_once_it_changes(recorded_small):
    read = paths.RESULTS / "small" / "21_other.claims.csv"
    read.write_text("id\na\n")
    record = change("small", inputs={"small/21_other.claims.csv": standing.digest_file(read)})
    read.write_text("id\nb\n")
    assert said_of_scores(recorded_small) == "left: small/21_other.claims.csv, which it read, changed"
    standing.write({**record, "inputs": {"small/21_other.claims.csv": standing.digest_file(read)}})
    assert said_of_scores(recorded_small) == EQUAL
    assert "small/21_other.claims.csv" in standing.read("10_scores", "small")["inputs"]


def test_another_value_of_the_dial_at_that_scale_confirms_nothing(recorded_small):
    record, then = change("small", dial={"difficulty.trainings": {"snli": 1}}), "{'snli': 1} then, {"
    assert said_of_scores(recorded_small).startswith(f"left: the dial's difficulty.trainings: {then}")
    standing.write({**record, "dial": {"a.key.that.is.gone": 1}})
    assert said_of_scores(recorded_small) == EQUAL


def test_a_key_of_the_dial_that_is_read_since_confirms_only_where_smoke_has_its_value(recorded_small):
    change("small", dial={})
    here = change("smoke", dial={"difficulty.trainings": {}})  # three at small
    assert "the dial's difficulty.trainings is newly read" in said_of_scores(recorded_small)
    standing.write({**here, "dial": {"test_split": "test"}})  # at both
    assert said_of_scores(recorded_small) == EQUAL


def test_another_smoke_table_or_declaration_confirms_nothing(recorded_small, chapters):
    (recorded_small / "10_scores.scores.csv").write_text("x\n7\n")
    (chapters / "book" / "claims.yaml").write_text("- one\n- two\n")
    run(chapters / "notebooks" / "63_ledger.ipynb")
    said = ("10_scores", "left: the smoke tables differ: scores"), ("63_ledger", "left: claims.yaml changed")
    assert standing.confirm("small", recorded_small) == dict(said)
    assert "confirmed" not in standing.read("10_scores", "small")
    standing.write(standing.read("10_scores", "smoke") | {"study": str(recorded_small), "cells": "of younger code"})
    assert said_of_scores(recorded_small) == "left: its cells had changed before that revision"


def test_a_line_names_three_reasons_and_counts_the_others():
    assert standing.in_short(["one", "two", "three"]) == "one; two; three"
    assert standing.in_short(["one", "two", "three", "four", "five"]) == "one; two; three; and 2 more"


def test_every_record_of_the_study_can_be_read():
    for path in sorted((Path(__file__).parents[2] / "data" / "results" / "small").glob("*.json")):
        record = json.loads(path.read_text())
        assert all(isinstance(line, str) for line in book.used(record))


def test_a_page_of_the_status_names_a_draw_once_and_no_empty_parameter():
    corpora = {"planted train, 2,000 rows, 2eb0": {"rows": 2000}, "snli test": {"rows": 9824}}
    parameters = {"SCALE": "smoke", "SECOND": "", "K": 0}
    said = " ".join(book.used({"corpora": corpora, "parameters": parameters}).values())
    assert "planted train (draw 2eb0) = 2,000 rows, snli test = 9,824 rows" in said
    assert "K = 0" in said and "SECOND" not in said


def test_a_record_names_the_files_that_were_not_committed(tmp_path, home):
    assert standing.uncommitted(tmp_path) == [], "outside git"
    (tmp_path / "nli_lib").mkdir()
    file, me = tmp_path / "nli_lib" / "one.py", ("-c", "user.name=me", "-c", "user.email=me@here")
    file.write_text("x = 1\n")
    for words in (["init", "-q"], ["add", "."], [*me, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    assert standing.uncommitted(tmp_path) == []
    file.write_text("x = 2\n")
    assert standing.uncommitted(tmp_path) == ["nli_lib/one.py"]
    standing.write({"notebook": "1_fine", "study": "smoke", "uncommitted": ["nli_lib/one.py"]})
    assert as_text("Run with uncommitted changes in nli_lib/one.py") in book.status_page(["1_fine"], Request())
