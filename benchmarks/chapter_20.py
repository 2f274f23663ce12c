"""Chapter 20 on as many pairs as SNLI has: peak memory and seconds of each step, 200 copies each.

    PYTHONPATH=tests python benchmarks/chapter_20.py [pairs]          # 549,367 by default

Three pairs share a premise, as in SNLI. The texts are planted ones (with NLI_DATA set, real ones) over and over, in
which words are replaced by words of a Zipfian vocabulary without end (see `z_filter.py`), so that there are as many
rare features as in natural text. The aim is 8 GB.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from cells import functions  # those of the chapter; PYTHONPATH=tests
from z_filter import peak_gb, real_pairs, repeated

from nli_lib.measure.features import features, shuffled_labels, side_of, top_features, z_statistics, z_threshold
from nli_lib.stats import resample_counts

CELLS = functions("20_z_statistics")
AIM = 8  # GB
NAMED = {0: ["outside"], 1: ["for a", "his", "friends", "tall"], 2: ["sleeping", "nobody", "no"]}  # Table 12's words


def main(pairs: int = 549_367) -> None:
    premises, hypotheses, gold, names = real_pairs()
    distinct = -(-pairs // 3)
    premise = np.repeat(repeated(premises, distinct, 0.1, 0.05, 0).to_numpy(zero_copy_only=False), 3)[:pairs]
    hypothesis = repeated(hypotheses, pairs, 0.1, 0.05, 1).to_numpy(zero_copy_only=False)
    labels, clock = np.resize(gold, pairs), time.perf_counter()
    print(f"{pairs:,} pairs of {distinct:,} premises, text from {names}; peak {peak_gb():.1f} GB")

    def say(step: str) -> None:
        nonlocal clock
        print(f"{step:<28}{time.perf_counter() - clock:8.1f} s   peak {peak_gb():5.2f} GB", flush=True)
        clock = time.perf_counter()

    table = features(premise, hypothesis)
    say(f"{len(table.names):,} features")
    stats = z_statistics(table.matrix, labels)
    seen, line = stats.n >= 20, z_threshold(0.01, tests=stats.z.size)
    top_features(stats, table.names, k=5)
    say("z and the top")
    often = table.matrix[:, np.flatnonzero(seen)]
    copies = (z_statistics(often, shuffled_labels(labels, premise, seed=seed)) for seed in range(200))
    highest, above = CELLS.above_line(copies, side_of(table.names[seen]) == "hypothesis", line)
    say(f"{len(highest)} shuffled copies")
    del often
    weights = resample_counts(pairs, groups=premise)
    samples = (z_statistics(table.matrix, labels, weights=each) for each in weights)
    drawn = CELLS.table_12(samples, table.names, NAMED, line)
    say(f"{len(drawn)} resamples of premises")
    print(
        f"{'within' if peak_gb() <= AIM else 'ABOVE'} {AIM} GB; with shuffled labels {above.mean():.2%} above the line"
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
