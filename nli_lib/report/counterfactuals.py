"""The quality of counterfactuals: tables of diversity, distance, flips and edits of several sets, side by side.

A set is a `Counterfactuals`; sets are given by title. Only directions that all of them have are compared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.counterfactuals import Counterfactuals, directions, one_of_each
from nli_lib.measure.counterfactual import KINDS, edits, flipped, negations, softly_flipped
from nli_lib.measure.similarity import otdd, self_bleu, words
from nli_lib.stats import Estimate, gaps_between, mean_over_premises, means_of, over_trainings, percentile_interval

Sets = Mapping[str, Counterfactuals]
Vectors = Mapping[str, tuple[NDArray, NDArray]]  # title -> vectors of the originals (M, D), of the revisions (K, D)
Measure = Callable[[str, NDArray], float]  # of a set's title and positions (n,)
ALL, ONE = "all", "one of each original"
BOTH, REVISED = "both texts", "revised text"
FLOOR = "other originals"
MOST = 500  # revisions of each set and direction that are compared by halves


def shared_directions(sets: Sets) -> list[str]:
    """The directions that every set has, in the order of the labels."""
    return [each for each in directions() if all((pairs.direction == each).any() for pairs in sets.values())]


# ---------------------------------------------------------------- diversity


def tokens_of(sets: Sets) -> dict[tuple[str, str], list[list[str]]]:
    """The words of each revision by title and by what is looked at: `BOTH` texts, or the `REVISED` one alone."""
    found = {}
    for title, pairs in sets.items():
        whole = [f"{one} {other}" for one, other in zip(*pairs.revised.texts(), strict=True)]
        found[title, BOTH], found[title, REVISED] = words(whole), words(pairs.texts()[1])
    return found


def bleu_of(tokens: Mapping[tuple[str, str], list[list[str]]], text: str = BOTH) -> Measure:
    """Self-BLEU as a `Measure`."""
    return lambda title, rows: float(self_bleu([tokens[title, text][row] for row in rows]).mean())


def diversity_table(sets: Sets, sizes: Sequence[int], draws: int) -> pd.DataFrame:
    """Self-BLEU of random parts: columns set, direction, text, revisions (`ALL`, or `ONE`), size, draw, value.

    sizes  revisions in a part; the whole is one more size, of which there is one draw where all revisions are taken. A
           set that has fewer has no such row. Draws are without replacement and differ by their number alone.
    """
    tokens, rows = tokens_of(sets), []
    for (title, pairs), direction in product(sets.items(), directions()):
        members = np.flatnonzero(pairs.direction == direction)
        for revisions, draw in product((ALL, ONE), range(draws)):
            pool = members if revisions == ALL else members[one_of_each(pairs.origin[members], draw)]
            pool = np.random.default_rng(draw).permutation(pool)
            wanted = [size for size in sizes if size < len(pool)] + [len(pool)] * (draw == 0 or revisions == ONE)
            for size, text in product(wanted, (BOTH, REVISED)):
                if size >= 2:
                    value = bleu_of(tokens, text)(title, pool[:size])
                    rows.append((title, direction, text, revisions, size, draw, value))
    return pd.DataFrame(rows, columns=["set", "direction", "text", "revisions", "size", "draw", "value"])


def half_difference(sets: Sets, measure: Measure, *, halves: int, most: int = MOST, revisions: str = ALL) -> Estimate:
    """``measure`` of the first set minus that of the second at equal counts, mean over the directions that both have.

    Each draw takes a random half of the originals of either set and of their revisions so many as both have (at most
    ``most``). The value is the mean over the draws and the interval their middle 95%; n counts the originals of the
    set that has fewer. No text is drawn twice, which Self-BLEU would take for a copy.
    """
    (one, other), shared = sets, shared_directions(sets)
    if not shared:
        raise ValueError(f"{one} and {other} have no direction in common: nothing can be compared")
    values = []
    for draw in range(halves):
        gaps = []
        for direction in shared:
            pools = [_half(sets[title], direction, draw, revisions) for title in (one, other)]
            size = min(most, *map(len, pools))
            first, second = (measure(title, pool[:size]) for title, pool in zip(sets, pools, strict=True))
            gaps.append(first - second)
        values.append(np.mean(gaps))
    n = min(len(np.unique(p.origin[np.isin(p.direction, shared)])) for p in sets.values())
    return percentile_interval(float(np.mean(values)), np.array(values), n=n, over="premises")


def _half(pairs: Counterfactuals, direction: str, draw: int, revisions: str) -> NDArray[np.int64]:
    """Positions of the revisions of a random half of the originals, in random order."""
    members = np.flatnonzero(pairs.direction == direction)
    random, origins = np.random.default_rng([draw, len(members)]), np.unique(pairs.origin[members])
    half = random.permutation(origins)[: max(2, len(origins) // 2)]
    members = members[np.isin(pairs.origin[members], half)]
    if revisions == ONE:
        members = members[one_of_each(pairs.origin[members], draw)]
    return random.permutation(members)


# ---------------------------------------------------------------- distance


def distance_of(sets: Sets, vectors: Vectors, *, regularisation: float | Sequence[float] = 0.1) -> Callable:
    """OTDD of a part's originals and revisions as a `Measure`; one value for each regularisation."""

    def measure(title: str, rows: NDArray) -> NDArray:
        pairs, (old, new) = sets[title], vectors[title]
        origins = np.unique(pairs.origin[rows])
        labels = pairs.original.labels[origins], pairs.revised.labels[rows]
        return otdd(old[origins], labels[0], new[rows], labels[1], regularisation=regularisation)

    return measure


