"""How much of what the z-filter keeps is due to its settings, and to the size of the corpus."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.artifacts import Features, highest_z, join, prediction, z_statistics
from nli_lib.measure.partial_input import cross_fitted
from nli_lib.measure.shards import features_in_shards
from nli_lib.select.zfilter import Filtered, z_filter

FOLDS = 5
OFTEN = 20  # a highest z is read off the features that as many pairs have


def vary(
    tables: Mapping[str, Features], labels: ArrayLike, grid: Mapping[str, Iterable], **settings: object
) -> pd.DataFrame:
    """What the filter keeps when one setting is changed and all others stay: one row for each value of the `grid`.

    tables  features of the same N pairs by name, the first being the ones that all other rows use; labels (N,)
    grid    an argument of `z_filter` -> its values, or "features" -> names among `tables`; `settings` are all others
    Columns: what, value (text), kept (share), highest z (of the kept pairs, features of 20 pairs or more; NaN where
    there are none), overlap (`Selection.overlap` with the run of the settings).
    """
    first = next(iter(tables))

    def run(features: str = first, **changed: object) -> Filtered:
        return z_filter(tables[features].matrix, labels, names=tables[features].names, **(settings | changed))

    baseline, rows = run(), []
    for what, value in ((what, value) for what, values in grid.items() for value in values):
        found = run(**{what: value})
        facts = {"what": what, "value": str(value), "kept": found.keep.mean()}
        z = highest_z(found.statistics, min_count=OFTEN)
        rows.append({**facts, "highest z": z, "overlap": found.overlap(baseline)})
    return pd.DataFrame(rows)


def by_size(pool: Corpus, sizes: Iterable[int], seeds: Iterable[int], **settings: object) -> pd.DataFrame:
    """What the filter keeps of random parts of growing size, each contained in the next, and of the whole.

    pool   without its repeated pairs; seeds: orders of the filter; `settings` go to `z_filter`
    The features are those of `artifacts.features` and the cross-fitted prediction from the hypothesis alone, made anew
    for each part; a part too small for its five folds has no row. Columns: pool, pairs, seed, kept (share), highest z
    (after the filter) and before, both among features of 20 pairs or more, NaN where there are none.
    """
    once = np.flatnonzero(~pool.table.duplicated(["premise", "hypothesis"]).to_numpy())
    once, classes, rows = np.random.default_rng(0).permutation(once), len(pool.classes), []
    for size in sorted({min(size, len(once)) for size in (*sizes, len(once))}):
        part = pool[once[:size]]
        if min(np.bincount(part.labels, minlength=classes).min(), len(set(part.premise))) < FOLDS:
            continue
        held_out = cross_fitted(part.hypothesis, part.labels, n_classes=classes, groups=part.premise, folds=FOLDS)
        shape, predicted = features_in_shards(part.premise, part.hypothesis), held_out.argmax(axis=1)
        table = join(shape, prediction(predicted, n_classes=classes))
        before = highest_z(z_statistics(table.matrix, part.labels, classes), min_count=OFTEN)
        for seed in seeds:
            found = z_filter(table.matrix, part.labels, names=table.names, seed=seed, n_classes=classes, **settings)
            facts = {"pool": f"{pool.name} {pool.split}", "pairs": size, "seed": seed, "kept": found.keep.mean()}
            rows.append({**facts, "highest z": highest_z(found.statistics, min_count=OFTEN), "before": before})
    return pd.DataFrame(rows, columns=["pool", "pairs", "seed", "kept", "highest z", "before"])
