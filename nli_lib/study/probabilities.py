"""A user's own out-of-sample probabilities, from an npz or a csv, for the rows of a corpus: by name and by id."""

import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.labels import canonical
from nli_lib.corpora.load.adapters import OWN_IDS
from nli_lib.csv_files import read_csv
from nli_lib.errors import UserError

PREFIX = re.compile(r"\A(p|prob|probs|probability)[ _.:-]+|\Ap\((.*)\)\Z", re.IGNORECASE)
SLACK = 0.01  # by which the probabilities of a row may miss a sum of 1: files are rounded
SAVE = "numpy.savez(FILE, uid=..., classes=[...], pred_probs=...)"


class ProbabilitiesError(UserError, ValueError):
    """A file of probabilities cannot be used; the message names the file, the row or the column, and what to do."""


def read_probabilities(path: Path, corpus: Corpus, columns: Mapping[str, str] | None = None) -> NDArray[np.float64]:
    """The probabilities of a file for a corpus, (N, C), in the order of its rows and of its classes.

    path     npz: arrays uid (M,), classes (C,) names, pred_probs (M, C), as `exports.export_review` writes them; or a
             csv: a column of ids (uid, or what the corpus calls it) and one for each class, called by its name,
             "entailment" or "p_entailment". A csv without ids is the corpus itself with these columns: then its texts
             must be those of the corpus, row by row.
    columns  as `load` takes them for the corpus

    Rows of the file that are not in the corpus are left out. Raises `ProbabilitiesError` where a row or a class is
    missing, an id stands twice, or a row is no distribution.
    """
    ending = path.suffix.lower()
    if ending not in (".npz", ".csv", ".tsv", ".txt"):
        raise ProbabilitiesError(f"{path}: give a csv with a column for each class, or an npz saved with {SAVE}.")
    reader = _from_npz if ending == ".npz" else _from_csv
    uid, table = reader(path, corpus, dict(columns or {}))
    if again := uid[uid.duplicated()].tolist():
        raise ProbabilitiesError(f"{path}: id {again[0]!r} stands in more than one row.")
    place = pd.Index(uid).get_indexer(corpus.uid)
    if (absent := place < 0).any():
        raise ProbabilitiesError(
            f"{path} has no row for {absent.sum():,} of the {len(corpus):,} pairs, the first of them "
            f"{corpus.uid[absent][0]!r}; its own ids begin with {uid.iloc[0]!r}. Give every pair its probabilities."
            if len(uid)
            else f"{path} has no rows."
        )
    found = table.to_numpy(dtype=float)
    outside = ~((found >= 0) & (found <= 1)).all(axis=1)  # NaN too
    wrong = outside | (np.abs(found.sum(axis=1) - 1) > SLACK)
    wrong[np.setdiff1d(np.arange(len(found)), place)] = False
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        values = ", ".join(f"{value:g}" for value in found[row])
        raise ProbabilitiesError(
            f"{path}: the probabilities of {uid.iloc[row]!r} are {values}: they must lie between 0 and 1 and add up to "
            f"1 ({wrong.sum():,} such rows). Write probabilities, not logits, of all classes of the corpus: "
            f"{', '.join(corpus.classes)}."
        )
    return found[place] / found[place].sum(axis=1, keepdims=True)


