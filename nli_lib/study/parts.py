"""Parts: a table from many trainings is made of small tracked files, one for each training, which outlive the runs::

    tables = study.parts({"longer, training 0": Part("23_debiased_generator", decides, make), ...})

Recorded parts are read; missing ones are made, in order, and recorded at once. A part is identified by content
(`decided`), never by code: code that chooses other rows gives another digest, and a refactoring loses nothing::

    data/results/<study>/<chapter>.parts/<name>-<digest of the deciding content>.parquet
    data/results/<study>/<chapter>.parts/wanted.json    name -> file of all parts in the last request

A table over 1 MB is a folder of that name with several files. `table.attrs` has the deciding content, the cost and the
device. Processes and machines that share the folder, or merge their files, can share the work.

Trainings of a chapter as parts: the answers of each model are recorded, so that no model has to be kept::

    trainings = {("Z-Aug", seed): Training(study.spec("zfilter", each, seed), each, tests), ...}
    tables = answers(study, trainings, accuracies)      # key -> the table that `accuracies(run, training)` returns
    bits = {key: right_in(table) for key, table in answers(study, trainings, right).items()}

Trainings with the same rows, recipe and test sets are one part, regardless of name. A question is a function of a cell
or of this module; its name is part of the deciding content.

Generators as parts, with the recorded logits of each training and the generator's samples::

    generators = {seed: plain(study, corpus, seed) for seed in study.generator_seeds()}
    found = written(study, generators)  # missing ones are trained and sampled, with torch
    found[0].logits, found[0].log, found[0].samples

Samples are written to files as they are drawn, then parsed as pairs and counted::

    samples = draw(run, corpus, 20_000)          # one row per draw, with the reason if it is no pair
    as_corpus(samples[samples["reason"] == ""], corpus.classes)

Draws are numbered, and each file in the run's folder has some of them. After a kill, the same call continues, and
machines that share the folder, or merge their files, can share the work.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from scipy.special import softmax

from nli_lib import paths
from nli_lib.corpora.corpus import SIDES, Corpus
from nli_lib.errors import StudyError
from nli_lib.learn.text import debias_name, generate_name, one_line, parse
from nli_lib.store import RunFolder, RunSpec, StoreError, alone, atomic, device, now, reading, revision, write_json
from nli_lib.tables import MOST_BYTES

if TYPE_CHECKING:
    from nli_lib.learn.fit import Classify, Run
    from nli_lib.learn.generator import Generate
    from nli_lib.measure.giveaways import Flagged
    from nli_lib.study.notebook import Study


ONLY = "NLI_PARTS"  # set for runs that make only parts: to one of
TRAIN, TAKE = "train", "take"  # train missing parts, or only take them from finished runs
CURE = "delete it, and it is made again"
NAMES_ROWS = {"corpus", "content", "split", "limit", "subset", "validation"}  # the digest says more
WANTED = "wanted.json"


class MissingPartsError(StudyError):
    """Parts are missing in a run that makes only parts; the message says how many."""


class Part(NamedTuple):
    """A part of a chapter's tables.

    Attributes
    ----------
    decides
        the deciding content, as JSON; make: computes the table. The table's attrs replace the measured seconds and
        device
    ready
        True if the underlying run is finished, so that making the part trains nothing
    lock
        parts with the same lock are made by one process at a time; by default every part has its own
    """

    chapter: str
    decides: Mapping
    make: Callable[[], pd.DataFrame]
    ready: Callable[[], bool] = lambda: False
    lock: str = ""


def decided(spec: RunSpec, corpus: Corpus, start: Mapping | None = None, **more: object) -> dict:
    """The content that decides a training: its recipe, its rows in order, their classes, and `more`, such as the digest
    of the test data. `start`: the content that decides the run from which it starts."""
    recipe = {name: value for name, value in spec.model_dump(exclude_defaults=True).items() if name not in NAMES_ROWS}
    recipe |= {"model": start} if start else {}
    return {"recipe": recipe, "rows": corpus.digest, "classes": list(corpus.classes), **more}


def key_of(part: Part) -> str:
    """A short digest of the content that decides the part."""
    canonical = json.dumps(part.decides, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:8]


def file_of(name: str, part: Part, study: str) -> Path:
    """Path of the part called `name`, existing or not; a part with the same deciding content may have another name."""
    folder, key = paths.RESULTS / study / f"{part.chapter}.parts", key_of(part)
    path = folder / f"{_readable(name)}-{key}.parquet"
    return path if path.exists() else next(folder.glob(f"*-{key}.parquet"), path)


def _readable(name: str) -> str:
    return re.sub(r"[^\w.=-]+", "-", name)[:80]


def gather(wanted: Mapping[str, Part], study: str, only: str | None = None) -> dict[str, pd.DataFrame]:
    """The tables of parts, by name: read if recorded, otherwise made and recorded.

    Parts in progress in another process are left to it, and awaited after everything else. With `only`, `TRAIN` or
    `TAKE`, nothing is awaited, and `MissingPartsError` is raised if parts are missing at the end. Raises `StoreError`
    for a damaged part or a full disk.
    """
    files = {name: file_of(name, part, study) for name, part in wanted.items()}
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        for other in path.parent.glob(f"{path.stem[:-8]}{'[0-9a-f]' * 8}.parquet"):
            if other not in files.values():
                print(f"{other} rests on something else than is asked for now: it is left aside and not used")

    def make(name: str, path: Path, *, wait: bool) -> None:
        lock = FileLock(path.with_name(f".{_readable(wanted[name].lock or path.stem)}.lock"))
        with contextlib.suppress(Timeout), lock.acquire(blocking=wait):
            if not path.exists():
                _make(name, wanted[name], path)

    for wait in (False,) if only else (False, True):
        todo = {name: path for name, path in files.items() if not path.exists()}
        todo = {name: path for name, path in todo.items() if only != TAKE or wanted[name].ready()}
        if wait and todo:
            print(f"waiting for parts that other processes make: {', '.join(todo)}", flush=True)
        if todo:
            from nli_lib.learn.stacked import each

            each([functools.partial(make, name, path, wait=wait) for name, path in todo.items()])
    missing = [name for name, path in files.items() if not path.exists()]
    if missing:
        raise MissingPartsError(f"{len(missing)} of {len(wanted)} parts are missing, {missing[0]} the first")
    return {name: read(path, wanted[name].decides) for name, path in files.items()}


def _make(name: str, part: Part, path: Path) -> None:
    began = time.monotonic()
    table = part.make()
    measured = {"seconds": round(time.monotonic() - began, 1), "device": device(), "revision": revision()}
    pieces = _encoded(table, {"decides": part.decides, "made": now(), **measured, **table.attrs})
    with atomic(path) as draft:
        if len(pieces) == 1:
            draft.write_bytes(pieces[0])
        else:
            draft.mkdir()
            for number, piece in enumerate(pieces):
                (draft / f"{number:03d}-of-{len(pieces)}.parquet").write_bytes(piece)
    print(f"{name}: recorded in {path.parent.name}", flush=True)


def _encoded(table: pd.DataFrame, about: Mapping) -> list[bytes]:
    """The table as parquet, halved until each file is at most 1 MB."""
    table.attrs = dict(about)
    settings = {"compression": "zstd", "compression_level": 19, "use_dictionary": False, "data_page_size": 2**25}
    settings["write_statistics"] = False  # for a table of bits they are longer than the table
    data = table.to_parquet(index=False, write_page_checksum=True, **settings)
    if len(data) <= MOST_BYTES or len(table) < 2:
        return [data]
    half = len(table) // 2
    return [*_encoded(table[:half], about), *_encoded(table[half:], about)]


def take(name: str, part: Part, source: str, target: str) -> None:
    """Copy a part into the folder of a study if it is missing there and another study's folder has it."""
    there, here = file_of(name, part, source), file_of(name, part, target)
    if there.exists() and not here.exists():
        with atomic(here) as draft:
            (shutil.copytree if there.is_dir() else shutil.copyfile)(there, draft)


