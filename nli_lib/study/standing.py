"""What stands: whether a chapter's record still holds for the code at hand, derived from what the numbers depend on.

A record keeps the digests of the code that decided its numbers (`digests.code_of`), which includes what the methods of
`Study` that its cells call import. What is kept by value does not count as code: the keys of the dial and the recipes
that were read, and the defaults of `RunSpec`; so a new key or field makes nothing stale.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from pathlib import Path

from pydantic_core import to_jsonable_python

from nli_lib import paths
from nli_lib.spec import DEFAULTS
from nli_lib.store import now, revision
from nli_lib.study import manifest as records
from nli_lib.study.dial import read_scale
from nli_lib.study.digests import code_of
from nli_lib.study.recipes import recipes

NAMED = 3  # reasons that a line names; more are counted


def _changes(what: str, then: Mapping, now: Mapping, said: str = ": {!r} then, {!r} now") -> list[str]:
    """What was recorded and has another value now; what is only there now does not count."""
    return [
        what.format(name) + (said.format(value, now[name]) if name in now else " is missing")
        for name, value in sorted(then.items())
        if name not in now or now[name] != value
    ]


def _dial_at(scale: str, keys: Iterable[str]) -> dict[str, object]:
    """The values that keys of the dial ("limit", "wanli.compared") have at a scale; unknown keys are left out."""
    found = {}
    for key in keys:
        with contextlib.suppress(AttributeError):
            found[key] = to_jsonable_python(attrgetter(key)(read_scale(scale)))
    return found


def _changed(what: str, then: Mapping[str, str], digest: Callable[[str], str | None]) -> list[str]:
    """The modules or files among `then` (name -> digest) that are no longer what they were."""
    now = {name: found for name in then if (found := digest(name))}
    return _changes(what, then, now, " changed")


def _result(name: str) -> str | None:
    return records.digest_file(paths.RESULTS / name)


def _changed_exports(record: Mapping) -> list[str]:
    """Exported tables, read or written, that are others now. They are not tracked: a clone that lacks them stands."""
    folder = paths.EXPORTS / record["study"]
    here = {name: then for name, then in record.get("exports", {}).items() if (folder / name).is_file()}
    return _changed("{}", here, lambda name: records.digest_file(folder / name))


def _changed_sources(record: Mapping, data_dir: str | None = None) -> list[str]:
    """Tables that a run would gather now and did not then, files of the book, a user's own corpus."""
    reasons = [
        f"{name} has recorded {part} since"
        for part, then in record.get("gathered", {}).items()
        for name in records.notebooks_with(part, record["study"])
        if name not in then
    ]
    reasons += _changed("{}", record.get("declared", {}), lambda file: records.digest_file(paths.BOOK / file))
    corpus = record.get("parameters", {}).get("CORPUS")
    own = records.corpus_file(corpus, data_dir)
    return reasons + ([f"the corpus file {corpus} changed"] if own and own != record.get("corpus_file") else [])


def why_stale(record: Mapping, parameters: Mapping | None = None) -> list[str]:
    """Reasons why a finished record no longer stands for the code at hand; empty when it does.

    Settings come before modules, for they say how the numbers differ, and a line names the first reasons only.
    `parameters`: the values asked for now; None compares none (a status page asks for no particular values).
    """
    reasons = []
    scale = record.get("parameters", {}).get("SCALE")
    if parameters is not None:
        then, asked = (_unnamed(each) for each in (record.get("parameters", {}), parameters))
        asked = {name: value for name, value in asked.items() if name not in records.NEUTRAL}
        reasons += _changes("{}", {name: then.get(name) for name in asked}, asked)
    code = code_of(paths.NOTEBOOKS / f"{record['notebook']}.ipynb", record.get("uses", {}))
    if record.get("cells") != code["cells"]:
        reasons.append("the code of its measuring cells changed")
    if scale:
        reasons += _changes("the dial's {}", record.get("dial", {}), _dial_at(scale, record.get("dial", {})))
    reasons += _changes("the recipe of {}", record.get("recipes", {}), recipes())
    if record.get("recipes"):
        reasons += _changes("RunSpec's default of {}", record.get("defaults", {}), DEFAULTS)
    reasons += _changes("{}", record.get("definitions", {}), code["definitions"], " changed")
    reasons += _changed("{}, which it read,", record.get("inputs", {}), _result)
    reasons += _changed("{}, which it wrote,", record.get("outputs", {}), _result)
    reasons += _changed_exports(record)
    return reasons + _changed_sources(record, (parameters or {}).get("DATA_DIR"))


def stale(study: str) -> list[str]:
    """The chapters of a study with a finished record that no longer stands for the code at hand."""
    every = [records.read(path.stem, study) for path in sorted((paths.RESULTS / study).glob("*.json"))]
    return [each["notebook"] for each in every if each["state"] == records.FINISHED and why_stale(each)]


