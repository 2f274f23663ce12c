"""A corpus as its authors labelled it. Alone: pytest tests/corpora/test_authors.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.people import LACKING, with_authors_labels
from nli_lib.corpora.planted import make_split
from nli_lib.corpora.sources import load


def five_labels(rows):
    """A corpus of gold labels and five labels each, given as (gold, "five labels in JSON")."""
    table = pd.DataFrame(rows, columns=["label", "annotator_labels"]).assign(uid=[f"u{at}" for at in range(len(rows))])
    table = table.assign(premise="A dog runs.", hypothesis="An animal moves.", corpus="tiny", split="test")
    return Corpus(table, "tiny", "test")


E, N = '["entailment", "neutral", "neutral", "neutral", "neutral"]', '["neutral"]'


def test_the_first_of_five_takes_the_place_of_the_majority():
    corpus = with_authors_labels(five_labels([(1, E), (1, N), (1, E.replace("entailment", "neutral"))]))
    assert corpus.name == "tiny-authors"
    assert corpus.labels.tolist() == [0, 1]
    assert corpus.table["majority"].tolist() == [1, 1]
    assert corpus.uid.tolist() == ["u0", "u2"]
    assert corpus.skipped[LACKING] == 1


def test_where_the_gold_label_is_the_authors_the_name_stays():
    corpus = make_split("train", 300, 0)
    authors = with_authors_labels(corpus)
    assert authors.name == "planted"
    assert (authors.labels == corpus.labels).all()
    assert (authors.table["majority"] == corpus.table["true_label"]).all()
    assert authors.digest == with_authors_labels(corpus).digest


def test_a_corpus_without_five_labels_is_refused():
    with pytest.raises(CorpusError, match="no pair has five labels"):
        with_authors_labels(five_labels([(1, N)]))


@pytest.mark.realdata
def test_snli_dev_differs_from_its_authors_in_a_tenth_of_the_pairs():
    """Bowman et al. (2015), section 2.2: the gold label is the author's in 91.2% of the validated pairs."""
    corpus = with_authors_labels(load("snli", "validation"))
    same = (corpus.labels == corpus.table["majority"].to_numpy()).mean()
    assert len(corpus) > 9_800
    assert same == pytest.approx(0.912 / 0.98, abs=0.02)  # of the pairs that have a gold label
    assert np.isin(corpus.labels, [0, 1, 2]).all()
