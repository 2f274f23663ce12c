"""Human review, by WANLI: an annotator works through a queue of pairs, and the answers of two make a corpus::

    review = Review(pairs(corpus), folder, "anna", seed=0)
    review.pair                                                 # the next pair, None when all are done
    review.label(review.pair["item"], "neutral", premise=..., hypothesis=...)
    aggregate(annotations(folder))                              # of all annotators

Every answer is written to disk at once: after a kill at any moment, the same call continues at the first pair without
an answer. Each annotator has a file of answers in the folder, and a review reads no other, so nobody sees another's
answers. Nobody sees the intended label or the author of the pair either: `Review.pair` has only the two texts, as on
WANLI's page (Figure 8).

An annotation is one row: item (the generated pair), annotator, premise and hypothesis as generated, revised_premise and
revised_hypothesis as the annotator leaves them, label (a name), and discarded (bool).
"""

import re
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field, ValidationError

from nli_lib.corpora.corpus import LABELS, SIDES, Corpus, CorpusError
from nli_lib.corpora.reading import LONGEST
from nli_lib.generate.journal import Appended, Line
from nli_lib.generate.pairs import UNPUNCTUATED
from nli_lib.store import now

ORIGINS = ("origin_uid", "origin_corpus", "maker", "intended_label")  # see `nli_lib.corpora.corpus.Corpus`
REVISER = "worker"  # added to the maker of a revised text
NEEDED = ("item", "annotator", *SIDES, *(f"revised_{side}" for side in SIDES), "label", "discarded")
DISCARDED = "discarded by one of the two"
BOTH = "both revised: one of them, text and label"
COSMETIC = "one revised, punctuation or case alone: that revision"
ONE = "one revised: the other's text and label"
NONE = "neither revised: one of the two labels"


