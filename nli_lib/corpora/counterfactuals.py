"""Revisions beside their originals, whoever made them: people (Human-CAD), GPT-3 (DISCO), the planted grammar.

pairs = load_pairs("cad", "test")

predict(run, pairs.original)[pairs.origin], predict(run, pairs.revised)
    # logits row by row

Revisions of a corpus's own pairs: which texts of a set of counterfactuals began as one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.corpus import LABELS, SIDES, Corpus, CorpusError, NotAtHandError, concat, to_index
from nli_lib.corpora.planted import counterfactuals
from nli_lib.corpora.sources import load


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """M originals, K revisions, and for each revision the position of its original.

    Attributes
    ----------
    original
        Corpus of M; revised: Corpus of K
    origin
        (K,) positions in `original`; an original can have several revisions
    """

    original: Corpus
    revised: Corpus
    origin: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.origin.shape != (len(self.revised),):
            raise CorpusError(f"{self.revised.name}: {self.origin.shape} origins for {len(self.revised):,} revisions")

    def __len__(self) -> int:
        return len(self.revised)

    def __getitem__(self, keep: NDArray) -> Counterfactuals:
        """The revisions named by a mask (K,) or positions, with all originals."""
        return replace(self, revised=self.revised[keep], origin=self.origin[keep])

    @property
    def old_labels(self) -> NDArray[np.int64]:
        """Gold labels of the originals, (K,)."""
        return self.original.labels[self.origin]

    @property
    def direction(self) -> NDArray[np.object_]:
        """From which label to which, (K,), as DISCO writes it: "e2n"."""
        initials = np.array([name[0] for name in self.original.classes], dtype=object)
        return initials[self.old_labels] + "2" + initials[self.revised.labels]

    @property
    def side(self) -> NDArray[np.object_]:
        """Which text was revised, (K,): "premise", "hypothesis", "both" or "none"."""
        moved = [getattr(self.revised, side) != getattr(self.original, side)[self.origin] for side in SIDES]
        return np.array(["none", "premise", "hypothesis", "both"], dtype=object)[moved[0] + 2 * moved[1]]

    def texts(self) -> tuple[list[str], list[str]]:
        """The revised text before and after the revision, (K,) each: the hypothesis where it alone was revised."""
        chosen = (self.side == "hypothesis")[:, None]
        old, new = (np.stack([c.premise, c.hypothesis], axis=1) for c in (self.original, self.revised))
        pick = np.where(chosen, [False, True], [True, False])
        return old[self.origin][pick].tolist(), new[pick].tolist()


def load_pairs(name: str, split: str, data_dir: str | Path | None = None, *, originals: int = 500) -> Counterfactuals:
    """A set of counterfactuals by name: "disco" (split "e2n", "all", ...), "cad" ("train", "validation", "test") or
    "planted" (a split of the planted corpus; so many ``originals``, each with two revisions)."""
    if name == "planted":
        original, revised = counterfactuals(originals, split=split)
        return pair_up(revised, original)
    if name == "cad":
        return pair_up(*(load(name, f"{folder}/{split}", data_dir) for folder in ("revised_combined", "original")))
    return pair_up(load(name, split, data_dir))


def pair_up(revised: Corpus, original: Corpus | None = None) -> Counterfactuals:
    """The revisions beside their originals; revisions whose original is not there are left out and counted.

    Parameters
    ----------
    original
        the corpus whose uids are the revisions' origin_uid; None: the columns origin_premise and origin_label of
        ``revised``, and origin_hypothesis where there is one (else the hypothesis is the original's)

    Raises
    ------
    CorpusError
        Naming the columns that are needed.
    """
    if original is None:
        original, origin = _from_columns(revised)
    elif "origin_uid" not in revised.table:
        where = f"{revised.name}/{revised.split}"
        raise CorpusError(f"{where}: the column origin_uid is missing, which names the originals")
    else:
        origin = pd.Index(original.uid).get_indexer(revised.table["origin_uid"])
    known = origin >= 0
    if not known.all():
        revised = replace(revised[known], skipped={**revised.skipped, "original not found": int((~known).sum())})
    return Counterfactuals(original, revised, origin[known])


def _from_columns(revised: Corpus) -> tuple[Corpus, NDArray[np.int64]]:
    """The distinct originals that the revisions name in columns of their own, and where each is."""
    if missing := [column for column in ("origin_premise", "origin_label") if column not in revised.table]:
        raise CorpusError(f"{revised.name}/{revised.split}: columns {missing} are missing, which hold the originals")
    table = revised.table
    hypothesis = table["origin_hypothesis"] if "origin_hypothesis" in table else table["hypothesis"]
    labels = to_index(table["origin_label"], revised.classes)
    whole = pd.DataFrame({"premise": table["origin_premise"], "hypothesis": hypothesis, "label": labels})
    known = ((labels >= 0) & whole.notna().all(axis=1)).to_numpy()
    origin = np.full(len(whole), -1)
    origin[known] = whole[known].groupby(list(whole), sort=False).ngroup()  # numbered as they come first
    kept = whole[known].drop_duplicates()
    name = str(table["origin_corpus"].iloc[0]) if "origin_corpus" in table and len(table) else revised.name
    uid = [f"{name}-origin-{revised.split}-{at}" for at in range(len(kept))]
    kept = kept.assign(uid=uid, corpus=name, split=revised.split)
    return Corpus(kept, name, revised.split, revised.classes, source=revised.source), origin


def one_of_each(origin: NDArray[np.int64], seed: int = 0) -> NDArray[np.int64]:
    """Ascending positions of one random row for each value of ``origin`` (K,)."""
    order = np.random.default_rng(seed).permutation(len(origin))
    return np.sort(order[np.unique(origin[order], return_index=True)[1]])


def from_table(table: pd.DataFrame, name: str) -> Counterfactuals:
    """Pairs of a table of one's own: premise, hypothesis, label (a number), origin_premise and origin_label (a name),
    as chapter 41 exports what a language model wrote."""
    uid = [f"{name}-{at}" for at in range(len(table))]
    return pair_up(Corpus(table.assign(uid=uid, corpus=name, split="written"), name, "written"))


def directions(classes: tuple[str, ...] = LABELS) -> list[str]:
    """The six directions of three labels, "e2n" and so on, in the order of the labels."""
    return [f"{one[0]}2{other[0]}" for one in classes for other in classes if one != other]


def join(sets: list[Counterfactuals], *, name: str) -> Counterfactuals:
    """Several sets as one, for example the directions of one maker; originals stay as many as they were."""
    shift = np.cumsum([0] + [len(each.original) for each in sets[:-1]])
    origin = np.concatenate([each.origin + by for each, by in zip(sets, shift, strict=True)])
    original = concat([each.original for each in sets], name=name, split="original")
    return Counterfactuals(original, concat([each.revised for each in sets], name=name, split="revised"), origin)


# ---------------------------------------------------------------- revisions


def revisions_of(
    corpus: Corpus, name: str, split: str, *, data_dir: str | Path | None = None, originals: int = 500
) -> tuple[Corpus, NDArray[np.int64]] | None:
    """The K revisions of pairs of ``corpus`` and the place (K,) in it of the pair that each revises; None without any.

    Parameters
    ----------
    name, split, originals
        of the set, as `corpora.counterfactuals.load_pairs` takes them; a set that is not at hand has no revisions
    """
    try:
        return matched(corpus, load_pairs(name, split, data_dir, originals=originals))
    except NotAtHandError:
        return None


def matched(corpus: Corpus, pairs: Counterfactuals) -> tuple[Corpus, NDArray[np.int64]] | None:
    """The same for a set that is loaded. An original is a pair of the corpus where both texts are equal, but for upper
    and lower case and white space at the ends; of equal pairs of the corpus it is the first."""
    place = pd.Series(np.arange(len(corpus)), _texts(corpus))
    place = place[~place.index.duplicated()]
    of = place.reindex(_texts(pairs.original)).to_numpy()[pairs.origin]
    known = np.isfinite(of)
    return (pairs.revised[known], of[known].astype(int)) if known.any() else None


def _texts(corpus: Corpus) -> pd.Index:
    sides = [pd.Series(side, dtype=str).str.strip().str.lower() for side in (corpus.premise, corpus.hypothesis)]
    return pd.Index(sides[0] + "\t" + sides[1])
