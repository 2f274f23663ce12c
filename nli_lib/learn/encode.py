"""Tokens: a corpus as word pieces, tokenised once, and the batches that a pass over it takes.

tokens = encode(*corpus.texts("pair"), tokenizer, max_length=128)
for rows in shuffled_batches(tokens.lengths, batch_size=32, seed=0, epoch=3):
    inputs = tokens.batch(rows)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

CHUNK = 10_000  # texts given to the tokenizer at a time; bounds the memory of its Python lists
MEGABATCH = 50  # batches that are sorted by length together, as in Hugging Face's length-grouped sampler


@dataclass(frozen=True)
class Tokens:
    """N encoded examples laid end to end.

    columns   the model's inputs by name, (T,) each: "input_ids", the word pieces of all examples, and where the model
              takes it "token_type_ids", 0 for the first text and 1 for the second
    offsets   (N+1,) example i is columns[name][offsets[i]:offsets[i+1]]
    pad       the id that fills a short row of a batch
    """

    columns: dict[str, torch.Tensor]
    offsets: torch.Tensor
    pad: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """(N,) word pieces of each example."""
        return self.offsets.diff().cpu().numpy()

    @property
    def vocabulary(self) -> torch.Tensor:
        """(V,) the ids that occur, ascending, the padding id among them."""
        ids = self.columns["input_ids"]
        return torch.unique(torch.cat([ids, ids.new_tensor([self.pad])]))

    def __getitem__(self, keep: np.ndarray) -> "Tokens":
        """The examples named by a boolean mask (N,) or integer positions, encoded as they are here."""
        keep = np.asarray(keep)
        rows = torch.from_numpy(np.flatnonzero(keep) if keep.dtype == bool else keep.astype(np.int64))
        starts, lengths = self.offsets[rows], self.offsets.diff()[rows]
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        place = torch.arange(int(offsets[-1])) + (starts - offsets[:-1]).repeat_interleave(lengths)
        return Tokens({name: column[place] for name, column in self.columns.items()}, offsets, self.pad)

    def to(self, device: torch.device) -> "Tokens":
        """The same tokens with their columns on `device`; offsets stay where batches are planned, on the CPU."""
        return Tokens({name: column.to(device) for name, column in self.columns.items()}, self.offsets, self.pad)

    def batch(self, rows: np.ndarray) -> dict[str, torch.Tensor]:
        """The model's inputs for `rows` (B,), padded on the right to the longest of them (B, L).

        A batch without padding carries no attention mask: the model then skips every masking operation, with the
        same result.
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


def encode(
    texts: Sequence[str], others: Sequence[str] | None, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> "Tokens":
    """Tokenise N texts, or N pairs of texts, once; the longer text of a pair is cut first when it is too long."""
    names = [name for name in ("input_ids", "token_type_ids") if name in tokenizer.model_input_names]
    columns, lengths = {name: [np.empty(0, np.int64)] for name in names}, [0]
    for start in range(0, len(texts), CHUNK):
        chunk = slice(start, start + CHUNK)
        encoded = tokenizer(
            list(texts[chunk]),
            None if others is None else list(others[chunk]),
            truncation="longest_first",
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids="token_type_ids" in names,
        )
        lengths += map(len, encoded["input_ids"])
        for name, parts in columns.items():
            parts.append(np.fromiter(chain.from_iterable(encoded[name]), np.int64))
    offsets = torch.from_numpy(np.cumsum(lengths, dtype=np.int64))
    joined = {name: torch.from_numpy(np.concatenate(parts)) for name, parts in columns.items()}
    return Tokens(joined, offsets, tokenizer.pad_token_id or 0)


def shuffled_batches(lengths: np.ndarray, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """One epoch's batches of rows (B,), every row once, rows of one batch of nearly equal length.

    The rows are shuffled, cut into groups of `MEGABATCH` batches, sorted by length inside a group and cut into batches.
    The same (lengths, batch_size, seed, epoch) gives the same batches, whatever ran before.

    Departures: Hugging Face's length-grouped sampler composes its batches the same way but then runs through a group
    from long to short; here the order of the batches is shuffled too, so that length does not drift during training.
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
    """Batches of rows (B,) from long to short: a full memory shows at once, and padding is all but gone."""
    order = np.argsort(-lengths, kind="stable")
    return [order[at : at + batch_size] for at in range(0, len(order), batch_size)]
