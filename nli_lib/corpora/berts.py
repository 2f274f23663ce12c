"""What a hundred models make of an example: how many of them got it right.

McCoy, Min and Linzen (2020, "BERTs of a feather") fine-tuned BERT-base on MultiNLI a hundred times, each with a seed of
its own, and released for every example of dev matched how many of the hundred were right. It is the outside truth for
difficulty: no model of ours had a part in it.
"""

from pathlib import Path

import pandas as pd

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.load import sources

SPLIT = ("mnli", "validation_matched")
ROWS = 9_815  # examples of the split, in the order that `index` counts
FILES = ("mnli_development_set_number_of_correct_responses.txt", "mnli_dev_matched_n_correct_of_100_berts.tsv")


def hundred_berts(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """The examples of `corpus` that the hundred models were tested on, one row each, in the corpus's order.

    position  place of the example in `corpus`
    right     how many of the 100 models gave its gold label, 0 to 100

    Any corpus but MultiNLI dev matched, and a machine without the file, give an empty table. A file that does not
    belong to the corpus (another number of rows, an index that repeats) or cannot be read is a `CorpusError`.
    """
    folder = sources.data_folder(data_dir) if (corpus.name, corpus.split) == SPLIT else None
    path = next((path for file in FILES for path in folder.rglob(file)), None) if folder else None
    if path is None:
        return pd.DataFrame({"position": [], "right": []}, dtype=int)
    counts = _read(path)
    if "index" not in corpus.table and len(corpus) != ROWS:
        raise CorpusError(
            f"{path.name} names its examples by their place in the whole of MultiNLI dev matched, but {corpus.source} "
            f"has {len(corpus):,} of {ROWS:,} examples and no field 'index': load the whole split."
        )
    table = corpus.table if "index" in corpus.table else corpus.table.assign(index=range(ROWS))
    places = pd.to_numeric(table["index"], errors="coerce")
    if (strange := ~_whole(places)).any():
        row = int(strange.argmax())
        raise CorpusError(
            f"{corpus.source}: example {row + 1}, field 'index': {table['index'].iloc[row]!r} is no place in MultiNLI "
            "dev matched. Load the split as it was released."
        )
    found = places.astype(int).map(counts).dropna().astype(int)
    return found.rename("right").rename_axis("position").reset_index()


def _read(path: Path) -> pd.Series:
    """index -> number right, of the release (commas, "number of correct responses (out of 100)") or of a tsv copy."""
    try:
        table = pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")
    except ValueError as error:  # empty, not UTF-8, lines of different lengths
        raise CorpusError(f"{path}: cannot be read as a table ({error}). Fetch it again.") from None
    named = [column for column in table if "correct" in column]
    if "index" not in table or len(named) != 1:
        raise CorpusError(f"{path}: columns 'index' and '... correct ...' are wanted; found {list(table)}.")
    table = table[["index", named[0]]].apply(pd.to_numeric, errors="coerce")
    places, counts = table["index"], table[named[0]]
    wrong = ~_whole(places) | places.duplicated() | ~_whole(counts) | ~counts.between(0, 100)
    if len(counts) != ROWS or wrong.any():
        row = int(wrong.argmax()) + 2 if len(counts) == ROWS else len(counts) + 1
        raise CorpusError(
            f"{path}: row {row}: {ROWS:,} rows are wanted, each index once, each count from 0 to 100. Fetch it again."
        )
    return counts.astype(int).set_axis(places.astype(int))


def _whole(numbers: pd.Series) -> pd.Series:
    """Which of them, NaN where there is none, are whole numbers."""
    return numbers % 1 == 0
