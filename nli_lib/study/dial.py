"""What a notebook is given: the dial, its parameters, and the papers' recipes.

The dial is what a scale means for each part of the study. `scales/full.yaml` has every key, what it means, and its
value at the papers' own size; `small.yaml` and `smoke.yaml` say what differs. A notebook reads a value from
`study.dial`, which notes key and value for the record; so a new key makes no recorded chapter stale. A new chapter adds
its keys to the section of its part::

    threshold = study.dial.consensus.threshold

The parameters are checked inside the notebook (`nli_lib.study.begin`): papermill hands them over untyped and only warns
about names it does not know. So the check holds for papermill, JupyterLab and the runner alike, and a wrong type, value
or name is one clear error.

The recipes (`recipes.yaml`) are the papers' training settings; `run_spec` makes one the spec of a run.
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
# what the kinds of values are called in a message; None stands for any
KINDS = {bool: "truth value", int: "number", float: "number", str: "text", dict: "mapping", list: "list", tuple: "list"}
RANGES, NULL = yaml.safe_load_all((FOLDER.parent / "ranges.yaml").read_text(encoding="utf-8"))


def _merged(whole: Mapping[str, Any], said: object, path: Path, section: str = "") -> dict[str, Any]:
    """``whole`` with what a file says in its place; a key that is not there, or a value of another kind, is refused."""
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
        needed = KINDS.get(type(whole[name]), NULL.get(name, "number"))
        kind = KINDS.get(type(value), type(value).__name__)
        if value is not None and kind != needed:
            raise StudyError(f"{path}: {key}: a {needed} is needed, and {value!r} is a {kind}")
        allowed = RANGES.get(key)
        if allowed and isinstance(allowed[0], str) and value not in allowed:
            raise StudyError(f"{path}: {key}: {value!r} is none of {', '.join(allowed)}{close(value, allowed)}")
        if allowed and KINDS.get(type(value)) == "number" and not allowed[0] < value < allowed[1]:
            raise StudyError(f"{path}: {key}: {value!r} does not lie between {allowed[0]} and {allowed[1]}")
        merged[name] = _fixed(value)
    return merged


def _fixed(value: object) -> object:
    """Lists as tuples."""
    if isinstance(value, dict):
        return {name: _fixed(each) for name, each in value.items()}
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


def _scale(values: Mapping[str, Any]) -> SimpleNamespace:
    parts = {key: SimpleNamespace(**said) if isinstance(said, dict) else said for key, said in values.items()}
    return SimpleNamespace(**parts)


@functools.lru_cache
def read_scale(name: str, folder: Path = FOLDER) -> SimpleNamespace:
    """The keys of one scale, and of its sections, as attributes: the values of full.yaml, lists as tuples, and in their
    place what the scale's own file says.

    Raises
    ------
    StudyError
        Naming the file and the key.
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
    """A scale in which the keys of some knobs have the knobs' values.

    Parameters
    ----------
    knobs
        name of a notebook's parameter -> the key of the dial that it stands for, as "consensus.threshold"
    values
        of those that are turned

    Raises
    ------
    StudyError
        Naming the knob, where its key cannot have the value.
    """
    whole = {name: vars(said) if isinstance(said, SimpleNamespace) else said for name, said in vars(scale).items()}
    for knob, value in values.items():
        section, _, name = knobs[knob].rpartition(".")
        whole = _merged(whole, {section: {name: value}} if section else {name: value}, Path(knob))
    return _scale(whole)


class Dial:
    """A scale as a notebook reads it: `note(key, value)` is called for every value read, sections as "wanli.key"."""

    def __init__(self, part: SimpleNamespace, note: Callable[[str, Any], None], section: str = ""):
        self._part, self._note, self._section = part, note, section

    def __getattr__(self, name: str) -> Any:
        if name not in vars(self._part):
            known = ", ".join(vars(self._part))
            raise AttributeError(f"the dial has no key {self._section}{name}; there are: {known}")
        value = getattr(self._part, name)
        if isinstance(value, SimpleNamespace):
            return Dial(value, self._note, f"{self._section}{name}.")
        self._note(f"{self._section}{name}", to_jsonable_python(value))
        return value


# ---------------------------------------------------------------- parameters


# How a user's own file is read: arguments of `load`, options of the command line, in capitals parameters of a notebook.
FORM = ("columns", "labels", "encoding")


