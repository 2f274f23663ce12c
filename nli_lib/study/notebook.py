"""The notebook's interface to the study: checked parameters, tidy tables, numbers in prose, a record of the run::

    SCALE, CORPUS, SEEDS, DATA_DIR = "smoke", None, None, None      # cell tagged `parameters`, one literal a line

    from nli_lib.study import begin                                 # cell tagged `begin`
    study = begin("10_data_map", globals())

    study.save(scores, "scores")                                    # cells tagged `measure` fill tables
    study.claim("wanli-1", estimate)

    scores = study.table("scores")                                  # all others draw everything from the tables
    study.say("{share:.1%} of the {n:,} pairs are ambiguous.", share=..., n=len(scores))
    study.finish()                                                  # cell tagged `finish`

Everything is shown as text, whatever a corpus contains: the values in prose, with a template that is filled completely
or not at all, and the cells, headers and index of a table. Tables are recorded with short names and shown with readable
ones: `above_half` as "above half", the corpus `mnli` as MultiNLI, and true and false as yes and no. A number that is
rounded to zero has no sign.

Importing this module needs no torch. The code that decides numbers is not here but in definitions that the record names
(`standing.rest_on`).
"""

import contextlib
import functools
import hashlib
import json
import math
import numbers
import os
import re
import string
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pandas as pd
from IPython.display import HTML, Markdown, display
from pandas.io.formats.style import Styler
from pydantic_core import to_jsonable_python

from nli_lib import paths
from nli_lib.corpora import sources, suites
from nli_lib.corpora.corpus import LABELS, SIDES, Corpus
from nli_lib.corpora.planted import make_obvious
from nli_lib.errors import StudyError
from nli_lib.generate.journal import Journal
from nli_lib.names import CORPORA, name_of, unsigned_zero
from nli_lib.stats import VERDICTS, Estimate
from nli_lib.store import RunSpec, atomic, device, now
from nli_lib.study import dial, parts, standing
from nli_lib.tables import find_table, read_table, write_table

NOTHING: Mapping = MappingProxyType({})


class _Filler(string.Formatter):
    """``str.format`` that refuses fields without a number and escapes text, also in nested fields."""

    def get_field(self, field_name, args, kwargs):
        value, first = super().get_field(field_name, args, kwargs)
        if value is None or (isinstance(value, numbers.Real) and not math.isfinite(value)):
            raise StudyError(f"say: {field_name} is {value}: the tables hold no such number")
        if hasattr(value, "_repr_markdown_"):
            return value.data, first
        return (as_text(value) if isinstance(value, str) else value), first

    def format_field(self, value, format_spec):
        if not format_spec.startswith("ci"):
            return unsigned_zero(super().format_field(value, format_spec))
        of = value.__getitem__ if isinstance(value, Mapping | pd.Series) else functools.partial(getattr, value)
        ends = [of(name) for name in ("value", "low", "high")]
        if not all(map(math.isfinite, ends)):
            raise StudyError(f"say: an interval has the ends {ends}: the tables hold no such number")
        form, *unit = format_spec[2:].split(" ", 1)
        value, low, high = (unsigned_zero(format(end, form)) for end in ends)
        return " ".join([value, *unit, f"[{low}, {high}]"])


