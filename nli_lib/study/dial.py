"""Settings of a notebook: the dial, its parameters, and the papers' recipes.

The dial defines a scale for each part of the study. `scales/full.yaml` has every key with its meaning and its value at
the papers' size; `small.yaml` and `smoke.yaml` have the differences. A notebook reads a value from `study.dial`, which
notes key and value for the record, so a new key makes no recorded chapter stale. A new chapter adds its keys to the
section of its part::

    threshold = study.dial.consensus.threshold

The parameters are checked inside the notebook (`nli_lib.study.begin`), because papermill passes them without types and
only warns about unknown names. So the check works in papermill, JupyterLab and the runner, and a wrong type, value or
name is one clear error.

The recipes (`recipes.yaml`) are the papers' training settings; `run_spec` turns one into the spec of a run.
"""

import difflib
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, create_model, field_validator
from pydantic_core import to_jsonable_python

from nli_lib.errors import StudyError
from nli_lib.store import RunSpec

SCALES = ("lab", "smoke", "small", "full")
FOLDER = Path(__file__).parent / "scales"
# names of types in messages; None allows any
KINDS = {bool: "truth value", int: "number", float: "number", str: "text", dict: "mapping", list: "list", tuple: "list"}
LIMITS = yaml.safe_load(Path(__file__).with_name("limits.yaml").read_text(encoding="utf-8"))


def _merged(whole: Mapping[str, Any], said: object, path: Path, section: str = "") -> dict[str, Any]:
    """Merge a file's values into ``whole``; an unknown key, or a value of another type, is refused."""
    if not isinstance(said, dict):
        raise StudyError(f"{path}: {section or 'the file'} has no keys, but {said!r}")
    merged = dict(whole)
    for name, value in said.items():
        key = f"{section}{name}"
        if name not in whole:
            raise StudyError(f"{path}: {key}: there is no such key{close(name, whole)}")
        if not section and isinstance(whole[name], dict):  # a section
            merged[name] = _merged(whole[name], value, path, f"{name}.")
            continue
        needed = KINDS.get(type(whole[name]), LIMITS["null elsewhere"].get(name, "number"))
        kind = KINDS.get(type(value), type(value).__name__)
        if value is not None and kind != needed:
            raise StudyError(f"{path}: {key}: a {needed} is needed, and {value!r} is a {kind}")
        if (words := LIMITS["among"].get(key)) and value not in words:
            raise StudyError(f"{path}: {key}: {value!r} is none of {', '.join(words)}{close(value, words)}")
        if (ends := LIMITS["between"].get(key)) and value is not None and not ends[0] < value < ends[1]:
            raise StudyError(f"{path}: {key}: {value!r} does not lie between {ends[0]} and {ends[1]}")
        merged[name] = _fixed(value)
    return merged


def _fixed(value: object) -> object:
    """Convert lists to tuples."""
    if isinstance(value, dict):
        return {name: _fixed(each) for name, each in value.items()}
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


def _scale(values: Mapping[str, Any]) -> SimpleNamespace:
    parts = {key: SimpleNamespace(**said) if isinstance(said, dict) else said for key, said in values.items()}
    return SimpleNamespace(**parts)


@functools.lru_cache
def read_scale(name: str, folder: Path = FOLDER) -> SimpleNamespace:
    """Read one scale, with the keys of its sections as attributes: the values of full.yaml, replaced by those of the
    scale's file; lists become tuples.

    Raises
    ------
    StudyError
        If a file is wrong, naming the file and the key.
    """
    values = {}
    for path in dict.fromkeys((folder / "full.yaml", folder / f"{name}.yaml")):
        try:
            said = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise StudyError(f"{path}: {error}") from None
        values = _merged(values or said, said, path)
    return _scale(values)


def refuse_absent(notebook: str, scale: str) -> None:
    """Raise `StudyError` for a notebook that a scale does not have."""
    if (chapters := read_scale(scale).chapters) and notebook.partition("_")[0] not in chapters:
        raise StudyError(f"scale {scale} has the chapters {', '.join(chapters)}: run {notebook} at smoke or small")