def in_short(reasons: list[str]) -> str:
    """The first reasons and the number of the others, for one line."""
    more = [f"and {len(reasons) - NAMED} more"] if len(reasons) > NAMED else []
    return "; ".join(reasons[:NAMED] + more)


def _unnamed(parameters: Mapping) -> dict:
    """The parameters, the scale's own corpus written as None also where it was asked for by name."""
    own = bool(parameters.get("SCALE")) and parameters.get("CORPUS") == read_scale(parameters["SCALE"]).corpus
    return {**parameters, **({"CORPUS": None} if own else {})}


# ---------------------------------------------------------------- confirming a record that cost hours

TOOK = ["seconds", "machine seconds", "tokens_per_second", "device"]  # how long, and where: no two runs are equal


def confirm(scale: str, before: Path) -> dict[str, str]:
    """Write finished records at `scale` anew for the code at hand where the smoke tables show the same numbers.

    `before` holds the smoke tables of the older revision. A chapter is confirmed when this clone's run, finished and
    not stale, wrote all that they hold; its record keeps when. Columns and tables that have come since are confirmed by
    nothing. Returns what was done with every chapter, in words.
    """
    said = {}
    for path in sorted((paths.RESULTS / scale).glob("*.json")):
        record, here = records.read(path.stem, scale), records.read(path.stem, "smoke")
        if record["state"] != records.FINISHED:
            said[path.stem] = f"left: {record['state']}"
        elif not why_stale(record):
            said[path.stem] = "stands"
        elif obstacle := _obstacle(record, here, before):
            said[path.stem] = f"left: {obstacle}"
        else:
            records.write(_confirmed(record, here))
            said[path.stem] = "confirmed: the smoke tables before and after are equal"
    return said


def _tables(folder: Path, notebook: str) -> dict[str, Path]:
    """The recorded tables of a notebook, by the part that each holds."""
    return {path.name.split(".")[1]: path for path in folder.glob(f"{notebook}.*.*")}


def _obstacle(record: Mapping, here: Mapping, before: Path) -> str:
    """Why the smoke tables cannot confirm a record, or ""."""
    name = record["notebook"]
    if here["state"] != records.FINISHED or why_stale(here):
        return "its smoke run here is missing or stale"
    old, new = (_tables(folder, name) for folder in (before, paths.RESULTS / "smoke"))
    if not old:
        return "the folder has no smoke table of it"
    if differing := [part for part in old if not _equal(old[part], new.get(part))]:
        return f"the smoke tables differ: {', '.join(sorted(differing))}"
    # another value at this scale, which smoke does not see; a key that is gone was renamed or is not read any more
    then = record.get("dial", {})
    now = _dial_at(record["parameters"]["SCALE"], then)
    reasons = _changes("the dial's {}", {key: then[key] for key in now}, now)
    # and one that it has come to read, where smoke tries another value than this scale's
    came = _dial_at(record["parameters"]["SCALE"], here["dial"].keys() - then) if "dial" in record else {}
    reasons += [f"the dial's {key} is read since" for key in sorted(came) if came[key] != here["dial"][key]]
    reasons += _changed("{}, which it read,", record["inputs"], _result)
    return "; ".join(reasons + _changed_sources(record))


def _equal(old: Path, new: Path | None) -> bool:
    """Whether a table holds all that it held before, but for how long it took, and where; columns may be new."""
    from nli_lib.study.tables import read_table

    before = read_table(old).drop(columns=TOOK, errors="ignore")
    return new is not None and before.equals(read_table(new).reindex(columns=before.columns))


def _inputs(record: Mapping, here: Mapping) -> dict[str, str]:
    """What the chapter read, and what it has come to read since: at another scale that can be less."""
    names = [name.replace("smoke/", f"{record['study']}/", 1) for name in here["inputs"]]
    return {name: digest for name in [*record["inputs"], *names] if (digest := _result(name))}


def _confirmed(record: Mapping, here: Mapping) -> dict:
    tables = _tables(paths.RESULTS / record["study"], record["notebook"]).values()
    outputs = {path.relative_to(paths.RESULTS).as_posix(): records.digest_file(path) for path in tables}
    then, earlier = record["parameters"], record.get("confirmed", [])
    known = record.get("definitions", here["definitions"])  # older records name none
    changed = sorted(name for name, digest in here["definitions"].items() if known.get(name) != digest)
    entry = {"revision": revision(), "date": now()[:10], "definitions": changed}
    code = {key: here[key] for key in ("cells", "definitions", "uses", "defaults", "recipes")}
    return {
        **{name: value for name, value in record.items() if name not in ("roots", "modules")},  # of older records
        **code,
        "inputs": _inputs(record, here),
        "outputs": outputs,
        "dial": _dial_at(then["SCALE"], here["dial"]),
        "parameters": {name: then.get(name, default) for name, default in here["parameters"].items()},
        "confirmed": [*earlier, entry],
    }