def as_text(value: str) -> str:
    """Escape ``value`` as Markdown on one line, so that it contains no active tag, link or role of the book."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", re.sub(r"[\x00-\x20\x7f-\x9f]+", " ", value))


def fill(template: str, values: Mapping[str, object]) -> str:
    """`template.format(**values)`, with an error for gaps: unknown names, None, NaN, infinities.

    Text among the values is shown as text (`as_text`); pass Markdown as IPython's ``Markdown``. A field may be nested:
    ``{rho.low:.2f}`` of an `Estimate`, ``{row[n]:,}`` of a row. ``{gap:ci+.1%}``, for an object with value, low and
    high, writes all three: "+1.2% [-0.3%, +2.7%]"; a unit follows after a blank: ``{gap:ci+.1f points}`` writes "+1.2
    points [-0.3, +2.7]".
    """
    names = {re.split(r"[.\[]", field)[0] for _, field, _, _ in string.Formatter().parse(template) if field is not None}
    if missing := sorted(names - values.keys()):
        raise StudyError(f"say: no value for {', '.join(missing)} (given: {', '.join(sorted(values)) or 'none'})")
    try:
        return _Filler().vformat(template, (), values)
    except (ValueError, AttributeError, LookupError, TypeError) as error:
        raise StudyError(f"say: {template!r} cannot be filled: {error}") from error


# ---------------------------------------------------------------- show


NAMED = {"corpus", "condition", "encoder", "given", "pool", "score", "set", "slice", "source", "subset", "title"}
HEADERS = CORPORA | {"title": "set", "std": "standard deviation"}  # in an evaluation, "title" is the test set
PLOTLY = "application/vnd.plotly.v1+json"


def show(table: pd.DataFrame, formats: Mapping[str, str] = NOTHING, *, digits: int = 3, index: bool = False) -> None:
    """Show a table; one without rows shows "(no rows)".

    Parameters
    ----------
    formats
        column -> format of its values, e.g. "{:.1%}". By default floats have `digits` decimals, whole numbers have
        separators, and missing values are empty
    index
        True shows the index, as first columns
    """
    if unknown := set(formats) - set(table.columns) - set(table.index.names):
        raise KeyError(f"show: the table has no column {sorted(unknown)}; it has {list(table.columns)}")
    if not len(table):
        display(HTML("<p>(no rows)</p>"))
        return
    if index:
        table = table.rename_axis([name or "" for name in table.index.names])
    table = table.reset_index(drop=not index)
    table.columns = table.columns.set_names([None] * table.columns.nlevels)
    table = table.map(_shown)
    for column in NAMED.intersection(table):
        table[column] = table[column].map(name_of)
    least = ["11rem" if column in SIDES else "auto" for column in table]
    text = [place for place, kind in enumerate(table.dtypes) if not pd.api.types.is_numeric_dtype(kind)]
    text = [{"selector": f".col{place}", "props": f"text-align: left; min-width: {least[place]}"} for place in text]
    # a name from the content: the same table makes the same page, and style rules apply only to their table
    name = hashlib.sha256(table.to_csv().encode()).hexdigest()[:8]
    style = Styler(table, uuid=name, cell_ids=False).hide(axis="index").set_table_styles(text)
    formats = dict.fromkeys(table.select_dtypes("float"), f"{{:,.{digits}f}}") | {**formats}
    written = {column: lambda value, how=how: unsigned_zero(how.format(value)) for column, how in formats.items()}
    style.format(written, na_rep="", precision=digits, thousands=",", escape="html")
    style.format_index(_header, escape="html", axis=1)
    display(HTML(style.to_html()))


def _shown(value: object) -> object:
    """The value of a cell: anything but a number becomes a string, because the Styler escapes only strings."""
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    return value if pd.api.types.is_scalar(value) else str(value)


def _header(name: object) -> object:
    if isinstance(name, str):
        return HEADERS.get(name, name.replace("_", " "))
    return f"{name:g}" if isinstance(name, float) else name


def show_interactive(figure: object) -> None:
    """Display a plotly figure, which responds to the pointer.

    Only its data go into the notebook: JupyterLab draws them with plotly's extension, which comes with plotly, and the
    book with one copy of plotly's script, shared by all pages. `figure.show()` would store 4 MB of script.
    """
    drawn = json.loads(figure.to_json()) | {"config": {"responsive": True, "displaylogo": False}}
    display({PLOTLY: drawn, "text/plain": "interactive figure"}, raw=True)


# ---------------------------------------------------------------- notebook


NOTICES = {"smoke": "smoke scale: proves the machinery, not the findings"}
NOTICES |= {"lab": "lab scale: for exploring planted text, not for findings"}
DRAW = "NLI_DRAW"  # set when pages are drawn from tables, for the book: nothing is measured or recorded
SEEN = "_nli_names_at_begin"
_SCALE_LIMIT = object()


def begin(notebook: str, namespace: dict, *, knobs: Mapping[str, str] = NOTHING) -> "Study":
    """Check the parameters in `namespace` (pass `globals()`) and open the notebook's study.

    Every public plain value in the namespace counts as a parameter, so a misspelt one is found. The cell can be run
    again: names that the notebook has created since are ignored.

    `knobs` are additional parameters, each for a key of the dial, as in {"THRESHOLD": "consensus.threshold"}: None
    keeps the dial's value, any other value replaces it in `study.dial`. With turned knobs the results go to a folder
    named after them; tables of other notebooks are read from the study's usual folder.

    Raises
    ------
    StudyError
        If parameters are wrong, naming all of them, or if the notebook is being run elsewhere.
    """
    known = namespace.get(SEEN)
    given = {name: value for name, value in dial.literals(namespace).items() if known is None or name in known}
    parameters = dial.check(given, knobs)
    namespace[SEEN] = frozenset(given)
    return (Lab if dial.read_scale(parameters["SCALE"]).planted.obvious else Study)(notebook, parameters, knobs)


class Study:
    """The part of one notebook in a study.

    Attributes: `params` (dict), `dial` (the scale's values), `results_name` (name of the results folder), `exports`
    (folder for lists with a corpus's text), `corpus_name`, `own_file` (True for a user's file), `train_split`,
    `test_split`, `seeds` (tuple of ints), `data_dir`.

    Parameters
    ----------
    only
        `parts.TRAIN` or `parts.TAKE` to make only parts and no record; by default the value of `parts.ONLY`
    """

    def __init__(self, notebook: str, params: dict, knobs: Mapping[str, str] = NOTHING, only: str | None = None):
        self.notebook, self.params, self.drawing = notebook, params, os.environ.get(DRAW) == "1"
        self._claims, self._missing, self._parts = {}, {}, {}  # by claim, by corpus, by name
        self._only_parts = only or os.environ.get(parts.ONLY)
        turned = {name: params[name] for name in knobs if params[name] is not None}
        scale = dial.turned(dial.read_scale(params["SCALE"]), knobs, turned)
        self.dial = dial.Dial(scale, lambda key, value: self._note("dial", key, value))
        self.standard = params["INTO"] or standing.study_name(params["SCALE"], params["CORPUS"])  # no knob is turned
        self.results_name = params["INTO"] or standing.study_name(params["SCALE"], params["CORPUS"], turned)
        self.corpus_name: str = params["CORPUS"] or scale.corpus
        self.own_file = dial.is_own_file(self.corpus_name)
        self.data_dir: str | None = params["DATA_DIR"]
        self.folder = paths.RESULTS / self.results_name
        self.exports = paths.EXPORTS / self.standard
        print(f"{notebook}: study {self.results_name}, corpus {self.corpus_name}")
        print(end=f"{NOTICES[params['SCALE']]}\n" if params["SCALE"] in NOTICES else "")
        if self.drawing:
            return
        stored = not self._only_parts  # a run that makes only parts has no record
        self._clock = time.monotonic()
        self._record = standing.opened(notebook, self.results_name, params, refuse=stored)
        for name in turned:
            self._note("turned", knobs[name], to_jsonable_python(params[name]))
        if stored:
            standing.write(self._record)
        sources.OBSERVERS[:] = [self.log_corpus]

    @property
    def train_split(self) -> str:
        return self.dial.train_split if self.corpus_name == self.dial.corpus else "train"

    @property
    def test_split(self) -> str:
        return self.dial.test_split if self.corpus_name == self.dial.corpus else "test"

    def title_of(self, corpus: str | None = None) -> str:
        """The name of a corpus (by default the study's) in prose: "SNLI", "the planted corpus", or the name of a
        file."""
        corpus = corpus or self.corpus_name
        known = {name: source.title for name, source in sources.SOURCES.items()} | {"planted": "the planted corpus"}
        return known.get(corpus, Path(corpus).name)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.params["SEEDS"] or self.dial.seeds))

    # ------------------------------------------------------------ corpora

    def corpus(self, split: str | None = None, *, name: str | None = None, limit: object = _SCALE_LIMIT) -> Corpus:
        """Load a corpus at this scale, by default the study's training split.

        `limit` defaults to the scale's: `limit` for the training split, `suite_limit` for every other one; None takes
        all rows. The corpus is noted in the record by its digest.
        """
        self._measures("corpora are read", "corpora")
        name, split = name or self.corpus_name, split or self.train_split
        if limit is _SCALE_LIMIT:
            training = name == self.corpus_name and split == self.train_split
            limit = self.dial.limit if training else self.dial.suite_limit
        form = dial.form_of(self.params) if name == self.corpus_name else {}
        return sources.load(name, split, data_dir=self.data_dir, limit=limit, **form)

    def test(self) -> Corpus:
        """Load the study's test set. Raises `StudyError` for a user's file, which has none."""
        if self.own_file:
            raise StudyError(f"{self.notebook} needs a test set of its own, and {self.corpus_name} is one file")
        return self.corpus(self.test_split)

    def three_way(self, corpus: Corpus) -> Corpus:
        """Return ``corpus`` for a comparison with three-label corpora; raise `StudyError` if it has other labels."""
        if corpus.classes != LABELS:
            said = f"{self.notebook} compares corpora with the labels {', '.join(LABELS)}, and {corpus.name} has"
            raise StudyError(f"{said} {', '.join(corpus.classes)}: choose another corpus, or leave this chapter out")
        return corpus

    def load_each(self, sets: Mapping[str, tuple[str, str]] | str, limit: int | None = None) -> dict[str, Corpus]:
        """Load the available corpora of `sets`, title -> (name, split) or the name of a suite; return them by title.

        Missing ones go, with the reason, into the table "missing", which is always written; see `absent`.
        """
        self._measures("corpora are read", "suites")
        loaded, missing = suites.load_each(sets, self.data_dir, limit)
        self._missing |= missing
        self.save(pd.DataFrame(self._missing.items(), columns=["corpus", "reason"]), "missing")
        return loaded

    def absent(self) -> list[str]:
        """Titles of the corpora that `load_each` could not load; none if the record is older than that table."""
        with contextlib.suppress(StudyError):
            return self.table("missing")["corpus"].tolist()
        return []

    def log_corpus(self, corpus: Corpus) -> None:
        """Note in the record a corpus that a cell made; loaded corpora are noted automatically."""
        self._measures("a corpus is written into the record")
        entry = {"digest": corpus.digest[:16], "rows": len(corpus), "source": corpus.source}
        entry["skipped"] = {reason: int(count) for reason, count in corpus.skipped.items()}
        title = f"{corpus.name} {corpus.split}"
        if self._record["corpora"].get(title, entry) != entry:  # another sample of the same split
            title += f", {len(corpus):,} rows, {entry['digest'][:4]}"
        self._note("corpora", title, entry)

    @property
    def wanli_task(self) -> tuple[str, str]:
        """Corpus and split for training WANLI's task model: the dial's, or the requested corpus."""
        return self.dial.wanli.task if self.corpus_name == self.dial.corpus else (self.corpus_name, self.train_split)

    @property
    def difficulty_splits(self) -> dict[str, tuple[str, str | None]]:
        """Corpora to sort by difficulty: name -> (split to sort, another split to train on).

        The dial's list, or the requested corpus. A user's file has no other split: None.
        """
        if self.corpus_name == self.dial.corpus:
            return dict(self.dial.difficulty.corpora)
        return {self.corpus_name: (self.test_split, None if self.own_file else self.train_split)}

    def difficulty_seeds(self, corpus: str) -> tuple[int, ...]:
        """Seeds of the trainings that sort a corpus by difficulty: SEEDS of them, else the dial's number."""
        return self.seeds_of(self.dial.difficulty.trainings.get(corpus, 1))

    def seeds_of(self, trainings: int | None) -> tuple[int, ...]:
        """Seeds for a part of the study with a separate number of ``trainings`` in the dial: SEEDS of them if given,
        else that number, or the scale's usual number if that is None."""
        return self.seeds if self.params["SEEDS"] or trainings is None else tuple(range(trainings))

    # ------------------------------------------------------------ runs

    def spec(self, paper: str, corpus: Corpus | None = None, seed: int = 0, /, **changes: object) -> RunSpec:
        """Make the `RunSpec` of a training by a paper's recipe at this scale.

        Parameters
        ----------
        paper
            a key of `recipes.yaml`. "difficulty" uses the first of the dial's two encoders. "generator" evaluates its
            pairs only after the last epoch, because this costs the time of an epoch. "disco", "zfilter" and "experts"
            train on ``corpus`` as a complete training set, made by a cell; "zfilter" has no patience unless ``changes``
            has it, as in the released script.
        corpus
            the training corpus; by default the study's training split
        changes
            fields of the spec that override the recipe and the dial
        """
        self._measures("a run is named", "recipes")
        self._note("recipes", paper, dial.recipes()[paper])
        name, split = (corpus.name, corpus.split) if corpus is not None else (self.corpus_name, self.train_split)
        # a user's file is identified by its path, which the corpus's name does not have
        place = {"corpus": self.corpus_name if self.own_file else name, "split": split, "limit": None}
        # the dial's values, without encoder, epochs and learning rate of the paper's section
        said, part = {}, getattr(self.dial, "debiased" if paper == "zfilter" else paper)
        if paper in ("disco", "zfilter", "experts"):
            said["subset"] = corpus.digest[:12]
        else:
            said["limit"] = self.dial.limit if paper == "wanli" else part.limit
        if paper == "difficulty":
            said["model"] = part.encoders[0]
        if paper == "generator":
            said |= {"batch_size": part.batch_size, "record": "last"}
        if paper == "zfilter":
            named = {key: value for key in ("model", "learning_rate") if (value := getattr(part, key)) is not None}
            said |= {"epochs": part.epochs, "patience": None, **named}
        if paper in ("zfilter", "experts"):
            said |= {"warmup_steps": part.warmup_steps, "capture": "train"}
        fields = {**place, "seed": seed, **said, **changes}
        if self.own_file and fields["corpus"] == self.corpus_name:  # an edited file is another corpus
            fields = {"content": standing.corpus_file(self.corpus_name, self.data_dir), **fields}
        return dial.run_spec(paper, self.dial, **fields)

    def generator_seeds(self) -> tuple[int, ...]:
        """Seeds of the trainings of each generator: SEEDS of them, else the dial's number."""
        return self.seeds_of(self.dial.generator.trainings)

    # ------------------------------------------------------------ tables

    def save(self, table: pd.DataFrame, part: str) -> pd.DataFrame:
        """Write a tidy table, completely or not at all, to `<notebook>.<part>.csv` (.parquet if long), at most 1 MB.

        Returns its first rows, for the notebook to show."""
        self._measures(f"table {part!r} is written")
        if not self._only_parts:
            self._note_table("outputs", write_table(table, self.folder / f"{self.notebook}.{part}"))
        return table.head(3)

    def parts(self, wanted: Mapping[str, parts.Part]) -> dict[str, pd.DataFrame]:
        """The tables of parts, by name: read if recorded, otherwise made and recorded (`study.parts`).

        Ask for all at once, so that several processes can share the work and `nli-study status` can count them.
        """
        self._measures("parts are made")
        self._parts |= wanted
        if any(part.chapter == self.notebook for part in wanted.values()):
            parts.declare(self._parts, self.notebook, self.results_name)
        for name, part in wanted.items() if self.results_name != self.standard else ():
            parts.take(name, part, self.standard, self.results_name)
        tables = parts.gather(wanted, self.results_name, self._only_parts)
        for name, part in wanted.items():
            for path in parts.files_in(parts.file_of(name, part, self.results_name)):
                self._note_table("inputs", path)
        return tables

    def table(self, part: str, notebook: str | None = None) -> pd.DataFrame:
        """Read a recorded table of this notebook or another. Raises `StudyError`, naming the command that makes it."""
        notebook = notebook or self.notebook
        folder = self.folder if notebook == self.notebook else paths.RESULTS / self.standard
        if (path := find_table(folder / f"{notebook}.{part}")) is None:
            said = f"there is no table {notebook}.{part} in {folder}: its chapter has not been run at this scale."
            raise StudyError(f"{said}\nMake it with: {self._command(notebook)}")
        if notebook != self.notebook:
            self._note_table("inputs", path)
        return read_table(path)

    def gather(self, part: str) -> pd.DataFrame:
        """Read the table `part` of all notebooks that recorded it, stacked, with a first column `notebook`."""
        if not (found := standing.notebooks_with(part, self.standard)):
            raise StudyError(f"no notebook has recorded {part!r} in {paths.RESULTS / self.standard}: run the study")
        self._note("gathered", part, found)  # a table that appears later makes this record stale
        tables = {name: self.table(part, name) for name in found}
        return pd.concat(tables, names=["notebook"]).reset_index("notebook").reset_index(drop=True)

    def book_file(self, file: str) -> Path:
        """The path of a file of the book, such as "claims.yaml". If it changes, this notebook's record becomes
        stale."""
        path = paths.BOOK / file
        self._note("declared", file, standing.digest_file(path))
        return path

    def export(self, table: pd.DataFrame, part: str) -> pd.DataFrame:
        """Write a table with a corpus's text, or one too large to track, as parquet to `exports`; return its head."""
        self._measures(f"table {part!r} is exported")
        path = paths.EXPORTS / self.results_name / f"{self.notebook}.{part}.parquet"
        if not self._only_parts:
            with atomic(path) as draft:
                table.to_parquet(draft, index=False)
            self._note("exports", path.name, standing.digest_file(path))
        return table.head(3)

    def exported(self, part: str, notebook: str) -> pd.DataFrame:
        """Read a table that another notebook exported. Raises `StudyError` if it is missing or not the recorded one."""
        self._measures("an exported table is read")
        path = self.exports / f"{notebook}.{part}.parquet"
        digest = standing.digest_file(path)
        if digest is None or digest != standing.read(notebook, self.standard).get("exports", {}).get(path.name):
            found = "is not there" if digest is None else "is not what its chapter recorded"
            raise StudyError(f"{path} {found}. Make it with: {self._command(notebook)} --force")
        self._note("exports", path.name, digest)
        return pd.read_parquet(path)

    def log_journal(self, journal: Journal, keys: Sequence[str], prompt: str) -> None:
        """Note in the record the used answers of a language model: the digests of journal and prompt."""
        from nli_lib.generate.pairs import digest_prompt

        self._note("journals", journal.path.name, journal.summary(keys) | {"prompt": {prompt: digest_prompt(prompt)}})

    # ------------------------------------------------------------ words and claims

    def say(self, template: str, **values: object) -> None:
        """Show Markdown prose with numbers: `study.say("{share:.1%} of {n:,}", share=.25, n=9842)`.

        A name without a value, or NaN, is an error: prose never shows a gap. Text among the values is shown as text,
        never as HTML.
        """
        display(Markdown(fill(template, values)))

    def answer(self, verdict: str, template: str, **values: object) -> None:
        """Show the chapter's answer: a verdict, one of `stats.VERDICTS`, then a sentence as in `say`.

        The book shows the verdict next to the question, in the sidebar and on the overviews. Call it once in a chapter.
        """
        if verdict not in VERDICTS:
            raise StudyError(f"the verdict {verdict!r} is none of {', '.join(VERDICTS)}")
        self.say(f"**{verdict}.** {template}", **values)

    show = staticmethod(show)

    def claim(
        self, id: str, estimate: Estimate | Mapping[str, Estimate], *, corpora: Sequence[str] = (), **more: object
    ) -> None:
        """Record a declared claim's statistic with its interval in `<notebook>.claims.csv`; the ledger judges it.

        `corpora`: names of the corpora behind the statistic, by default the study's. A user's file is recorded as "own
        file", even if it has the name of a published corpus.

        Parameters
        ----------
        estimate
            an estimate, or one for each part of a claim about several things, by the part's name
        more
            ``learnt=False`` if neither side of a comparison of accuracies is certainly above the most frequent label;
            ``freedom``, the degrees of freedom of an interval over trainings if they are not trainings - 1
        """
        names, rows = list(corpora or [self.corpus_name]), []
        if self.own_file:
            own = {self.corpus_name, Path(self.corpus_name).name.split(".")[0]}
            names = ["own file" if name in own else name for name in names]  # not evidence for a paper's claim
        for part, each in ({"": estimate} if isinstance(estimate, Estimate) else estimate).items():
            if each.low > each.high:
                raise StudyError(f"claim {id}: the interval's low end {each.low:g} lies above {each.high:g}")
            row = {"id": id, **each._asdict(), "corpora": ";".join(names), **more}
            rows.append(row | ({"part": part} if part else {}))
        self._claims[id] = rows
        self.save(pd.DataFrame([row for rows in self._claims.values() for row in rows]), "claims")

    def claimed(self, id: str, *, times: float = 1) -> Estimate | None:
        """The recorded estimate of a declared claim, multiplied by ``times``: 100 turns shares into points. None if
        nothing was recorded."""
        path = find_table(self.folder / f"{self.notebook}.claims")
        rows = pd.DataFrame() if path is None else read_table(path).set_index("id")
        if id not in rows.index:
            return None
        value, low, high, *rest = rows.loc[id, list(Estimate._fields)]
        return Estimate(times * value, times * low, times * high, *rest)

    # ------------------------------------------------------------ the record

    def _command(self, notebook: str) -> str:
        """The shell command that runs another notebook on the same corpus, read in the same way."""
        given = {"data_dir": self.data_dir, **dial.as_options(dial.form_of(self.params))}
        return standing.command(notebook, self.params["SCALE"], self.params["CORPUS"], **given)

    def _measures(self, what: str, use: str = "") -> None:
        """Refuse ``what`` while the book is drawn, and note the part of the library that it uses."""
        if self.drawing:
            raise StudyError(f"{what} while the book is drawn from the tables: tag the cell `measure`")
        if use:
            standing.rest_on(self._record, use)

    def _note(self, kind: str, name: str, value: object) -> None:
        """Note in the record that something was read or written, by kind (`standing.KINDS`) and name."""
        if not self.drawing:
            self._record[kind][name] = value

    def _note_table(self, kind: str, path: Path) -> None:
        self._note(kind, path.relative_to(paths.RESULTS).as_posix(), standing.digest_file(path))

    def finish(self) -> None:
        """End the notebook: complete the record and print a summary.

        The runner has the last word on success: it counts the cells.
        """
        if not self.drawing:
            record, seconds = self._record, round(time.monotonic() - self._clock, 1)
            reason, used = standing.unanswered(record), self.params["SEEDS"] or "seeds" in record["dial"]
            ended = standing.INCOMPLETE if reason else standing.FINISHED
            record |= {"state": standing.CLOSING if record["token"] else ended, "reason": reason, "ended": now()}
            record |= {"seconds": seconds, "device": device(), "seeds": list(self.seeds if used else ())}
            standing.write(record)
        print(standing.recorded(standing.read(self.notebook, self.results_name)))


class Lab(Study):
    """A notebook's part at a scale of planted text alone, in which what is planted is easy to find."""

    def __init__(self, notebook: str, params: dict, knobs: Mapping[str, str] = NOTHING):
        dial.refuse_absent(notebook, params["SCALE"])
        super().__init__(notebook, params, knobs)
        sources.OBSERVERS.clear()  # none of what is loaded is used as it is

    def corpus(self, split: str | None = None, **more: object) -> Corpus:
        return self._obvious(super().corpus(split, **more))

    def load_each(self, sets: Mapping[str, tuple[str, str]] | str, limit: int | None = None) -> dict[str, Corpus]:
        return {title: self._obvious(each) for title, each in super().load_each(sets, limit).items()}

    def _obvious(self, corpus: Corpus) -> Corpus:
        if corpus.name != "planted":
            raise StudyError(f"this scale has planted text alone: read {corpus.name} at smoke or small")
        made = make_obvious(corpus.split, len(corpus), **self.dial.planted.obvious)
        self.log_corpus(made)
        return made