def distance_table(
    sets: Sets, vectors: Mapping[str, Vectors], regularisations: Sequence[float], *, most: int, draws: int
) -> pd.DataFrame:
    """OTDD of originals and revisions: columns set, direction, embedding, regularisation, compared, size, draw, value.

    vectors   embedding -> `Vectors`
    compared  "revisions", or `FLOOR`: as many originals of the same direction that are not those of the part, which is
              what two samples of one kind are apart
    """
    rows = []
    for (embedding, each), (title, pairs) in product(vectors.items(), sets.items()):
        for direction, draw in product(shared_directions(sets), range(draws)):
            members = np.flatnonzero(pairs.direction == direction)
            part = np.random.default_rng(draw).permutation(members)[:most]
            there = {"embedding": embedding, "set": title, "direction": direction, "draw": draw, "size": len(part)}
            values = distance_of(sets, each, regularisation=regularisations)(title, part)
            rows += _lines({**there, "compared": "revisions"}, regularisations, values)
            origins = np.random.default_rng(draw).permutation(np.unique(pairs.origin[members]))[: 2 * most]
            half = len(origins) // 2
            if half:
                old, labels = each[title][0][origins], pairs.original.labels[origins]
                parts = old[:half], labels[:half], old[half : 2 * half], labels[half : 2 * half]
                values = otdd(*parts, regularisation=regularisations)
                rows += _lines({**there, "compared": FLOOR, "size": half}, regularisations, values)
    return pd.DataFrame(rows)


def _lines(there: dict, regularisations: Sequence[float], values: NDArray) -> list[dict]:
    return [{**there, "regularisation": e, "value": v} for e, v in zip(regularisations, values, strict=True)]


# ---------------------------------------------------------------- flips and edits


def judged_by_people(pairs: Counterfactuals) -> NDArray[np.int64] | None:
    """The label that people, or the planted grammar, give each revision (K,); None where nobody but its maker has."""
    table = pairs.revised.table
    if "true_label" in table:
        return table["true_label"].to_numpy(dtype=np.int64)
    human = "maker" in table and (table["maker"] == "worker").all()
    return pairs.revised.labels if human else None


def flip_table(sets: Sets, judgements: Mapping[tuple[str, str], NDArray]) -> pd.DataFrame:
    """Flip rates, one row for each set, direction and judge, hard and soft: columns set, judge, direction, rate ("flip"
    or "soft flip") and those of Estimate.

    judgements  (title, judge) -> labels (K,), or (S, K) of S trainings: then the interval is over trainings and
                originals, else over originals
    """
    rows = []
    for (title, judge), labels in judgements.items():
        pairs = sets[title]
        flips = {
            "flip": flipped(labels, pairs.revised.labels),
            "soft flip": softly_flipped(labels, pairs.old_labels),
        }
        for rate, direction in product(flips, directions()):
            here = pairs.direction == direction
            if here.any():
                value = flip_rate(flips[rate][..., here], pairs.origin[here])
                rows.append({"set": title, "judge": judge, "direction": direction, "rate": rate, **value._asdict()})
    columns = ["set", "judge", "direction", "rate", *Estimate._fields]
    return pd.DataFrame(rows, columns=columns)


def flip_rate(flips: NDArray, origin: NDArray) -> Estimate:
    """The share of True among ``flips``, (K,) or (S, K), over originals, or over trainings and originals."""
    if flips.ndim == 1:
        return mean_over_premises(flips, origin, resamples=500)
    return over_trainings(means_of(flips.astype(float)), flips.shape[1], groups=origin)


