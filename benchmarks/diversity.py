"""Self-BLEU against NLTK and OTDD against POT: seconds, ratios, the same values, and a figure of cost against N.

    python benchmarks/diversity.py [--sentences 5000] [--examples 5000] [--sizes 250 500 1000] [--figure cost.png]

**Self-BLEU.** NLTK's `sentence_bleu` is called for a sentence with all others as references. Its time for one sentence
is proportional to the number of references, and every sentence costs the same, so it is asked for ``--asked`` of the N
sentences, drawn at random, *each with its N - 1 references*, and the seconds are multiplied by N / asked. Values are
compared on those sentences. ``--whole`` asks it for all of them.

**OTDD.** POT is called as a reader would: one call for each pair of classes
(`ot.gaussian.bures_wasserstein_distance`), then Sinkhorn on the whole cost matrix, once for the two sets and once for
each set with itself, in every regularisation anew. At these regularisations the kernel of vectors of length 1 does not
underflow, so that POT's fastest solver is used (`method="sinkhorn"`, double precision), with its own threshold, 1e-9,
and as many steps as that takes; --threshold stops it earlier, and the difference of the values says what that costs.
Each regularisation is timed alone, and all of them as the chapter sweeps them, which ours does in one call. POT needs
a few steps at a large regularisation and thousands at a small one, and the ratios follow. One thread for both, in
turns, medians of --rounds.

Vectors are in clusters, as sentence vectors are; sentences are drawn from a vocabulary by Zipf's law.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import ot
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from threadpoolctl import threadpool_limits

from nli_lib.measure.similarity import otdd, self_bleu

ORDER, WIDTH, CLASSES = 3, 64, 3  # POT's Gaussian distance is NaN for classes of fewer examples than dimensions
REGULARISATIONS = (1.0, 0.1, 0.01)  # those of chapter 42 that are not exact
MOST_STEPS = 20_000


def sentences(n: int, seed: int = 0) -> list[list[str]]:
    random = np.random.default_rng(seed)
    lengths = random.integers(5, 30, n)
    return [[f"w{word}" for word in random.zipf(1.3, length) % 20_000] for length in lengths]


def seconds(run: Callable[[], object]) -> tuple[float, object]:
    clock = time.perf_counter()
    found = run()
    return time.perf_counter() - clock, found


def by_nltk(tokens: list[list[str]], asked: np.ndarray) -> list[float]:
    smooth, weights = SmoothingFunction().method1, (1 / ORDER,) * ORDER
    return [
        sentence_bleu(tokens[:at] + tokens[at + 1 :], tokens[at], weights, smoothing_function=smooth) for at in asked
    ]


def compare_bleu(n: int, asked: int, rounds: int) -> tuple[float, float, float]:
    """Seconds of ours, of NLTK for all n by the rule above, and the largest difference of a value."""
    tokens = sentences(n)
    chosen = np.random.default_rng(1).choice(n, min(asked, n), replace=False)
    ours = [seconds(lambda: self_bleu(tokens, order=ORDER)) for _ in range(rounds)]
    spent, wanted = seconds(lambda: by_nltk(tokens, chosen))
    apart = float(np.abs(ours[0][1][chosen] - wanted).max())
    return float(np.median([each[0] for each in ours])), spent * n / len(chosen), apart


def labelled(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, n)
    centres = np.random.default_rng(99).normal(size=(CLASSES, 60, WIDTH))
    vectors = centres[labels, random.integers(0, 60, n)] + random.normal(size=(n, WIDTH))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), labels


def pot_cost(one: tuple, two: tuple) -> np.ndarray:
    (x, labels), (y, others) = one, two
    cost = ot.dist(x, y)
    for a in range(CLASSES):
        for b in range(CLASSES):
            first, second = x[labels == a], y[others == b]
            moments = first.mean(0), second.mean(0), np.cov(first.T, bias=True), np.cov(second.T, bias=True)
            cost[np.ix_(labels == a, others == b)] += ot.gaussian.bures_wasserstein_distance(*moments) ** 2
    return cost / 2


def pot_value(cost: np.ndarray, regularisation: float, threshold: float) -> float:
    weights = [np.full(size, 1 / size) for size in cost.shape]
    plan = ot.sinkhorn(*weights, cost, regularisation, stopThr=threshold, numItermax=MOST_STEPS, warn=False)
    return float((plan * cost).sum() + regularisation * (plan * np.log(plan * plan.size)).sum())


def by_pot(one: tuple, two: tuple, threshold: float, regularisations: Sequence[float]) -> np.ndarray:
    """The debiased distance at every regularisation."""
    costs = [pot_cost(*pair) for pair in ((one, two), (one, one), (two, two))]
    values = np.array([[pot_value(cost, e, threshold) for e in regularisations] for cost in costs])
    return values[0] - values[1:].mean(axis=0)


def compare_otdd(n: int, rounds: int, threshold: float, regularisations: Sequence[float]) -> tuple[float, float, float]:
    """Seconds of ours and of POT, and the largest relative difference of a value."""
    one, two = labelled(n, 0), labelled(n, 1)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(seconds(lambda: otdd(*one, *two, regularisation=regularisations)))
        theirs.append(seconds(lambda: by_pot(one, two, threshold, regularisations)))
    apart = np.abs(ours[0][1] / theirs[0][1] - 1).max()
    return *(float(np.median([each[0] for each in way])) for way in (ours, theirs)), float(apart)


def draw(rows: list[tuple[str, int, float, float]], path: str) -> None:
    from nli_lib.plots import drawing

    with drawing(1, 2, height=3.0) as (figure, panels):
        for axes, title in zip(panels, ("Self-BLEU", "OTDD"), strict=True):
            part = [row for row in rows if row[0] == title]
            sizes = [row[1] for row in part]
            other = "NLTK" if title == "Self-BLEU" else "POT"
            axes.plot(sizes, [row[2] for row in part], marker="o", label="ours")
            axes.plot(sizes, [row[3] for row in part], marker="s", label=other)
            axes.set(xscale="log", yscale="log", title=title, xlabel="N", ylabel="seconds")
            axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=5_000)
    parser.add_argument("--asked", type=int, default=20, help="sentences that NLTK is asked for")
    parser.add_argument("--whole", action="store_true", help="ask NLTK for all of them")
    parser.add_argument("--examples", type=int, default=5_000, help="of each of the two sets")
    parser.add_argument("--sizes", type=int, nargs="*", default=[250, 500, 1_000, 2_000], help="smaller N beside those")
    parser.add_argument("--threshold", type=float, default=1e-9, help="at which POT stops")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figure", help="where the cost against N is drawn")
    given = parser.parse_args()
    rows = []
    with threadpool_limits(1):
        for n in sorted({*given.sizes, given.sentences}) if given.sentences else ():
            asked = n if given.whole else given.asked
            ours, theirs, apart = compare_bleu(n, asked, given.rounds)
            rows.append(("Self-BLEU", n, ours, theirs))
            said = (
                f"NLTK {theirs:.1f} s ({'measured' if asked >= n else f'{asked} of {n:,} measured, times N / asked'})"
            )
            print(f"Self-BLEU, {n:,} sentences: ours {ours:.3f} s, {said}: {theirs / ours:,.0f}x; apart {apart:.1e}")
        for n in sorted({*given.sizes, given.examples}) if given.examples else ():
            for sweep in (*((e,) for e in REGULARISATIONS), REGULARISATIONS):
                ours, theirs, apart = compare_otdd(n, given.rounds, given.threshold, sweep)
                said = f"ours {ours:.2f} s, POT {theirs:.2f} s: {theirs / ours:.1f}x; apart {apart:.1e}"
                print(f"OTDD, 2 x {n:,}, regularisation {', '.join(map(str, sweep))}: {said}")
            rows.append(("OTDD", n, ours, theirs))
    if given.figure:
        draw(rows, given.figure)


if __name__ == "__main__":
    main()
