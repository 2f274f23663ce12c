"""Human review: one annotator's way through a queue of pairs, every answer kept on disk the moment it is given.

    review = Review(pairs(corpus), folder, "anna", seed=0)
    review.pair                                                 # the pair to look at, None when all are done
    review.label(review.pair["item"], "neutral", premise=..., hypothesis=...)
    annotations(folder)                                         # of all annotators, for `generate.annotations`

Each annotator has a file of answers in the folder, and a review reads no other, so that nobody sees what another said.
Nor does anybody see the intended label or who wrote the pair: `Review.pair` has the two texts alone, as WANLI's page
has (Figure 8). Killed at any moment, the same call continues at the first pair without an answer.
"""

import re
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field, ValidationError

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.labels import LABELS
from nli_lib.corpora.load.rows import LONGEST
from nli_lib.errors import UserError
from nli_lib.generate.annotations import NEEDED, ORIGINS, SIDES
from nli_lib.generate.appended import Appended, Line
from nli_lib.store import now

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class ReviewError(UserError, ValueError):
    """An answer cannot be taken or read; the message names the file or the pair, and what to do."""


class Answer(Line):
    """What an annotator said of one pair, with the pair as it was shown; or that the last answer to it is undone."""

    act: Literal["label", "discard", "undo"]
    item: str
    premise: str = ""
    hypothesis: str = ""
    revised_premise: str = Field("", description="as the annotator leaves it; of a discarded pair, as it was shown")
    revised_hypothesis: str = ""
    label: Literal[LABELS] | None = None
    given: str = Field(description="when, UTC")


class Answers(Appended[Answer]):
    """One annotator's answers that stand, by their pair and in the order in which they were given: `standing`."""

    line, error, patience = Answer, ReviewError, 10
    cure = "Delete the line: its pair is shown again."

    def _clear(self) -> None:
        self.standing: dict[str, Answer] = {}

    def _take(self, line: Answer) -> None:
        self.standing.pop(line.item, None)
        if line.act != "undo":
            self.standing[line.item] = line


class Review:
    """The queue of one annotator: `pair`, the first without an answer, then `label` or `discard` it, or `undo`.

    pairs      item (unique), premise and hypothesis; other columns are not shown
    folder     where the answers of all annotators lie
    annotator  1 to 64 ASCII letters, digits, dots, underscores and hyphens
    seed       decides the order of the queue, which is the same for all annotators

    Two windows may be open at once: the first answer to a pair counts, and the second is not taken.
    """

    def __init__(self, pairs: pd.DataFrame, folder: Path, annotator: str, *, seed: int = 0):
        if not NAME.fullmatch(annotator):
            raise ReviewError(f"annotator {annotator!r}: write 1 to 64 ASCII letters, digits, dots, _ and -.")
        self.annotator = annotator
        self._queue = {pair["item"]: pair for pair in queue(pairs, seed)}
        self.answers = Answers(_file(folder, annotator))
        for item, answer in self.answers.standing.items():
            if item in self._queue and any(getattr(answer, side) != self._queue[item][side] for side in SIDES):
                raise ReviewError(
                    f"{self.answers.path}: pair {item!r} was answered when its text was another. Restore the pairs, or "
                    "move the answers away to begin again."
                )

    @property
    def pair(self) -> dict[str, str] | None:
        """The item, premise and hypothesis to look at; None when every pair has its answer."""
        return next((pair for item, pair in self._queue.items() if item not in self.answers.standing), None)

    @property
    def progress(self) -> tuple[int, int]:
        """(pairs that are answered, pairs)."""
        return sum(item in self.answers.standing for item in self._queue), len(self._queue)

    def label(self, item: str, label: str, *, premise: str, hypothesis: str) -> None:
        """Give a pair its label, with the two texts as the annotator leaves them, revised or not."""
        shown, given = self._known(item), {"premise": premise, "hypothesis": hypothesis}
        left = {side: as_left(shown[side], text) for side, text in given.items()}
        for side, text in left.items():
            if not text.strip() or "\0" in text or len(text) > LONGEST:
                raise ReviewError(
                    f"pair {item!r}: the {side} must have 1 to {LONGEST:,} characters and no NUL. Restore it, or "
                    "discard the pair."
                )
        self._give("label", item, label=label, **{f"revised_{side}": text for side, text in left.items()})

    def discard(self, item: str) -> None:
        """Throw a pair out; it takes no revision and no label."""
        self._give("discard", item, **{f"revised_{side}": self._known(item)[side] for side in SIDES})

    def undo(self) -> None:
        """Take the last answer back; its pair is shown again. Without an answer nothing happens."""
        with self.answers:
            if given := [item for item in self.answers.standing if item in self._queue]:
                self.answers.add(Answer(act="undo", item=given[-1], given=now()))

    def _known(self, item: str) -> dict[str, str]:
        if item not in self._queue:
            raise ReviewError(f"pair {item!r} is not in this queue of {len(self._queue):,} pairs.")
        return self._queue[item]

    def _give(self, act: str, item: str, **said: str) -> None:
        try:
            answer = Answer(act=act, **self._known(item), **said, given=now())
        except ValidationError as error:
            first = error.errors()[0]
            raise ReviewError(f"pair {item!r}, field {first['loc'][0]}: {first['msg']}.") from None
        with self.answers:
            if item not in self.answers.standing:
                self.answers.add(answer)


