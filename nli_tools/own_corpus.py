"""A user's input: a corpus, and out-of-sample probabilities for its pairs.

A corpus is read and checked before a command runs anything. This module also runs chapters on it, and finds earlier
results about it::

    corpus = read("mine.csv", request)

Probabilities, for example from a user's models, are matched to the classes of the corpus by name and to its rows by id,
texts or order::

    values = read_probabilities(Path("probs.csv"), corpus)          # (N, C), in the order of its rows and classes
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import typer
from numpy.typing import NDArray

from nli_lib.corpora import check_enough, load, reading
from nli_lib.corpora.corpus import SIDES, Corpus, CorpusError, canonical
from nli_lib.corpora.reading import OWN, OWN_IDS
from nli_lib.corpora.sources import SOURCES
from nli_lib.errors import UserError
from nli_lib.measure.features import UNSPACED, unspaced
from nli_lib.store import atomic
from nli_lib.study import runner, standing
from nli_lib.study.dial import is_own_file, own_path
from nli_lib.study.runner import Request, version

TIMES = 24  # largest memory for reading and an audit, in multiples of the file's size: benchmarks/own_corpus_sizes.py
MIN_ROWS = 20  # smallest number of rows of each class for a command


class ToolError(UserError, ValueError, RuntimeError):
    """A file or an object from outside is not valid, or a command cannot do what was requested; the message names the
    file, row or field, or the reason, and says what to do."""


def look_at(request: Request, what: str, rows_a_class: int = MIN_ROWS) -> Corpus | None:
    """Read a user's file before anything runs: print which rows are left out, and refuse a corpus that is too small.

    None for a corpus by name. Raises `CorpusError`.
    """
    if not is_own_file(request.corpus):
        return None
    corpus = read(request.corpus, request)
    say(corpus)
    check_enough(corpus, rows_a_class, what)
    return corpus


def read(name: str, request: Request, split: str = "train") -> Corpus:
    """Read a corpus by name or a user's file. Raises `CorpusError` if it is too large for this machine's memory."""
    path = own_path(name, request.data_dir)
    size, free = path.stat().st_size if path else 0, psutil.virtual_memory().available
    if size * TIMES > free:
        raise CorpusError(
            f"{name}: a file of {size / 1e9:,.1f} GB takes about {size * TIMES / 1e9:,.0f} GB of memory here, but "
            f"{free / 1e9:,.1f} GB are free: use a part of it, sampled by premise."
        )
    try:
        form = request.form if name == request.corpus or is_own_file(name) else {}
        return load(name, split, data_dir=request.data_dir, **form)
    except MemoryError:
        raise CorpusError(f"{name}: too large to be read here at once: use a part of it, sampled by premise.") from None


def read_test(name: str, request: Request) -> Corpus:
    """Read the test file, with the declared column names of the corpus if it has them, else with the usual ones; for a
    corpus by name, read its test split, else its first split for testing."""
    splits = () if is_own_file(name) else SOURCES[name].splits if name in SOURCES else ("test",)  # the planted corpus
    held_out = [each for kind in ("test", "validation") for each in splits if each.startswith(kind)]
    split = next(iter([*held_out, *splits]), "train")
    try:
        return read(name, request, split)
    except CorpusError:
        with contextlib.suppress(CorpusError):  # the first message is the relevant one
            if request.columns:
                return read(name, replace(request, columns=None))
        raise


def say(corpus: Corpus) -> None:
    """Print the number of pairs with each label, and the warnings about the corpus."""
    print(f"{len(corpus):,} pairs:", ", ".join(f"{name} {count:,}" for name, count in corpus.counts.items()))
    for sentence in corpus.warnings():
        print(sentence)
    if has_unspaced(corpus):
        print(
            "Texts without spaces: characters and pairs of characters are counted instead of words. The encoders, "
            "prompts and dictionaries of this study are English: do not trust any number that depends on them."
        )


def has_unspaced(corpus: Corpus) -> bool:
    """True if at least one in a hundred hypotheses is written without blanks between words (`measure.features`)."""
    return bool(unspaced(corpus.hypothesis).mean() >= UNSPACED)


def refuse_unspaced(corpus: Corpus, what: str) -> None:
    """Raise `CorpusError` if blanks do not separate the words of a corpus. what: the name of the part that needs
    that."""
    if has_unspaced(corpus):
        told = f"{corpus.name}: texts without spaces between words"
        raise CorpusError(f"{told}; {what}. Audit and suspects --fast can be used.")


def digest(name: str, request: Request) -> str | None:
    """sha256 (hex) of a user's file; None for a corpus by name."""
    if (path := own_path(name, request.data_dir)) is None:
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run_chapters(chapters: Mapping[str, dict[str, object]], request: Request) -> None:
    """Run chapters, each with its parameters, on one corpus, print the files they wrote, and build the book.

    Raises `typer.Exit` with code 1 if a chapter fails.
    """
    from nli_lib.study import book  # drawing and rendering take seconds to import

    folder = request.exports
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.*")}
    ended = [end for name, own in chapters.items() for end in runner.run([name], replace(request, others=own))]
    for path in sorted(path for path in folder.glob("*.*") if path.is_file()):
        print(f"{path} (from an earlier run)" if path.stat().st_mtime_ns == before.get(path) else path)
    print(book.build(request))
    warn_of_smoke(request)
    if any(outcome.state != standing.FINISHED for outcome in ended):
        raise typer.Exit(1)


