"""The dial: what a scale means for each part of the study. The values stand in `scales/<scale>.yaml`.

A notebook reads them from `study.dial`, which notes every key with its value for the record; so a new key makes no
recorded chapter stale. A new chapter adds its keys to the section of its part, here and in the three files.

The parameters of a notebook, checked inside the notebook: a wrong type, value or name is one clear error.

papermill hands parameters over untyped and only warns about names it does not know, so the check stands in the
notebook's own second cell (`nli_lib.study.begin`) and holds for papermill, JupyterLab and the runner alike.

The papers' training recipes (`recipes.yaml`) and how one becomes the spec of a run.
"""

import difflib
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, create_model, field_validator
from pydantic_core import to_jsonable_python

from nli_lib.errors import UserError
from nli_lib.spec import RunSpec

SCALES = ("smoke", "small", "full")
FOLDER = Path(__file__).parent / "scales"


class DialError(UserError, ValueError):
    """A scale's file is malformed, or has no such key; the message names both."""


class Part(BaseModel):
    """Keys that belong together. A key that is not declared is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Wanli(Part):
    compared: dict[str, str] = Field(description="corpora set beside each other, each with its split")
    compared_limit: int | None = Field(description="pairs of each of them that a model is trained on; None takes all")
    text_limit: int | None = Field(description="pairs of each of them where only the text is read; None takes all")
    task: tuple[str, str] = Field(description="corpus and split that the task model learns, whose pairs are continued")
    task_limit: int | None = Field(description="pairs of it; None takes all")
    held_out: float = Field(description="share of it that is held out to compare estimate and variability")
    contexts: int | None = Field(description="exemplars that are continued, at most; None takes all")
    draws: int = Field(description="continuations of each")
    max_tokens: int = Field(description="of a continuation")
    generator: str = Field(description="language model, as its server calls it")
    at_once: int = Field(description="requests that the server has at a time")
    price: tuple[float, float] = Field((0, 0), description="money for a million tokens of prompts, of answers")
    reviewed: tuple[str, str] = Field(
        description="corpus and split whose pairs people, or simulated ones, have annotated"
    )


class Mixing(Part):
    base: tuple[str, str, str] = Field(description="title, corpus and split that others are mixed into")
    other: tuple[str, str, str] = Field(description="title, corpus and split of what is mixed in")
    pairs: int | None = Field(description="pairs of each training set before anything is added; None takes all")
    share: float = Field(gt=0, lt=1, description="of them, how many are swapped out, or added")
    epochs: int | None = Field(None, description="of each training, where they are not the scale's")
    trainings: int | None = Field(description="trainings on each set; None takes one for each seed")
    kept_out: int = Field(description="pairs of the other corpus that are tested on and not trained on, about so many")
    tested: dict[str, tuple[str, str]] = Field(description="title -> corpus and split that the models are tested on")
    out_of_domain: list[str] = Field(description="those of them, ANLI as one, that the claims are judged by")
    tested_limit: int | None = Field(description="pairs of each of them; None takes all")
    stress: tuple[str, int] = Field(description="title of the one the stress test is made from, and pairs of it")


class Zfilter(Part):
    trainings: int | None = Field(description="trainings on each filtered corpus; None takes one for each seed")
    growth: dict[str, str] = Field(description="corpus -> a larger split, whose growing parts are filtered")
    given: dict[str, tuple[str, str]] = Field(description="title -> corpus and split, filtered given the study's")


class Generator(Part):
    model: str = Field(description="causal language model that is trained on the study's corpus")
    limit: int | None = Field(description="pairs that it is trained on; None takes all")
    epochs: int
    further_epochs: int = Field(description="of debiasing it, and of training it longer as the control")
    batch_size: int
    learning_rate: float
    trainings: int | None = Field(description="trainings of each kind; None takes one for each seed")
    samples: int = Field(description="drawn from each trained generator")
    at_once: int = Field(description="sequences that are sampled together")


class Debiased(Part):
    tau: float = Field(ge=0, lt=1, description="probability of the intended label that the teacher must exceed")
    teacher: str | None = Field(description="encoder of the teacher, where it is not the section's")
    model: str | None = Field(None, description="encoder that is trained on each set, where it is not the scale's")
    epochs: int
    learning_rate: float | None = Field(None, description="learning rate, where it is not the scale's")
    warmup_steps: int
    trainings: int | None = Field(description="trainings on each set; None takes one for each seed")
    sets: list[str] | None = Field(description="training sets, by title; None takes all")
    tested: list[str] = Field(description="titles of the test sets of `suites.yaml`")
    tested_limit: int | None = Field(description="pairs of each of them; None takes all")
    adversarial: bool = Field(description="whether the adversarial benchmark is tested on too")
    hard_of: dict[str, tuple[str, str]] = Field(description="title of them -> training set that makes its hard part")


class Experts(Part):
    limit: int | None = Field(description="pairs that are trained on or held out; None takes all")
    development: str | None = Field(description="split to choose beta and gamma on; None: a part that is held out")
    parts: int = Field(ge=3, description="the corpus is cut into so many; one, or two, are held out")
    betas: list[float] = Field(min_length=2, description="weights of the bias head in the product, rising")
    gammas: list[float] = Field(min_length=1, description="weights of the bias head's own loss")
    model: str | None = Field(None, description="encoder, where it is not the scale's")
    epochs: int
    learning_rate: float | None = Field(None, description="learning rate, where it is not the scale's")
    warmup_steps: int
    trainings: int | None = Field(description="trainings of each method; None takes one for each seed")
    tested: list[str] = Field(description="titles of the test sets of `suites.yaml`")
    tested_limit: int | None = Field(description="pairs of each of them; None takes all")
    sets: list[str] = Field([], description="sets of chapter 24, by title, that a product of experts is trained on too")
    truth: int = Field(description="planted pairs on which the bias head is to find what was planted")
    truth_epochs: int


class Consensus(Part):
    limit: int | None = Field(description="training pairs that are searched for label errors; None takes all")
    folds: int
    threshold: float = Field(description="gap of the logits above which a mismatch is pruned")
    ways_pairs: int = Field(description="pairs on which ways of folding are compared; 0 compares none")
    other_ways: int = Field(description="trainings of each other way of pruning, and of its twin")
    model: str | None = Field(None, description="encoder, where it is not the scale's")
    learning_rate: float | None = Field(None, description="learning rate, where it is not the scale's")


Named = dict[str, list[tuple[str, str]]]  # title -> corpora and splits


class Counterfactual(Part):
    sets: Named = Field(description="two sets of revisions, the one that a language model wrote first")
    originals: int = Field(description="originals of a planted set; published sets are taken whole")
    sizes: list[int] = Field(description="revisions of each set and direction whose diversity is measured")
    draws: int = Field(description="random parts at each size")
    transport: int = Field(description="revisions of each set and direction, at most, in a dataset distance")
    regularisations: list[float] = Field(description="of the transport; 0 is exact")
    halves: int = Field(description="random halves of the originals behind an interval")
    students: Named = Field(description="the same two sets, as students are trained on them")
    base: tuple[str, str, str] = Field(description="title, corpus and split that the sets are added to")
    base_limit: int | None = Field(description="pairs of that split, the base and its random twin; None takes all")
    pairs: int = Field(description="pairs of the base")
    added: int = Field(description="pairs of each set, originals among them, at most")
    validation: tuple[str, str] = Field(description="corpus and split that the best epoch and training are chosen on")
    validation_limit: int | None
    trainings: int = Field(description="trainings on each set; the paper reports the best of five")
    epochs: int
    robustness: dict[str, tuple[str, str]] = Field(description="title -> corpus and split")
    out_of_domain: dict[str, tuple[str, str]] = Field(description="title -> corpus and split")
    hard_parts: bool = Field(description="whether MultiNLI's hard parts are out of domain too")
    benchmark: list[str] = Field(description="parts of the adversarial benchmark that are robustness too")
    weights: dict[str, str] = Field(description="title -> row of the paper's Table 2 whose size is its weight")
    tested_limit: int | None = Field(description="pairs of each of them; None takes all")
    stress: tuple[str, str, int] = Field(description="corpus and split the stress test is made from, and pairs of it")
    paired: Named = Field(description="sets of revisions on which sensitivity is measured")


class Difficulty(Part):
    corpora: dict[str, tuple[str, str]] = Field(description="corpus -> the split that is sorted, the one to train on")
    limit: int | None = Field(description="pairs of each of those splits; None takes all")
    trainings: dict[str, int] = Field(description="corpus -> trainings of each view on it; one where it is not named")
    encoders: tuple[str, str] = Field(description="two encoders of different families, set beside each other")
    encoders_limit: int | None = Field(description="pairs that each of the two is trained on; None takes all")
    encoders_epochs: int
    subsets: list[str] | None = Field(description="training subsets, by name; None takes the paper's nine")
    stress: int = Field(description="pairs that the stress test is made from")
    inversion: dict[str, tuple[str, str]] = Field(description="sets whose premise and hypothesis the paper swapped")
    released_stress: bool = Field(description="whether the released files of the stress test are used too")


class Yardstick(Part):
    corpus: tuple[str, str] = Field(description="corpus and split some of whose labels are known to be errors")
    limit: int | None = Field(description="pairs of it that a model is trained on or judged; None takes all")
    ordinary: tuple[str, str] = Field(description="corpus and split of ordinary pairs that the models are tested on")
    ordinary_limit: int | None = Field(description="pairs of them; None takes all")


class Interventions(Part):
    planted: dict[str, dict[str, float]] = Field(description="title -> strengths of what is planted, all others 0")
    linear_pairs: int = Field(description="pairs of each planted corpus for the model of the hypothesis's n-grams")
    linear_draws: int = Field(description="planted corpora of each kind for that model")
    pairs: int = Field(description="pairs of each planted corpus for the encoder")
    encoder: list[str] = Field(description="titles of the kinds for which the encoder is trained")
    epochs: int
    folds: int
    trainings: int | None = Field(description="planted corpora of each kind for the encoder; None: one for each seed")
    tested: int = Field(description="pairs of the test and of the challenge split")


class Disco(Part):
    originals: int = Field(description="ambiguous pairs whose premises are perturbed")
    ambiguous: float = Field(gt=0, le=1, description="share of the training pairs that counts as ambiguous")
    spans: int | None = Field(description="spans of an original that are tried, drawn at random; None tries all")
    prompt: str = Field("disco, 2022 code", description="version of the prompts and of the filter")
    insertion: list[str] = Field(description="directions that are asked by insertion, of a server that can insert")
    demonstrations: tuple[str, str, str] = Field(
        description="corpus, split of its pairs, split of their revised premises"
    )
    demonstrations_limit: int | None = Field(description="revised premises that demonstrations are taken from")
    demonstrations_each: int | None = Field(description="demonstrations in a prompt; None: as in the code of 2022")
    max_tokens: int = Field(description="of an answer")
    generator: str = Field(description="language model, as its server calls it")
    at_once: int = Field(description="requests that the server has at a time")
    price: tuple[float, float] = Field((0, 0), description="money for a million tokens of prompts, of answers")
    teacher: tuple[str, str] | None = Field(description="corpus and split the teachers learn; None: the study's own")
    teacher_limit: int | None = Field(description="pairs of it; None takes all")
    trainings: int | None = Field(description="teachers that are trained; None takes one for each seed")
    teachers: list[str] = Field(description="ready NLI models that are the teachers, in place of trained ones")
    threshold: float = Field(0.3, description="of the shift; the cut is its half")
    released: dict[str, tuple[str, str]] = Field(description="title -> corpus and split of released counterfactuals")
    released_limit: int | None = Field(description="of each, where spans are looked for")
    people: tuple[str, str, str] | None = Field(
        description="corpus, split of its pairs, split of the premises that people revised: the teachers' test"
    )
    truth: int = Field(description="planted originals with two revisions each, whose labels are known")
    truth_learnt: int = Field(description="planted pairs that the teachers of that test learn from")


class Budgets(Part):
    base: tuple[str, str, str] = Field(description="title, corpus and split that all arms begin with")
    budget: int = Field(description="rows of every training set, and so the updates of every training")
    share: float = Field(gt=0, lt=0.5, description="of them, those that are added or swapped in")
    candidates: int | None = Field(description="pairs of the base that arms choose from, drawn anew for each training")
    arms: list[str] | None = Field(description="arms by name (`select.arms`); None takes all")
    trainings: int = Field(description="trainings of an arm, and of its twin")
    matter: list[str] = Field(description="arms that are trained more often, and the base with them")
    trainings_that_matter: int
    epochs: int = Field(description="of every training, those that score the candidates among them")
    folds: int = Field(description="of cross-scoring the candidates")
    beta: float = Field(description="weight of the bias head in the product of experts")
    gamma: float = Field(description="weight of the bias head's own loss")
    released: Named = Field(description="source of an addition -> corpora and splits")
    counterfactuals: Named = Field(description="source -> sets of revisions, which come with their originals")
    in_distribution: dict[str, dict[str, tuple[str, str]]] = Field(description="base corpus -> title -> its test sets")
    groups: dict[str, dict[str, tuple[str, str]]] = Field(description="group -> title -> corpus and split")
    stress: tuple[str, str, str, int] | None = Field(description="group, corpus, split, and pairs of the stress test")
    tested_limit: int | None = Field(description="pairs of a group, equally many of each of its sets; None takes all")


class Planted(Part):
    pairs: int = Field(description="pairs of each planted corpus whose truth the scores are asked for")
    folds: int
    cleaned: int | None = Field(description="planted corpora that are cross-scored; None takes all")


class Agreement(Part):
    corpora: dict[str, str] = Field(description="corpora whose pairs every score is asked for, each with its split")
    folds: dict[str, int] = Field({}, description="of cross-scoring, for corpora that have others than consensus.folds")
    counterfactuals: dict[str, tuple[str, str]] = Field(description="corpus -> a set of revisions of its pairs")
    resamples: int = Field(ge=20, description="of the premises, for each interval")


class Scale(Part):
    """One setting of the dial: which corpus, how much of it, which encoder, how many seeds; then a section a part."""

    corpus: str
    train_split: str
    test_split: str
    limit: int | None = Field(description="training pairs; None takes all")
    suite_limit: int | None = Field(description="pairs of each evaluation set; None takes all")
    model: str
    epochs: int
    learning_rate: float
    seeds: int
    wanli: Wanli
    mixing: Mixing
    zfilter: Zfilter
    generator: Generator
    debiased: Debiased
    experts: Experts
    consensus: Consensus
    counterfactual: Counterfactual
    difficulty: Difficulty
    yardstick: Yardstick
    interventions: Interventions
    disco: Disco
    budgets: Budgets
    planted: Planted
    agreement: Agreement


@functools.lru_cache
def read_scale(name: str, folder: Path = FOLDER) -> Scale:
    """The values of one scale. Raises `DialError` naming the file and the key."""
    path = folder / f"{name}.yaml"
    try:
        return Scale.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        raise DialError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (OSError, yaml.YAMLError) as error:
        raise DialError(f"{path}: {error}") from None


class Dial:
    """A scale as a notebook reads it: `note(key, value)` is called for every value read, sections as "wanli.key"."""

    def __init__(self, part: Part, note: Callable[[str, Any], None], section: str = ""):
        self._part, self._note, self._section = part, note, section

    def __getattr__(self, name: str) -> Any:
        if name not in type(self._part).model_fields:
            known = ", ".join(type(self._part).model_fields)
            raise AttributeError(f"the dial has no key {self._section}{name}; there are: {known}")
        value = getattr(self._part, name)
        if isinstance(value, Part):
            return Dial(value, self._note, f"{self._section}{name}.")
        self._note(f"{self._section}{name}", to_jsonable_python(value))
        return value


# ---------------------------------------------------------------- parameters


# What a notebook may declare for a parameter of its own: a type, a (low, high) range, or a list of allowed values. With
# None in a range, as in (2, 100, None), None is allowed too: the scale's own value.
Rule = type | tuple | list | UnionType


# How a user's own file is read: arguments of `load`, options of the command line, in capitals parameters of a notebook.
FORM = ("columns", "labels", "encoding")


class ParameterError(UserError, ValueError):
    """A parameter is wrong; the message names it, what was given and what is allowed."""


class Parameters(BaseModel):
    """What every notebook takes; its own parameters are added by `check`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    SCALE: Literal[SCALES] = "smoke"
    SEEDS: Annotated[int, Field(ge=1, le=20)] | None = None
    DATA_DIR: str | None = None
    CORPUS: str | None = None
    COLUMNS: dict[str, str] | None = None  # `FORM`: the command line sets it, no notebook declares it
    LABELS: dict[str, str] | None = None
    ENCODING: str | None = None

    @field_validator("CORPUS")
    @classmethod
    def is_known(cls, corpus: str | None, others: ValidationInfo) -> str | None:
        """Refuse what is neither a known name nor a file here or in the data folder."""
        from nli_lib.corpora import reading, sources

        names = sources.names()
        if corpus in (None, *names):
            return corpus
        if reading.kind(Path(corpus)):
            if own_path(corpus, others.data.get("DATA_DIR")):
                return corpus
            raise ValueError(f"no such file: {corpus} (looked from {Path.cwd()})")
        if Path(corpus).expanduser().is_dir():
            raise ValueError(f"{corpus} is a folder: name one of its files ({', '.join(reading.SUFFIXES)})")
        raise ValueError(
            f"{_shown(corpus)} is neither a known corpus ({', '.join(names)}) "
            f"nor a file ({', '.join(reading.SUFFIXES)}, each also with .gz){close(corpus, names)}"
        )

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
    return {
        name: ",".join(map("=".join, said.items())) if isinstance(said, dict) else said for name, said in form.items()
    }


