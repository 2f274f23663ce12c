"""Optimal transport between two sets of equally heavy points: exactly by POT, and regularised by Sinkhorn's algorithm.

The regularised problem is solved on its dual side. An error of the potentials enters the dual value squared, so that
the steps can be taken in single precision and only the last in double. POT's solver in the logarithmic domain takes two
exponentials of every cost in each step; here the kernel is computed once and the steps are matrix products, and it is
computed again when the scalings leave the range of numbers (Schmitzer, 2019). Steps are over-relaxed by the factor that
the observed rate of convergence calls for (Lehmann et al., 2022).
"""

import numpy as np
from numpy.typing import NDArray

from nli_lib.errors import packages

TOLERANCE = (
    1e-5  # sum of the absolute errors of the marginals; single precision reaches 3e-6, the dual value squares it
)
STEPS = 20_000
LARGEST = 40.0  # logarithm of a scaling from which on it goes into the potentials; single precision ends at 88
WATCHED = 10  # steps between two looks at the error
ROWS = 256  # of the cost that are taken at once in double precision

State = tuple[NDArray[np.float64], NDArray[np.float64]]  # potentials (N,), (M,)


class NotConverged(ValueError):
    """Sinkhorn's algorithm did not reach its tolerance; the message says what to change."""


def cost_matrix(one: NDArray, other: NDArray) -> NDArray[np.float64]:
    """Squared Euclidean distances (N, M) between the rows of (N, D) and (M, D)."""
    cost = -2 * one @ other.T
    cost += (one**2).sum(axis=1)[:, None]
    cost += (other**2).sum(axis=1)[None]
    return np.maximum(cost, 0, out=cost)


def unit(vectors: NDArray) -> NDArray[np.float64]:
    """The vectors (N, D) at length 1; a zero vector stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors, dtype=np.float64) / np.where(length > 0, length, 1)


def exact_cost(cost: NDArray) -> float:
    """The least cost of moving N equally heavy points to M equally heavy ones, cost (N, M). POT's network simplex."""
    with packages("exact distances of data sets"):
        import ot

    weights = [np.full(size, 1 / size) for size in cost.shape]
    return float(ot.emd2(*weights, cost, numItermax=10_000_000))


def sinkhorn(
    cost: NDArray, regularisation: float, *, start: State | None = None, symmetric: bool = False
) -> tuple[float, State]:
    """The least value of <P, cost> + e KL(P | uniform) over couplings P of equally heavy points, and the potentials.

    cost       (N, M); regularisation e > 0, in its units
    start      potentials of a larger regularisation, or of a similar cost; without them the regularisation comes down
               from the largest cost by halves
    symmetric  whether cost is that of a set with itself: then one potential is enough, and a few steps

    The value is that of the dual at potentials of which one is exact for the other: never above the optimum, and below
    it by the square of the potentials' error. Raises `NotConverged` after `STEPS` steps.
    """
    f, g = (np.array(each) for each in start) if start else (np.zeros(size) for size in cost.shape)
    narrow = cost.astype(np.float32)
    levels, level = [regularisation], regularisation
    while start is None and level < cost.max():
        level *= 2
        levels.insert(0, level)
    for level in levels:
        f, g = _steps(narrow, level, f, g, symmetric, last=level == regularisation)
    f = _exact_potential(cost, g, regularisation)
    return float(f.mean() + g.mean()), (f, g)


def _steps(cost: NDArray, level: float, f: NDArray, g: NDArray, symmetric: bool, *, last: bool) -> State:
    """Potentials at one regularisation, from those given; for all but the last a few steps are enough."""
    (n, m), relax, errors = cost.shape, 1.0, []
    kernel, log_u, log_v = _kernel(cost, level, f, g), np.zeros(n), np.zeros(m)
    for step in range(1, (STEPS if last else WATCHED) + 1):
        row = kernel @ np.exp(log_v).astype(np.float32)  # (N,) times exp(log_u) / (N M): the marginal, 1 / N
        with np.errstate(divide="ignore"):
            gap = np.log(m) - np.log(row) - log_u
        if symmetric:
            log_u = log_u + gap / 2
            log_v = log_u
        else:
            log_u = log_u + relax * gap
            column = np.exp(log_u).astype(np.float32) @ kernel
            with np.errstate(divide="ignore"):
                log_v = log_v + relax * (np.log(n) - np.log(column) - log_v)
        finite = np.isfinite(log_u).all() and np.isfinite(log_v).all()
        if not finite:  # a row of the kernel vanished: one step in the logarithmic domain puts it right
            f = _exact_potential(cost, g, level)
            g = f if symmetric else _exact_potential(cost.T, f, level)
        if not finite or max(np.abs(log_u).max(), np.abs(log_v).max()) > LARGEST:
            if finite:
                f, g = f + level * log_u, g + level * log_v
            kernel, log_u, log_v, relax, errors = _kernel(cost, level, f, g), np.zeros(n), np.zeros(m), 1.0, []
            continue
        if step % WATCHED == 0:
            errors.append(float(np.abs(np.expm1(gap)).mean()))
            if errors[-1] < TOLERANCE:
                break
            relax = _relaxation(errors, relax, symmetric)
    else:
        if last:
            raise NotConverged(
                f"transport has not converged in {STEPS:,} steps at regularisation {level:g}, for costs up to "
                f"{cost.max():g} (error {errors[-1] if errors else np.inf:.1e}): take a larger one, or 0 for the exact "
                "value"
            )
    return f + level * log_u, g + level * log_v


def _relaxation(errors: list[float], relax: float, symmetric: bool) -> float:
    """The over-relaxation that the plain steps' rate calls for; back to 1 where the error has grown."""
    if symmetric or len(errors) < 3:
        return 1.0
    if errors[-1] > errors[-2]:
        errors.clear()
        return 1.0
    if relax > 1:
        return relax
    rate = min((errors[-1] / errors[-2]) ** (1 / WATCHED), 0.9999)  # of one step, both sides: the square of a side's
    return 2 / (1 + np.sqrt(1 - rate))


def _kernel(cost: NDArray, level: float, f: NDArray, g: NDArray) -> NDArray[np.float32]:
    """exp((f + g - cost) / level), (N, M) in single precision."""
    kernel = np.subtract(f.astype(np.float32)[:, None], cost)
    kernel += g.astype(np.float32)[None]
    kernel *= np.float32(1 / level)
    np.minimum(kernel, 80, out=kernel)
    return np.exp(kernel, out=kernel)


def _exact_potential(cost: NDArray, g: NDArray, level: float) -> NDArray[np.float64]:
    """The potential (N,) that fits g (M,): -e log mean exp((g - cost) / e) of each row, in double precision."""
    found = np.empty(len(cost))
    for start in range(0, len(cost), ROWS):
        exponent = (g[None] - cost[start : start + ROWS]) / level
        top = exponent.max(axis=1)
        found[start : start + ROWS] = -level * (top + np.log(np.exp(exponent - top[:, None]).mean(axis=1)))
    return found
