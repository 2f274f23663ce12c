"""Demonstrations for masked prompts: solved problems of the same direction, from premises that people have revised."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.edits import edit
from nli_lib.errors import UserError
from nli_lib.generate.perturbations import Demonstration, directions

COLUMNS = [*Demonstration._fields, "direction"]
NUMBER = {"e2c": 8, "c2e": 8}  # demonstrations of a prompt in the code of 2022; other directions have `FEW`
FEW = 4
LONGEST = 8  # words of a span or of what took its place
BATCH = 200  # problems that share their demonstrations in the code of 2022

Vectors = Callable[[Sequence[str]], NDArray]


class DemonstrationError(UserError, ValueError):
    """No demonstrations of a direction; the message says which, and where they can come from."""


def from_revisions(originals: Corpus, revised: Corpus) -> pd.DataFrame:
    """Demonstrations in premises that were revised towards another label: columns `COLUMNS`.

    revised  with origin_uid, as Human-CAD's revised premises and the planted counterfactuals have it

    A revision counts when one run of words was changed, no longer than `LONGEST` on either side, and some words of the
    premise stayed. Where the corpus says that a revision is broken, it is left out.
    """
    table = revised.table
    if "broken" in table:
        table = table[~table["broken"].astype(bool)]
    origin = originals.table.set_index("uid").reindex(table["origin_uid"])
    classes, rows = originals.classes, []
    columns = (origin["premise"], origin["label"], table["premise"], table["hypothesis"], table["label"])
    for before, old, after, hypothesis, new in zip(*columns, strict=True):
        if not isinstance(before, str) or old == new:
            continue
        try:
            span, output = edit(before, after)
        except ValueError:  # nothing in common, or nothing changed
            continue
        if max(len(span.split()), len(output.split())) <= LONGEST and span != before:
            rows.append((before, hypothesis, span, output, f"{classes[int(old)][0]}2{classes[int(new)][0]}"))
    return pd.DataFrame(rows, columns=COLUMNS)


def nearest(
    corpus: Corpus,
    problems: pd.DataFrame,
    pool: pd.DataFrame,
    vectors: Vectors,
    *,
    number: int | None = None,
    batch: int | None = None,
) -> list[list[Demonstration]]:
    """Of each problem the demonstrations of its direction that are nearest to it, the nearest last.

    pool     as `from_revisions` gives it; vectors: texts -> (N, D), of an encoder of sentences
    number   of them; None: eight towards or from both ends (e2c, c2e) and four otherwise, as in the code of 2022
    batch    None: each problem has its own. `BATCH` does what the code of 2022 did: it looks up the number of the batch
             in place of the number of the problem, so that all problems of a batch share those of one

    Near is the Euclidean distance of the vectors of premise and hypothesis, joined without a blank. A demonstration
    with the premise of the problem itself is left out.

    Source: D3 (`demonstration_search`). *Departures*: another encoder can take the place of the paper's,
    roberta-large-nli-mean-tokens. The code's option "cosine" takes the farthest, because it tests a built-in name; that
    is not here. Insertion has none, and the code none for n2e, which it asks by insertion alone; here `FEW`.
    Raises `DemonstrationError` where the pool has none of a direction.
    """
    found: list[list[Demonstration]] = [[] for _ in range(len(problems))]
    masked = (problems["mode"] == "masked").to_numpy()
    asked = directions(corpus, problems)
    for direction in pd.unique(asked[masked]):
        rows = np.flatnonzero(masked & (asked == direction))
        known = pool[pool["direction"] == direction]
        if known.empty:
            raise DemonstrationError(
                f"there is no demonstration of {direction}: name a corpus of revised premises in the dial "
                "(disco.demonstrations), or take fewer directions."
            )
        shown = [Demonstration(*row) for row in known[list(Demonstration._fields)].itertuples(index=False)]
        position = problems["position"].to_numpy()[rows]
        places, distinct = pd.factorize(position)
        texts = [corpus.premise[at] + corpus.hypothesis[at] for at in distinct]
        wanted = number or NUMBER.get(direction, FEW)
        taken = min(wanted + _most_alike(known["premise"]), len(shown))  # some may have to be left out
        index = NearestNeighbors(n_neighbors=taken, algorithm="brute").fit(
            vectors([each.premise + each.hypothesis for each in shown])
        )
        near = index.kneighbors(vectors(texts), return_distance=False)
        own = [
            [shown[at] for at in row if shown[at].premise != corpus.premise[position]][:wanted][::-1]
            for row, position in zip(near, distinct, strict=True)
        ]
        whose = np.arange(len(rows)) if batch is None else np.arange(len(rows)) // batch
        for row, problem in zip(rows, whose, strict=True):
            found[row] = own[places[problem]]
    return found


def at_random(
    corpus: Corpus, problems: pd.DataFrame, pool: pd.DataFrame, *, number: int | None = None, seed: int = 0
) -> list[list[Demonstration]]:
    """The control of `nearest`: as many demonstrations of the same direction, drawn at random without replacement.

    *Departures*: the code of 2023 draws four with replacement, once for a whole run.
    """
    rng = np.random.default_rng(seed)
    shown = {
        direction: [Demonstration(*row) for row in part[list(Demonstration._fields)].itertuples(index=False)]
        for direction, part in pool.groupby("direction")
    }
    asked = directions(corpus, problems)
    found = []
    for direction, mode in zip(asked, problems["mode"], strict=True):
        known = shown.get(direction, []) if mode == "masked" else []
        wanted = min(number or NUMBER.get(direction, FEW), len(known))
        found.append([known[at] for at in rng.permutation(len(known))[:wanted]])
    return found


def _most_alike(premises: pd.Series) -> int:
    """How many demonstrations have one premise, at most."""
    return int(premises.value_counts().iloc[0])
