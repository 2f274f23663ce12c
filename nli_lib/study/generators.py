"""The generators of chapters 22 and 23 as parts: what each training recorded, and what the generator then writes::

    generators = {seed: plain(study, corpus, seed) for seed in study.generator_seeds()}
    generators |= {("longer", seed): further(study, each, "longer", ordinary()) for seed, each in generators.items()}
    found = written(study, generators)  # trains and samples what is not recorded, with torch; the rest without
    found[0].logits, found[0].log, found[0].samples

Samples of a trained generator: drawn in parts that are kept as they come, then read as pairs and counted::

    samples = draw(run, corpus, 20_000)          # one row a draw, with the reason where it is no pair
    pairs = samples[samples["reason"] == ""]
    as_corpus(pairs, corpus.classes)

Draws have numbers. A part of them is a file in the run's folder, so a killed call goes on where it was, and machines
that share the folder, or bring their files together, can take parts each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import SIDES, Corpus
from nli_lib.errors import UserError
from nli_lib.learn.text import debias_name, generate_name, one_line, parse
from nli_lib.store import RUN, RunSpec, StoreError, alone, atomic, reading
from nli_lib.study.parts import Part, decided, file_of, there

if TYPE_CHECKING:
    from nli_lib.learn.fit import Run
    from nli_lib.measure.giveaways import Flagged
    from nli_lib.study.notebook import Study


class SampleError(UserError, ValueError):
    """What a generator wrote cannot be used; the message says what became of it."""


def draw(run: Run, corpus: Corpus, draws: int, *, at_once: int = 256, parts: slice = slice(None)) -> pd.DataFrame:
    """`draws` samples of a finished generator, which was trained on `corpus`; columns as `read`, and seed.

    Parameters
    ----------
    at_once
        sequences that are sampled together; the last digits of their probabilities depend on it
    parts
        which parts of `at_once` draws are made and returned, by default all: `slice(1, None, 2)` takes every second
        one, for a second machine

    Raises
    ------
    StoreError
        For a run that is unfinished or damaged.
    """
    from nli_lib.learn.model import load_tokenizer  # reading what was written needs no torch

    if not run.store.done.all():
        raise StoreError(f"{run.folder}: the run is not finished; call fit again to end it")
    generator, tables = None, []
    for path, numbers in list(files_of(run.spec, draws, at_once).items())[parts]:
        if not path.exists():
            with alone(run.folder, "this part", f"{path.stem}."):
                if not path.exists():  # another process may have drawn it
                    generator = generator or _generator(run, corpus)
                    with atomic(path) as file:
                        generator(numbers).to_parquet(file, index=False)
        with reading(path, "delete this file to draw it again"):
            tables.append(pd.read_parquet(path))
    drawn = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"draw": [], "text": []})
    special = load_tokenizer(str(run.model)).all_special_tokens
    return read(drawn, corpus, special=special).assign(seed=run.spec.seed)


def files_of(spec: RunSpec, draws: int, at_once: int) -> dict[Path, range]:
    """The files that `draw` fills in a run's folder, with the numbers of the draws in each."""
    parts = (range(first, min(first + at_once, draws)) for first in range(0, draws, at_once))
    names = {part: f"{spec.max_length}-{part.start:08d}-{part.stop:08d}.parquet" for part in parts}
    return {spec.folder / "samples" / name: part for part, name in names.items()}


def _generator(run: Run, corpus: Corpus) -> Callable[[range], pd.DataFrame]:
    """What samples the texts of given numbers: columns draw and text, missing where none ended in time."""
    from nli_lib.learn.encode import frame
    from nli_lib.learn.generator import load, sample
    from nli_lib.learn.model import load_tokenizer

    run.store.verify("model")
    tokenizer, model = load_tokenizer(str(run.model)), load(str(run.model))
    around = frame(corpus.classes, tokenizer)

    def generate(numbers: range) -> pd.DataFrame:
        limit = {"seed": run.spec.seed, "max_length": run.spec.max_length}
        ids = sample(model, around.start, around.end, numbers, **limit)
        texts = [None if each is None else tokenizer.decode(each, clean_up_tokenization_spaces=False) for each in ids]
        return pd.DataFrame({"draw": list(numbers), "text": pd.Series(texts, dtype=object)})

    return generate


def read(drawn: pd.DataFrame, corpus: Corpus, *, special: list[str] | tuple[str, ...] = ()) -> pd.DataFrame:
    """What sampled texts (columns draw, text) say: with premise, hypothesis, label, reason as `pair_text.parse` has
    them, and of the pairs intended_label (its name), duplicate (an earlier draw is the same pair with the same label)
    and copy (`corpus`, on which the generator was trained, has the two texts, with whatever label).
    """
    return _marked(drawn.reset_index(drop=True).join(parse(drawn["text"], corpus.classes, special=special)), corpus)


