"""The record of a notebook's run, and its validity for the current code.

There is one JSON file for each notebook, `data/results/<study>/<notebook>.json`, next to its tables: code, inputs and
end state of the run. It is written by the notebook (`opened`, `rest_on`), by the runner that watches it, and by
`confirm`. "finished" is never taken from papermill, which marks a notebook with a dead kernel as completed::

    notebook, study, state, reason, started, ended, seconds, device, seeds, pid, token, environment, parameters
    cells, definitions, defaults      the code that decides the numbers, see `code_of`
    uses                              parts of the library used through `study`, keys of `USES`
    dial, recipes                     keys of the dial and recipes that were read, with their values
    turned                            keys of the dial that were set by knobs, with the knobs' values
    corpora                           every corpus and suite that was read: digest, rows, rows left out, source
    corpus_file                       digest of a user's file
    inputs, outputs                   digests of other notebooks' tables that were read, and of written tables
    exports                           digests of the tables in `paths.EXPORTS` that were written or read
    journals                          answers of a language model: number, models, digests of answers and prompt
    gathered                          part -> the notebooks of the gathered tables
    declared                          digests of the files of the book that were read
    confirmed                         time and reason of a confirmation, see `confirm`

The code that counts is, in a notebook, the cells tagged `measure` and the cells that define names they use, and in the
library, every top-level definition (function, class, constant) that they use by name, directly or through other
definitions. Comments, docstrings, formatting and the module of a definition do not count, so a definition can move
unchanged. Some things are kept by value instead: the keys of the dial and the recipes that were read, and the defaults
of `RunSpec`; so a new key or field makes nothing stale.
"""

import ast
import contextlib
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from numbers import Number
from pathlib import Path

import psutil
from pydantic_core import to_jsonable_python

from nli_lib import paths
from nli_lib.errors import StudyError
from nli_lib.store import DEFAULTS, atomic, environment, now, reading, revision, write_json
from nli_lib.study.dial import is_own_file, own_path, read_scale, recipes

LIBRARY = Path(__file__).resolve().parents[1]
PACKAGE = "nli_lib"
# kept by value, or without effect on numbers: the defaults of RunSpec; the dial; tables on disk
SKIPPED = {"nli_lib.store:RunSpec", "nli_lib.store:DEFAULTS", "nli_lib.study.dial", "nli_lib.tables"}
# parts of the library that a notebook uses through its `study`, by their names in its record
USES = {"corpora": "nli_lib.corpora.sources:load", "suites": "nli_lib.corpora.suites:load_each"}
USES["recipes"] = "nli_lib.study.dial:run_spec"

Place = tuple[str, str]  # a module and a name in it; "" for the whole module


def _parse(source: str) -> ast.Module:
    """The syntax tree without docstrings and type-checking imports; for anything but Python, the text."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ast.Module([ast.Expr(ast.Constant(source)), ast.Pass()], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
        elif isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    return tree


def _plain(node: object) -> object:
    """Convert a syntax tree to nested lists, without empty fields, which differ between versions of Python, and without
    imports from the library."""
    if isinstance(node, list):
        return [_plain(each) for each in node if not _ours(each)]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [[name, _plain(each)] for name, each in ast.iter_fields(node) if each not in (None, [])]
    return [type(node).__name__, *fields]


def _ours(node: object) -> bool:
    """True if a node imports only from the library."""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == PACKAGE
    return isinstance(node, ast.Import) and all(alias.name.split(".")[0] == PACKAGE for alias in node.names)


def digest_of(value: object) -> str:
    return digest_bytes(json.dumps(value).encode())


def digest_code(*trees: ast.AST) -> str:
    """Digest of code, independent of formatting, comments and docstrings, and of the modules of its names."""
    renamed = sorted((name, other) for tree in trees for name, (_, other) in _imports(tree).items() if other != name)
    return digest_of([[_plain(tree) for tree in trees], [pair for pair in renamed if pair[1]]])


# ---------------------------------------------------------------- names and their modules


def _imports(tree: ast.AST) -> dict[str, Place]:
    """Name that an import in a tree binds -> its place, also inside functions."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                found[alias.asname or first] = (alias.name if alias.asname else first), ""
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {alias.asname or alias.name: _place(node.module, alias.name) for alias in node.names}
    return found