def aggregate(annotations: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Merge annotations into one row for each item: item, premise, hypothesis, label, genre, rule; a discarded item has
    no texts.

    rule
        the first of five that applies to two annotations in random order (decided by ``seed``): `DISCARDED`, `BOTH`,
        `COSMETIC`, `ONE`, `NONE`
    genre
        "generated_revised" if a kept text differs from the generated one, else "generated"

    If an item has more than two annotations, two are drawn; fewer are an error. Source: WANLI, section 2.4, and its
    `process_annotations_into_wanli.py` (W12). *Departures*: the paper says that a revision is kept only if both revise;
    its code also keeps one that changes only punctuation and case, and so do we.
    """
    first, second = _two_each(annotations, seed)
    revised = [_revised(each) for each in (first, second)]
    only = np.where(revised[0], 0, 1)  # the annotator who revised, if only one did
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
    """The corpus after a review: the pairs that two annotators answered and neither discarded.

    Columns: uid, premise, hypothesis, label, then `ORIGINS`, genre and rule (see `aggregate`). The maker of a revised
    text is the pair's maker and "worker".
    """
    own = annotations[["item", *SIDES]].merge(pairs[["item", *SIDES]], on="item", how="left", suffixes=("", "_now"))
    other = np.logical_or(*(own[side] != own[f"{side}_now"] for side in SIDES))
    for item in own.loc[other, "item"]:
        raise CorpusError(f"pair {item!r} is not there, or its text is not the one that was annotated")
    table = aggregate(annotations, seed=seed).merge(pairs[["item", *ORIGINS]], on="item", how="left")
    table = table[table["rule"] != DISCARDED].rename(columns={"item": "uid"}).reset_index(drop=True)
    both = table["maker"].map(lambda maker: ", ".join(filter(None, (maker, REVISER))))
    table["maker"] = table["maker"].where(table["genre"] == "generated", both)
    return table[["uid", *SIDES, "label", *ORIGINS, "genre", "rule"]]


def untouched(annotations: pd.DataFrame) -> np.ndarray:
    """(n, 2) the two labels, by name, of each item that neither annotator revised or discarded."""
    both = _two_each(annotations, seed=0)
    labels = np.stack([each["label"].to_numpy(dtype=object) for each in both], axis=1)
    touched = [_revised(each) | each["discarded"].to_numpy() for each in both]
    return labels[~np.logical_or(*touched)]


def _two_each(annotations: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two annotations of each item, in random order, as two tables with one row for each item, in their order."""
    if lacking := [name for name in NEEDED if name not in annotations]:
        raise CorpusError(f"annotations lack the column {lacking[0]}; they need {', '.join(NEEDED)}")
    table = annotations.astype({"discarded": bool})
    for item in table.loc[table.duplicated(["item", "annotator"]), "item"]:
        raise CorpusError(f"item {item} has two annotations of one annotator")
    mixed = table.iloc[np.random.default_rng(seed).permutation(len(table))].groupby("item", sort=True)
    if (few := mixed.size()[mixed.size() < 2]).size:
        raise CorpusError(f"item {few.index[0]} has one annotation, and two are needed")
    return mixed.nth(0).sort_values("item"), mixed.nth(1).sort_values("item")


def _revised(table: pd.DataFrame) -> np.ndarray:
    changed = [table[side].to_numpy() != table[f"revised_{side}"].to_numpy() for side in SIDES]
    return np.logical_or(*changed) & ~table["discarded"].to_numpy()


def _cosmetic(table: pd.DataFrame) -> np.ndarray:
    """True if both texts equal the generated ones except for punctuation and case."""
    bare = {name: table[name].str.lower().str.translate(UNPUNCTUATED) for name in table if name.endswith(tuple(SIDES))}
    return np.logical_and(*((bare[side] == bare[f"revised_{side}"]).to_numpy() for side in SIDES))


# ---------------------------------------------------------------- review


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Answer(Line):
    """An annotator's answer to one pair, with the pair as shown; or the withdrawal of the last answer to it."""

    act: Literal["label", "discard", "undo"]
    item: str
    premise: str = ""
    hypothesis: str = ""
    revised_premise: str = Field("", description="as the annotator leaves it; of a discarded pair, as it was shown")
    revised_hypothesis: str = ""
    label: Literal[LABELS] | None = None
    given: str = Field(description="when, UTC")


class Answers(Appended):
    """One annotator's valid answers, by pair and in the order in which they were given."""

    line, cure, patience = Answer, "Delete the line: its pair is shown again.", 10

    def _clear(self) -> None:
        self.standing: dict[str, Answer] = {}

    def _take(self, line: Answer) -> None:
        self.standing.pop(line.item, None)
        if line.act != "undo":
            self.standing[line.item] = line


class Review:
    """The queue of one annotator: `pair` is the first without an answer; `label` or `discard` it, or `undo` the last
    answer.

    Two windows may be open at once: the first answer to a pair counts, and the second is refused.

    Attributes
    ----------
    pairs
        item (unique), premise and hypothesis; other columns are not shown
    folder
        folder with the answers of all annotators
    annotator
        1 to 64 ASCII letters, digits, dots, underscores and hyphens
    seed
        seed of the order of the queue, which is the same for all annotators
    """

    def __init__(self, pairs: pd.DataFrame, folder: Path, annotator: str, *, seed: int = 0):
        if not NAME.fullmatch(annotator):
            raise CorpusError(f"annotator {annotator!r}: write 1 to 64 ASCII letters, digits, dots, _ and -.")
        self.annotator = annotator
        self._queue = {pair["item"]: pair for pair in queue(pairs, seed)}
        self.answers = Answers(Path(folder) / f"answers.{annotator}.jsonl")
        for item, answer in self.answers.standing.items():
            if item in self._queue and any(getattr(answer, side) != self._queue[item][side] for side in SIDES):
                raise CorpusError(
                    f"{self.answers.path}: pair {item!r} was answered when its text was another. Restore the pairs, or "
                    "move the answers away to begin again."
                )

    @property
    def pair(self) -> dict[str, str] | None:
        """The next item with its premise and hypothesis; None if every pair has an answer."""
        return next((pair for item, pair in self._queue.items() if item not in self.answers.standing), None)

    @property
    def progress(self) -> tuple[int, int]:
        """(number of answered pairs, number of pairs)."""
        return sum(item in self.answers.standing for item in self._queue), len(self._queue)

    def label(self, item: str, label: str, *, premise: str, hypothesis: str) -> None:
        """Give a pair its label, with the two texts as the annotator leaves them, revised or not."""
        shown, given = self._known(item), {"premise": premise, "hypothesis": hypothesis}
        left = {side: as_left(shown[side], text) for side, text in given.items()}
        for side, text in left.items():
            if not text.strip() or "\0" in text or len(text) > LONGEST:
                raise CorpusError(
                    f"pair {item!r}: the {side} must have 1 to {LONGEST:,} characters and no NUL. Restore it, or "
                    "discard the pair."
                )
        self._give("label", item, label=label, **{f"revised_{side}": text for side, text in left.items()})

    def discard(self, item: str) -> None:
        """Discard a pair; it gets no revision and no label."""
        self._give("discard", item, **{f"revised_{side}": self._known(item)[side] for side in SIDES})

    def undo(self) -> None:
        """Withdraw the last answer; its pair is shown again. Without an answer nothing happens."""
        with self.answers:
            if given := [item for item in self.answers.standing if item in self._queue]:
                self.answers.add(Answer(act="undo", item=given[-1], given=now()))

    def _known(self, item: str) -> dict[str, str]:
        if item not in self._queue:
            raise CorpusError(f"pair {item!r} is not in this queue of {len(self._queue):,} pairs.")
        return self._queue[item]

    def _give(self, act: str, item: str, **said: str) -> None:
        try:
            answer = Answer(act=act, **self._known(item), **said, given=now())
        except ValidationError as error:
            first = error.errors()[0]
            raise CorpusError(f"pair {item!r}, field {first['loc'][0]}: {first['msg']}.") from None
        with self.answers:
            if item not in self.answers.standing:
                self.answers.add(answer)


def queue(pairs: pd.DataFrame, seed: int = 0) -> list[dict[str, str]]:
    """The items, premises and hypotheses that annotators see, in an order drawn with ``seed``."""
    if (again := pairs["item"].duplicated()).any():
        raise CorpusError(f"item {pairs.loc[again, 'item'].iloc[0]!r} names two pairs: give each a name of its own.")
    order = np.random.default_rng(seed).permutation(len(pairs))
    return pairs[["item", *SIDES]].iloc[order].to_dict("records")


def as_left(shown: str, left: str) -> str:
    """The text that an annotator leaves: ``shown`` itself if only its line ends differ.

    A browser's text field turns every line end into a line feed, which is not a revision.
    """
    one, other = (re.sub(r"\r\n?", "\n", text) for text in (shown, left))
    return shown if one == other else left


def annotations(folder: Path) -> pd.DataFrame:
    """The annotations in a folder, by all annotators, one row for each valid answer; see the module for the columns."""
    rows = []
    for path in sorted(Path(folder).glob("answers.*.jsonl")):
        annotator = path.name.removeprefix("answers.").removesuffix(".jsonl")
        for answer in Answers(path).standing.values():
            rows.append(answer.model_dump() | {"annotator": annotator, "discarded": answer.act == "discard"})
    return as_table(rows)


def as_table(rows: list[dict]) -> pd.DataFrame:
    """Make a table of annotations from rows, even if there are none."""
    return pd.DataFrame(rows, columns=list(NEEDED)).astype({"discarded": bool})


def pairs(corpus: Corpus) -> pd.DataFrame:
    """Make a queue of a corpus: item (its uid), premise, hypothesis, and the columns of `ORIGINS`, as far as known.

    Without an intended label, the pair's label is used; without an origin, the pair is its own origin.
    """
    table = corpus.table.reindex(columns=["uid", *SIDES, *ORIGINS]).rename(columns={"uid": "item"})
    table = table.astype(object).where(table.notna(), None)
    itself = table["origin_uid"].isna() & table["origin_corpus"].isna()
    table.loc[itself, "origin_uid"], table.loc[itself, "origin_corpus"] = table["item"], corpus.name
    label = pd.Series(np.array(corpus.classes, dtype=object)[corpus.labels])
    return table.assign(intended_label=table["intended_label"].where(table["intended_label"].notna(), label))