def warn_of_smoke(request: Request) -> None:
    """Print at scale smoke that only a part of the corpus was read and the results say nothing about it."""
    from nli_lib.study import book

    if request.scale == "smoke":
        print(book.worth(request))


def recorded(path: Path, form: int, request: Request) -> dict | None:
    """The numbers that a command wrote about the current corpus of a request, in the format ``form``; None if there are
    none from this version."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads(path.read_text(encoding="utf-8"))
        same = content["format"] == form and content["version"] == version()
        same &= content["digest"] is not None and content["digest"] == digest(request.corpus, request)
        return content if same and all(content.get(name) == said for name, said in request.form.items()) else None
    return None


def write(path: Path, text: str) -> Path:
    """Write a text, completely or not at all; return the path."""
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return path


def as_text(content: Mapping) -> str:
    """Convert numbers to the text of a json file."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


# ---------------------------------------------------------------- probabilities


_WORD = r"(?:p|pred|prob|probs|proba|probability|score)"
_BARE = rf"(?i)(?:{_WORD}[ _.:-]+)*(?:{_WORD}\()?(.*?)\)?(?:[ _.:-]+{_WORD})*"  # "p_neutral", "P(n)"
# the last three are the index of a DataFrame
ROW_NUMBERS = ("row", "index", "idx", "column 1", "unnamed: 0", "__index_level_0__")
Place = tuple[NDArray[np.int64], str]  # the row of the file for each pair (N,), and how they were found
SAVE = "numpy.savez(FILE, uid=corpus.uid.astype(str), classes=[...], pred_probs=...)"
SHAPES = (  # accepted shapes
    "Give a csv, tsv, json, jsonl or parquet file with a column for each class, called by its name (p_neutral), and a "
    "column uid, or the two texts, or one row for each pair in the order of the corpus; or an npz saved with "
    f"{SAVE}; or an npy of shape (pairs, classes)."
)
VERSION = "it was made from another version of the corpus."
ORDER = (
    "its rows are in another order, or it was made from another version of the corpus. Add a column uid, or leave "
    "that column out if it says something else."
)


def read_probabilities(
    path: Path, corpus: Corpus, columns: Mapping[str, str] | None = None, *, say: Callable[[str], object] = print
) -> NDArray[np.float64]:
    """Read the probabilities of a file for a corpus, (N, C), in the order of its rows and classes.

    Columns are found by the names of the classes: "neutral", "p_neutral", "neutral_prob", "P(neutral)". A matrix, or
    lists in a column, without names is taken to be in the order of the corpus's classes. Rows are found by an id; else
    by premise and hypothesis; else by ids that are row numbers from 0 or from 1; and without ids and texts by their
    order, if their number is that of the corpus or of its file. Rows of the file that are not in the corpus, or repeat
    another, are left out.

    Parameters
    ----------
    path
        a table (csv, tsv, txt, json, jsonl, parquet, gzipped too), an npz of arrays uid (M,), classes (C,) names and
        pred_probs (M, C), as written by `evaluate.export_review`, or an npy of (M, C)
    columns
        as for the corpus, see `load`
    say
        called with a line that says how the rows were found

    Raises
    ------
    ToolError
        If a row or a class is missing, two rows of one pair differ, texts or labels in the file differ from the corpus,
        or a row is not a distribution.
    """
    table = _table(path, corpus)
    if not len(table):
        raise ToolError(f"{path} has no rows.")
    cells, order = _cells(path, table, corpus)

    def number(cell: object) -> float:
        """Convert a cell, also with a decimal comma, which is unambiguous in a probability; NaN if it is not a
        number."""
        with contextlib.suppress(TypeError, ValueError):
            return float(cell.replace(",", ".") if isinstance(cell, str) else cell)
        return np.nan

    values = cells.map(number).to_numpy()
    place, how = _place(path, table, values, corpus, dict(columns or {}))
    if path.suffix.lower() == ".npz" and "labels" in table:
        own = np.array(corpus.classes, dtype=object)[corpus.labels]
        _agree(path, "label", table["labels"].to_numpy()[place], own, corpus, VERSION)
    found = values[place]
    if (no_number := np.isnan(found)).any():
        at, column = (int(found[0]) for found in np.nonzero(no_number))
        row, name = int(place[at]), cells.columns[column]
        told = f"{path}, row {row + 1}, column {name!r}: {cells.iat[row, column]!r} is not a number"
        raise ToolError(f"{told}. Every pair needs one for each class.")
    wrong = ~((found >= 0) & (found <= 1)).all(axis=1) | (np.abs(found.sum(axis=1) - 1) > 0.01)  # rounded in files
    if wrong.any():
        row = int(np.argmax(wrong))
        told = ", ".join(f"{value:g}" for value in found[row])
        raise ToolError(
            f"{path}: the probabilities of {corpus.uid[row]!r} are {told}: they must lie between 0 and 1 and add up to "
            f"1 ({wrong.sum():,} such rows). Write probabilities of all classes of the corpus, "
            f"{', '.join(corpus.classes)}: take the softmax of logits first, and divide percent by 100."
        )
    say(f"{path.name}: rows were found {how}.{order}")
    return found / found.sum(axis=1, keepdims=True)