def _place(module: str, name: str) -> Place:
    return (f"{module}.{name}", "") if _file(f"{module}.{name}") else (module, name)


def _file(module: str) -> Path | None:
    if module.split(".")[0] != PACKAGE:
        return None
    stem = LIBRARY.parent.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def _used(tree: ast.AST, bound: Mapping[str, Place]) -> set[Place]:
    """The names that a tree uses, as places: for imported names, the imported place; for others, ("", name)."""
    found, inside = set(), set()
    for node in ast.walk(tree):  # the outer attributes come first
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module, name = bound.get(node.value.id, ("", node.value.id))
            if module and not name:
                inside.add(id(node.value))
                found.add(_place(module, node.attr))
        elif isinstance(node, ast.Name) and id(node) not in inside and isinstance(node.ctx, ast.Load):
            found.add(bound.get(node.id, ("", node.id)))
    return found


@functools.lru_cache(maxsize=1024)
def _read(path: Path, modified: int) -> tuple[dict[str, list[ast.stmt]], dict[str, Place]]:
    """The contents of a module: name -> the statements that bind it, "" -> all others; and the names that its imports
    bind."""
    definitions, imports = defaultdict(list), []
    for node in _parse(path.read_text(encoding="utf-8")).body:
        made = [node.name] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = getattr(node, "targets", None) or [node.target]
            made = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        # not run by an import of the module: `if TYPE_CHECKING`, `if __name__ == "__main__"`
        idle = isinstance(node, ast.If) and names(node.test, ast.Load) & {"TYPE_CHECKING", "__name__"}
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif not idle:
            for name in made or [""]:
                definitions[name].append(node)
    return dict(definitions), _imports(ast.Module(imports, []))


@functools.lru_cache(maxsize=16384)
def _definition(path: Path, modified: int, name: str) -> tuple[str, frozenset[Place], frozenset[str]]:
    """(digest, used places, words that may name a data file next to the module) of a definition."""
    definitions, bound = _read(path, modified)
    tree = ast.Module(definitions[name], [])
    used = _used(tree, {**bound, **_imports(tree)})
    external = sorted(place for place in used if place[0] and _file(place[0]) is None)
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named = frozenset(word for word in words if re.fullmatch(r"[\w-]+\.(?!py$)\w+", word))
    return digest_of([digest_code(tree), external]), frozenset(used), named


def dependences(roots: Iterable[str]) -> dict[str, str]:
    """Digests of all definitions of the library that `roots` ("module:name") use, directly or through others, and of
    the data files (word lists, prompts) that they name: name -> digest."""
    found, seen = defaultdict(set), set()
    open_ = [tuple(root.split(":")) for root in roots]
    while open_:
        module, name = open_.pop()
        path, full = _file(module), f"{module}:{name}"
        skipped = (module in SKIPPED or full in SKIPPED) and full not in USES.values()
        if path is None or skipped or (module, name) in seen:
            continue
        seen.add((module, name))
        modified = path.stat().st_mtime_ns
        definitions, bound = _read(path, modified)
        if not name:  # the whole module
            open_ += [(module, each) for each in definitions]
        elif name not in definitions:  # imported there, or made by the module on demand
            open_.append(bound.get(name, (module, "")))
            continue
        for part in {name, ""} & definitions.keys():
            digest, used, named = _definition(path, modified, part)
            found[part or "statements"].add(digest)
            open_ += [(other or module, each) for other, each in used if other or each in definitions]
            near = [path.parent / word for word in named if "study" not in path.parts]  # in study/, kept by value
            for file in filter(Path.is_file, near):
                found[file.name].add(digest_file(file))
    # a name can occur in several modules
    joined = {name: "".join(sorted(digests)) for name, digests in sorted(found.items())}
    return {name: each if len(found[name]) == 1 else digest_bytes(each.encode()) for name, each in joined.items()}


# ---------------------------------------------------------------- notebooks


def code_cells(notebook: Path) -> list[tuple[set[str], ast.Module]]:
    """(tags, code) of a notebook's code cells, without IPython's lines (%, !)."""
    code = [cell for cell in cells(notebook) if cell["cell_type"] == "code"]
    return [(cell["tags"], _parse(re.sub(r"(?m)^\s*[%!?].*$", "", cell["source"]))) for cell in code]


