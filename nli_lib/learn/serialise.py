"""A pair as the one text that a generator reads and writes: premise, label, hypothesis, in that order.

    <start>A man eats.
    entailment
    Somebody eats.<end>

Source: the paper on debiased generation, section 2.1; it gives the order. *Departures*: it gives neither separators nor
words for the labels, and no code was released; here a line break separates, and the words are the names of the classes.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.learn.encode import CHUNK, Tokens
from nli_lib.learn.pair_text import SEPARATOR, one_line

# The column "part" of the tokens says what a word piece belongs to; 0 fills a row of a batch that is shorter.
PREMISE, LABEL, HYPOTHESIS, END = 1, 2, 3, 4  # with the start and the separators: premise, label


class SequenceError(UserError, ValueError):
    """A tokenizer, a text or a length with which no pair can be written as a sequence; the message says why."""


class Frame(NamedTuple):
    """The ids around the texts: `start`, `end`, and `labels`, for each class the ids of separator, name, separator."""

    start: int
    end: int
    labels: list[list[int]]


def frame(classes: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> Frame:
    """What stands around the texts of a corpus with these `classes`. Raises `SequenceError` for a tokenizer without a
    token that ends a text; one without a token that begins a text begins with that too, as GPT-2 does."""
    end = tokenizer.eos_token_id
    if end is None:
        raise SequenceError(f"{tokenizer.name_or_path}: this tokenizer has no token that ends a text (eos_token)")
    start = end if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    separator = _ids([SEPARATOR], tokenizer)[0]
    return Frame(start, end, [[*separator, *name, *separator] for name in _ids(list(classes), tokenizer)])


def pieces(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> tuple[np.ndarray, np.ndarray]:
    """The word pieces of all texts, each on one line, end to end (T,), and how many each text has (N,)."""
    parts, lengths = [np.empty(0, np.int64)], []
    for start in range(0, len(texts), CHUNK):
        ids = _ids(one_line(texts[start : start + CHUNK]), tokenizer)
        lengths += map(len, ids)
        parts.append(np.fromiter(chain.from_iterable(ids), np.int64))
    return np.concatenate(parts), np.array(lengths, np.int64)


def sequences(
    corpus: Corpus,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    flags: tuple[np.ndarray, np.ndarray] | None = None,
) -> Tokens:
    """The pairs under their own labels, with the column "part" beside "input_ids".

    flags  booleans for the word pieces of all premises and of all hypotheses, in the order of `pieces`; they become a
           third column, "flagged", in which everything that stands around the texts is 0

    The three parts are tokenised apart, so that another label changes no id of premise and hypothesis. Where a sequence
    is longer than `max_length`, the end of the longer text is cut, as `encode.encode` does it; it still ends.
    """
    around = frame(corpus.classes, tokenizer)
    (p, p_lengths), (h, h_lengths) = (pieces(side, tokenizer) for side in (corpus.premise, corpus.hypothesis))
    names = np.array([len(each) for each in around.labels])
    room = max_length - 2 - names.max()  # whichever the label: a wrong one fits as well
    if room < 2:
        raise SequenceError(f"max_length={max_length} leaves no room for the texts beside the label")
    keep_p, keep_h = _longest_first(np.column_stack([p_lengths, h_lengths]), room).T
    # everything that any sequence is made of, laid end to end; `place` says where each of its T ids is from
    pool = [p, h, np.concatenate(around.labels), [around.start], [around.end]]
    sizes = [len(each) for each in pool]
    first_p, first_h, first_name, start, end = np.cumsum([0, *sizes[:-1]])
    own = names[corpus.labels]
    lengths = 1 + keep_p + own + keep_h + 1
    offsets = np.cumsum([0, *lengths])
    row = np.repeat(np.arange(len(corpus)), lengths)
    at = np.arange(offsets[-1]) - offsets[row] - 1  # -1 for the start
    ends = np.cumsum([keep_p, own, keep_h], axis=0)[:, row]  # of premise, label and hypothesis
    place = np.select(
        [at < 0, at < ends[0], at < ends[1], at < ends[2]],
        [
            start,
            first_p + _starts(p_lengths)[row] + at,
            first_name + _starts(names)[corpus.labels[row]] + at - ends[0],
            first_h + _starts(h_lengths)[row] + at - ends[1],
        ],
        default=end,
    )
    columns = {
        "input_ids": np.concatenate(pool).astype(np.int64),
        "part": np.repeat([PREMISE, HYPOTHESIS, LABEL, PREMISE, END], sizes).astype(np.int8),
    }
    if flags is not None:
        columns["flagged"] = np.concatenate([*flags, np.zeros(sum(sizes[2:]), bool)]).astype(np.int8)
    joined = {name: torch.from_numpy(column[place]) for name, column in columns.items()}
    return Tokens(joined, torch.from_numpy(offsets.astype(np.int64)), pad=around.end)


def relabelled(batch: dict[str, torch.Tensor], labels: torch.Tensor, pieces: torch.Tensor) -> dict[str, torch.Tensor]:
    """A batch of sequences, (B, L), with other labels in them: ids, parts and attention mask, (B, L').

    labels (B,) the classes that are to stand there; pieces (C, W) the ids of each class, filled up with -1
    """
    ids, part = batch["input_ids"], batch["part"]
    before, old, after = ((part == PREMISE).sum(1), (part == LABEL).sum(1), (part >= HYPOTHESIS).sum(1))
    middle = pieces[labels]  # (B, W)
    new = (middle >= 0).sum(1)
    total = before + new + after
    place = torch.arange(int(total.max()), device=ids.device)[None]
    inside = (place >= before[:, None]) & (place < (before + new)[:, None])
    filled = place >= total[:, None]
    # where each id comes from: the premise from its own place, what follows the label from so many places further on
    source = torch.where(place < before[:, None], place, place + (old - new)[:, None]).clamp(0, ids.shape[1] - 1)
    word = (place - before[:, None]).clamp(0, middle.shape[1] - 1)
    changed = torch.where(inside, middle.gather(1, word), ids.gather(1, source))
    parts = torch.where(inside, LABEL, part.gather(1, source)).masked_fill(filled, 0)
    return {"input_ids": changed.masked_fill(filled, 0), "part": parts, "attention_mask": (~filled).long()}


def label_pieces(around: Frame) -> torch.Tensor:
    """(C, W) the ids of each class with its separators, filled up with -1."""
    width = max(map(len, around.labels))
    return torch.tensor([[*ids, *[-1] * (width - len(ids))] for ids in around.labels])


def _ids(texts: list[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    return tokenizer(texts, add_special_tokens=False, return_attention_mask=False)["input_ids"] if texts else []


def _starts(lengths: np.ndarray) -> np.ndarray:
    """Where each of several parts laid end to end begins."""
    return np.cumsum(lengths) - lengths


def _longest_first(lengths: np.ndarray, room: int) -> np.ndarray:
    """(N, 2) how much of two texts is kept, so that both together have `room`: the longer one is cut first."""
    over = np.maximum(lengths.sum(1) - room, 0)
    gap = lengths[:, 0] - lengths[:, 1]
    first = np.minimum(over, np.abs(gap))  # from the longer one alone, until they are equal
    rest = over - first
    cut = np.column_stack([rest - rest // 2, rest // 2])
    cut[np.arange(len(lengths)), np.where(gap >= 0, 0, 1)] += first
    return lengths - cut