def flip_gap(sets: Sets, labels: Mapping[str, NDArray], direction: str) -> Estimate:
    """The flip rate of the first set minus that of the second in one direction, over trainings and originals.

    labels  title -> (S, K), what S models call each revision. n counts the originals of the set that has fewer.
    """
    flips, groups, sizes = [], [], []
    for title, pairs in sets.items():
        here = pairs.direction == direction
        if not here.any():
            raise ValueError(f"{title} has no revisions of the direction {direction}")
        flips.append(flipped(labels[title], pairs.revised.labels)[:, here].astype(float))
        groups.append([f"{title} {origin}" for origin in pairs.origin[here]])
        sizes.append(len(set(groups[-1])))
    values, first = np.concatenate(flips, axis=1), np.repeat([True, False], [each.shape[1] for each in flips])
    gap = gaps_between(values, *(np.broadcast_to(part, values.shape) for part in (first, ~first)))
    found = over_trainings(gap, values.shape[1], groups=np.concatenate(groups))
    return found._replace(n=min(sizes))


def edit_table(sets: Sets) -> pd.DataFrame:
    """What was edited, one row for each set, direction and revised side: revisions, words (of the text before, mean),
    distance (words, mean), share (distance / words, mean), start (mean of `Edits.start`), one column for each of
    `KINDS` and "negation added", shares of the revisions."""
    rows = []
    for title, pairs in sets.items():
        before, after = pairs.texts()
        found, added = edits(before, after), negations(after) > negations(before)
        table = pd.DataFrame({"set": title, "direction": pairs.direction, "side": pairs.side})
        table = table.assign(revisions=1, words=found.words, distance=found.distance)
        table["share"] = found.distance / np.maximum(found.words, 1)
        table = table.assign(start=found.start, **{kind: found.kind == kind for kind in KINDS})
        table["negation added"] = added
        keys = ["set", "direction", "side"]
        counted = table.groupby(keys, sort=False)
        means = counted.mean(numeric_only=True).drop(columns="revisions")
        rows.append(pd.concat([counted["revisions"].sum(), means], axis=1).reset_index())
    return pd.concat(rows, ignore_index=True)


# ---------------------------------------------------------------- Table 1


def counts_behind(
    hard: Sequence[float], soft: Sequence[float], averages: tuple[float, float], total: int, *, within: float = 0.0101
) -> pd.DataFrame:
    """The numbers of examples by direction that printed flip rates and their averages allow, one row a solution.

    hard, soft  printed percentages of D directions, two decimals; averages: theirs over all ``total`` examples
    within      how far a printed percentage may lie from k / n; a little more than .01, since some are rounded up

    A direction's n must make both its rates shares of whole examples, the n add up to ``total``, and the weighted means
    are the printed averages. Columns are the directions' positions. Source: DISCO, Table 1, whose averages are not
    plain means and which does not print the counts (D8).
    """
    options = [list(_whole(a, b, total, within)) for a, b in zip(hard, soft, strict=True)]
    found: dict[tuple[int, int, int], list[tuple[int, ...]]] = {(0, 0, 0): [()]}
    for choices in options:  # sums of n and of both counts so far -> the n that lead there
        grown: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
        for (n, k, m), paths in found.items():
            for size, flips, soft_flips in choices:
                if n + size <= total:
                    key = n + size, k + flips, m + soft_flips
                    grown.setdefault(key, []).extend([*path, size] for path in paths)
        found = grown
    near = [
        path
        for (n, k, m), paths in found.items()
        if n == total and all(abs(100 * c / total - a) <= within for c, a in zip((k, m), averages, strict=True))
        for path in paths
    ]
    return pd.DataFrame(near, columns=range(len(options)))


def _whole(hard: float, soft: float, most: int, within: float) -> Iterator[tuple[int, int, int]]:
    """All (n, k, m), n up to ``most``, for which k of n and m of n are the two percentages."""
    n = np.arange(1, most + 1)
    k, m = np.rint(n * hard / 100), np.rint(n * soft / 100)
    fits = (np.abs(100 * k / n - hard) <= within) & (np.abs(100 * m / n - soft) <= within)
    yield from zip(n[fits].tolist(), k[fits].astype(int).tolist(), m[fits].astype(int).tolist(), strict=True)


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Mean of values (D,) by weights (D,); the plain mean where all weigh the same."""
    return float(np.average(np.asarray(values, dtype=float), weights=np.asarray(weights, dtype=float)))