def _table(path: Path, corpus: Corpus) -> pd.DataFrame:
    """The rows of a file, with column names in lower or upper case; a cell may be a list or a dict."""
    if path.suffix.lower() in (".npy", ".npz"):
        return _arrays(path, corpus)
    if not reading.kind(path):
        raise ToolError(f"{path}: files with this ending cannot be read. {SHAPES}")
    if reading.kind(path) == ".json" and path.is_file():
        try:
            found = json.loads(path.read_bytes())
        except (ValueError, RecursionError):  # not JSON as a whole
            found = None
        if isinstance(found, list) and found and all(isinstance(row, list) for row in found):
            return pd.DataFrame({"scores": found})
    rows = reading.read(path)
    if rows.skipped:
        counted = ", ".join(f"{why} {count:,}" for why, count in rows.skipped.items())
        raise ToolError(f"{path}: some of its rows cannot be read ({counted}). Write the file again.")
    return rows.table


def _arrays(path: Path, corpus: Corpus) -> pd.DataFrame:
    """The arrays of an npz or npy as a table: a column for each class, and one for each array with a value for each
    row."""
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            arrays = {"pred_probs": found} if isinstance(found, np.ndarray) else {n: found[n] for n in found}
    except Exception as error:  # any error of a damaged file
        raise ToolError(f"{path} is not a file of plain arrays ({error}). Save it with {SAVE}.") from None
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    matrix = matrices[0] if len(matrices) == 1 else "pred_probs"
    if matrix not in arrays:
        found = ", ".join(arrays) or "none"
        raise ToolError(f"{path} has no array 'pred_probs'; found {found}. Save it with {SAVE}.")
    values = arrays.pop(matrix)
    named = "classes" in arrays
    names = arrays.pop("classes").astype(str).tolist() if named else list(corpus.classes)
    shape = len(values), len(names)
    arrays = {name: array for name, array in arrays.items() if array.ndim == 1}
    wrong = [f"; {name} has {len(array)} values" for name, array in arrays.items() if len(array) != shape[0]]
    if values.shape != shape or len(set(names)) < shape[1] or values.dtype.kind not in "fiu" or wrong:
        raise ToolError(
            f"{path}: {matrix} has shape {values.shape} ({values.dtype}); classes are {', '.join(names)}"
            f"{''.join(wrong)}. Save numbers of shape (pairs, classes), and one value for each pair."
        )
    columns = {name: pd.Series(array.tolist(), dtype=object) for name, array in arrays.items()}
    if "labels" in arrays:
        given = arrays["labels"]
        if given.dtype.kind not in "iu" or ((given < 0) | (given >= shape[1])).any():
            told = f"{path}: labels must hold a number from 0 to {shape[1] - 1} for each of {shape[0]} rows"
            raise ToolError(f"{told}, the place of the label in classes; or leave it out.")
        columns["labels"] = pd.Series([canonical(names[label]) or names[label] for label in given], dtype=object)
    scores = dict(zip(names, values.T, strict=True)) if named else {matrix: pd.Series(values.tolist(), dtype=object)}
    return pd.DataFrame({**columns, **scores})