class Parameters(BaseModel):
    """What every notebook takes; its own, the knobs, are added by `check`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    SCALE: Literal[SCALES] = "smoke"
    SEEDS: Annotated[int, Field(ge=1, le=20)] | None = None
    DATA_DIR: str | None = None
    CORPUS: str | None = None
    COLUMNS: dict[str, str] | None = None  # `FORM`: the command line sets it, no notebook declares it
    LABELS: dict[str, str] | None = None
    ENCODING: str | None = None
    # the results go into this folder, whatever is turned: commands that run several chapters set it, no notebook does
    INTO: Annotated[str, Field(pattern=r"^\w[\w.+=-]*$")] | None = None

    @field_validator("CORPUS")
    @classmethod
    def is_known(cls, corpus: str | None, others: ValidationInfo) -> str | None:
        """Refuse what is neither a known name nor a file here or in the data folder."""
        from nli_lib.corpora import reading, sources

        names = sources.names()
        if corpus and corpus != "planted" and read_scale(others.data.get("SCALE", "full")).planted.obvious:
            raise ValueError(f"this scale has planted text alone: read {corpus} at smoke or small")
        if corpus in (None, *names):
            return corpus
        if reading.kind(Path(corpus)):
            if own_path(corpus, others.data.get("DATA_DIR")):
                return corpus
            raise ValueError(f"no such file: {corpus} (looked from {Path.cwd()})")
        if Path(corpus).expanduser().is_dir():
            raise ValueError(f"{corpus} is a folder: name one of its files ({', '.join(reading.SUFFIXES)})")
        files = f"a file ({', '.join(reading.SUFFIXES)}, each also with .gz)"
        known = f"a known corpus ({', '.join(names)})"
        raise ValueError(f"{_shown(corpus)} is neither {known} nor {files}{close(corpus, names)}")

    @field_validator("LABELS")
    @classmethod
    def are_names(cls, labels: dict[str, str] | None) -> dict[str, str] | None:
        """Refuse what is no label's name."""
        if labels:
            from nli_lib.corpora.corpus import declared

            declared(labels)
        return labels


def form_of(parameters: Mapping[str, object]) -> dict[str, object]:
    """What the parameters of a notebook say about how a user's file is read, as `load` takes it."""
    return {name: parameters[name.upper()] for name in FORM}


def as_options(form: Mapping[str, object]) -> dict[str, str | None]:
    """How a user's file is read as the command line takes it."""
    pairs = {name: ",".join(map("=".join, said.items())) for name, said in form.items() if isinstance(said, dict)}
    return {**form, **pairs}


def _shown(value: object) -> str:
    text = json.dumps(value, default=repr) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def close(name: object, choices: Iterable[str]) -> str:
    """'; did you mean "..."?' when one of `choices` is near `name`, else ""."""
    upper = {choice.upper(): choice for choice in choices}
    near = difflib.get_close_matches(str(name).upper(), upper, n=1, cutoff=0.6)
    return f'; did you mean "{upper[near[0]]}"?' if near else ""


def _told(error: Mapping, known: Iterable[str]) -> str:
    """One of pydantic's errors with the parameter, what was given and what is near it."""
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
    """Where a user's own file lies, here or in the data folder; None for a corpus by name, and where there is none."""
    if not is_own_file(corpus):
        return None
    from nli_lib.corpora import sources

    path, folder = Path(corpus).expanduser(), sources.data_folder(data_dir)
    return next((place for place in (path, folder and folder / path) if place and place.is_file()), None)


def is_own_file(corpus: str) -> bool:
    """Whether CORPUS is a user's own file and not a corpus by name: those have no ending."""
    return bool(Path(corpus).suffix)


def check(values: Mapping[str, object], knobs: Iterable[str] = ()) -> dict[str, object]:
    """All parameters, defaults filled in, or one `StudyError` that lists every problem.

    `values` are names and values as given; `knobs` are a notebook's own parameters, which must all be given: the dial
    says what each may be (`turned`).
    """
    own = dict.fromkeys(knobs, (Any, ...))
    model = create_model("Parameters", __base__=Parameters, **own)
    try:
        return model.model_validate(dict(values)).model_dump()
    except ValidationError as error:
        raise StudyError("\n".join(_told(each, model.model_fields) for each in error.errors())) from None


def literals(namespace: Mapping[str, object]) -> dict[str, object]:
    """The parameters in a notebook's namespace: public names of plain values. In and Out are the kernel's own."""
    plain = (type(None), bool, int, float, str, list, tuple, dict, set)
    public = {name: value for name, value in namespace.items() if name[:1] != "_" and name not in ("In", "Out")}
    return {name: value for name, value in public.items() if isinstance(value, plain)}


# ---------------------------------------------------------------- recipes


FILE = Path(__file__).with_name("recipes.yaml")


@functools.lru_cache
def recipes() -> dict[str, dict[str, Any]]:
    """Every paper's recipe by the paper's key: fields of `RunSpec` and their values."""
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def run_spec(paper: str, dial: Any, **fields: object) -> RunSpec:
    """The spec of a run by a paper's recipe.

    `fields` come before the recipe; encoder, epochs and learning rate that neither names are the dial's, the paper's
    own section first.
    """
    chosen = {**recipes()[paper], **fields}
    for name in ("model", "epochs", "learning_rate"):
        if name not in chosen:
            chosen[name] = getattr(getattr(dial, paper, None), name, None) or getattr(dial, name)
    return RunSpec(**chosen)
