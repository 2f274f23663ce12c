"""What people say of an example: a hundred labels each, where somebody has asked for them.

ChaosNLI (Nie et al., 2020) collected 100 labels for 1,514 examples of SNLI dev and 1,599 of MultiNLI dev matched. They
are the outside truth for ambiguity (do people disagree?) and for label errors (is the gold label the majority's?).
SNLI's own five labels are a smaller one: there it is the label of a pair's author that can be wrong.
"""

import json

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import Corpus, CorpusError, NotAtHandError
from nli_lib.corpora.labels import to_index
from nli_lib.corpora.load import sources
from nli_lib.corpora.planted import check_truth

CHAOS = {("snli", "validation"): "snli", ("mnli", "validation_matched"): "mnli_m"}
COLUMNS = ("position", "uid", "entropy", "share_gold", "majority")
ANNOTATED = ("position", "author", "majority", "agreement")
BY_AUTHORS = "-authors"  # ends the name of a corpus whose labels are its authors'
FIVE = 5  # labels of each annotated pair of SNLI
REFERENCES = {"hundred": "gold label, judged by 100", "five": "author's label, judged by five"}


def human_labels(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """The examples of `corpus` that many people have labelled, one row each, in the corpus's order.

    position    place of the example in `corpus`
    uid         its name
    entropy     of the people's label distribution, in bits: 0 when all agree, log2(3) = 1.585 when split evenly
    share_gold  share of the people who gave the corpus's own gold label, 0 to 1
    majority    index of the label that most gave; of equals, the first in the order of labels

    A corpus with its authors' labels (`corpora.authors`) has the people of the corpus that it was made from. Corpora
    without such labels, or whose labels are not at hand, give an empty table. The planted corpus knows its own
    answer: an ambiguous pair counts as split evenly between its two labels, any other as agreed on its true label.
    """
    if (planted := _planted(corpus)) is not None:
        return planted
    split = CHAOS.get((corpus.name.removesuffix(BY_AUTHORS), corpus.split))
    try:
        chaos = None if split is None else sources.load("chaosnli", split, data_dir=data_dir).table
    except NotAtHandError:
        chaos = None
    if chaos is None:
        return pd.DataFrame(columns=list(COLUMNS))
    own = pd.DataFrame({"uid": corpus.uid, "position": np.arange(len(corpus)), "gold": corpus.labels})
    both = own.merge(chaos, on="uid", validate="one_to_one").sort_values("position", ignore_index=True)
    votes = both[["n_entailment", "n_neutral", "n_contradiction"]].to_numpy(dtype=float)  # (M, C)
    shares = votes / votes.sum(axis=1, keepdims=True)
    surprise = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    both["entropy"] = -(shares * surprise).sum(axis=1)
    both["share_gold"] = shares[np.arange(len(both)), both["gold"]]
    both["majority"] = votes.argmax(axis=1)
    return both[list(COLUMNS)]


def annotators(corpus: Corpus) -> pd.DataFrame:
    """The examples of `corpus` that five annotators have labelled, one row each, in the corpus's order.

    position   place of the example in `corpus`
    author     index of the label that the hypothesis was written for, the first of the five
    majority   index of the corpus's gold label, which at least three of the five gave; the author is one of them
    agreement  share of the five who gave the gold label, .6 to 1

    In SNLI a tenth of the examples are so annotated, those of development and test set; to the rest the author's label
    is all there is. So a gold label can never be an error by these five, an author's label can. Corpora without such
    labels give an empty table; in the planted corpus the author's label is the given one, the majority's the true one.
    A corpus with its authors' labels (`corpora.authors`) has the gold label in its column "majority". Raises
    `CorpusError` where it has lost that column.
    """
    if (planted := _planted(corpus)) is not None:
        return planted.assign(author=corpus.labels, agreement=1.0)[list(ANNOTATED)]
    if "annotator_labels" not in corpus.table:
        return pd.DataFrame(columns=list(ANNOTATED))
    given = json_lists(corpus.table["annotator_labels"])
    given = given[given.map(len) == FIVE]
    votes = to_index(given.explode(), corpus.classes).reshape(-1, FIVE)
    whole = (votes >= 0).all(axis=1)
    position, votes = given.index.to_numpy(dtype=int)[whole], votes[whole]
    gold = _gold(corpus)[position]
    agreement = (votes == gold[:, None]).mean(axis=1)
    return pd.DataFrame({"position": position, "author": votes[:, 0], "majority": gold, "agreement": agreement})


def _gold(corpus: Corpus) -> np.ndarray:
    """(N,) the label that the majority of the five gave."""
    if not corpus.name.endswith(BY_AUTHORS):
        return corpus.labels
    if "majority" not in corpus.table:
        raise CorpusError(
            f"corpus {corpus.name}/{corpus.split}: its labels are its authors', and the column 'majority' with the "
            "gold labels is missing: give the corpus that it was made from."
        )
    return corpus.table["majority"].to_numpy(dtype=int)


def json_lists(texts: pd.Series) -> pd.Series:
    """The lists that are written as JSON in a column of texts, by the index of their row; other texts are left out."""
    return texts.map(_json_list).dropna()


def _json_list(text: object) -> list | None:
    try:
        found = json.loads(str(text))
    except ValueError:  # such as ['neutral'], as Python writes a list
        return None
    return found if isinstance(found, list) else None


def references(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """Which labels of `corpus` are wrong by people: one row for each example and each reference that judges it.

    position  place of the example in `corpus`
    label     index of the label on trial: the gold label, or the author's
    majority  index of the label that most people gave
    truth     the reference, a key of `REFERENCES`: "hundred" (`human_labels`) or "five" (`annotators`)
    wrong     whether label and majority differ

    An empty table where nobody has collected labels. In the planted corpus both references are what was planted.
    """
    hundred, five = human_labels(corpus, data_dir=data_dir), annotators(corpus)
    gold = corpus.labels[hundred["position"].to_numpy(dtype=int)]
    parts = [hundred.assign(label=gold, truth="hundred"), five.assign(label=five["author"], truth="five")]
    columns = ["position", "label", "majority", "truth"]
    table = pd.concat([part[columns] for part in parts], ignore_index=True)
    table = table.astype(dict.fromkeys(columns[:3], int))
    return table.assign(wrong=table["label"] != table["majority"])


def _planted(corpus: Corpus) -> pd.DataFrame | None:
    """What was planted, None for any other corpus (a user's file may bear the name)."""
    if corpus.name != "planted" or not {"true_label", "ambiguous"} <= set(corpus.table):
        return None
    check_truth(corpus)
    ambiguous, true = corpus.table["ambiguous"].to_numpy(dtype=bool), corpus.table["true_label"].to_numpy(dtype=int)
    share = np.where(ambiguous, 0.5, true == corpus.labels)
    table = pd.DataFrame({"position": np.arange(len(corpus)), "uid": corpus.uid, "entropy": ambiguous.astype(float)})
    return table.assign(share_gold=share, majority=true)