def files_in(path: Path) -> list[Path]:
    """The files of a part: itself, or those in its folder, in order."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def read(path: Path, decides: Mapping) -> pd.DataFrame:
    """Read a recorded part. Raises `StoreError`, naming the file, if it is damaged or does not match its name."""
    files = files_in(path)
    with reading(path, CURE):
        tables = [pd.read_parquet(file, page_checksum_verification=True) for file in files]
        whole = not path.is_dir() or files[-1].name == f"{len(files) - 1:03d}-of-{len(files)}.parquet"
        if not whole or any(table.attrs["decides"] != json.loads(json.dumps(decides)) for table in tables):
            raise StoreError(f"{path} is not what its name says: {CURE}")
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


# ---------------------------------------------------------------- progress


def declare(wanted: Mapping[str, Part], notebook: str, study: str) -> None:
    """Write the names and files of all parts that a chapter asks for, for `progress`."""
    path = paths.RESULTS / study / f"{notebook}.parts" / WANTED
    write_json(path, {name: os.path.relpath(file_of(name, each, study), path.parent) for name, each in wanted.items()})


def timed(notebook: str, study: str) -> tuple[pd.DataFrame, list[str]]:
    """A chapter's recorded parts (columns kind, here, device, seconds, file), and the kinds of the missing ones.

    A kind is a name without numbers: trainings and settings that differ in numbers cost about the same. here: made on
    this machine."""
    path = paths.RESULTS / study / f"{notebook}.parts" / WANTED
    rows, missing, wanted = [], [], {}
    if path.is_file():
        with reading(path, "delete it, and run the chapter again"):
            wanted = {name: path.parent / file for name, file in json.loads(path.read_text(encoding="utf-8")).items()}
    for name, file in wanted.items():
        kind = re.sub(r"\d[\d.]*", "", name)
        if not file.exists():
            missing.append(kind)
            continue
        with reading(file, CURE):
            about = json.loads(pq.read_schema(files_in(file)[0]).metadata[b"PANDAS_ATTRS"])
            rows.append((kind, about["device"] == device(), about["device"], about["seconds"], file))
    return pd.DataFrame(rows, columns=["kind", "here", "device", "seconds", "file"]), missing


def progress(notebook: str, study: str) -> str:
    """A text with the number of a chapter's existing parts and the cost of the others, by the seconds of parts of the
    same kind, on this machine if it has made one; "" for a chapter without parts."""
    kinds, missing = timed(notebook, study)
    said = f"{len(kinds)} of {len(kinds) + len(missing)} parts are there"
    if not missing:
        return said if len(kinds) else ""
    cost = kinds.dropna().groupby(["kind", "here", "device"], sort=False)["seconds"].agg(["size", "mean"]).reset_index()
    cost = cost.sort_values(["here", "size"], kind="stable").drop_duplicates("kind", keep="last").set_index("kind")
    known = cost.loc[[kind for kind in missing if kind in cost.index]]
    if known.empty:
        return f"{said}; what the others cost is not known yet"
    unknown = len(missing) - len(known)
    besides = f", besides {unknown} of a kind that was not timed yet" if unknown else ""
    hours, where = known["mean"].sum() / 3600, ", ".join(sorted(set(known["device"])))
    return f"{said}; the others cost some {hours:.1f} h, as on {where}{besides}"


# ---------------------------------------------------------------- trainings


Key = tuple[str, int]  # name of a training, and its number


class Training(NamedTuple):
    """A training, whether done or not.

    Attributes
    ----------
    tested
        title -> Corpus for the question
    objective
        the objective that the spec names; None: `learn.fit.Classify`
    validation
        examples for early stopping
    """

    spec: RunSpec
    corpus: Corpus
    tested: Mapping[str, Corpus] = {}
    objective: Classify | None = None
    validation: Corpus | None = None

    def run(self) -> Run:
        """The run, trained if it is not in the store."""
        from nli_lib.learn.fit import fit

        return fit(self.spec, self.corpus, objective=self.objective, validation=self.validation)

    def decides(self, asked: str) -> dict:
        """The content that decides the answer to a question."""
        more = {"validation": self.validation.digest} if self.validation is not None else {}
        tested = {title: each.digest for title, each in self.tested.items()}
        return decided(self.spec, self.corpus, asked=asked, tested=tested, **more)


class Trained(NamedTuple):
    """A training of another chapter, given by its recorded settings (JSON of `RunSpec`); it is never done here."""

    settings: str
    tested: Mapping[str, Corpus]

    @property
    def spec(self) -> RunSpec:
        return RunSpec.model_validate_json(self.settings, strict=False)

    def run(self) -> Run:
        from nli_lib.learn.predict import stored

        return stored(self.settings)

    def decides(self, asked: str) -> dict:
        """The content that decides the answer to a question; the settings include the rows, as `subset`."""
        tested = {title: each.digest for title, each in self.tested.items()}
        return {"recipe": json.loads(self.settings), "asked": asked, "tested": tested}


class CrossScored(NamedTuple):
    """A corpus scored by models that were not trained on the pair, whether done or not; fields as in
    `learn.predict.cross_score`.

    Attributes
    ----------
    texts, of
        other pairs to score instead, each by the model that was not trained on pair number `of` (M,)
    """

    spec: RunSpec
    corpus: Corpus
    fold: NDArray[np.int64]
    reuse_model_for: int = 1
    texts: Corpus | None = None
    of: NDArray[np.int64] | None = None

    @property
    def decides(self) -> dict:
        """The content that decides the scores."""
        more = {"fold": _digest(self.fold), "reuse_model_for": self.reuse_model_for}
        if self.texts is not None:
            more |= {"texts": self.texts.digest, "of": _digest(self.of)}
        return decided(self.spec, self.corpus, asked="cross scores", **more)

    def specs(self) -> list[RunSpec]:
        """The specs of the folds' runs."""
        from nli_lib.learn.predict import fold_specs

        size, count = self.reuse_model_for, int(self.fold.max()) + 1
        chains = [range(start, min(start + size, count)) for start in range(0, count, size)]
        return [spec for chain in chains for spec in fold_specs(self.spec, self.fold, chain)]

    def finished(self) -> bool:
        from nli_lib.learn.predict import finished

        return all(map(finished, self.specs()))

    def scores(self) -> pd.DataFrame:
        from nli_lib.learn.predict import cross_predict, cross_score

        found = cross_score(self.spec, self.corpus, self.fold, reuse_model_for=self.reuse_model_for)
        if self.texts is not None:
            found = cross_predict(self.spec, self.fold, self.texts, self.of)
        abouts = [RunFolder(spec.folder).read_json("about.json") for spec in self.specs()]
        table = pd.DataFrame(found, columns=self.corpus.classes)
        table.attrs = {"seconds": sum(about["seconds"] for about in abouts), "device": abouts[0]["device"]}
        return table


