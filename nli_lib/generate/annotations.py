"""What people made of generated pairs: two annotations a pair become one row of a corpus, by WANLI's rule.

An annotation is one row: item (the generated pair), annotator, premise and hypothesis as they were generated,
revised_premise and revised_hypothesis as the annotator leaves them, label (a name), and discarded (bool).
"""

import numpy as np
import pandas as pd

from nli_lib.errors import UserError
from nli_lib.generate.heuristics import UNPUNCTUATED

SIDES = ("premise", "hypothesis")
ORIGINS = ("origin_uid", "origin_corpus", "maker", "intended_label")  # see `nli_lib.corpora.corpus.Corpus`
REVISER = "worker"  # added to the maker of a text that somebody has revised
NEEDED = ("item", "annotator", *SIDES, *(f"revised_{side}" for side in SIDES), "label", "discarded")
DISCARDED, BOTH, COSMETIC, ONE, NONE = (
    "discarded by one of the two",
    "both revised: one of them, text and label",
    "one revised, punctuation or case alone: that revision",
    "one revised: the other's text and label",
    "neither revised: one of the two labels",
)


class AnnotationError(UserError, ValueError):
    """Annotations cannot be aggregated; the message names the item or the column."""


def aggregate(annotations: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """One row an item: item, premise, hypothesis, label, genre, rule; the texts of a discarded one are missing.

    rule   the first of five that applies to two annotations in random order (decided by ``seed``): `DISCARDED`, `BOTH`,
           `COSMETIC`, `ONE`, `NONE`
    genre  "generated_revised" where a text that is kept differs from what was generated, else "generated"

    Of more than two annotations of an item two are drawn; fewer are an error. Source: WANLI, section 2.4, and its
    `process_annotations_into_wanli.py` (W12). *Departures*: the paper says that a revision is kept only where both
    revise; its code keeps one that changes no more than punctuation and case as well, and so do we.
    """
    first, second = _two_each(annotations, seed)
    revised = [_revised(each) for each in (first, second)]
    only = np.where(revised[0], 0, 1)  # whose revision it is, where one revises
    cosmetic = np.where(revised[0], _cosmetic(first), _cosmetic(second))
    applies = {
        DISCARDED: first["discarded"].to_numpy() | second["discarded"].to_numpy(),
        BOTH: revised[0] & revised[1],
        COSMETIC: (revised[0] ^ revised[1]) & cosmetic,
        ONE: revised[0] ^ revised[1],
    }
    rule = np.select(list(applies.values()), list(applies), default=NONE)
    taken = np.select([rule == COSMETIC, rule == ONE], [only, 1 - only], default=0).astype(bool)
    columns = {"premise": "revised_premise", "hypothesis": "revised_hypothesis", "label": "label"}
    kept = {name: np.where(taken, second[column], first[column]) for name, column in columns.items()}
    changed = np.logical_or.reduce([kept[side] != first[side].to_numpy() for side in SIDES])
    genre = np.where(changed, "generated_revised", "generated")
    table = pd.DataFrame({"item": first["item"].to_numpy(), **kept, "genre": genre, "rule": rule})
    table.loc[table["rule"] == DISCARDED, [*columns, "genre"]] = None
    return table


def reviewed(pairs: pd.DataFrame, annotations: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """The corpus that a review leaves: the pairs that two annotators answered and neither discarded.

    uid, premise, hypothesis, label, then `ORIGINS`, genre and rule (see `aggregate`).
    The maker of a text that somebody revised is who made the pair, and "worker".
    """
    own = annotations[["item", *SIDES]].merge(pairs[["item", *SIDES]], on="item", how="left", suffixes=("", "_now"))
    other = np.logical_or(*(own[side] != own[f"{side}_now"] for side in SIDES))
    if other.any():
        item = own.loc[other, "item"].iloc[0]
        raise AnnotationError(f"pair {item!r} is not there, or its text is not the one that was annotated")
    kept = aggregate(annotations, seed=seed)
    kept = kept[kept["rule"] != DISCARDED].rename(columns={"item": "uid"}).reset_index(drop=True)
    origin = pairs.set_index("item")[list(ORIGINS)].reindex(kept["uid"]).reset_index(drop=True)
    table = kept.join(origin)
    both = table["maker"].map(lambda maker: ", ".join(filter(None, (maker, REVISER))))
    table["maker"] = table["maker"].where(table["genre"] == "generated", both)
    return table[["uid", *SIDES, "label", *ORIGINS, "genre", "rule"]]


def untouched(annotations: pd.DataFrame) -> np.ndarray:
    """(n, 2) the two labels of each item that both annotators neither revised nor discarded, by name."""
    both = _two_each(annotations, seed=0)
    labels = np.stack([each["label"].to_numpy(dtype=object) for each in both], axis=1)
    touched = [_revised(each) | each["discarded"].to_numpy() for each in both]
    return labels[~np.logical_or(*touched)]


def revisions(annotations: pd.DataFrame) -> pd.DataFrame:
    """Every revised text, a row each: item, annotator, side ("premise" or "hypothesis"), before, after."""
    kept = annotations[~annotations["discarded"].astype(bool)]
    parts = [
        kept.assign(side=side, before=kept[side], after=kept[f"revised_{side}"]).query("before != after")
        for side in SIDES
    ]
    return pd.concat(parts, ignore_index=True)[["item", "annotator", "side", "before", "after"]]


def _two_each(annotations: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two annotations of each item, in random order, as two tables whose rows are the items in their order."""
    if lacking := [name for name in NEEDED if name not in annotations]:
        raise AnnotationError(f"annotations lack the column {lacking[0]}; they need {', '.join(NEEDED)}")
    table = annotations.astype({"discarded": bool})
    twice = table.duplicated(["item", "annotator"])
    if twice.any():
        raise AnnotationError(f"item {table.loc[twice, 'item'].iloc[0]} has two annotations of one annotator")
    mixed = table.iloc[np.random.default_rng(seed).permutation(len(table))].groupby("item", sort=True)
    if (few := mixed.size()[mixed.size() < 2]).size:
        raise AnnotationError(f"item {few.index[0]} has one annotation, and two are needed")
    return mixed.nth(0).sort_values("item"), mixed.nth(1).sort_values("item")


def _revised(table: pd.DataFrame) -> np.ndarray:
    changed = [table[side].to_numpy() != table[f"revised_{side}"].to_numpy() for side in SIDES]
    return np.logical_or(*changed) & ~table["discarded"].to_numpy()


def _cosmetic(table: pd.DataFrame) -> np.ndarray:
    """Whether both texts are what was generated but for punctuation and case."""
    bare = {name: table[name].str.lower().str.translate(UNPUNCTUATED) for name in table if name.endswith(SIDES)}
    return np.logical_and(*((bare[side] == bare[f"revised_{side}"]).to_numpy() for side in SIDES))