def _from_npz(path: Path, corpus: Corpus, columns: dict[str, str]) -> tuple[pd.Series, pd.DataFrame]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            absent = [name for name in ("uid", "classes", "pred_probs") if name not in arrays]
            if absent:
                raise ProbabilitiesError(
                    f"{path} has no array {absent[0]!r}; found {', '.join(arrays) or 'none'}. Save it with {SAVE}."
                )
            uid, names, values = (arrays[name] for name in ("uid", "classes", "pred_probs"))
            given = arrays.get("labels")
    except (OSError, ValueError, TypeError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        if isinstance(error, UserError):
            raise
        raise ProbabilitiesError(f"{path} is no npz of plain arrays ({error}). Save it with {SAVE}.") from None
    if values.shape != (len(uid), len(names)) or values.dtype.kind not in "fiu":
        raise ProbabilitiesError(
            f"{path}: pred_probs has shape {values.shape} ({values.dtype}), while uid names {len(uid)} rows and "
            f"classes {len(names)} columns: save numbers of that shape."
        )
    uid = pd.Series(uid.astype(str))
    classes = _columns(path, [str(name) for name in names], corpus)
    if given is not None:
        _check_labels(path, uid, given, [str(name) for name in names], corpus)
    return uid, pd.DataFrame(values, columns=[str(name) for name in names])[classes]


def _from_csv(path: Path, corpus: Corpus, columns: dict[str, str]) -> tuple[pd.Series, pd.DataFrame]:
    table = read_csv(path)
    classes = _columns(path, list(table), corpus)
    wanted = [name.lower() for name in ("uid", columns.get("uid", "uid"), *OWN_IDS)]
    ids = sorted((wanted.index(name.lower()), name) for name in table if name.lower() in wanted)
    if ids:
        uid = table[ids[0][1]]
    else:
        uid, table = _by_texts(path, corpus, columns)
    numbers = table[classes].apply(pd.to_numeric, errors="coerce")
    if numbers.isna().any(axis=None):
        row, column = (int(at[0]) for at in np.nonzero(numbers.isna().to_numpy()))
        value = table[classes].iat[row, column]
        raise ProbabilitiesError(f"{path}, row {row + 2}, column {classes[column]!r}: {value!r} is not a number.")
    return uid.reset_index(drop=True), numbers.reset_index(drop=True)


def _by_texts(path: Path, corpus: Corpus, columns: dict[str, str]) -> tuple[pd.Series, pd.DataFrame]:
    """A csv that is the corpus itself, with columns of probabilities: its rows are known by their texts and order."""
    advice = (
        f"{path} has no column of ids ({', '.join(('uid', *OWN_IDS))}). Add one, or add the columns of probabilities "
        "to a copy of your file."
    )
    try:
        same = load(str(path), columns=columns or None)
    except CorpusError:
        raise ProbabilitiesError(advice) from None
    for side in ("premise", "hypothesis"):
        own, other = getattr(corpus, side), getattr(same, side)
        if len(own) != len(other):
            raise ProbabilitiesError(f"{advice} It has {len(other):,} usable rows, your file {len(own):,}.")
        if (differ := own != other).any():
            row = int(np.flatnonzero(differ)[0])
            raise ProbabilitiesError(f"{advice} Its {side} of usable row {row + 1} is not that of your file.")
    return pd.Series(corpus.uid), same.table


def _columns(path: Path, names: list[str], corpus: Corpus) -> list[str]:
    """The file's name for each class of the corpus."""
    found: dict[str, list[str]] = {}
    for name in names:
        plain = PREFIX.sub(lambda match: match.group(2) or "", name.strip())
        if (known := canonical(plain)) in corpus.classes:
            found.setdefault(known, []).append(name)
    for known in corpus.classes:
        if len(found.get(known, ())) != 1:
            said = "no column" if known not in found else f"the columns {', '.join(map(repr, found[known]))}"
            raise ProbabilitiesError(
                f"{path} has {said} for the class {known!r}; found {', '.join(map(repr, names[:20]))}. Name one column "
                f"for each class: {', '.join(corpus.classes)}."
            )
    return [found[known][0] for known in corpus.classes]


def _check_labels(path: Path, uid: pd.Series, given: np.ndarray, names: list[str], corpus: Corpus) -> None:
    """Labels that the file brings must be those of the corpus: otherwise it belongs to another state of it."""
    inside = given.dtype.kind in "iu" and ((given >= 0) & (given < len(names))).all()
    if given.shape != (len(uid),) or not inside:
        raise ProbabilitiesError(
            f"{path}: labels must hold a number from 0 to {len(names) - 1} for each of {len(uid)} rows, the place of "
            "the label in classes; or leave it out."
        )
    labels = np.array([canonical(name) or name for name in names], dtype=object)[given]
    own = pd.Series(np.array(corpus.classes, dtype=object)[corpus.labels], index=corpus.uid)
    both = pd.Series(labels, index=uid)
    both = both[~both.index.duplicated()].reindex(own.index).dropna()
    differ = both != own[both.index]
    if differ.any():
        name = differ.index[differ][0]
        raise ProbabilitiesError(
            f"{path}: the label of {name!r} is {both[name]} there and {own[name]} in the corpus ({differ.sum():,} such "
            "rows): it was made from another version of the corpus."
        )