def cross_scores(study: Study, wanted: Mapping[Key, CrossScored]) -> dict[Key, NDArray[np.float32]]:
    """The logits (N, C) of each, recorded or computed now; one part for all folds, shared by all chapters."""
    names = {(title, seed): f"{title}, cross-scored, training {seed}" for title, seed in wanted}
    parts = {names[at]: Part("31_cross_scoring", one.decides, one.scores, one.finished) for at, one in wanted.items()}
    tables = study.parts(parts)
    return {key: tables[name].to_numpy() for key, name in names.items()}


def _digest(numbers: NDArray[np.int64]) -> str:
    return hashlib.sha256(np.asarray(numbers, np.int64).tobytes()).hexdigest()[:12]


def answers(
    study: Study, trainings: Mapping[Key, Training | Trained], question: Callable, *, chapter: str | None = None
) -> dict[Key, pd.DataFrame]:
    """The answers of each training's model: recorded or computed now, with the model trained if it is not in the store.

    The table's attrs have the seconds of the training and of the question, and the device. Raises `StoreError` for a
    training of another chapter that is neither recorded nor in the store.

    Parameters
    ----------
    chapter
        chapter with the folder of the parts, by default the study's
    """
    wanted, names, first = {}, {}, {}
    for (title, seed), training in trainings.items():
        part = _part(chapter or study.notebook, training, question)
        names[title, seed] = first.setdefault(key_of(part), f"{title}, training {seed}")
        wanted.setdefault(names[title, seed], part)
    tables = study.parts(wanted)
    return {key: tables[name] for key, name in names.items()}