def _marked(table: pd.DataFrame, corpus: Corpus) -> pd.DataFrame:
    pair = table["reason"] == ""
    names = np.array([*corpus.classes, None], dtype=object)
    known = pd.MultiIndex.from_arrays([one_line(corpus.premise), one_line(corpus.hypothesis)])
    return table.assign(
        intended_label=names[table["label"]],
        duplicate=pair & table.duplicated([*SIDES, "label"]),
        copy=pair & pd.MultiIndex.from_frame(table[SIDES]).isin(known),
    )


def packed(samples: pd.DataFrame, corpus: Corpus) -> pd.DataFrame:
    """What `unpacked` needs of samples, as small as it gets and without any text of the corpus: a premise or hypothesis
    that is a copy of one there is replaced by the uid of the first row that has it."""
    table = samples[["draw", "label", "reason"]].astype({"draw": "int32", "label": "int8"})
    for side in SIDES:
        first = pd.Series(corpus.uid, one_line(getattr(corpus, side))).groupby(level=0).first()
        table[f"{side} of"] = samples[side].map(first).astype(object)
        table[side] = samples[side].astype(object).where(table[f"{side} of"].isna(), None)
    return table.reset_index(drop=True)


def unpacked(table: pd.DataFrame, corpus: Corpus) -> pd.DataFrame:
    """The samples of a generator that was trained on `corpus`, as `read` has them, without text."""
    found = {"draw": table["draw"].astype(int)}
    for side in SIDES:
        texts = table[f"{side} of"].map(pd.Series(one_line(getattr(corpus, side)), corpus.uid))
        found[side] = table[side].where(table[side].notna(), texts).astype(object).replace({np.nan: None})
    return _marked(pd.DataFrame(found).assign(label=table["label"].astype(int), reason=table["reason"]), corpus)