def names(tree: ast.AST, context: type) -> set[str]:
    """Names that a tree loads, or names that it binds, including by `def`."""
    made = (ast.FunctionDef, ast.ClassDef) if context is ast.Store else ()
    found = {node.name for node in ast.walk(tree) if isinstance(node, made)}
    return found | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def code_of(notebook: Path, uses: Iterable[str] = ()) -> dict[str, object]:
    """The part of a record that describes the code behind a notebook's numbers.

    cells
        digest of the measuring cells; the others only draw
    definitions
        digests of the definitions that those cells and `uses` (keys of `USES`) need, directly or not
    defaults
        the defaults of `RunSpec`
    """
    cells, roots = _cells_of(notebook, notebook.stat().st_mtime_ns) if notebook.is_file() else (digest_code(), ())
    wanted = [*roots, *(USES[name] for name in uses)]
    return {"cells": cells, "definitions": dependences(wanted), "defaults": DEFAULTS}


@functools.lru_cache(maxsize=1024)
def _cells_of(notebook: Path, modified: int) -> tuple[str, tuple[str, ...]]:
    """The digest of a notebook's measuring cells, and the names that they use from the library, as roots of
    `dependences`.

    The cells tagged `measure` count, and of the others those that last bind a name used by a measuring cell.
    """
    cells, measuring, needed = code_cells(notebook), [], set()
    for tags, tree in reversed(cells):
        # parameters count by their values, and the cell that begins the study affects no number
        bound = set() if "parameters" in tags else names(tree, ast.Store) - {"study"}
        if "measure" in tags or bound & needed:
            measuring.insert(0, tree)
            needed = (needed | names(tree, ast.Load)) - bound
    imported = {name: place for _, tree in cells for name, place in _imports(tree).items()}
    used = {place for tree in measuring for place in _imports(tree).values() if place[1]}
    used = used.union(*(_used(tree, imported | _imports(tree)) for tree in measuring))
    # the notebook API: the parts of it that decide numbers are noted when they are used
    roots = {f"{module}:{name}" for module, name in used if module and module != "nli_lib.study"}
    return digest_code(*measuring), tuple(sorted(roots))


# ---------------------------------------------------------------- recording


def opened(notebook: str, study: str, parameters: Mapping[str, object], *, refuse: bool) -> dict[str, object]:
    """Make the record of a notebook that begins to run, with nothing read or written yet; it is not stored here.

    Parameters
    ----------
    refuse
        raise `StudyError` if the notebook is being run elsewhere
    """
    old, pid = read(notebook, study), int(os.environ.get(RUN_PID) or os.getpid())
    if refuse and end_state(old)[0] == RUNNING and old["pid"] != pid:
        cure = f"Wait for it, stop it, or delete {record_path(notebook, study)}"
        raise StudyError(f"process {old['pid']} has been running this notebook since {old['started']}. {cure}")
    record = {"notebook": notebook, "study": study, "state": RUNNING, "pid": pid, "started": now()}
    record |= {"token": os.environ.get(TOKEN), "environment": environment()}
    record |= {kind: {} for kind in KINDS} | code_of(paths.NOTEBOOKS / f"{notebook}.ipynb")
    # the path of the corpora on this machine is private
    record["parameters"] = {name: value for name, value in parameters.items() if name not in NEUTRAL}
    record["corpus_file"] = corpus_file(parameters["CORPUS"], parameters["DATA_DIR"])
    record["uncommitted"] = uncommitted()
    return record


def uncommitted(root: Path = LIBRARY.parent) -> list[str]:
    """The tracked files of code, notebooks and book that differ from the last commit; none outside git."""
    words = ("git", "diff", "--name-only", "HEAD", "--", "nli_lib", "nli_tools", "notebooks", "book", "constraints.txt")
    with contextlib.suppress(OSError):  # no git
        return subprocess.run(words, capture_output=True, text=True, cwd=root).stdout.split()
    return []