def turned(scale: SimpleNamespace, knobs: Mapping[str, str], values: Mapping[str, object]) -> SimpleNamespace:
    """Set the keys of some knobs to the knobs' values.

    Parameters
    ----------
    knobs
        name of a notebook's parameter -> its key in the dial, such as "consensus.threshold"
    values
        values of the knobs that are turned

    Raises
    ------
    StudyError
        If a key cannot have the value, naming the knob.
    """
    whole = {name: vars(said) if isinstance(said, SimpleNamespace) else said for name, said in vars(scale).items()}
    for knob, value in values.items():
        section, _, name = knobs[knob].rpartition(".")
        whole = _merged(whole, {section: {name: value}} if section else {name: value}, Path(knob))
    return _scale(whole)


class Dial:
    """A scale for a notebook: `note(key, value)` is called for every value read, with keys of sections as
    "wanli.key"."""

    def __init__(self, part: SimpleNamespace, note: Callable[[str, Any], None], section: str = ""):
        self._part, self._note, self._section = part, note, section

    def __getattr__(self, name: str) -> Any:
        if name not in vars(self._part):
            raise AttributeError(f"the dial has no key {self._section}{name}; there are: {', '.join(vars(self._part))}")
        if isinstance(value := getattr(self._part, name), SimpleNamespace):
            return Dial(value, self._note, f"{self._section}{name}.")
        self._note(f"{self._section}{name}", to_jsonable_python(value))
        return value


# ---------------------------------------------------------------- parameters


# Form of a user's file: arguments of `load`, options of the command line and, in capitals, parameters of a notebook.
FORM = ("columns", "labels", "encoding")


class Parameters(BaseModel):
    """The parameters of every notebook; `check` adds a notebook's knobs."""

    model_config = ConfigDict(extra="forbid", strict=True)

    SCALE: Literal[SCALES] = "smoke"
    SEEDS: Annotated[int, Field(ge=1, le=20)] | None = None
    DATA_DIR: str | None = None
    CORPUS: str | None = None
    COLUMNS: dict[str, str] | None = None  # part of `FORM`: set by the command line, declared by no notebook
    LABELS: dict[str, str] | None = None
    ENCODING: str | None = None
    # folder of the results, regardless of knobs: set by commands that run several chapters, declared by no notebook
    INTO: Annotated[str, Field(pattern=r"^\w[\w.+=-]*$")] | None = None

    @field_validator("CORPUS")
    @classmethod
    def is_known(cls, corpus: str | None, others: ValidationInfo) -> str | None:
        """Refuse a value that is neither a known name nor a file here or in the data folder."""
        from nli_lib.corpora import reading, sources

        names = sources.names()
        if corpus and corpus != "planted" and read_scale(others.data.get("SCALE", "full")).planted.obvious:
            raise ValueError(f"this scale has planted text alone: read {corpus} at smoke or small")
        if corpus in (None, *names) or (reading.kind(Path(corpus)) and own_path(corpus, others.data.get("DATA_DIR"))):
            return corpus
        if reading.kind(Path(corpus)):
            raise ValueError(f"no such file: {corpus} (looked from {Path.cwd()})")
        if Path(corpus).expanduser().is_dir():
            raise ValueError(f"{corpus} is a folder: name one of its files ({', '.join(reading.SUFFIXES)})")
        known = f"a known corpus ({', '.join(names)}) nor a file ({', '.join(reading.SUFFIXES)}, each also with .gz)"
        raise ValueError(f"{_shown(corpus)} is neither {known}{close(corpus, names)}")

    @field_validator("LABELS")
    @classmethod
    def are_names(cls, labels: dict[str, str] | None) -> dict[str, str] | None:
        """Refuse unknown names of labels."""
        from nli_lib.corpora.corpus import declared

        declared(labels or {})
        return labels