def parsed(samples: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The samples that are pairs, without the columns text and reason. Raises `SampleError` where a generator, told
    apart by the columns `by`, has none, with what became of its samples."""
    pairs = samples[samples["reason"] == ""]
    for name, part in samples.groupby(by):
        if not (part["reason"] == "").any():
            who = ", ".join(f"{column} {value}" for column, value in zip(by, name, strict=True))
            what = "; ".join(f"{reason or 'a pair'} {n:,}" for reason, n in part["reason"].value_counts().items())
            raise SampleError(
                f"the generator with {who} wrote no pair ({what}): train it for more epochs, or at "
                "another learning rate"
            )
    return pairs.drop(columns=["text", "reason"], errors="ignore").reset_index(drop=True)


def as_corpus(pairs: pd.DataFrame, classes: tuple[str, ...]) -> Corpus:
    """Sampled pairs as a corpus; the label is the intended one until somebody has judged it. The rows keep their order.

    Parameters
    ----------
    pairs
        rows of `draw` without a reason, of one or more generators
    """
    name = "generated"
    uid = [f"{name}-{at}" for at in range(len(pairs))]
    kept = pairs[["premise", "hypothesis", "label", "intended_label", "draw", "seed"]].reset_index(drop=True)
    table = kept.assign(uid=uid, corpus=name, split="train", maker="generator")
    return Corpus(table, name, "train", classes, source="samples of a trained generator")


def counts(samples: pd.DataFrame) -> pd.DataFrame:
    """What became of the draws, each counted once: columns outcome, count, share. A pair is "a pair", "a copy of a
    training pair", or "a repeated pair"; the other outcomes are the reasons."""
    outcome = samples["reason"].replace("", "a pair")
    outcome = outcome.mask(samples["duplicate"], "a repeated pair").mask(samples["copy"], "a copy of a training pair")
    found = outcome.value_counts().rename_axis("outcome").reset_index(name="count")
    return found.assign(share=found["count"] / max(len(samples), 1))


# ---------------------------------------------------------------- generators


NOTEBOOK = "22_generator"  # whose folder holds the plain generators, which other chapters start from


class Learnt(NamedTuple):
    """What a generator learns: the name in its spec, and the objective itself, which needs torch."""

    name: str
    objective: Callable


def ordinary(unlikelihood: float = 0.5, wrong: str = "one") -> Learnt:
    """Its corpus, as `learn.generator.Generate` says."""

    def objective() -> object:
        from nli_lib.learn.generator import Generate

        return Generate(unlikelihood, wrong)

    return Learnt(generate_name(unlikelihood, wrong), objective)


def debiasing(keep: np.ndarray, flagged: Flagged, alpha: float = 1.0) -> Learnt:
    """What a filter kept, and to avoid the flagged words of the rest, as `learn.generator.Debias` says; with alpha 0
    what was kept alone."""

    def objective() -> object:
        from nli_lib.learn.generator import Debias

        return Debias(~keep, *flagged, alpha=alpha)

    return Learnt(debias_name(~keep, *flagged, alpha=alpha), objective)


@dataclass(frozen=True, eq=False)
class Generator:
    """One training of a generator, made or not: `title` names its parts; it begins with the weights of `start`."""

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
        """The run, trained where it is not in the store, and so is the one it starts from."""
        from nli_lib.learn.generator import train

        if self.start and not self.finished():
            if not self.start.finished():
                print(f"{self.title}: the generator that it starts from is not on this machine and is trained first")
            self.start.trained()
        return train(self.spec, self.corpus, self.learnt.objective())

    def finished(self) -> bool:
        return there(self)

    def recorded(self) -> pd.DataFrame:
        """Of each pair that it learnt from, log p(hypothesis | label, premise) for each label, after the last epoch."""
        run = self.trained()
        about = run.store.read_json("about.json")
        table = pd.DataFrame(run.logits[-1]).rename(columns=str)
        table.attrs = {name: about[name] for name in ("seconds", "device", "revision")} | {"log": run.store.log}
        return table

    @property
    def record(self) -> dict[str, Part]:
        """The part that `recorded` makes, by its name."""
        return {f"{self.title}, record": Part(self.chapter, self.decides, self.recorded, self.finished, self.title)}

    def parts(self, draws: int, at_once: int) -> dict[str, Part]:
        """The record of its training and, of the trained generator, as many samples."""

        def sampled() -> pd.DataFrame:
            before, run = drawn(), self.trained()
            table = packed(draw(run, self.corpus, draws, at_once=at_once), self.corpus)
            if before:  # nobody knows what that took
                table.attrs = {"seconds": None, "device": run.store.read_json("about.json")["device"]}
            return table

        def drawn() -> bool:
            return self.finished() and all(path.exists() for path in files_of(self.spec, draws, at_once))

        samples = {**self.decides, "samples": draws}
        return {
            **self.record,
            f"{self.title}, samples": Part(self.chapter, samples, sampled, drawn, self.title),
        }


def plain(study: Study, corpus: Corpus, seed: int, unlikelihood: float = 0.5, wrong: str = "one") -> Generator:
    """A generator of chapter 22."""
    learnt = ordinary(unlikelihood, wrong)
    spec = study.spec("generator", seed=seed, objective=learnt.name)
    return Generator(f"unlikelihood {unlikelihood:g}, training {seed}", NOTEBOOK, spec, corpus, learnt)


def further(study: Study, start: Generator, title: str, learnt: Learnt) -> Generator:
    """A generator that goes on from another, for as many epochs as the dial says."""
    changes = {"model": RUN + start.spec.id, "epochs": study.dial.generator.further_epochs}
    seed = start.spec.seed
    spec = study.spec("generator", seed=seed, objective=learnt.name, **changes)
    return Generator(f"{title}, training {seed}", study.notebook, spec, start.corpus, learnt, start)


@dataclass(frozen=True)
class Written:
    """What is known of a trained generator: logits (1, N, C) as `learn.generator` records them after the last epoch,
    the log of its training, its device, and its samples as `study.generators.read` has them."""

    logits: np.ndarray
    log: pd.DataFrame
    device: str
    samples: pd.DataFrame


def written(study: Study, generators: Mapping[Hashable, Generator]) -> dict[Hashable, Written]:
    """What is recorded of each generator, or comes to be recorded now."""
    wanted, found = study.dial.generator, {}
    parts = {key: each.parts(wanted.samples, wanted.at_once) for key, each in generators.items()}
    tables = study.parts({name: part for each in parts.values() for name, part in each.items()})
    for key, names in parts.items():
        record, samples = (tables[name] for name in names)
        drawn = unpacked(samples, generators[key].corpus).assign(seed=generators[key].spec.seed)
        log, device = pd.DataFrame(record.attrs["log"]), record.attrs["device"]
        found[key] = Written(record.to_numpy()[None], log, device, drawn)
    return found


def at_hand(study: Study, generators: Iterable[Generator]) -> list[np.ndarray]:
    """The logits (N, C), after the last epoch, of those generators whose record is there; none is trained."""
    wanted = {name: part for each in generators for name, part in each.record.items()}
    there = {name: part for name, part in wanted.items() if file_of(name, part, study.results_name).exists()}
    return [table.to_numpy() for table in study.parts(there).values()]