def rest_on(record: dict[str, object], use: str) -> None:
    """Note in a record that it depends on a part of the library, a key of `USES`."""
    if use not in record["uses"]:
        record["uses"][use] = USES[use]
        # all at once: a name can occur in several modules, and its digest covers all that are reached
        record["definitions"] = code_of(paths.NOTEBOOKS / f"{record['notebook']}.ipynb", record["uses"])["definitions"]


# ---------------------------------------------------------------- validity


def _changes(what: str, then: Mapping, now: Mapping, said: str = ": {!r} then, {!r} now") -> list[str]:
    """Recorded values that have changed; new ones do not count."""
    changed = [name for name, value in sorted(then.items()) if name not in now or now[name] != value]
    ends = [said.format(then[name], now[name]) if name in now else " is missing" for name in changed]
    return [what.format(name) + end for name, end in zip(changed, ends, strict=True)]


def _changed(what: str, then: Mapping[str, str], folder: Path) -> list[str]:
    """The files among `then` (name in a folder -> digest) that have changed."""
    return _changes(what, then, digests(then, folder), " changed")


def digests(names: Iterable[str | Path], folder: Path = Path()) -> dict[str, str]:
    """Name -> digest of the files that exist."""
    return {str(name): digest for name in names if (digest := digest_file(folder / name))}


def _dial_at(scale: str, keys: Iterable[str]) -> dict[str, object]:
    """The values of keys of the dial ("limit", "wanli.compared") at a scale; unknown keys are left out."""
    found = {}
    for key in keys:
        with contextlib.suppress(AttributeError):
            found[key] = to_jsonable_python(functools.reduce(getattr, key.split("."), read_scale(scale)))
    return found


def _changed_sources(record: Mapping, data_dir: str | None = None) -> list[str]:
    """Changes in gathered tables, files of the book and a user's corpus."""
    reasons, study = [], record["study"]
    for part, then in record.get("gathered", {}).items():
        reasons += [f"{name} has recorded {part} since" for name in notebooks_with(part, study) if name not in then]
    reasons += _changed("{}", record.get("declared", {}), paths.BOOK)
    corpus = record.get("parameters", {}).get("CORPUS")
    own = corpus_file(corpus, data_dir)
    return reasons + ([f"the corpus file {corpus} changed"] if own and own != record.get("corpus_file") else [])


def why_stale(record: Mapping, parameters: Mapping | None = None) -> list[str]:
    """Reasons why a finished record is no longer valid for the current code; empty if it is.

    Settings come first, because they say how the numbers differ, and a line shows only the first reasons. `parameters`:
    the requested values; None compares none (as for a status page).
    """
    reasons, then = [], defaultdict(dict, record)  # older records lack some fields
    scale = then["parameters"].get("SCALE")
    if parameters is not None:
        asked = {name: value for name, value in parameters.items() if name not in NEUTRAL}
        had = {name: then["parameters"].get(name) for name in asked}
        for each in (had, asked):  # the scale's corpus counts as None, even if it was named
            if scale and each.get("CORPUS") == read_scale(scale).corpus:
                each["CORPUS"] = None
        reasons += _changes("{}", had, asked)
    code = code_of(paths.NOTEBOOKS / f"{record['notebook']}.ipynb", then["uses"])
    if record.get("cells") != code["cells"]:
        reasons.append("the code of its measuring cells changed")
    if scale:
        reasons += _changes("the dial's {}", then["dial"], _dial_at(scale, then["dial"]) | then["turned"])
    reasons += _changes("the recipe of {}", then["recipes"], recipes())
    if then["recipes"]:
        reasons += _changes("RunSpec's default of {}", then["defaults"], DEFAULTS)
    reasons += _changes("{}", then["definitions"], code["definitions"], " changed")
    reasons += _changed("{}, which it read,", then["inputs"], paths.RESULTS)
    reasons += _changed("{}, which it wrote,", then["outputs"], paths.RESULTS)
    # exported tables, read or written, are not tracked: a clone without them has valid records
    folder = paths.EXPORTS / record["study"]
    here = {name: digest for name, digest in then["exports"].items() if (folder / name).is_file()}
    return reasons + _changed("{}", here, folder) + _changed_sources(record, (parameters or {}).get("DATA_DIR"))


