"""Answers from another tool: what Label Studio's export and MTurk's results have in common."""

from collections.abc import Mapping

import pandas as pd

from nli_lib.corpora.labels import LABELS
from nli_lib.generate.annotations import NEEDED, SIDES
from nli_lib.generate.review import ReviewError, as_left

DISCARD = "discard"  # an answer beside the labels


def annotation(
    pair: Mapping[str, str], annotator: str, label: str | None, left: Mapping[str, str | None], where: str
) -> dict[str, object]:
    """One row of annotations. ``left``: both texts as the annotator leaves them; a side without text is not revised.

    Raises `ReviewError` beginning with ``where`` if the label is none.
    """
    if label not in (*LABELS, DISCARD):
        raise ReviewError(
            f"{where}, label: {label!r} is none of {', '.join(LABELS)}, {DISCARD}. Leave this answer out."
        )
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
