"""What a notebook uses to take part in the study: checked parameters, tidy tables, numbers in prose, an honest record.

    # cell 1, tagged `parameters`
    SCALE, CORPUS, SEEDS, DATA_DIR, SHOW_ONLY = "smoke", None, None, None, False      # one literal a line

    # cell 2
    from nli_lib.study import begin
    study = begin("10_data_map", globals())

    # the measuring half fills tables; with SHOW_ONLY it is skipped
    if not SHOW_ONLY:
        study.save(scores, "scores")
        study.claim("wanli-1", value, low, high, n=len(scores), seeds=len(study.seeds))

    # the showing half draws everything from the tables
    scores = study.table("scores")
    study.say("{share:.1%} of the {n:,} pairs are ambiguous.", share=..., n=len(scores))
    study.finish()

Importing this module takes well under a second and needs no torch; pandas and the corpora are imported when first used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nli_lib import paths
from nli_lib.spec import RunSpec
from nli_lib.store import device, environment, now
from nli_lib.study import manifest as records
from nli_lib.study.dial import SCALES, Scale
from nli_lib.study.parameters import SUFFIXES, ParameterError, Rule, check, literals
from nli_lib.study.prose import fill
from nli_lib.study.recipes import CHARACTERISE, CLEAN

if TYPE_CHECKING:
    import pandas as pd

    from nli_lib.corpora.corpus import Corpus

__all__ = ["ParameterError", "Study", "StudyError", "begin"]

SMOKE_LABEL = "smoke scale: proves the machinery, not the findings"
TOKEN = "NLI_RUN_TOKEN"  # set by the runner: which run this kernel belongs to
RUN_PID = "NLI_RUN_PID"  # the runner's process, which outlives the kernel
NOTEBOOK_FILE = "NLI_NOTEBOOK"
SEEN = "_nli_names_at_begin"
_SCALE_LIMIT = object()


class StudyError(RuntimeError):
    """A notebook asked for something that is not there; the message says what to run. Shown without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"StudyError: {self}"]


def begin(notebook: str, namespace: MutableMapping[str, object], *, extra: Mapping[str, Rule] | None = None) -> Study:
    """Check the parameters in `namespace` (pass `globals()`) and open the notebook's study.

    `extra` declares the notebook's own parameters, each by a range, its allowed values or a type, as in
    {"K": (1, 100), "MODE": ["eval", "train"], "LONG": bool}. Every public plain value in the namespace counts as
    a parameter, so a misspelt one is found. Run the cell again as often as you like: names that the notebook itself
    made since are left alone.

    Raises `ParameterError` naming every wrong parameter, and `StudyError` when the notebook is being run elsewhere.
    """
    known = namespace.get(SEEN)
    given = {name: value for name, value in literals(namespace).items() if known is None or name in known}
    parameters = check(given, extra)
    namespace[SEEN] = frozenset(given)
    study = Study(notebook, parameters)
    study._open()
    return study