def stale(study: str) -> list[str]:
    """The chapters of a study with a finished record that is no longer valid for the current code."""
    every = [read(path.stem, study) for path in sorted((paths.RESULTS / study).glob("*.json"))]
    return [each["notebook"] for each in every if each["state"] == FINISHED and why_stale(each)]


def in_short(reasons: list[str]) -> str:
    """The first three reasons and the number of the others, for one line."""
    return "; ".join(reasons[:3] + [f"and {len(reasons) - 3} more"] * (len(reasons) > 3))


def stamps(record: Mapping) -> list[str]:
    """Notes to readers of a chapter: it is stale, or from another environment. Empty if neither."""
    found = []
    if reasons := why_stale(record):
        found.append(f"The numbers here were recorded before something changed: {in_short(reasons)}.")
    # packages that affect numbers and had other versions than this clone pins
    path = paths.HOME / "constraints.txt"
    pins = dict(re.findall(r"(?m)^([^#\s]+)==(.+)$", path.read_text(encoding="utf-8") if path.is_file() else ""))
    then = {name: had for name, had in record.get("environment", {}).items() if name in pins}
    if others := [name for name, had in then.items() if had.split("+")[0] != pins[name]]:
        reasons = [f"{name} {then[name]} then, {pins[name]} here" for name in others]
        found.append(f"The numbers here come from another environment: {'; '.join(reasons)}.")
    return found


# ---------------------------------------------------------------- confirming a record that cost hours


def confirm(scale: str, before: Path) -> dict[str, str]:
    """Rewrite finished records at `scale` for the current code if the smoke tables show the same numbers.

    `before` has the smoke tables of the older revision. A chapter is confirmed if this clone's run, finished and not
    stale, wrote everything in them; its record keeps the time. New columns and tables are not confirmed by anything.
    Returns a text for every chapter.
    """
    said = {}
    for path in sorted((paths.RESULTS / scale).glob("*.json")):
        record, here = read(path.stem, scale), read(path.stem, "smoke")
        if record["state"] != FINISHED:
            said[path.stem] = f"left: {record['state']}"
        elif not why_stale(record):
            said[path.stem] = "stands"
        elif obstacle := _obstacle(record, here, before):
            said[path.stem] = f"left: {obstacle}"
        else:
            _confirm(record, here)
            said[path.stem] = "confirmed: the smoke tables before and after are equal"
    return said


def _tables(folder: Path, record: Mapping) -> dict[str, Path]:
    """The recorded tables of a notebook, by part."""
    return {path.name.split(".")[1]: path for path in folder.glob(f"{record['notebook']}.*.*")}


def _obstacle(record: Mapping, here: Mapping, before: Path) -> str:
    """The reason why the smoke tables cannot confirm a record, or ""."""
    from nli_lib.tables import read_table  # needs pandas

    if here["state"] != FINISHED or why_stale(here):
        return "its smoke run here is missing or stale"
    then = read(record["notebook"], str(before.absolute()))
    was, known = ({"its cells": each.get("cells"), **each.get("definitions", {})} for each in (then, record))
    if then["state"] != NEVER and (other := [name for name in was.keys() & known.keys() if was[name] != known[name]]):
        return f"{min(other)} had changed before that revision"
    took = ["seconds", "machine seconds", "tokens_per_second", "device"]  # time and place: different in every run
    found = (_tables(folder, here).items() for folder in (before, paths.RESULTS / "smoke"))
    old, new = ({part: read_table(path).drop(columns=took, errors="ignore") for part, path in each} for each in found)
    if not old:
        return "the folder has no smoke table of it"
    same = {part for part in old.keys() & new.keys() if old[part].equals(new[part].reindex(columns=old[part].columns))}
    if differing := sorted(old.keys() - same):
        return f"the smoke tables differ: {', '.join(differing)}"
    # another value at this scale, which smoke does not see; a missing key was renamed or is no longer read
    then = record.get("dial", {})
    now = _dial_at(record["parameters"]["SCALE"], then)
    reasons = _changes("the dial's {}", {key: then[key] for key in now}, now)
    # and a newly read key for which smoke has another value than this scale
    came = _dial_at(record["parameters"]["SCALE"], here["dial"].keys() - then) if "dial" in record else {}
    reasons += [f"the dial's {key} is newly read" for key in sorted(came) if came[key] != here["dial"][key]]
    reasons += _changed("{}, which it read,", record["inputs"], paths.RESULTS)
    return "; ".join(reasons + _changed_sources(record))