def _cells(path: Path, table: pd.DataFrame, corpus: Corpus) -> tuple[pd.DataFrame, str]:
    """The columns of the classes (M, C), in their order and with the file's names; and a remark on that order."""
    lists = [name for name in table if all(isinstance(cell, list | dict) for cell in table[name])]
    order = ""
    if len(lists) == 1 and not any(map(_class_of, table)):
        cells = table[lists[0]].tolist()
        for at, cell in enumerate(cells):  # [{"label": "neutral", "score": 0.5}, ...], as from `transformers`
            if isinstance(cell, list) and all(isinstance(one, dict) and {"label", "score"} <= set(one) for one in cell):
                cells[at] = {str(one["label"]): one["score"] for one in cell}
        if all(isinstance(cell, dict) for cell in cells):
            table = pd.DataFrame(cells)
        elif all(isinstance(cell, list) and len(cell) == len(corpus.classes) for cell in cells):
            table = pd.DataFrame(cells, columns=list(corpus.classes))
            order = f" Its numbers have no names: they were assigned to {', '.join(corpus.classes)}, in this order."
        else:
            raise ToolError(
                f"{path}: {lists[0]!r} does not hold a number for each class in every row. Write one for each of "
                f"{', '.join(corpus.classes)}, in this order, or in columns with these names."
            )
    found: dict[str, list[str]] = {}
    for name in table:
        found.setdefault(_class_of(name), []).append(name)
    for known in corpus.classes:
        if len(found.get(known, ())) != 1:
            said = "no column" if known not in found else f"the columns {', '.join(map(repr, found[known]))}"
            raise ToolError(
                f"{path} has {said} for the class {known!r}; found {', '.join(map(repr, list(table)[:20]))}. Name one "
                f"column for each class, {', '.join(corpus.classes)}, since numbers do not say which is which. {SHAPES}"
            )
    return table[[found[known][0] for known in corpus.classes]], order


def _class_of(name: str) -> str | None:
    """The class in a column's name: "p_neutral", "neutral_prob" and "P(neutral)" are "neutral"."""
    return canonical(re.fullmatch(_BARE, str(name).strip()[:100])[1])


def _place(path: Path, table: pd.DataFrame, values: NDArray, corpus: Corpus, columns: dict[str, str]) -> Place:
    """Find the rows by an id; else by the texts; else by `_by_number`."""
    there = {name.lower(): name for name in reversed(list(table))}

    def named(*names: str) -> list[str]:
        return [there[name] for name in dict.fromkeys(map(str.lower, names)) if name in there]

    sides = {side: found[0] for side in SIDES if (found := named(columns.get(side, side), *OWN[side]))}
    both = len(sides) == len(SIDES)
    ids = named("uid", columns.get("uid", "uid"), *OWN_IDS, *(() if both else ROW_NUMBERS))
    for name, plain in product(ids, (_text, _plain)):
        given, wanted = _keys(plain, table[name]), _keys(plain, corpus.uid)
        if wanted.is_unique and wanted.isin(given).all():
            place, more = _rows(path, given, wanted, values)
            how, why = f"by {name!r}{more}", VERSION
            break
    else:
        if both:
            given = _keys(_folded, *(table[sides[side]] for side in SIDES))
            wanted = _keys(_folded, corpus.premise, corpus.hypothesis)
            if (absent := ~wanted.isin(given)).any():
                raise ToolError(
                    f"{path} has neither the id nor the texts of {absent.sum():,} of the {len(corpus):,} pairs, the "
                    f"first of them {corpus.uid[absent][0]!r}. Give every pair its probabilities."
                )
            place, more = _rows(path, given, wanted, values)
            return place, f"by premise and hypothesis{more}"
        place, how = _by_number(path, table, ids, values, corpus)
        why = ORDER
    for side, name in sides.items():
        given, own = _keys(_folded, table[name].iloc[place]), _keys(_folded, getattr(corpus, side))
        _agree(path, side, given.to_numpy(), own.to_numpy(), corpus, why)
    if why == ORDER and (labels := named(columns.get("label", "label"), *OWN["label"])):
        given, own = table[labels[0]].map(canonical).iloc[place], np.array(corpus.classes, dtype=object)[corpus.labels]
        _agree(path, "label", given.where(given.isin(corpus.classes), own).to_numpy(), own, corpus, why)
    return place, how