def _part(chapter: str, training: Training | Trained, question: Callable) -> Part:
    def make() -> pd.DataFrame:
        run = training.run()
        about, began = run.store.read_json("about.json"), time.monotonic()
        table = question(run, training)
        table.attrs = {name: about[name] for name in ("seconds", "device", "revision")}
        table.attrs["seconds"] = round(about["seconds"] + time.monotonic() - began, 1)
        return table

    return Part(chapter, training.decides(question.__name__), make, lambda: there(training), training.spec.id)


def there(training: Training | Trained | Generator) -> bool:
    """True if the run is in the store and trained to its end."""
    from nli_lib.learn.predict import finished

    return finished(training.spec)


# ---------------------------------------------------------------- questions


def accuracies(run: Run, training: Training) -> pd.DataFrame:
    """Accuracy on each test set and by each rule: `evaluate.suite_table`."""
    from nli_lib.evaluate import suite_table

    said = _logits(run, training)
    return suite_table(said, training.tested, classes=training.corpus.classes, seed=training.spec.seed)


def right(run: Run, training: Training) -> pd.DataFrame:
    """The correct pairs of each test set by the rule argmax: columns title, n and right, one bit per pair."""
    from nli_lib.evaluate import correct_predictions

    said, tests = _logits(run, training), training.tested.items()
    bits = {title: correct_predictions(said[title], test.labels, test.classes) for title, test in tests}
    rows = [(title, len(each), packed(each)) for title, each in bits.items()]
    return pd.DataFrame(rows, columns=["title", "n", "right"])


