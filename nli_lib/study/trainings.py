"""Trainings of a chapter as parts: what it asks of each model is recorded, so that no model has to be kept.

    trainings = {("Z-Aug", seed): Training(study.debiased_spec(each, seed), each, tests), ...}
    tables = answers(study, trainings, accuracies)      # key -> the table that `accuracies(run, training)` returns
    bits = {key: right_in(table) for key, table in answers(study, trainings, right).items()}

Trainings that have their rows, recipe and test sets in common are one part, whatever they are called. A question is a
function of a cell or of this module; its name is part of what decides a part.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.corpus import Corpus
from nli_lib.spec import RunSpec
from nli_lib.store import RunFolder
from nli_lib.study.parts import Part, decided, key_of

if TYPE_CHECKING:
    from nli_lib.learn.fit import Run
    from nli_lib.learn.objectives import Objective
    from nli_lib.study.notebook import Study

SCORES = "31_cross_scoring"  # whose folder holds cross scores
Key = tuple[str, int]  # what is trained, and the number of the training


class Training(NamedTuple):
    """A training, made or not.

    tested      title -> Corpus that the model is asked about
    objective   what it learns, the one that the spec names; None: `learn.objectives.Classify`
    validation  examples on which early stopping watches
    """

    spec: RunSpec
    corpus: Corpus
    tested: Mapping[str, Corpus] = {}
    objective: Objective | None = None
    validation: Corpus | None = None

    def run(self) -> Run:
        """The run, trained where it is not in the store."""
        from nli_lib.learn.fit import fit

        return fit(self.spec, self.corpus, objective=self.objective, validation=self.validation)

    def decides(self, asked: str) -> dict:
        """What decides the answer to a question, as content."""
        more = {"validation": self.validation.digest} if self.validation is not None else {}
        tested = {title: each.digest for title, each in self.tested.items()}
        return decided(self.spec, self.corpus, asked=asked, tested=tested, **more)


class Trained(NamedTuple):
    """A training of another chapter, by the settings that it recorded (JSON of `RunSpec`): never made here."""

    settings: str
    tested: Mapping[str, Corpus]

    @property
    def spec(self) -> RunSpec:
        return RunSpec.model_validate_json(self.settings, strict=False)

    def run(self) -> Run:
        from nli_lib.learn.stored import stored

        return stored(self.settings)

    def decides(self, asked: str) -> dict:
        """What decides the answer to a question; the rows are in the settings, as `subset`."""
        tested = {title: each.digest for title, each in self.tested.items()}
        return {"recipe": json.loads(self.settings), "asked": asked, "tested": tested}


class CrossScored(NamedTuple):
    """A corpus scored by models that did not train on the pair, made or not; fields as in `learn.cross.cross_score`.

    texts, of  other pairs to score instead, each by the model that did not train on pair number `of` (M,)
    """

    spec: RunSpec
    corpus: Corpus
    fold: NDArray[np.int64]
    reuse_model_for: int = 1
    texts: Corpus | None = None
    of: NDArray[np.int64] | None = None

    @property
    def decides(self) -> dict:
        """What decides the scores, as content."""
        more = {"fold": _digest(self.fold), "reuse_model_for": self.reuse_model_for}
        if self.texts is not None:
            more |= {"texts": self.texts.digest, "of": _digest(self.of)}
        return decided(self.spec, self.corpus, asked="cross scores", **more)

    def specs(self) -> list[RunSpec]:
        """The specs of the folds' runs."""
        from nli_lib.learn.cross import fold_specs

        size, count = self.reuse_model_for, int(self.fold.max()) + 1
        chains = [range(start, min(start + size, count)) for start in range(0, count, size)]
        return [spec for chain in chains for spec in fold_specs(self.spec, self.fold, chain)]

    def finished(self) -> bool:
        from nli_lib.learn.stored import finished

        return all(map(finished, self.specs()))

    def scores(self) -> pd.DataFrame:
        from nli_lib.learn.cross import cross_score
        from nli_lib.learn.reuse import cross_predict

        found = cross_score(self.spec, self.corpus, self.fold, reuse_model_for=self.reuse_model_for)
        if self.texts is not None:
            found = cross_predict(self.spec, self.fold, self.texts, self.of)
        abouts = [RunFolder(spec.folder).read_json("about.json") for spec in self.specs()]
        table = pd.DataFrame(found, columns=self.corpus.classes)
        table.attrs = {"seconds": sum(about["seconds"] for about in abouts), "device": abouts[0]["device"]}
        return table


def cross_scores(study: Study, wanted: Mapping[Key, CrossScored]) -> dict[Key, NDArray[np.float32]]:
    """The logits (N, C) of each, recorded, or computed now; one part for all folds, which all chapters share."""
    names = {(title, seed): f"{title}, cross-scored, training {seed}" for title, seed in wanted}
    parts = {names[key]: Part(SCORES, each.decides, each.scores, each.finished) for key, each in wanted.items()}
    tables = study.parts(parts)
    return {key: tables[name].to_numpy() for key, name in names.items()}


