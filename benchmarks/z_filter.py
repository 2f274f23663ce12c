"""The z-filter against Algorithm 1 written plainly with dictionaries, and its cost against the number of pairs.

    python benchmarks/z_filter.py                           # 550,000 pairs, both versions, same result
    python benchmarks/z_filter.py --plain 0 --sizes 50000 150000 500000 1500000 5000000 --draw cost.png
                                                            # seconds and peak memory against N, as a table and drawn

The pairs are real ones (SNLI and MultiNLI from NLI_DATA, else the planted corpus), shuffled and repeated; in each
repetition every word is replaced with probability `--replace`, by a word drawn from the corpus's own word counts or,
with probability `--coined` of the replaced, by a new word "w<number>" whose number is Zipf-distributed without end.
So features keep growing as in a corpus that is written on. The column "expected" continues the real pairs' own curve.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import resource
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from nli_lib.corpora.sources import load
from nli_lib.corpora.suites import load_each
from nli_lib.measure.features import Words, features_in_shards, tokenize
from nli_lib.plots import drawing
from nli_lib.select.zfilter import z_filter

MEMORY_AIM = 12  # GB for five million pairs
REAL = {
    "snli train": ("snli", "train"),
    "snli dev": ("snli", "validation"),
    "snli test": ("snli", "test"),
    "mnli matched": ("mnli", "validation_matched"),
    "mnli mismatched": ("mnli", "validation_mismatched"),
}


def real_pairs() -> tuple[Words, Words, np.ndarray, str]:
    """Words of the premises and of the hypotheses, one vocabulary, the labels, and where they are from; shuffled."""
    folder = os.environ.get("NLI_DATA")
    sets = load_each(REAL, folder)[0] if folder else {"planted": load("planted", "train", limit=60_000)}
    table = pd.concat([each.table for each in sets.values()], ignore_index=True).sample(frac=1, random_state=0)
    tokens = tokenize(np.concatenate([table["premise"], table["hypothesis"]]))
    return *tokens.split(len(table)), table["label"].to_numpy(), ", ".join(sets)


def repeated(tokens: Words, wanted: int, replace: float, coined: float, seed: int) -> pa.Array:
    """`wanted` texts as an Arrow column: the texts over and over, words replaced as the head of this file says."""
    random, words = np.random.default_rng(seed), len(tokens.vocabulary)
    share = np.cumsum(np.bincount(tokens.ids, minlength=words)) / len(tokens.ids)
    pieces, missing = [], wanted
    while missing > 0:
        rows = min(missing, len(tokens.offsets) - 1)
        ids, offsets = tokens.ids[: tokens.offsets[rows]].copy(), tokens.offsets[: rows + 1]
        at = np.flatnonzero(random.random(len(ids)) < replace) if pieces else np.empty(0, int)
        ids[at] = np.searchsorted(share, random.random(len(at)))
        new = at[random.random(len(at)) < coined]
        ids[new] = words + random.zipf(1.3, len(new)) % 10_000_000
        fresh, place = np.unique(ids[ids >= words], return_inverse=True)
        ids[ids >= words] = words + place
        coinage = pc.binary_join_element_wise("w", pa.array(fresh - words).cast(pa.string()), "")
        letters = pa.concat_arrays([tokens.vocabulary.cast(pa.large_string()), coinage.cast(pa.large_string())])
        lists = pa.LargeListArray.from_arrays(offsets, letters.take(pa.array(ids)))
        pieces.append(pc.binary_join(lists, pa.scalar(" ", pa.large_string())))
        missing -= rows
    return pa.concat_arrays(pieces)


def real_growth(premises: Words, hypotheses: Words) -> Callable[[int], float]:
    """Distinct features against N as a power law through an eighth of the real pairs and all of them."""
    sides, whole = (
        [repeated(side, len(side.offsets) - 1, 0, 0, 0) for side in (premises, hypotheses)],
        len(premises.offsets) - 1,
    )
    few, many = (features_in_shards(*(side[:n] for side in sides)).matrix.shape[1] for n in (whole // 8, whole))
    exponent = math.log(many / few) / math.log(8)
    print(f"distinct features of the real pairs: {many:,}, growing as N to the power of {exponent:.3f}\n")
    return lambda n: many * (n / whole) ** exponent


def plain(instances: list[list[str]], labels: list[int], order: list[int], k: int, batch_size: int) -> list[bool]:
    """Algorithm 1 with dictionaries: z anew for every feature of Z before every batch, ties exact."""
    counts, keep = defaultdict(lambda: [0, 0, 0]), [False] * len(labels)
    for start in range(0, len(order), batch_size):
        ranked = [[], [], []]
        for feature, by_label in counts.items():
            n = sum(by_label)
            for label in range(3):
                d = 3 * by_label[label] - n
                ranked[label].append((-d * abs(d) / n, -n, feature))
        biased = [{feature for *_, feature in heapq.nsmallest(k, ranked[label])} for label in range(3)]
        accepted = [at for at in order[start : start + batch_size] if biased[labels[at]].isdisjoint(instances[at])]
        for at in accepted:
            keep[at] = True
            for feature in instances[at]:
                counts[feature][labels[at]] += 1
    return keep


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def draw(costs: np.ndarray, path: str) -> None:
    """costs (sizes, 4): pairs, seconds for the features, seconds for the filter, peak memory in GB."""
    pairs, memory = costs[:, 0], costs[:, 3]
    with drawing(1, 2) as (figure, (time_axes, memory_axes)):
        for column, name in ((1, "features"), (2, "filter")):
            time_axes.loglog(pairs, costs[:, column], "o-", label=name)
        time_axes.loglog(pairs, costs[0, 1] * pairs / pairs[0], ":", color="grey", label="in proportion to the pairs")
        time_axes.set(xlabel="pairs", ylabel="seconds")
        time_axes.legend()
        memory_axes.semilogx(pairs, memory, "o-", label="peak, the texts included")
        memory_axes.axhline(MEMORY_AIM, ls=":", color="grey", label=f"the aim, {MEMORY_AIM} GB")
        memory_axes.set(xlabel="pairs", ylabel="memory (GB)", ylim=(0, None))
        memory_axes.legend()
        figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[550_000], help="pairs")
    parser.add_argument("--plain", type=int, default=550_000, help="largest size at which the dictionaries run too")
    parser.add_argument("--replace", type=float, default=0.1)
    parser.add_argument("--coined", type=float, default=0.05)
    parser.add_argument("--batch-size", type=int, default=1_000)
    parser.add_argument("--draw", help="picture to write: seconds and peak memory against N")
    given = parser.parse_args()

    premises, hypotheses, gold, names = real_pairs()
    print(f"real pairs: {len(gold):,} from {names}; replace {given.replace}, coined {given.coined}")
    sizes = sorted(given.sizes)
    texts = [
        repeated(side, sizes[-1], given.replace, given.coined, seed) for seed, side in enumerate((premises, hypotheses))
    ]
    labels = np.resize(gold, sizes[-1])
    print(f"texts made; peak {peak_gb():.1f} GB\n")
    growth = real_growth(premises, hypotheses)
    head = (
        "pairs",
        "distinct",
        "expected",
        "entries",
        "features s",
        "filter s",
        "kept",
        "peak GB",
        "plain s",
        "ratio",
        "same",
    )
    costs = []
    print("{:>10} {:>11} {:>11} {:>12} {:>11} {:>9} {:>7} {:>8} {:>9} {:>7} {:>6}".format(*head))
    for size in sizes:
        started = time.perf_counter()
        found = features_in_shards(texts[0][:size], texts[1][:size])
        made = time.perf_counter()
        kept = z_filter(found.matrix, labels[:size], names=found.names, batch_size=given.batch_size)
        ended = time.perf_counter()
        row = f"{size:10,d} {found.matrix.shape[1]:11,d} {growth(size):11,.0f} {found.matrix.nnz:12,d}"
        row += f" {made - started:11.1f} {ended - made:9.1f} {kept.keep.mean():7.3f} {peak_gb():8.2f}"
        if size <= given.plain:
            columns = found.names[found.matrix.indices].tolist()
            ends = found.matrix.indptr.tolist()
            instances = [columns[a:b] for a, b in pairwise(ends)]
            order = np.random.default_rng(0).permutation(size).tolist()
            again = time.perf_counter()
            keep = plain(instances, labels[:size].tolist(), order, 20, given.batch_size)
            seconds = time.perf_counter() - again
            row += f" {seconds:9.1f} {seconds / (ended - made):7.1f} {keep == kept.keep.tolist()!s:>6}"
        print(row, flush=True)
        costs.append((size, made - started, ended - made, peak_gb()))
    if given.draw:
        draw(np.array(costs), given.draw)


if __name__ == "__main__":
    main()
