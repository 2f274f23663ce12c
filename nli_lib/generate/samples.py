"""Samples of a trained generator: drawn in parts that are kept as they come, then read as pairs and counted.

    samples = draw(run, corpus, 20_000)          # one row a draw, with the reason where it is no pair
    pairs = samples[samples["reason"] == ""]
    as_corpus(pairs, corpus.classes)

Draws have numbers. A part of them is a file in the run's folder, so a killed call goes on where it was, and machines
that share the folder, or bring their files together, can take parts each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import SIDES, Corpus
from nli_lib.errors import UserError
from nli_lib.learn.pair_text import one_line, parse
from nli_lib.store import StoreError, alone, atomic, reading

if TYPE_CHECKING:
    from nli_lib.learn.fit import Run
    from nli_lib.spec import RunSpec


class SampleError(UserError, ValueError):
    """What a generator wrote cannot be used; the message says what became of it."""


def draw(run: Run, corpus: Corpus, draws: int, *, at_once: int = 256, parts: slice = slice(None)) -> pd.DataFrame:
    """`draws` samples of a finished generator, which was trained on `corpus`; columns as `read`, and seed.

    at_once  sequences that are sampled together; the last digits of their probabilities depend on it
    parts    which parts of `at_once` draws are made and returned, by default all: `slice(1, None, 2)` takes every
             second one, for a second machine

    Raises `StoreError` for a run that is unfinished or damaged.
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
    from nli_lib.learn.generator import load
    from nli_lib.learn.model import load_tokenizer
    from nli_lib.learn.sampling import sample
    from nli_lib.learn.serialise import frame

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

    pairs  rows of `draw` without a reason, of one or more generators
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