def _confirm(record: Mapping, here: Mapping) -> None:
    """Write a record with the code of the smoke run, and with the keys of the dial and the tables that it read."""
    study, then = record["study"], record["parameters"]
    outputs = [f"{study}/{path.name}" for path in _tables(paths.RESULTS / study, record).values()]
    # also newly read tables: at another scale there can be fewer
    inputs = [*record["inputs"], *(name.replace("smoke/", f"{study}/", 1) for name in here["inputs"])]
    known = record.get("definitions", here["definitions"])  # older records have none
    changed = sorted(name for name, digest in here["definitions"].items() if known.get(name) != digest)
    entry = {"revision": revision(), "date": now()[:10], "definitions": changed}
    anew = {key: here[key] for key in ("cells", "definitions", "uses", "defaults", "recipes")}
    anew |= {"inputs": digests(inputs, paths.RESULTS), "outputs": digests(outputs, paths.RESULTS)}
    anew |= {"dial": _dial_at(then["SCALE"], here["dial"]), "confirmed": [*record.get("confirmed", []), entry]}
    anew["parameters"] = {name: then.get(name, default) for name, default in here["parameters"].items()}
    # older records have the fields that are left out here
    write({name: value for name, value in record.items() if name not in ("roots", "modules")} | anew)


# ---------------------------------------------------------------- record


# End states. "closing" is a notebook that reached its last line and waits for the runner's decision.
FINISHED, RUNNING, CLOSING, INTERRUPTED, NEVER = "finished", "running", "closing", "interrupted", "never run"
INCOMPLETE = "incomplete"  # reached its last line, but something is missing

# inputs, outputs and other dependences of a run: fields of a record that are filled while it runs
KINDS = ("corpora", "inputs", "gathered", "declared", "outputs", "exports", "journals")
KINDS += ("dial", "turned", "recipes", "uses")
# types of a record's fields, as far as others compute with them; an interrupted run has no values for the last ones
TYPES = {"state": str, "reason": str, "ended": str, "seconds": Number, "seeds": list}
TYPES |= dict.fromkeys((*KINDS, "parameters", "environment", "definitions"), dict)

# the runner's messages to a kernel, in its environment
TOKEN = "NLI_RUN_TOKEN"  # the run to which it belongs
RUN_PID = "NLI_RUN_PID"  # the runner's process, which outlives the kernel

NEUTRAL = {"DATA_DIR"}  # parameters that change no number: the folder of corpora


def study_name(scale: str, corpus: str | None, turned: Mapping[str, object] | None = None) -> str:
    """Name of the folder for a run's tables: the scale's name for its corpus, else "<scale>-<corpus>", with
    "+<knob>=<value>" for each turned knob of a notebook.

    A file's name is followed by four digits for its path, so that two files with one name are two studies.
    """
    words, said = [scale], ""
    if corpus not in (None, read_scale(scale).corpus):
        words.append(re.sub(r"[^A-Za-z0-9_]+", "-", Path(corpus).name.split(".")[0]))
        if is_own_file(corpus):
            words.append(digest_bytes(str(Path(corpus).expanduser().resolve()).encode())[:4])
    for name, value in sorted((turned or {}).items()):
        said += f"+{name.lower()}={re.sub(r'[^A-Za-z0-9_.]+', '-', str(value)).strip('-')}"
    if len(said) > 80:
        said = f"{said[:60]}+{digest_bytes(said.encode())[:8]}"
    return "-".join(words) + said


def record_path(notebook: str, study: str) -> Path:
    return paths.RESULTS / study / f"{notebook}.json"


def read(notebook: str, study: str) -> dict:
    """The stored record, or {"state": "never run"}; an unreadable one says so in its state's reason."""
    path, unread = record_path(notebook, study), {"notebook": notebook, "study": study}
    try:
        record = {**unread, **json.loads(path.read_text(encoding="utf-8"))}
        if wrong := [name for name, kind in TYPES.items() if name in record and not isinstance(record[name], kind)]:
            raise TypeError(f"{wrong[0]} is {record[wrong[0]]!r}, not {TYPES[wrong[0]].__name__}")
        return record
    except FileNotFoundError:
        return {**unread, "state": NEVER}
    except (OSError, ValueError, TypeError) as error:
        return {**unread, "state": "unreadable", "reason": f"{path}: {error}; delete it and run the notebook again"}