def guesses(run: Run, training: Training) -> pd.DataFrame:
    """The probability of each class for each pair of the training's one tested corpus, a column for each class."""
    (said,) = _logits(run, training).values()
    return pd.DataFrame(softmax(said, axis=1).astype("float32"), columns=training.corpus.classes)


def logits(run: Run, training: Training | Trained) -> pd.DataFrame:
    """The logits of each pair of each tested corpus: columns title and 0 to C - 1 (`logits_in`)."""
    tables = [pd.DataFrame(said).assign(title=title) for title, said in _logits(run, training).items()]
    return pd.concat(tables, ignore_index=True).rename(columns=str)


def _logits(run: Run, training: Training | Trained) -> dict[str, NDArray[np.float32]]:
    from nli_lib.learn.predict import predict

    return {title: predict(run, test) for title, test in training.tested.items()}


def dynamics(run: Run, training: Training) -> pd.DataFrame:
    """The logits of every epoch, a row for each epoch and pair, a column for each class: `epochs_in` restores (E, N,
    C)."""
    return pd.DataFrame(np.concatenate(run.logits), columns=training.corpus.classes)


def right_in(table: pd.DataFrame) -> dict[str, NDArray[np.bool_]]:
    """Title of a test set -> (N,) bool, from the result of `right`."""
    return {row.title: unpacked(row.right, row.n) for row in table.itertuples()}


