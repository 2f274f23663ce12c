"""Answers from another tool: what Label Studio's export and MTurk's results have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, TypeAdapter, ValidationError

from nli_lib.corpora.labels import LABELS
from nli_lib.errors import UserError
from nli_lib.generate.annotations import NEEDED, SIDES
from nli_lib.generate.review import ReviewError, as_left

DISCARD = "discard"  # an answer beside the labels


@dataclass
class Answers:
    """What is taken from other tools' files: one answer of a person to a pair. What is not is counted by its reason.

    file   what is read, for messages
    names  the answers that there are
    error  what is raised where none can be used
    """

    file: object
    names: Sequence[str] = (*LABELS, DISCARD)
    error: type[UserError] = ReviewError

    def __post_init__(self) -> None:
        self._taken: dict[tuple[str, str], dict[str, object]] = {}
        self._left: dict[str, list[str]] = {}  # where, by the reason

    def leave(self, reason: str, where: str) -> None:
        self._left.setdefault(reason, []).append(where)

    def label(self, annotator: str | None, labels: Sequence[object], where: str) -> str | None:
        """The one label of an annotation; None where it has none that counts, and is left out."""
        if not annotator:
            reason = "no annotator"
        elif not labels:
            reason = "no label"
        elif len(labels) > 1:
            reason = "more than one label"
        elif labels[0] not in self.names:
            reason = f"label {labels[0]!r}, which is none of {', '.join(self.names)}"
        else:
            return labels[0]
        self.leave(reason, where)
        return None

    def take(self, pair: str, row: dict[str, object], where: str) -> None:
        """Take a row that names its annotator; two different answers of one person to a pair are both left out."""
        before = self._taken.setdefault((pair, row["annotator"]), row)
        if before is row:
            return
        if before == row:
            self.leave("an answer that was given before", where)
            return
        if before:
            self.leave("two different answers of one annotator", where)
        self.leave("two different answers of one annotator", where)
        self._taken[pair, row["annotator"]] = {}

    def rows(self) -> list[dict[str, object]]:
        """All that was taken, in its order; says what was left out, and raises `error` where that is everything."""
        rows = [row for row in self._taken.values() if row]
        told = "; ".join(f"{why} ({len(places):,}, the first in {places[0]})" for why, places in self._left.items())
        if told and not rows:
            raise self.error(f"{self.file}: no answer can be used: {told}.")
        if told:
            print(f"{self.file}: left out: {told}.")
        return rows


def exported(
    path: str | Path, record: type[BaseModel], called: str, how: str, error: type[UserError] = ReviewError
) -> list[BaseModel]:
    """The records of another tool's export as JSON. Raises ``error`` naming the file, the record and the field, and
    ``how`` the export is made."""
    try:
        return TypeAdapter(list[record]).validate_json(Path(path).read_bytes())
    except OSError as reason:
        raise error(f"{path} cannot be read ({reason.strerror}). {how}") from None
    except ValidationError as reason:
        first = reason.errors()[0]
        field = ".".join(map(str, first["loc"])) or "whole"
        raise error(f"{path}: {called} and field {field}: {first['msg']}. {how}") from None


def annotation(
    pair: Mapping[str, str], annotator: str, label: str, left: Mapping[str, str | None]
) -> dict[str, object]:
    """One row of annotations. ``left``: both texts as the annotator leaves them; a side without text is not revised."""
    texts = {f"revised_{side}": as_left(pair[side], left.get(side) or pair[side]) for side in SIDES}
    discarded = label == DISCARD
    return {**pair, "annotator": annotator, **texts, "label": None if discarded else label, "discarded": discarded}


def known_pair(given: Mapping[str, object], shown: pd.DataFrame, where: str) -> dict[str, str]:
    """The pair that a row names: item and both texts, as they are in the table ``shown`` (index item).

    Raises `ReviewError` beginning with ``where`` if there is no such pair, or its texts are others.
    """
    item = str(given.get("item"))
    if item not in shown.index:
        raise ReviewError(f"{where}, item: there is no pair {item!r}. Is this the review of another file?")
    pair = {"item": item, **shown.loc[item].to_dict()}
    for side in SIDES:
        if as_left(pair[side], str(given.get(side))) != pair[side]:
            raise ReviewError(f"{where}, {side}: the text of pair {item!r} was another. Restore the pairs.")
    return pair


def table(rows: list[dict]) -> pd.DataFrame:
    """The rows as a table of annotations, also where there are none."""
    return pd.DataFrame(rows, columns=list(NEEDED)).astype({"discarded": bool})
