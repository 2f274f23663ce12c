"""Files that are read whole or not at all: with a row left out, what other people found would be another result.

rows = every_row(path, Row)                                       a pydantic model of one row
refuse(path, {"gold": (~known, table["gold"], "is no label")})    what the rows together must be
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, TypeAdapter, ValidationError

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.load import reading

Row = TypeVar("Row", bound=BaseModel)


def every_row(path: Path, row: type[Row]) -> list[Row]:
    """The rows of a file, each as its model. Raises `CorpusError`, naming file, row and field, where one is not."""
    read = reading.read(path)
    if read.skipped:
        raise CorpusError(f"{path}: some of its lines cannot be read ({dict(read.skipped)}). Fetch it again.")
    try:
        return TypeAdapter(list[row]).validate_python(read.table.to_dict("records"))
    except ValidationError as error:
        (at, *field), said = error.errors()[0]["loc"], error.errors()[0]["msg"]
        field = ".".join(map(str, field))
        raise CorpusError(f"{path}: row {read.row[at] + 1}, field {field}: {said}. Fetch the file again.") from None


def refuse(path: Path, faults: Mapping[str, tuple[ArrayLike, Sequence, str]]) -> None:
    """Raise `CorpusError` for the first row with a fault: field -> which rows have it (N,), what to show of each row
    (N,), and what is wrong with that."""
    for field, (faulty, shown, why) in faults.items():
        if np.any(faulty):
            row = int(np.argmax(faulty))
            raise CorpusError(f"{path}: row {row + 1}, field {field}: {shown[row]} {why}. Fetch the file again.")