class Study:
    """One notebook's part in a study.

    Attributes: `params` (dict), `scale` (the `Scale` row of the dial), `study` (name of the results folder),
    `corpus_name`, `train_split`, `test_split`, `characterised`, `seeds` (tuple of ints), `show_only`, `data_dir`.
    """

    def __init__(self, notebook: str, params: dict[str, object]):
        self.notebook = notebook
        self.params = params
        self.scale: Scale = SCALES[params["SCALE"]]
        self.study = records.study_name(params["SCALE"], params["CORPUS"])
        self.corpus_name: str = params["CORPUS"] or self.scale.corpus
        own = self.corpus_name == self.scale.corpus
        self.train_split = self.scale.train_split if own else "train"
        self.test_split = self.scale.test_split if own else "test"
        self.seeds = tuple(range(params["SEEDS"] or self.scale.seeds))
        self.show_only: bool = params["SHOW_ONLY"]
        self.data_dir: str | None = params["DATA_DIR"]
        self.folder = paths.RESULTS / self.study
        self._record: dict = {}
        self._claims: dict[str, dict] = {}
        self._clock = time.monotonic()

    # ------------------------------------------------------------ corpora and runs

    def corpus(self, split: str | None = None, *, name: str | None = None, limit: object = _SCALE_LIMIT) -> Corpus:
        """A corpus at this scale: the study's own training split by default.

        `limit` defaults to the scale's: `scale.limit` for the training split, `scale.suite_limit` for every other one;
        None takes all rows. What was read is written into the record by its digest.
        """
        from nli_lib.corpora.load import sources

        name, split = name or self.corpus_name, split or self.train_split
        if limit is _SCALE_LIMIT:
            training = name == self.corpus_name and split == self.train_split
            limit = self.scale.limit if training else self.scale.suite_limit
        corpus = sources.load(name, split, data_dir=self.data_dir, limit=limit)
        self.used(corpus)
        return corpus

    def test(self) -> Corpus:
        """The study's test set. A user's file has none, so what needs one raises `StudyError`."""
        if self.corpus_name.endswith(SUFFIXES):
            raise StudyError(f"{self.notebook} needs a test set of its own, and {self.corpus_name} is one file")
        return self.corpus(self.test_split)

    def used(self, corpus: Corpus) -> None:
        """Write a corpus that was loaded by other means (a suite's member) into the record."""
        if self._record:
            entry = {"digest": corpus.digest[:16], "rows": len(corpus), "source": corpus.source}
            self._record["corpora"][f"{corpus.name} {corpus.split}"] = entry

    def spec(self, view: str = "pair", seed: int = 0, **changes: object) -> RunSpec:
        """The `RunSpec` of a training run on the study's corpus at this scale; `changes` replace any of its fields."""
        fields = {
            "corpus": self.corpus_name,
            "split": self.train_split,
            "limit": self.scale.limit,
            "model": self.scale.model,
            "epochs": self.scale.epochs,
            "learning_rate": self.scale.learning_rate,
        }
        return RunSpec(**{**fields, "view": view, "seed": seed, **changes})

    @property
    def characterised(self) -> dict[str, tuple[str, str | None]]:
        """Corpora to sort by difficulty (the difficulty paper): name -> (the split that is sorted, another split to train on).

        The scale's own list, or the one corpus that was asked for. A user's file has no other split: None.
        """
        if self.corpus_name == self.scale.corpus:
            return dict(self.scale.characterised)
        other = None if self.corpus_name.endswith(SUFFIXES) else self.train_split
        return {self.corpus_name: (self.test_split, other)}

    def characterising(self, corpus: Corpus, view: str = "pair", seed: int = 0, **changes: object) -> RunSpec:
        """The `RunSpec` that records `corpus` as the difficulty paper does: logits of an evaluation pass, five epochs, its recipe (`CHARACTERISE`)."""
        limit = self.scale.characterised_limit
        return self.spec(view, seed, **{**self._place(corpus), "limit": limit, **CHARACTERISE, **changes})

    def cleaning(self, corpus: Corpus, seed: int = 0, /, **changes: object) -> RunSpec:
        """The `RunSpec` that trains on `corpus` as the consensus cleaning paper does: three epochs, its recipe (`CLEAN`)."""
        limit = self.scale.cleaned_limit
        recipe = {**self._place(corpus), "limit": limit, **CLEAN, **self.scale.cleaner}
        return self.spec("pair", seed, **{**recipe, **changes})

    def _place(self, corpus: Corpus) -> dict[str, str]:
        """Corpus and split as a spec names them: a user's file by its path, which the corpus's own name has lost."""
        name = self.corpus_name if self.corpus_name.endswith(SUFFIXES) else corpus.name
        return {"corpus": name, "split": corpus.split}

    # ------------------------------------------------------------ tables

    def save(self, table: pd.DataFrame, part: str) -> Path:
        """Write one tidy table, whole or not at all, to `<notebook>.<part>.csv` (.parquet when long); at most 1 MB.

        Raises `StudyError` in the showing half: tables are filled under `if not SHOW_ONLY`.
        """
        from nli_lib.study.tables import write_table

        if self.show_only:
            raise StudyError(f"table {part!r} is written while SHOW_ONLY is set: put it under `if not SHOW_ONLY:`")
        path = write_table(table, self.folder / f"{self.notebook}.{part}")
        self._note("outputs", path)
        return path

    def table(self, part: str, *, notebook: str | None = None) -> pd.DataFrame:
        """A recorded table of this notebook, or of another. Raises `StudyError` naming the command that makes it."""
        from nli_lib.study.tables import find_table, read_table

        notebook = notebook or self.notebook
        path = find_table(self.folder / f"{notebook}.{part}")
        if path is None:
            raise StudyError(
                f"there is no table {notebook}.{part} in {self.folder}: the measuring half was not run at this scale.\n"
                f"Make it with: {self.command(notebook)}"
            )
        if notebook != self.notebook:
            self._note("inputs", path)
        return read_table(path)

    def gather(self, part: str) -> pd.DataFrame:
        """One table of every notebook that recorded `part`, stacked, with a first column `notebook`."""
        import pandas as pd

        found = records.notebooks_with(part, self.study)
        tables = [self.table(part, notebook=name).assign(notebook=name) for name in found]
        if not tables:
            raise StudyError(f"no notebook has recorded {part!r} in {self.folder}. Run the study: {self.command('')}")
        if self._record:  # a table that appears later makes what was gathered stale
            self._record["gathered"][part] = found
        stacked = pd.concat(tables, ignore_index=True)
        return stacked[["notebook", *(column for column in stacked if column != "notebook")]]

    def declared(self, file: str) -> Path:
        """The path of a file of the book, such as "claims.yaml". When it changes, this notebook's record is stale."""
        path = paths.BOOK / file
        if self._record:
            self._record["declared"][file] = records.digest_file(path)
        return path

    def command(self, notebook: str) -> str:
        """The shell command that runs a notebook of this study."""
        words = ["nli-study run", notebook, f"--scale {self.params['SCALE']}"]
        if self.params["CORPUS"]:
            words.append(f"--corpus {self.params['CORPUS']}")
        return " ".join(word for word in words if word)

    # ------------------------------------------------------------ words and claims

    def say(self, template: str, **values: object) -> None:
        """Show Markdown prose with numbers in it: `study.say("{share:.1%} of {n:,}", share=.25, n=9842)`.

        A name without a value, and a number that is not one (NaN), are errors: prose never shows a gap. Text among the
        values is shown as text, never as HTML.
        """
        from IPython.display import Markdown, display

        display(Markdown(fill(template, values)))

    def claim(
        self,
        id: str,
        value: float,
        low: float | None = None,
        high: float | None = None,
        *,
        n: int,
        seeds: int = 1,
        corpora: Sequence[str] | None = None,
    ) -> None:
        """Record a declared claim's statistic with its interval in `<notebook>.claims.csv`; the ledger judges it.

        n: examples it rests on; `corpora`: names of the corpora it was computed from, the study's own by default.
        """
        import pandas as pd

        if low is not None and high is not None and low > high:
            raise StudyError(f"claim {id}: the interval runs from {low} down to {high}")
        names = ";".join(corpora or (Path(self.corpus_name).name.split(".")[0],))
        row = {"id": id, "value": value, "low": low, "high": high, "n": n, "seeds": seeds, "corpora": names}
        self._claims[id] = row
        self.save(pd.DataFrame(self._claims.values()), "claims")

    # ------------------------------------------------------------ the record

    def _open(self) -> None:
        seeds = ", ".join(map(str, self.seeds))
        print(f"{self.notebook}: study {self.study}, corpus {self.corpus_name}, seeds {seeds}")
        if self.params["SCALE"] == "smoke":
            print(SMOKE_LABEL)
        if self.show_only:
            return
        token = os.environ.get(TOKEN)
        old = records.read(self.notebook, self.study)
        busy = old.get("state") == records.RUNNING and old.get("pid") != os.getpid() and records.alive(old.get("pid"))
        if busy and not (token and old.get("token") == token):
            raise StudyError(
                f"process {old['pid']} has been running this notebook since {old['started']}. Wait for it, stop it, or "
                f"delete {records.record_path(self.notebook, self.study)}"
            )
        source = Path(os.environ.get(NOTEBOOK_FILE) or paths.NOTEBOOKS / f"{self.notebook}.ipynb")
        self._record = {
            "notebook": self.notebook,
            "study": self.study,
            "state": records.RUNNING,
            "token": token,
            "pid": int(os.environ.get(RUN_PID) or os.getpid()),
            "started": now(),
            # where the corpora lie on this machine is nobody else's business
            "parameters": {name: value for name, value in self.params.items() if name not in records.NEUTRAL},
            "seeds": list(self.seeds),
            "cells": records.digest_cells(source) if source.is_file() else None,
            "corpus_file": records.corpus_file(self.params["CORPUS"]),
            "environment": environment(),
            "corpora": {},
            "inputs": {},
            "gathered": {},
            "declared": {},
            "outputs": {},
        }
        records.write(self._record)

    def _note(self, kind: str, path: Path) -> None:
        if self._record:
            self._record[kind][path.relative_to(paths.RESULTS).as_posix()] = records.digest_file(path)

    def finish(self) -> None:
        """The last line of a notebook: write what was done into the record and say it."""
        if self._record:
            self._record.update(
                # under the runner the last word is the runner's, once it has seen every cell counted
                state=records.CLOSING if self._record["token"] else records.FINISHED,
                ended=now(),
                seconds=round(time.monotonic() - self._clock, 1),
                device=device(),
                modules=records.measuring_modules(),
            )
            records.write(self._record)
        done = self._record or records.read(self.notebook, self.study)
        if "ended" in done:
            print(
                f"Recorded {done['ended'][:10]} in {done['seconds']:,.0f} s on {done['device']}\n"
                f"seeds {', '.join(map(str, done['seeds']))}; revision {done['environment'].get('revision')}"
            )