def form_of(parameters: Mapping[str, object]) -> dict[str, object]:
    """The form of a user's file from the parameters of a notebook, as arguments of `load`."""
    return {name: parameters[name.upper()] for name in FORM}


def as_options(form: Mapping[str, object]) -> dict[str, str | None]:
    """The form of a user's file as options of the command line."""
    return {k: ",".join(map("=".join, said.items())) if isinstance(said, dict) else said for k, said in form.items()}


def _shown(value: object) -> str:
    text = json.dumps(value, default=repr) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def close(name: object, choices: Iterable[str]) -> str:
    """'; did you mean "..."?' if one of `choices` is similar to `name`, else ""."""
    upper = {choice.upper(): choice for choice in choices}
    near = difflib.get_close_matches(str(name).upper(), upper, n=1, cutoff=0.6)
    return f'; did you mean "{upper[near[0]]}"?' if near else ""


def _told(error: Mapping, known: Iterable[str]) -> str:
    """The text of one of pydantic's errors, with the parameter, the given value and similar names."""
    name = error["loc"][0]
    if error["type"] == "extra_forbidden":
        return f"{name}: no such parameter{close(name, known)} (allowed: {', '.join(known)})"
    if error["type"] == "missing":
        return f"{name}: declared, but the parameters cell does not set it"
    if error["type"] == "value_error":
        return f"{name}: {error['ctx']['error']}"
    hint = close(error["input"], re.findall(r"'(.+?)'", error["msg"]))
    return f"{name}: {error['msg']}, got {_shown(error['input'])}{hint}"


def own_path(corpus: str, data_dir: str | None = None) -> Path | None:
    """Path of a user's file, here or in the data folder; None for a corpus by name, or if there is no such file."""
    if not is_own_file(corpus):
        return None
    from nli_lib.corpora import sources

    path, folder = Path(corpus).expanduser(), sources.data_folder(data_dir)
    return next((place for place in (path, folder and folder / path) if place and place.is_file()), None)


def is_own_file(corpus: str) -> bool:
    """True if CORPUS is a user's file and not a corpus by name; names have no ending."""
    return bool(Path(corpus).suffix)


def check(values: Mapping[str, object], knobs: Iterable[str] = ()) -> dict[str, object]:
    """Check all parameters and fill in defaults; raise one `StudyError` that lists every problem.

    `values` are the given names and values; `knobs` are the notebook's additional parameters, which must all be given;
    the dial decides their possible values (`turned`).
    """
    model = create_model("Parameters", __base__=Parameters, **dict.fromkeys(knobs, (Any, ...)))
    try:
        return model.model_validate(dict(values)).model_dump()
    except ValidationError as error:
        raise StudyError("\n".join(_told(each, model.model_fields) for each in error.errors())) from None


def literals(namespace: Mapping[str, object]) -> dict[str, object]:
    """The parameters in a notebook's namespace: public names with plain values, without the kernel's In and Out."""
    plain = (type(None), bool, int, float, str, list, tuple, dict, set)
    public = {name: value for name, value in namespace.items() if name[:1] != "_" and name not in ("In", "Out")}
    return {name: value for name, value in public.items() if isinstance(value, plain)}


# ---------------------------------------------------------------- recipes


FILE = Path(__file__).with_name("recipes.yaml")


@functools.lru_cache
def recipes() -> dict[str, dict[str, Any]]:
    """The recipes by the papers' keys: fields of `RunSpec` and their values."""
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def run_spec(paper: str, dial: Any, **fields: object) -> RunSpec:
    """Make the spec of a run from a paper's recipe.

    `fields` override the recipe; if neither has encoder, epochs or learning rate, they come from the dial, first from
    the paper's section.
    """
    chosen = {**recipes()[paper], **fields}
    for name in ("model", "epochs", "learning_rate"):
        if name not in chosen:
            chosen[name] = getattr(getattr(dial, paper, None), name, None) or getattr(dial, name)
    return RunSpec(**chosen)
