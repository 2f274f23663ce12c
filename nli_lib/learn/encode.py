"""Tokens of a corpus, encoded once, and the batches for a pass over it::

    tokens = encode(*corpus.texts("pair"), tokenizer, max_length=128)
    for rows in shuffled_batches(tokens.lengths, batch_size=32, seed=0, epoch=3):
        inputs = tokens.batch(rows)

For a generator, `sequences` writes a pair as one text, premise, label and hypothesis in that order::

    <start>A man eats.
    entailment
    Somebody eats.<end>

and `flagged_pieces` maps flagged words to word pieces. Words are as in `measure.features`: parts of a text between
blanks, other than ASCII punctuation alone. A word piece is flagged if it contains a letter, a digit or any other
character of a flagged word except ASCII punctuation: for "there's." the pieces "there" and "'s" are flagged, a separate
full stop is not.

Notes
-----
*Departures*: the paper gives neither separators nor words for the labels, and no code was released; here a line break
separates, and the words are the names of the classes.

References
----------
The paper on debiased generation, section 2.1, which gives the order.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase as Tokenizer

from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import TrainingError
from nli_lib.learn.text import SEPARATOR, one_line

# The column "part" of the tokens says which part a word piece belongs to; 0 is padding.
PREMISE, LABEL, HYPOTHESIS, END = 1, 2, 3, 4  # the start counts as premise, separators as label


class Frame(NamedTuple):
    """The ids around the texts: `start`, `end`, and `labels`, for each class the ids of separator, name, separator."""

    start: int
    end: int
    labels: list[list[int]]


def frame(classes: Sequence[str], tokenizer: Tokenizer) -> Frame:
    """Return the ids around the texts of a corpus with these `classes`. Raises `TrainingError` for a tokenizer without
    a token that ends a text; if there is no token that begins a text, the end token does that too, as in GPT-2."""
    if (end := tokenizer.eos_token_id) is None:
        raise TrainingError(f"{tokenizer.name_or_path}: this tokenizer has no token that ends a text (eos_token)")
    start = end if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    separator, *names = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (SEPARATOR, *classes))
    return Frame(start, end, [[*separator, *name, *separator] for name in names])


def pieces(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """Word pieces of all texts, each on one line, concatenated (T,), and the number in each text (N,)."""
    columns, lengths = _end_to_end(["input_ids"], tokenizer, one_line(texts), add_special_tokens=False)
    return columns["input_ids"], np.array(lengths, np.int64)


def sequences(corpus: Corpus, tokenizer: Tokenizer, max_length: int, flags: Sequence[np.ndarray] = ()) -> Tokens:
    """Encode the pairs with their labels, adding the column "part" to "input_ids".

    The three parts are tokenised separately, so that a different label changes no id of premise and hypothesis. If a
    sequence is longer than `max_length`, the end of the longer text is cut, as in `encode.encode`; the end token stays.

    Parameters
    ----------
    flags
        booleans for the word pieces of all premises and of all hypotheses, in the order of `pieces`; they become a
        third column, "flagged", which is 0 for everything around the texts
    """
    around = frame(corpus.classes, tokenizer)
    (p, p_lengths), (h, h_lengths) = (pieces(side, tokenizer) for side in (corpus.premise, corpus.hypothesis))
    names = np.array([len(each) for each in around.labels])
    room = max_length - 2 - names.max()  # for any label, so that a wrong one fits too
    if room < 2:
        raise TrainingError(f"max_length={max_length} leaves no room for the texts beside the label")
    keep_p, keep_h = _longest_first(np.column_stack([p_lengths, h_lengths]), room).T
    # the five parts of all pairs, kind by kind and uncut; `order` picks what is kept, pair by pair
    one, own = np.ones_like(p_lengths), names[corpus.labels]
    sizes = np.stack([one, p_lengths, own, h_lengths, one])
    keep = np.stack([one, keep_p, own, keep_h, one])
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes.ravel(), sizes.ravel())
    order = np.argsort(np.repeat(np.tile(np.arange(len(corpus)), 5), sizes.ravel()), kind="stable")
    order = order[(within < np.repeat(keep, sizes.ravel()))[order]]
    labels = np.fromiter(chain.from_iterable(around.labels[label] for label in corpus.labels), np.int64)
    part = np.repeat([PREMISE, PREMISE, LABEL, HYPOTHESIS, END], sizes.sum(1)).astype(np.int8)
    columns = {"input_ids": np.concatenate([one * around.start, p, labels, h, one * around.end]), "part": part}
    if flags:
        columns["flagged"] = flagged = np.zeros_like(part)
        flagged[len(one) : len(one) + len(p)] = flags[0]
        flagged[part == HYPOTHESIS] = flags[1]
    joined = {name: torch.from_numpy(column[order]) for name, column in columns.items()}
    return Tokens(joined, torch.from_numpy(np.cumsum([0, *keep.sum(0)])), pad=around.end)


def relabelled(batch: dict[str, torch.Tensor], labels: torch.Tensor, pieces: torch.Tensor) -> dict[str, torch.Tensor]:
    """Replace the labels in a batch of sequences, (B, L): returns ids, parts and attention mask, (B, L').

    labels (B,) the new classes; pieces (C, W) the ids of each class, padded with -1
    """
    ids, part = batch["input_ids"], batch["part"]
    before, old, after = ((part == PREMISE).sum(1), (part == LABEL).sum(1), (part >= HYPOTHESIS).sum(1))
    middle = pieces[labels]  # (B, W)
    new = (middle >= 0).sum(1)
    total = before + new + after
    place = torch.arange(int(total.max()), device=ids.device)[None]
    inside = (place >= before[:, None]) & (place < (before + new)[:, None])
    filled = place >= total[:, None]
    # the source of each id: the premise does not move, everything after the label shifts by the difference in length
    source = torch.where(place < before[:, None], place, place + (old - new)[:, None]).clamp(0, ids.shape[1] - 1)
    word = (place - before[:, None]).clamp(0, middle.shape[1] - 1)
    changed = torch.where(inside, middle.gather(1, word), ids.gather(1, source))
    parts = torch.where(inside, LABEL, part.gather(1, source)).masked_fill(filled, 0)
    return {"input_ids": changed.masked_fill(filled, 0), "part": parts, "attention_mask": (~filled).long()}


def label_pieces(around: Frame) -> torch.Tensor:
    """(C, W) the ids of each class with its separators, padded with -1."""
    return pad_sequence([torch.tensor(ids) for ids in around.labels], batch_first=True, padding_value=-1)


def _longest_first(lengths: np.ndarray, room: int) -> np.ndarray:
    """(N, 2) lengths to keep of two texts, at most `room` together: the longer one is cut first."""
    over = np.maximum(lengths.sum(1) - room, 0)
    gap = lengths[:, 0] - lengths[:, 1]
    first = np.minimum(over, np.abs(gap))  # from the longer one only, until they are equal
    rest = over - first
    cut = np.column_stack([rest - rest // 2, rest // 2])
    cut[np.arange(len(lengths)), np.where(gap >= 0, 0, 1)] += first
    return lengths - cut


# ---------------------------------------------------------------- alignment


def flagged_pieces(texts: Sequence[str], words: ArrayLike, tokenizer: Tokenizer, *, whole=None) -> NDArray[np.bool_]:
    """Mark the word pieces that belong to flagged words, in the order of `pieces`, (T,) bool.

    Parameters
    ----------
    words
        (W,) bool, one for each word of all texts, concatenated as by `measure.features.tokenize(texts)`
    whole
        (N,) bool, texts to flag completely, punctuation included

    Notes
    -----
    *Departures*: the paper does not say how to treat punctuation, which its n-grams leave out; here a piece that is
    only punctuation is not flagged with its word. A piece that spans two words (in some vocabularies) is flagged if
    either is.

    References
    ----------
    The paper on debiased generation, section 4.1: an n-gram flags its tokens, any other feature flags all tokens of the
    hypothesis.
    """
    if not tokenizer.is_fast:
        raise TrainingError(f"{tokenizer.name_or_path}: a mask needs a tokenizer that tells where its pieces stand")
    texts = one_line(texts)
    whole = np.zeros(len(texts), bool) if whole is None else np.asarray(whole, bool)
    signs = np.frombuffer("\n".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)  # one text on each line
    flagged = _flagged_signs(signs, np.asarray(words, bool))
    sums = np.concatenate([[0], np.cumsum(flagged)])
    first = np.cumsum([0, *(len(text) + 1 for text in texts)])
    found, start = [np.empty(0, bool)], 0
    for encoded in _tokenised(tokenizer, texts, add_special_tokens=False, return_offsets_mapping=True):
        part = encoded["offset_mapping"]
        text = np.repeat(np.arange(start, start + len(part)), list(map(len, part)))
        span = np.array(list(chain.from_iterable(part)), np.int64).reshape(-1, 2) + first[text, None]
        found.append((sums[span[:, 1]] > sums[span[:, 0]]) | whole[text])
        start += len(part)
    return np.concatenate(found)


def _flagged_signs(signs: NDArray[np.uint32], words: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the characters that belong to flagged words, among those of all texts with blanks and line breaks between
    words."""
    gap = (signs == ord(" ")) | (signs == ord("\n"))
    counts = ~gap & ~np.isin(signs, [ord(sign) for sign in string.punctuation])
    chunk = np.cumsum(gap)  # the characters between two gaps are one chunk
    kept = np.bincount(chunk[counts], minlength=int(chunk[-1]) + 1 if len(chunk) else 0) > 0
    if kept.sum() != len(words):
        raise TrainingError(f"{len(words):,} flags for {kept.sum():,} words: flag the words of these very texts")
    of_chunk = np.zeros(len(kept), bool)
    of_chunk[kept] = words
    return counts & of_chunk[chunk] if len(chunk) else counts


# ---------------------------------------------------------------- encode


CHUNK = 10_000  # texts passed to the tokenizer at a time; bounds the memory of its Python lists
MEGABATCH = 50  # batches that are sorted by length together, as in Hugging Face's length-grouped sampler


@dataclass(frozen=True)
class Tokens:
    """N encoded examples, concatenated.

    Attributes
    ----------
    columns
        the model's inputs by name, (T,) each: "input_ids", the word pieces of all examples, and, if the model takes it,
        "token_type_ids", 0 for the first text and 1 for the second
    offsets
        (N+1,) example i is columns[name][offsets[i]:offsets[i+1]]
    pad
        the id that pads short rows of a batch
    """

    columns: dict[str, torch.Tensor]
    offsets: torch.Tensor
    pad: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """(N,) number of word pieces of each example."""
        return self.offsets.diff().cpu().numpy()

    @property
    def vocabulary(self) -> torch.Tensor:
        """(V,) the ids that occur, ascending, with the padding id."""
        ids = self.columns["input_ids"]
        return torch.unique(torch.cat([ids, ids.new_tensor([self.pad])]))

    def __getitem__(self, keep: np.ndarray) -> Tokens:
        """Select examples by a boolean mask (N,) or integer positions; nothing is encoded again."""
        keep = np.asarray(keep)
        rows = torch.from_numpy(np.flatnonzero(keep) if keep.dtype == bool else keep.astype(np.int64))
        starts, lengths = self.offsets[rows], self.offsets.diff()[rows]
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        place = torch.arange(int(offsets[-1])) + (starts - offsets[:-1]).repeat_interleave(lengths)
        return Tokens({name: column[place] for name, column in self.columns.items()}, offsets, self.pad)

    def to(self, device: torch.device) -> Tokens:
        """Move the columns to `device`; the offsets stay on the CPU, where batches are planned."""
        return Tokens({name: column.to(device) for name, column in self.columns.items()}, self.offsets, self.pad)

    def batch(self, rows: np.ndarray) -> dict[str, torch.Tensor]:
        """The model's inputs for `rows` (B,), padded on the right to the longest of them (B, L).

        A batch without padding has no attention mask: the model then skips all masking, with the same result.
        """
        rows = torch.from_numpy(rows)
        start, end = self.offsets[rows, None], self.offsets[rows + 1, None]
        longest, shortest = int((end - start).max()), int((end - start).min())
        place = start + torch.arange(longest)  # (B, L)
        ids = self.columns["input_ids"]
        fill = (place >= end).to(ids.device, non_blocking=True) if shortest < longest else None
        place = place.clamp_(max=len(ids) - 1).to(ids.device, non_blocking=True)
        inputs = {name: column[place] for name, column in self.columns.items()}
        if fill is not None:
            for name, values in inputs.items():
                values.masked_fill_(fill, self.pad if name == "input_ids" else 0)
            inputs["attention_mask"] = (~fill).long()
        return inputs


def encode(texts: Sequence[str], others: Sequence[str] | None, tokenizer: Tokenizer, max_length: int) -> Tokens:
    """Tokenise N texts, or N pairs of texts; if a pair is too long, its longer text is cut first."""
    names = [name for name in ("input_ids", "token_type_ids") if name in tokenizer.model_input_names]
    cut = {"truncation": "longest_first", "max_length": max_length, "return_token_type_ids": "token_type_ids" in names}
    columns, lengths = _end_to_end(names, tokenizer, texts, others, **cut)
    offsets = torch.from_numpy(np.cumsum([0, *lengths], dtype=np.int64))
    columns = {name: torch.from_numpy(column) for name, column in columns.items()}
    return Tokens(columns, offsets, tokenizer.pad_token_id or 0)


def _tokenised(tokenizer: Tokenizer, *texts: Sequence[str] | None, **options: object) -> Iterator[dict]:
    """Tokenise `CHUNK` texts, or pairs of texts, at a time."""
    for start in range(0, len(texts[0]), CHUNK):
        part = [None if each is None else list(each[start : start + CHUNK]) for each in texts]
        yield tokenizer(*part, return_attention_mask=False, **options)


def _end_to_end(names: list[str], tokenizer: Tokenizer, *texts, **options) -> tuple[dict, list[int]]:
    """The columns `names` of all texts, each concatenated (T,), and the number of word pieces in each text."""
    columns, lengths = {name: [np.empty(0, np.int64)] for name in names}, []
    for encoded in _tokenised(tokenizer, *texts, **options):
        lengths += map(len, encoded["input_ids"])
        for name, parts in columns.items():
            parts.append(np.fromiter(chain.from_iterable(encoded[name]), np.int64))
    return {name: np.concatenate(parts) for name, parts in columns.items()}, lengths


def shuffled_batches(lengths: np.ndarray, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """One epoch's batches of rows (B,): every row once, rows of nearly equal length in a batch.

    The rows are shuffled, cut into groups of `MEGABATCH` batches, sorted by length inside a group and cut into batches.
    The same (lengths, batch_size, seed, epoch) gives the same batches, no matter what ran before.

    Notes
    -----
    *Departures*: Hugging Face's length-grouped sampler composes its batches in the same way but runs through a group
    from long to short; here the batches are shuffled too, so that length does not drift during training.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    group = batch_size * MEGABATCH
    batches = []
    for start in range(0, len(order), group):
        rows = order[start : start + group]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches += [rows[at : at + batch_size] for at in range(0, len(rows), batch_size)]
    return [batches[at] for at in random.permutation(len(batches))]


def sorted_batches(lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Batches of rows (B,) from long to short: if memory is too small, the first batch fails, and there is hardly any
    padding."""
    order = np.argsort(-lengths, kind="stable")
    return [order[at : at + batch_size] for at in range(0, len(order), batch_size)]