def logits_in(table: pd.DataFrame) -> dict[str, NDArray[np.float32]]:
    """Title of a corpus -> (N, C), from the result of `logits`."""
    return {title: part.drop(columns="title").to_numpy() for title, part in table.groupby("title", sort=False)}


def epochs_in(table: pd.DataFrame, pairs: int) -> NDArray[np.float32]:
    """Logits (E, N, C), from the result of `dynamics` for N pairs."""
    return table.to_numpy().reshape(-1, pairs, table.shape[1])


def packed(bits: NDArray[np.bool_]) -> bytes:
    return np.packbits(bits).tobytes()


def unpacked(bits: bytes, count: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(bool)


# ---------------------------------------------------------------- samples of generators


def draw(run: Run, corpus: Corpus, draws: int, *, at_once: int = 256) -> pd.DataFrame:
    """Draw `draws` samples from a finished generator that was trained on `corpus`; columns as `read_samples`, and seed.

    Parameters
    ----------
    at_once
        sequences sampled together; the last digits of their probabilities depend on it

    Raises
    ------
    StoreError
        If the run is unfinished or damaged.
    """
    from nli_lib.learn.encode import frame
    from nli_lib.learn.generator import load, sample
    from nli_lib.learn.model import load_tokenizer

    if not run.store.done.all():
        raise StoreError(f"{run.folder}: the run is not finished; call fit again to end it")
    tokenizer, tables = load_tokenizer(str(run.model)), []
    around, limit = frame(corpus.classes, tokenizer), {"seed": run.spec.seed, "max_length": run.spec.max_length}

    @functools.cache
    def model() -> object:
        run.store.verify("model")
        return load(str(run.model))

    def made(numbers: range) -> pd.DataFrame:
        ids = sample(model(), around.start, around.end, numbers, **limit)
        texts = [each if each is None else tokenizer.decode(each, clean_up_tokenization_spaces=False) for each in ids]
        return pd.DataFrame({"draw": list(numbers), "text": pd.Series(texts, dtype=object)})

    for path, numbers in sample_files(run.spec, draws, at_once).items():
        with contextlib.nullcontext() if path.exists() else alone(run.folder, "this part", f"{path.stem}."):
            if not path.exists():  # another process may have drawn it
                with atomic(path) as file:
                    made(numbers).to_parquet(file, index=False)
        with reading(path, "delete this file to draw it again"):
            tables.append(pd.read_parquet(path))
    drawn = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"draw": [], "text": []})
    return read_samples(drawn, corpus, special=tokenizer.all_special_tokens).assign(seed=run.spec.seed)


def sample_files(spec: RunSpec, draws: int, at_once: int) -> dict[Path, range]:
    """The files that `draw` fills in a run's folder, with the numbers of the draws in each."""
    parts = (range(first, min(first + at_once, draws)) for first in range(0, draws, at_once))
    return {spec.folder / f"samples/{spec.max_length}-{part.start:08d}-{part.stop:08d}.parquet": part for part in parts}


def read_samples(drawn: pd.DataFrame, corpus: Corpus, *, special: list[str] | tuple[str, ...] = ()) -> pd.DataFrame:
    """Parse sampled texts (columns draw, text): adds premise, hypothesis, label, reason as in `learn.text.parse`, and
    for pairs intended_label (its name), duplicate (an earlier draw is the same pair with the same label) and copy
    (`corpus`, on which the generator was trained, has the two texts, with any label).
    """
    return _marked(drawn.reset_index(drop=True).join(parse(drawn["text"], corpus.classes, special=special)), corpus)


def _marked(table: pd.DataFrame, corpus: Corpus) -> pd.DataFrame:
    pair = table["reason"] == ""
    names = np.array([*corpus.classes, None], dtype=object)
    known = pd.MultiIndex.from_arrays([one_line(corpus.premise), one_line(corpus.hypothesis)])
    copy = pair & pd.MultiIndex.from_frame(table[SIDES]).isin(known)
    repeated = pair & table.duplicated([*SIDES, "label"])
    return table.assign(intended_label=names[table["label"]], duplicate=repeated, copy=copy)


