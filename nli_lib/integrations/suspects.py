"""What a list of suspects must hold before it goes to another tool, and a decision that comes back from one."""

from collections.abc import Sequence

import pandas as pd

from nli_lib.corpora.labels import LABELS
from nli_lib.integrations.dynamics import IntegrationError

NEEDED = ("uid", "premise", "hypothesis", "gold", "predicted")
DISCARD = "discard"  # an answer beside the labels
OTHER_LIST = "Is this the review of another list?"
DECISIONS = ["uid", "gold", "annotator", "label", "discarded", "note"]


def checked(suspects: pd.DataFrame, classes: Sequence[str] | None = None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The list and the names of its classes: `classes`, or the three of this library, or those that occur.

    Raises `IntegrationError` naming the column or the row for a list without `NEEDED`, with a uid twice, or with a
    label that is no class.
    """
    if missing := [column for column in NEEDED if column not in suspects]:
        raise IntegrationError(f"the list has no column {', '.join(missing)}: give what `review_list` makes")
    if not len(suspects):
        raise IntegrationError("the list of suspects is empty: there is nothing to review")
    if suspects["uid"].duplicated().any():
        name = suspects["uid"][suspects["uid"].duplicated()].iloc[0]
        raise IntegrationError(f"uid {name!r} stands in two rows of the list: each pair once")
    occur = pd.unique(suspects[["gold", "predicted"]].to_numpy().ravel()).tolist()
    names = tuple(classes or (LABELS if set(occur) <= set(LABELS) else sorted(occur)))
    if other := [name for name in occur if name not in names]:
        raise IntegrationError(f"label {other[0]!r} is none of the classes {', '.join(names)}")
    if DISCARD in names:
        raise IntegrationError(f"a class is called {DISCARD!r}, which is an answer of its own: rename it")
    return suspects.reset_index(drop=True), names


def decision(row: pd.Series, annotator: str, label: str, note: str) -> dict[str, object]:
    """One row of `DECISIONS`: what somebody said of a suspect."""
    left = label == DISCARD
    given = {"uid": row["uid"], "gold": row["gold"], "annotator": annotator}
    return {**given, "label": None if left else label, "discarded": left, "note": note}


def decisions(rows: list[dict]) -> pd.DataFrame:
    """Decisions as a table, also where there are none."""
    return pd.DataFrame(rows, columns=DECISIONS).astype({"discarded": bool})
