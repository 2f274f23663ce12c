"""A generated text and what it says: three lines, premise, label and hypothesis. Needs no torch.

`learn.serialise` writes pairs in this form for a generator, `parse` reads what it wrote.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

SEPARATOR = "\n"
# Why a text is no pair.
CUT_OFF, SPECIAL = "no end within the largest length", "a special token inside"
FEW, MANY = "no separator: fewer than three parts", "more than three parts"
NO_PREMISE, NO_HYPOTHESIS, NO_LABEL = "no premise", "no hypothesis", "unknown label"


def one_line(texts: Sequence[str]) -> list[str]:
    """The texts with every run of white space as one blank, so that none holds a separator."""
    return [" ".join(text.split()) for text in texts]


def parse(texts: Sequence[str], classes: Sequence[str], *, special: Sequence[str] = ()) -> pd.DataFrame:
    """What generated texts say: columns premise, hypothesis, label (index into `classes`, -1 for none), reason.

    texts    as sampled, without start and end; None for one that did not end
    special  tokens that a text must not hold, such as the start

    The reason is "" for a pair, whose texts have every run of blanks as one; otherwise the others are missing.
    """
    column = pd.Series(list(texts), dtype=object)
    ended = column.notna()
    lines = column.fillna("").str.split(SEPARATOR)
    count = lines.str.len()
    parts = [line if len(line) == 3 else ["", "", ""] for line in lines]
    three = pd.DataFrame(parts, columns=["premise", "name", "hypothesis"], dtype=object)
    three = three.apply(lambda part: part.map(lambda text: " ".join(text.split())))
    label = three["name"].map({name: at for at, name in enumerate(classes)}).fillna(-1).astype(int)
    foreign = column.fillna("").map(lambda text: any(token in text for token in special)).astype(bool)
    # the first that applies
    reasons = [(~ended, CUT_OFF), (foreign, SPECIAL), (count < 3, FEW), (count > 3, MANY), (label < 0, NO_LABEL)]
    reasons += [(three["premise"] == "", NO_PREMISE), (three["hypothesis"] == "", NO_HYPOTHESIS)]
    reason = np.select([where for where, _ in reasons], [name for _, name in reasons], default="")
    pairs = three[["premise", "hypothesis"]].astype(object)
    pairs[reason != ""] = None
    return pairs.assign(label=label.where(reason == "", -1), reason=pd.Series(reason, dtype=object))