def pack_samples(samples: pd.DataFrame, corpus: Corpus) -> pd.DataFrame:
    """Reduce samples to what `unpack_samples` needs, without any text of the corpus: a copied premise or hypothesis is
    replaced by the uid of the first row that has it."""
    table = samples[["draw", "label", "reason"]].astype({"draw": "int32", "label": "int8"})
    for side in SIDES:
        first = pd.Series(corpus.uid, one_line(getattr(corpus, side))).groupby(level=0).first()
        table[f"{side} of"] = samples[side].map(first).astype(object)
        table[side] = samples[side].astype(object).where(table[f"{side} of"].isna(), None)
    return table.reset_index(drop=True)


def unpack_samples(table: pd.DataFrame, corpus: Corpus) -> pd.DataFrame:
    """Restore the samples of a generator that was trained on `corpus`, as from `read_samples`, without the column
    text."""
    found = {"draw": table["draw"].astype(int)}
    for side in SIDES:
        texts = table[f"{side} of"].map(pd.Series(one_line(getattr(corpus, side)), corpus.uid))
        found[side] = table[side].where(table[side].notna(), texts).astype(object).replace({np.nan: None})
    return _marked(pd.DataFrame(found).assign(label=table["label"].astype(int), reason=table["reason"]), corpus)


