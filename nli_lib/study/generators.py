"""The generators of chapters 22 and 23 as parts: what each training recorded, and what the generator then writes.

generators = {seed: plain(study, corpus, seed) for seed in study.generator_seeds()}
generators |= {("longer", seed): further(study, each, "longer", ordinary()) for seed, each in generators.items()}
found = written(study, generators)      # trains and samples what is not recorded, with torch; the rest without
found[0].logits, found[0].log, found[0].samples
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.samples import draw, files_of, packed, unpacked
from nli_lib.learn.objective_names import debias_name, generate_name
from nli_lib.spec import RUN, RunSpec
from nli_lib.study.parts import Part, decided, file_of
from nli_lib.study.trainings import there

if TYPE_CHECKING:
    from nli_lib.learn.fit import Run
    from nli_lib.measure.giveaways import Flagged
    from nli_lib.study.notebook import Study

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
    spec = study.generator_spec(seed, objective=learnt.name)
    return Generator(f"unlikelihood {unlikelihood:g}, training {seed}", NOTEBOOK, spec, corpus, learnt)


def further(study: Study, start: Generator, title: str, learnt: Learnt) -> Generator:
    """A generator that goes on from another, for as many epochs as the dial says."""
    changes = {"model": RUN + start.spec.id, "epochs": study.dial.generator.further_epochs}
    seed = start.spec.seed
    spec = study.generator_spec(seed, objective=learnt.name, **changes)
    return Generator(f"{title}, training {seed}", study.notebook, spec, start.corpus, learnt, start)


@dataclass(frozen=True)
class Written:
    """What is known of a trained generator: logits (1, N, C) as `learn.generator` records them after the last epoch,
    the log of its training, its device, and its samples as `generate.samples.read` has them."""

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
