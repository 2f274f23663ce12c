"""Outside judgements of the pairs of a corpus, by people and models that play no part in our scores.

`human_labels`
    ChaosNLI (Nie et al., 2020): a hundred labels for each of 1,514 examples of SNLI dev and 1,599 of MultiNLI dev
    matched. They are the reference for ambiguity (do people disagree?) and for label errors (is the gold label the
    majority's?).
`annotators`
    SNLI's original five labels, a weaker reference: it can only show that the author's label of a pair is wrong.
`known_errors`
    VariErr (Weber-Genzel et al., 2024): four people labelled 500 pairs of MultiNLI dev matched that ChaosNLI had
    chosen, and explained each label. In a second round all four judged all explanations. A label is an *error* if
    nobody who gave it confirmed the explanation, and human variation otherwise: the annotators themselves decided which
    of their labels were mistakes.
`hundred_berts`
    McCoy, Min and Linzen (2020, "BERTs of a feather") fine-tuned BERT-base on MultiNLI a hundred times with different
    seeds, and released the number of correct models for every example of dev matched.

For example, the judged pairs and the entropy of their labels::

    people = human_labels(corpus)
    corpus[people["position"]], people["entropy"]
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import create_model

from nli_lib.corpora import sources
from nli_lib.corpora.corpus import LABELS, Corpus, CorpusError, NotAtHandError, to_index
from nli_lib.corpora.planted import check_truth

CHAOS = {("snli", "validation"): "snli", ("mnli", "validation_matched"): "mnli_m"}
COLUMNS = ("position", "uid", "entropy", "share_gold", "majority")
ANNOTATED = ("position", "author", "majority", "agreement")
BY_AUTHORS = "-authors"  # ending of the name of a corpus with its authors' labels (chapter 36)
FIVE = 5  # labels of each annotated pair of SNLI
REFERENCES = {"hundred": "gold label, judged by 100", "five": "author's label, judged by five"}


def human_labels(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """The examples of `corpus` that many people have labelled, one row each, in the corpus's order.

    position
        position of the example in `corpus`
    uid
        its name
    entropy
        of the people's label distribution, in bits: 0 if all agree, log2(3) = 1.585 if they are evenly split
    share_gold
        share of the people who gave the corpus's gold label, 0 to 1
    majority
        index of the most frequent label; of equals, the first in the order of labels

    A corpus with its authors' labels (`BY_AUTHORS`) has the people of the corpus it was made from. Corpora without such
    labels, or without the file, give an empty table. For the planted corpus the truth is known: an ambiguous pair
    counts as split evenly between its two labels, any other as agreed on its true label.
    """
    if (planted := _planted(corpus)) is not None:
        return planted
    split, chaos = CHAOS.get((corpus.name.removesuffix(BY_AUTHORS), corpus.split)), None
    with suppress(NotAtHandError):
        chaos = sources.load("chaosnli", split, data_dir=data_dir).table if split else None
    if chaos is None:
        return pd.DataFrame(columns=list(COLUMNS))
    own = pd.DataFrame({"uid": corpus.uid, "position": np.arange(len(corpus)), "gold": corpus.labels})
    both = own.merge(chaos, on="uid", validate="one_to_one").sort_values("position", ignore_index=True)
    votes = both[["n_entailment", "n_neutral", "n_contradiction"]].to_numpy(dtype=float)  # (M, C)
    shares = votes / votes.sum(axis=1, keepdims=True)
    both["entropy"] = -(shares * np.log2(np.where(shares > 0, shares, 1))).sum(axis=1)
    both["share_gold"] = shares[np.arange(len(both)), both["gold"]]
    both["majority"] = votes.argmax(axis=1)
    return both[list(COLUMNS)]


def annotators(corpus: Corpus) -> pd.DataFrame:
    """The examples of `corpus` that five annotators have labelled, one row each, in the corpus's order.

    position
        position of the example in `corpus`
    author
        index of the label for which the hypothesis was written, the first of the five
    majority
        index of the corpus's gold label, which at least three of the five gave; the author is one of them
    agreement
        share of the five who gave the gold label, .6 to 1

    In SNLI a tenth of the examples have five labels, those of development and test set; the others have only the
    author's. So by these five a gold label is never an error, but an author's label can be. Corpora without such labels
    give an empty table; in the planted corpus the author's label is the given one and the majority the true one. A
    corpus with its authors' labels (`BY_AUTHORS`) has the gold label in its column "majority"; without that column,
    `CorpusError` is raised.
    """
    if (planted := _planted(corpus)) is not None:
        return planted.assign(author=corpus.labels, agreement=1.0)[list(ANNOTATED)]
    if "annotator_labels" not in corpus.table:
        return pd.DataFrame(columns=list(ANNOTATED))
    given = _json_lists(corpus.table["annotator_labels"])
    given = given[given.map(len) == FIVE]
    votes = to_index(given.explode(), corpus.classes).reshape(-1, FIVE)
    whole = (votes >= 0).all(axis=1)
    position, votes = given.index.to_numpy(dtype=int)[whole], votes[whole]
    column = "majority" if corpus.name.endswith(BY_AUTHORS) else "label"
    if column not in corpus.table:
        lost = f"corpus {corpus.name}/{corpus.split}: its labels are its authors', and the column 'majority' with the"
        raise CorpusError(f"{lost} gold labels is missing: give the corpus that it was made from.")
    gold = corpus.table[column].to_numpy(dtype=int)[position]
    agreement = (votes == gold[:, None]).mean(axis=1)
    return pd.DataFrame({"position": position, "author": votes[:, 0], "majority": gold, "agreement": agreement})


def _json_lists(texts: pd.Series) -> pd.Series:
    """Parse lists written as JSON in a column of texts, by the index of their row; other texts are left out."""

    def parsed(text: object) -> list | None:
        with suppress(ValueError):  # such as ['neutral'], a list in Python's notation
            found = json.loads(str(text))
            return found if isinstance(found, list) else None

    return texts.map(parsed).dropna()


def references(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """The labels of `corpus` against people's, one row for each example and each reference that judges it.

    position
        position of the example in `corpus`
    label
        index of the judged label: the gold label or the author's
    majority
        index of the most frequent label
    truth
        the reference, a key of `REFERENCES`: "hundred" (`human_labels`) or "five" (`annotators`)
    wrong
        True if label and majority differ

    The table is empty if nobody has collected labels. In the planted corpus both references are the planted truth.
    """
    hundred, five = human_labels(corpus, data_dir=data_dir), annotators(corpus)
    gold = corpus.labels[hundred["position"].to_numpy(dtype=int)]
    parts = [hundred.assign(label=gold, truth="hundred"), five.assign(label=five["author"], truth="five")]
    columns = ["position", "label", "majority", "truth"]
    table = pd.concat([part[columns] for part in parts], ignore_index=True).astype(dict.fromkeys(columns[:3], int))
    return table.assign(wrong=table["label"] != table["majority"])


def _planted(corpus: Corpus) -> pd.DataFrame | None:
    """The planted truth; None for any other corpus (a user's file may have the name)."""
    if corpus.name != "planted" or not {"true_label", "ambiguous"} <= set(corpus.table):
        return None
    check_truth(corpus)
    ambiguous, true = corpus.table["ambiguous"].to_numpy(dtype=bool), corpus.table["true_label"].to_numpy(dtype=int)
    table = pd.DataFrame({"position": np.arange(len(corpus)), "uid": corpus.uid, "entropy": ambiguous.astype(float)})
    return table.assign(share_gold=np.where(ambiguous, 0.5, true == corpus.labels), majority=true)


# ---------------------------------------------------------------- varierr


SPLIT = ("mnli", "validation_matched")
VARIERR = ("varierr/varierr.json", "VariErr-NLI/varierr.json", "varierr.json")
KNOWN = ("position", "pair", "key", "label", "error", "count", "five")
HELD_OUT = 4  # one in so many premises of the planted corpus is judged, and none of its pairs is trained on


def at_hand(places: Iterable[str], data_dir: str | None = None) -> Path | None:
    """The first of these paths in the folder of corpora that exists."""
    folder = sources.data_folder(data_dir)
    return next((folder / place for place in places if folder and (folder / place).is_file()), None)


Judgment = create_model("Judgment", annotator=(int, ...), makes_sense=(bool, ...))
# one annotator's reason for a label, and the judgements of all four on it
Explanation = create_model("Explanation", annotator=(int, ...), id=(str, ...), judgments=(list[Judgment], ...))
# a row of the file: field -> type
PAIR = dict.fromkeys(("id", "context", "statement"), str) | dict.fromkeys(LABELS, list[Explanation])
PAIR |= {"label_count_round_1": dict[str, float | None], "error_labels": list[str], "chaosnli_labels": dict[str, int]}


def _stands(why: dict) -> bool:
    """True if its author called it sensible in the second round; an author who did not judge it did not confirm it."""
    return any(each["makes_sense"] for each in why["judgments"] if each["annotator"] == why["annotator"])


def varierr(data_dir: str | None = None) -> pd.DataFrame:
    """Every label given in VariErr's first round, one row each: 878 of 500 pairs, 129 of them errors.

    pair
        the pair's name, MultiNLI's pairID
    key
        name of the item in the published predictions, "664-e"
    premise, hypothesis
        the texts
    label
        index of the label
    error
        True if nobody who gave it confirmed the explanation in the second round
    count
        number of the four annotators who gave it, 1 to 4
    hundred
        number of ChaosNLI's 100 who gave it

    Raises
    ------
    CorpusError
        If the file is missing, naming it; if it is malformed or contradicts itself, naming the row and the field.
    """
    path, rows, counts, errors = at_hand(VARIERR, data_dir), [], [], []
    if path is None:
        raise CorpusError(f"VariErr: {sources.lacking(sources.data_folder(data_dir))} {VARIERR[0]}.")
    pairs = sources.every_row(path, PAIR)
    for pair in pairs:
        given = {name: pair[name] for name in LABELS}
        wrong = {name for name, why in given.items() if why and not any(map(_stands, why))}
        counts.append(any(len(why) != (pair["label_count_round_1"].get(name) or 0) for name, why in given.items()))
        errors.append(wrong != set(pair["error_labels"]))
        for label, (name, why) in enumerate(given.items()):
            if why:
                key, hundred = f"{why[0]['id'].split('-')[0]}-{name[0]}", pair["chaosnli_labels"].get(name[0], 0)
                texts = pair["context"], pair["statement"]
                rows.append((pair["id"], key, *texts, label, name in wrong, len(why), hundred))
    names = pd.Series([pair["id"] for pair in pairs])
    why = "is the pair, and the field is not what its explanations and their authors' own judgments say"
    faults = {"id": (names.duplicated(), names, "stands twice")}
    sources.refuse(path, faults | {"label_count_round_1": (counts, names, why), "error_labels": (errors, names, why)})
    return pd.DataFrame(rows, columns=["pair", "key", "premise", "hypothesis", "label", "error", "count", "hundred"])


def known_errors(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """The labels of `corpus` that VariErr has judged, one row each, in the corpus's order.

    position
        position of the pair in `corpus`
    five
        share of the corpus's original five annotators who gave the label, 0 to 1; NaN if they are not known
    others
        pair, key, label, error, count: as in `varierr`

    Any corpus except MultiNLI dev matched, or a missing file, gives an empty table. In the planted corpus a quarter of
    the premises is judged: each pair has one item, its given label, which is an error if it was flipped.
    """
    if corpus.name == "planted" and "flipped" in corpus.table:
        check_truth(corpus)
        group = np.unique(corpus.premise.astype(str), return_inverse=True)[1]
        table = pd.DataFrame({"position": np.flatnonzero(group % HELD_OUT == 0), "count": 1, "five": 1.0})
        at = table["position"].to_numpy()
        names, flipped = corpus.uid[at], corpus.table["flipped"].to_numpy(dtype=bool)[at]
        return table.assign(pair=names, key=names, label=corpus.labels[at], error=flipped)[list(KNOWN)]
    if (corpus.name, corpus.split) != SPLIT or at_hand(VARIERR, data_dir) is None:
        return pd.DataFrame(columns=list(KNOWN))
    own = pd.DataFrame({"pair": corpus.uid, "position": np.arange(len(corpus))})
    both = own.merge(varierr(data_dir), on="pair", validate="one_to_many")
    five = np.full(len(both), np.nan)
    if "annotator_labels" in corpus.table and len(both):
        texts = corpus.table["annotator_labels"].iloc[both["position"]].reset_index(drop=True)
        votes = _json_lists(texts).explode().dropna()
        agrees = to_index(votes, corpus.classes) == both["label"].to_numpy()[votes.index]
        five = pd.Series(agrees, votes.index).groupby(level=0).mean().reindex(range(len(both))).to_numpy()
    return both.assign(five=five)[list(KNOWN)]


# ---------------------------------------------------------------- berts


ROWS = 9_815  # examples of the split, in the order of `index`
PREDICTION_FILES = ("mnli_development_set_number_of_correct_responses.txt",)  # and our copy of it:
PREDICTION_FILES += ("mnli_dev_matched_n_correct_of_100_berts.tsv",)


def hundred_berts(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """The examples of `corpus` on which the hundred models were tested, one row each, in the corpus's order.

    position
        position of the example in `corpus`
    right
        number of the 100 models that gave its gold label, 0 to 100

    Any corpus except MultiNLI dev matched, or a missing file, gives an empty table. Raises `CorpusError` if the file
    does not belong to the corpus (another number of rows, a repeated index) or cannot be read.
    """
    folder = sources.data_folder(data_dir) if (corpus.name, corpus.split) == SPLIT else None
    path = next((path for file in PREDICTION_FILES for path in folder.rglob(file)), None) if folder else None
    if path is None:
        return pd.DataFrame({"position": [], "right": []}, dtype=int)
    counts = _read(path)
    if "index" not in corpus.table and len(corpus) != ROWS:
        named = f"{path.name} names its examples by their place in the whole of MultiNLI dev matched"
        lacking = f"{len(corpus):,} of {ROWS:,} examples and no field 'index': load the whole split."
        raise CorpusError(f"{named}, but {corpus.source} has {lacking}")
    table = corpus.table if "index" in corpus.table else corpus.table.assign(index=range(ROWS))
    places = pd.to_numeric(table["index"], errors="coerce")
    if (strange := places % 1 != 0).any():
        row = int(strange.argmax())
        fault = f"{table['index'].iloc[row]!r} is no place in MultiNLI dev matched. Load the split as it was released."
        raise CorpusError(f"{corpus.source}: example {row + 1}, field 'index': {fault}")
    return places.astype(int).map(counts).dropna().astype(int).rename("right").rename_axis("position").reset_index()


def _read(path: Path) -> pd.Series:
    """Read index -> number right from the release (commas, "number of correct responses (out of 100)") or a tsv
    copy."""
    try:
        table = pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")
    except ValueError as error:  # empty, not UTF-8, lines of different lengths
        raise CorpusError(f"{path}: cannot be read as a table ({error}). Fetch it again.") from None
    named = [column for column in table if "correct" in column]
    if "index" not in table or len(named) != 1:
        raise CorpusError(f"{path}: columns 'index' and '... correct ...' are wanted; found {list(table)}.")
    table = table[["index", named[0]]].apply(pd.to_numeric, errors="coerce")
    places, counts = table["index"], table[named[0]]
    wrong = (places % 1 != 0) | places.duplicated() | (counts % 1 != 0) | ~counts.between(0, 100)
    if len(counts) != ROWS or wrong.any():
        row = int(wrong.argmax()) + 2 if len(counts) == ROWS else len(counts) + 1
        wanted = f"{ROWS:,} rows are wanted, each index once, each count from 0 to 100"
        raise CorpusError(f"{path}: row {row}: {wanted}. Fetch it again.")
    return counts.astype(int).set_axis(places.astype(int))