def parsed(samples: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Keep the samples that are pairs, without the columns text and reason. Raises `StudyError`, with the outcomes, if
    a generator (distinguished by the columns `by`) has none."""
    for name, part in samples.groupby(by):
        if not (part["reason"] == "").any():
            who = ", ".join(f"{column} {value}" for column, value in zip(by, name, strict=True))
            what = "; ".join(f"{reason or 'a pair'} {n:,}" for reason, n in part["reason"].value_counts().items())
            cure = "train it for more epochs, or at another learning rate"
            raise StudyError(f"the generator with {who} wrote no pair ({what}): {cure}")
    return samples[samples["reason"] == ""].drop(columns=["text", "reason"], errors="ignore").reset_index(drop=True)


def as_corpus(pairs: pd.DataFrame, classes: tuple[str, ...]) -> Corpus:
    """Make a corpus of sampled pairs, with the intended labels, which nobody has judged yet. The rows keep their order.

    Parameters
    ----------
    pairs
        rows of `draw` without a reason, of one or more generators
    """
    kept = pairs[[*SIDES, "label", "intended_label", "draw", "seed"]].reset_index(drop=True)
    names = {"uid": [f"generated-{at}" for at in range(len(kept))], "corpus": "generated", "split": "train"}
    table = kept.assign(**names, maker="generator")
    return Corpus(table, "generated", "train", classes, source="samples of a trained generator")


def counts(samples: pd.DataFrame) -> pd.DataFrame:
    """Count the outcomes of the draws, each once: columns outcome, count, share. A pair is "a pair", "a copy of a
    training pair", or "a repeated pair"; the other outcomes are the reasons."""
    outcome = samples["reason"].replace("", "a pair")
    outcome = outcome.mask(samples["duplicate"], "a repeated pair").mask(samples["copy"], "a copy of a training pair")
    found = outcome.value_counts().rename_axis("outcome").reset_index(name="count")
    return found.assign(share=found["count"] / max(len(samples), 1))


# ---------------------------------------------------------------- generators


class Learnt(NamedTuple):
    """The objective of a generator: its name in the spec, and its arguments; the objective itself needs torch."""

    name: str
    given: tuple
    avoids: bool = False

    def objective(self) -> Generate:
        from nli_lib.learn.generator import Debias, Generate

        return Debias(*self.given) if self.avoids else Generate(*self.given)


def ordinary(unlikelihood: float = 0.5, wrong: str = "one") -> Learnt:
    """Learn a corpus, by `learn.generator.Generate`."""
    return Learnt(generate_name(unlikelihood, wrong), (unlikelihood, wrong))


def debiasing(keep: np.ndarray, flagged: Flagged, alpha: float = 1.0) -> Learnt:
    """Learn the pairs that a filter kept and avoid the flagged words of the rest, by `learn.generator.Debias`; with
    alpha 0, only the former."""
    return Learnt(debias_name(~keep, *flagged, alpha=alpha), (~keep, *flagged, alpha), avoids=True)


class Generator(NamedTuple):
    """A training of a generator, whether done or not: `title` names its parts; it begins with the weights of
    `start`."""

    title: str
    chapter: str
    spec: RunSpec
    corpus: Corpus
    learnt: Learnt
    start: Generator | None = None

    @property
    def decides(self) -> dict:
        return decided(self.spec, self.corpus, self.start and self.start.decides)

    def trained(self) -> Run:
        """The run, trained if it is not in the store, as is the run from which it starts."""
        from nli_lib.learn.generator import train

        if self.start and not there(self):
            if not there(self.start):
                print(f"{self.title}: the generator that it starts from is not on this machine and is trained first")
            self.start.trained()
        return train(self.spec, self.corpus, self.learnt.objective())

    def recorded(self) -> pd.DataFrame:
        """log p(hypothesis | label, premise) of each training pair under each label, after the last epoch."""
        run = self.trained()
        about = run.store.read_json("about.json")
        table = pd.DataFrame(run.logits[-1]).rename(columns=str)
        table.attrs = {name: about[name] for name in ("seconds", "device", "revision")} | {"log": run.store.log}
        return table

    @property
    def record(self) -> dict[str, Part]:
        """The part for `recorded`, by its name."""
        ready = functools.partial(there, self)
        return {f"{self.title}, record": Part(self.chapter, self.decides, self.recorded, ready, self.title)}

    def parts(self, draws: int, at_once: int) -> dict[str, Part]:
        """The parts for the record of its training and for `draws` samples of the trained generator."""

        def sampled() -> pd.DataFrame:
            before, run = drawn(), self.trained()
            table = pack_samples(draw(run, self.corpus, draws, at_once=at_once), self.corpus)
            if before:  # the time of earlier draws is not known
                table.attrs = {"seconds": None, "device": run.store.read_json("about.json")["device"]}
            return table

        def drawn() -> bool:
            return there(self) and all(path.exists() for path in sample_files(self.spec, draws, at_once))

        samples = {**self.decides, "samples": draws}
        return {**self.record, f"{self.title}, samples": Part(self.chapter, samples, sampled, drawn, self.title)}


def plain(study: Study, corpus: Corpus, seed: int, unlikelihood: float = 0.5, wrong: str = "one") -> Generator:
    """A plain generator, from which others start; chapter 22 has its parts."""
    learnt = ordinary(unlikelihood, wrong)
    spec = study.spec("generator", seed=seed, objective=learnt.name)
    return Generator(f"unlikelihood {unlikelihood:g}, training {seed}", "22_generator", spec, corpus, learnt)


def written(study: Study, generators: Mapping[Hashable, Generator]) -> dict[Hashable, SimpleNamespace]:
    """The records of each generator, made now if missing: logits (1, N, C) after the last epoch, as in
    `learn.generator`, the log of its training, its device, and its samples, as in `read_samples`."""
    wanted, found = study.dial.generator, {}
    parts = {key: each.parts(wanted.samples, wanted.at_once) for key, each in generators.items()}
    tables = study.parts({name: part for each in parts.values() for name, part in each.items()})
    for key, names in parts.items():
        record, samples = (tables[name] for name in names)
        drawn = unpack_samples(samples, generators[key].corpus).assign(seed=generators[key].spec.seed)
        known = {"log": pd.DataFrame(record.attrs["log"]), "device": record.attrs["device"], "samples": drawn}
        found[key] = SimpleNamespace(logits=record.to_numpy()[None], **known)
    return found