def write(record: Mapping) -> None:
    write_json(record_path(record["notebook"], record["study"]), record)


def end_state(record: Mapping) -> tuple[str, str]:
    """The current (state, reason): a run marked as running without its process was interrupted."""
    state, reason = record.get("state", NEVER), record.get("reason", "")
    if state in (RUNNING, CLOSING) and not _alive(record.get("pid"), record.get("started")):
        return INTERRUPTED, f"its process {record.get('pid')} is gone, nothing said why"
    return state, reason


def unanswered(record: Mapping) -> str:
    """The reason why a run that reached its last line is not finished: requests to a language model failed; "" if none
    did."""
    said = []
    for entry in [entry for entry in record.get("journals", {}).values() if entry.get("failed")]:
        share = f"{entry['failed']:,} of {entry['failed'] + entry['answered']:,} requests to the language model failed"
        said.append(f"{share}, most with {entry.get('reason') or 'no reason'}. The same command asks for them again.")
    return " ".join(said)


def _alive(pid: object, started: object) -> bool:
    """True if the process of a run is alive. A process that began after the run has its number by chance, as after the
    restart of a container; a killed process can keep its number until its end is read."""
    if not isinstance(pid, int) or not psutil.pid_exists(pid):
        return False
    with contextlib.suppress(psutil.Error, TypeError, ValueError):  # just ended or not ours; no valid time
        process = psutil.Process(pid)
        there = process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        # the record's clock and the processes' may differ by a minute
        return there and process.create_time() <= datetime.fromisoformat(started).timestamp() + 60
    return True


def cells(notebook: Path) -> list[dict]:
    """The cells of a notebook's file, with source as one text and tags as a set. (nbformat takes a second to import.)

    Raises
    ------
    StoreError
        If the file is not a notebook.
    """
    with reading(notebook, "take the marks of a merge out of it, or fetch it again"):
        found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        texts = [{**cell, "source": "".join(cell["source"])} for cell in found]
        return [{**cell, "tags": set(cell["metadata"].get("tags", []))} for cell in texts]


def write_text(path: Path, text: str) -> None:
    """Write a file, completely or not at all, and only if its text changes, so that files made from it remain valid."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with atomic(path) as draft:
            draft.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- digests


def digest_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def digest_file(path: Path) -> str | None:
    """Digest of a file's bytes; None if there is no such file."""
    return digest_bytes(path.read_bytes()) if path.is_file() else None


def notebooks_with(part: str, study: str) -> list[str]:
    """Names of the notebooks that have recorded a table `part` in this study, sorted."""
    folder = paths.RESULTS / study
    return sorted({path.name.split(".")[0] for path in folder.glob(f"*.{part}.*") if path.name[0] != "."})


def corpus_file(corpus: str | None, data_dir: str | None = None) -> str | None:
    """Digest of a user's corpus file; None for the published corpora, which do not change."""
    path = own_path(corpus, data_dir) if corpus else None
    return digest_file(path) if path else None


def command(notebook: str, scale: str, corpus: str | None, **more: str | None) -> str:
    """The shell command that runs a notebook of a study; ``more`` options by name, without those that are None."""
    given = {"scale": scale, "corpus": corpus, **more}
    words = [word for name, value in given.items() if value for word in (f"--{name.replace('_', '-')}", value)]
    return shlex.join(["nli-study", "run", notebook, *words])


def recorded(record: Mapping) -> str:
    """A text that says when and with what a finished record was made."""
    seeds = f"seeds {', '.join(map(str, record['seeds']))}; " if record.get("seeds") else ""
    where = re.sub(r"\b1 cores\b", "1 core", record.get("device", ""))  # older records have it
    made = f"Recorded {record.get('ended', '')[:10]} in {record.get('seconds', 0):,.0f} s on {where}"
    return f"{made}; {seeds}revision {record.get('environment', {}).get('revision', 'unknown')}"