def queue(pairs: pd.DataFrame, seed: int = 0) -> list[dict[str, str]]:
    """What annotators are shown of each pair, item, premise and hypothesis, in the order that ``seed`` decides."""
    if (again := pairs["item"].duplicated()).any():
        raise ReviewError(f"item {pairs.loc[again, 'item'].iloc[0]!r} names two pairs: give each a name of its own.")
    order = np.random.default_rng(seed).permutation(len(pairs))
    return pairs[["item", *SIDES]].iloc[order].to_dict("records")


def as_left(shown: str, left: str) -> str:
    """The text that an annotator leaves: ``shown`` itself where it came back with other line ends alone.

    A text field of a browser makes every line end a line feed, and that is no revision.
    """
    same = _line_feeds(shown) == _line_feeds(left)
    return shown if same else left


def annotations(folder: Path) -> pd.DataFrame:
    """What all annotators of a folder said, a row an answer that stands: the columns of `generate.annotations`."""
    rows = []
    for path in sorted(Path(folder).glob("answers.*.jsonl")):
        annotator = path.name.removeprefix("answers.").removesuffix(".jsonl")
        for answer in Answers(path).standing.values():
            rows.append(answer.model_dump() | {"annotator": annotator, "discarded": answer.act == "discard"})
    return pd.DataFrame(rows, columns=list(NEEDED)).astype({"discarded": bool})


def pairs(corpus: Corpus) -> pd.DataFrame:
    """A corpus as a queue: item (its uid), premise, hypothesis, and what `ORIGINS` names, as far as it is known.

    Where the corpus does not say which label was intended, that is the label it bears; where it says nothing of what a
    pair was made from, that is the pair itself.
    """
    table = corpus.table[["uid", *SIDES]].rename(columns={"uid": "item"})
    for name in ORIGINS:
        given = corpus.table[name] if name in corpus.table else pd.Series(index=table.index, dtype=object)
        table[name] = given.astype(object).where(given.notna(), None)
    label = pd.Series(np.array(corpus.classes, dtype=object)[corpus.labels])
    itself = table["origin_uid"].isna() & table["origin_corpus"].isna()
    table["origin_uid"] = table["origin_uid"].mask(itself, table["item"])
    table["origin_corpus"] = table["origin_corpus"].mask(itself, corpus.name)
    table["intended_label"] = table["intended_label"].where(table["intended_label"].notna(), label)
    return table


def _file(folder: Path, annotator: str) -> Path:
    return Path(folder) / f"answers.{annotator}.jsonl"


def _line_feeds(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text)
