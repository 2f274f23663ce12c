"""Nearest neighbours of the same label: ours against faiss's exact search, in turns, on the same vectors.

    pip install faiss-cpu
    python benchmarks/neighbours.py [--pairs 40000] [--queries 10000] [--width 1024] [--threads 1]

faiss is asked in its natural way: one flat index of inner products for each label, k + 1 neighbours, the seed taken
out. It computes in single precision, ours in double, so that ties are found and broken alike on every machine. Printed:
seconds of each round, the ratio of the medians, and the share of rows in which both find the same neighbours.
"""

import argparse
import time

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from nli_lib.measure.similarity import neighbours

K, ROUNDS = 4, 3


def drawn(pairs: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (N, D) in clusters, as those of a task model are, and labels (N,)."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, pairs)
    centres = random.normal(size=(3, 50, width)).astype(np.float32)
    noise = random.normal(size=(pairs, width)).astype(np.float32)
    return centres[labels, random.integers(0, 50, pairs)] + noise, labels


def by_faiss(vectors: np.ndarray, labels: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = np.full((len(seeds), K), -1)
    for label in np.unique(labels[seeds]):
        members, asked = np.flatnonzero(labels == label), np.flatnonzero(labels[seeds] == label)
        index = faiss.IndexFlatIP(unit.shape[1])
        index.add(unit[members])
        near = members[index.search(unit[seeds[asked]], K + 1)[1]]
        others = near != seeds[asked, None]
        order = np.argsort(~others, axis=1, kind="stable")[:, :K]
        found[asked] = np.take_along_axis(near, order, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=40_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=1_024)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    vectors, labels = drawn(given.pairs, given.width, seed=0)
    seeds = np.random.default_rng(1).choice(given.pairs, given.queries, replace=False)
    seconds, found = {"ours": [], "faiss": []}, {}
    faiss.omp_set_num_threads(given.threads)
    with threadpool_limits(given.threads):
        for _ in range(ROUNDS):
            for name, way in (("ours", neighbours), ("faiss", by_faiss)):
                clock = time.perf_counter()
                found[name] = way(vectors, labels, seeds)
                seconds[name].append(time.perf_counter() - clock)
    for name, each in seconds.items():
        print(f"{name}: {', '.join(f'{value:.1f}' for value in each)} s")
    same = (np.sort(found["ours"]) == np.sort(found["faiss"])).all(axis=1).mean()
    ratio = np.median(seconds["faiss"]) / np.median(seconds["ours"])
    print(f"{given.queries:,} queries in {given.pairs:,} x {given.width}, {given.threads} threads")
    print(f"faiss / ours: {ratio:.2f} (aim 1: not slower); same neighbours in {same:.2%} of the rows")


if __name__ == "__main__":
    main()