def _by_number(path: Path, table: pd.DataFrame, ids: list[str], values: NDArray, corpus: Corpus) -> Place:
    """Find the rows without matching ids or texts: by row numbers in the first of ``ids``, or in order."""
    count, rows = len(corpus), _file_rows(corpus)
    if ids:
        given, own, fits = _keys(_plain, table[ids[0]]), _keys(_plain, corpus.uid), {}
        numberings = [] if given.isin(own).any() else [(np.arange(count), count), (rows, corpus.rows_read)]
        for (each, total), start in product(numberings, (0, 1)):
            number = () if each is None else tuple(map(str, (each + start).tolist()))
            if number and set(given) in (set(number), set(map(str, range(start, total + start)))):
                fits[number] = start
        if len(fits) != 1:
            absent = corpus.uid[~own.isin(given)]
            raise ToolError(
                f"{path} has no row for {len(absent):,} of the {count:,} pairs, the first of them {absent[0]!r}; its "
                f"{ids[0]!r} begins with {given[0]!r}. "
                + (SHAPES if len(absent) == count else "Give every pair its probabilities.")
            )
        number, start = fits.popitem()
        place, more = _rows(path, given, pd.Series(number, dtype=object), values)
        return place, f"by the row numbers in {ids[0]!r}, from {start}{more}"
    how = f"by their order: they have no ids and are {len(table):,}, as "
    if len(table) == count:
        return np.arange(count), how + "the corpus has pairs"
    if rows is not None and len(table) == corpus.rows_read:
        return rows, how + "its file has rows"
    left = "" if corpus.rows_read == count else f" of {corpus.rows_read:,}"
    told = f"{path} has {len(table):,} rows without ids or texts, and the corpus {count:,} usable ones{left}"
    raise ToolError(f"{told}: they cannot be matched. {SHAPES}")


def _rows(path: Path, given: pd.Series, wanted: pd.Series, values: NDArray) -> Place:
    """The row of the file for each wanted key, and the number of rows that repeat another."""
    known = given.isin(wanted).to_numpy()
    turns = [pd.MultiIndex.from_arrays([keys, keys.groupby(keys).cumcount()]) for keys in (given, wanted)]
    place = turns[0].get_indexer(turns[1])
    if known.sum() == len(wanted) and (place >= 0).all() and (np.diff(place) > 0).all():
        return place, ""  # in the corpus's order: a pair that occurs twice may then have two scores
    codes = pd.factorize(given)[0]
    first = np.unique(codes, return_index=True)[1][codes]
    differ = known & ~np.isclose(values, values[first], rtol=0, atol=1e-6, equal_nan=True).all(axis=1)
    if differ.any():
        at = int(np.argmax(differ))
        raise ToolError(
            f"{path}: {' / '.join(given[at].split(chr(0)))!r} appears in more than one row, and rows {first[at] + 1} "
            f"and {at + 1} have different probabilities. Leave one of them out, or add a column uid."
        )
    repeated = int((known & (first != np.arange(len(given)))).sum())
    kept = np.unique(first)
    place = kept[pd.Index(given.iloc[kept]).get_indexer(wanted)]
    return place, f", without {repeated:,} that repeat another row" if repeated else ""


def _file_rows(corpus: Corpus) -> NDArray[np.int64] | None:
    """The position of each pair among the rows of its file, from 0, if it is known: all rows are used, or uids show
    it."""
    if corpus.rows_read == len(corpus):
        return np.arange(len(corpus))
    made = pd.Series(corpus.uid).str.extract(rf"\A{re.escape(corpus.name)}-{re.escape(corpus.split)}-(\d+)\Z")[0]
    if made.isna().any() or reading.UNCLOSED in corpus.skipped:  # their number of rows is not known
        return None
    rows = made.astype(np.int64).to_numpy()
    return rows if (np.diff(rows) > 0).all() and rows[-1] < corpus.rows_read else None


def _agree(path: Path, what: str, given: NDArray, own: NDArray, corpus: Corpus, why: str) -> None:
    """Raise an error if the file contradicts the corpus about its pairs."""
    if (differ := given != own).any():
        at = int(np.argmax(differ))
        raise ToolError(
            f"{path}: the {what} of {corpus.uid[at]!r} is {str(given[at])[:60]!r} there and {str(own[at])[:60]!r} in "
            f"the corpus ({differ.sum():,} such rows): {why}"
        )


def _keys(plain: Callable[[object], str], *columns: Iterable[object]) -> pd.Series:
    """Keys for finding rows, one text each; as objects, which are found much faster than pandas' strings."""
    return pd.Series(["\0".join(map(plain, cells)) for cells in zip(*columns, strict=True)], dtype=object)


def _text(uid: object) -> str:
    return str(uid).strip()


def _plain(uid: object) -> str:
    """Undo changes of other programs to an id: a decimal point, a spreadsheet's apostrophe."""
    return re.sub(r"\A'|\.0\Z", "", _text(uid))


def _folded(text: object) -> str:
    return " ".join(str(text).removeprefix("'").split())