def _digest(numbers: NDArray[np.int64]) -> str:
    return hashlib.sha256(np.asarray(numbers, np.int64).tobytes()).hexdigest()[:12]


Question = Callable[["Run", Training], pd.DataFrame]


def answers(
    study: Study, trainings: Mapping[Key, Training | Trained], question: Question, *, chapter: str | None = None
) -> dict[Key, pd.DataFrame]:
    """What each training's model answers: recorded, or asked now, the model trained where it is not in the store.

    chapter  whose folder holds the parts, by default the study's own

    The table's attrs say the seconds of the training and of the question, and the device. Raises `StoreError` for a
    training of another chapter that is neither recorded nor in the store.
    """
    wanted, names, first = {}, {}, {}
    for (title, seed), training in trainings.items():
        part = _part(chapter or study.notebook, training, question)
        names[title, seed] = first.setdefault(key_of(part), f"{title}, training {seed}")
        wanted.setdefault(names[title, seed], part)
    tables = study.parts(wanted)
    return {key: tables[name] for key, name in names.items()}


def _part(chapter: str, training: Training | Trained, question: Question) -> Part:
    def make() -> pd.DataFrame:
        run = training.run()
        about, began = run.store.read_json("about.json"), time.monotonic()
        table = question(run, training)
        took = round(about["seconds"] + time.monotonic() - began, 1)
        table.attrs = {"seconds": took, "device": about["device"], "revision": about["revision"]}
        return table

    return Part(chapter, training.decides(question.__name__), make, lambda: there(training), training.spec.id)


def there(training: Training | Trained) -> bool:
    """Whether the run is in the store and trained to its end."""
    from nli_lib.learn.stored import finished

    return finished(training.spec)


# ---------------------------------------------------------------- questions


def accuracies(run: Run, training: Training) -> pd.DataFrame:
    """Accuracy on each test set and by each rule: `report.experts.accuracy_on`."""
    from nli_lib.learn.predict import predict
    from nli_lib.report.experts import accuracy_on

    logits = {title: predict(run, test) for title, test in training.tested.items()}
    return accuracy_on(logits, training.tested, training.corpus.classes, seed=training.spec.seed)


def right(run: Run, training: Training) -> pd.DataFrame:
    """Which pairs of each test set are right by the rule argmax: columns title, n and right, one bit a pair."""
    from nli_lib.evaluate import correct_predictions
    from nli_lib.learn.predict import predict

    rows = [
        (title, len(test), packed(correct_predictions(predict(run, test), test.labels, test.classes)))
        for title, test in training.tested.items()
    ]
    return pd.DataFrame(rows, columns=["title", "n", "right"])


def guesses(run: Run, training: Training) -> pd.DataFrame:
    """The probability of each class for each pair of the one corpus that is asked about, a column a class."""
    from scipy.special import softmax

    from nli_lib.learn.predict import predict

    (tested,) = training.tested.values()
    return pd.DataFrame(softmax(predict(run, tested), axis=1).astype("float32"), columns=training.corpus.classes)


def logits(run: Run, training: Training | Trained) -> pd.DataFrame:
    """The logits of each pair of each corpus that is asked about: columns title and 0 to C - 1 (`logits_in`)."""
    from nli_lib.learn.predict import predict

    tables = [pd.DataFrame(predict(run, test)).assign(title=title) for title, test in training.tested.items()]
    return pd.concat(tables, ignore_index=True).rename(columns=str)


def dynamics(run: Run, training: Training) -> pd.DataFrame:
    """The logits of every epoch, a row an epoch and pair, a column a class: `epochs_in` gives (E, N, C) again."""
    return pd.DataFrame(np.concatenate(run.logits), columns=training.corpus.classes)


def right_in(table: pd.DataFrame) -> dict[str, NDArray[np.bool_]]:
    """Title of a test set -> (N,) bool, from what `right` returned."""
    return {row.title: unpacked(row.right, row.n) for row in table.itertuples()}


def logits_in(table: pd.DataFrame) -> dict[str, NDArray[np.float32]]:
    """Title of a corpus -> (N, C), from what `logits` returned."""
    return {title: part.drop(columns="title").to_numpy() for title, part in table.groupby("title", sort=False)}


def epochs_in(table: pd.DataFrame, pairs: int) -> NDArray[np.float32]:
    """(E, N, C), from what `dynamics` returned of N pairs."""
    return table.to_numpy().reshape(-1, pairs, table.shape[1])


def packed(bits: NDArray[np.bool_]) -> bytes:
    return np.packbits(bits).tobytes()


def unpacked(bits: bytes, count: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(bool)