def _kind(rule: Rule) -> Any:
    """A rule as a type that pydantic checks."""
    if isinstance(rule, list):
        return Literal[tuple(rule)]
    if isinstance(rule, tuple):
        kind = Annotated[type(rule[0]), Field(ge=rule[0], le=rule[1])]
        return kind | None if None in rule else kind
    return rule


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


def check(values: Mapping[str, object], extra: Mapping[str, Rule] | None = None) -> dict[str, object]:
    """All parameters, defaults filled in, or one `ParameterError` that lists every problem.

    `values` are names and values as given; `extra` declares a notebook's own parameters, which must all be given.
    """
    own = {name: (_kind(rule), ...) for name, rule in (extra or {}).items()}
    model = create_model("Parameters", __base__=Parameters, **own)
    try:
        return model.model_validate(dict(values)).model_dump()
    except ValidationError as error:
        raise ParameterError("\n".join(_told(each, model.model_fields) for each in error.errors())) from None


def literals(namespace: Mapping[str, object]) -> dict[str, object]:
    """The parameters in a notebook's namespace: public names of plain values. In and Out are the kernel's own."""
    plain = (type(None), bool, int, float, str, list, tuple, dict, set)
    return {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and name not in ("In", "Out") and isinstance(value, plain)
    }


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
