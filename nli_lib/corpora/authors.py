"""A corpus as its authors labelled it: one label a pair, given by the worker who wrote the hypothesis."""

from dataclasses import replace

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.people import BY_AUTHORS, annotators

LACKING = "no label of its author among five"


def with_authors_labels(corpus: Corpus) -> Corpus:
    """`corpus` with the author's label in the place of the gold label, named "<name>-authors".

    majority  a new column: index of the gold label, which the majority of the five gave

    The author's label is the first of five and all that nine in ten pairs of SNLI have; its development and test set
    carry the majority's. Rows without five labels are left out and counted. A corpus whose gold labels are its
    authors', such as the planted one, keeps its name, so that what was trained on it is found again.
    Raises `CorpusError` where no pair has its author's label.
    Source: the consensus cleaning paper section 3 (E5), which cleans SNLI's training set.
    """
    five = annotators(corpus).astype({"position": int})
    if five.empty:
        raise CorpusError(
            f"corpus {corpus.name}/{corpus.split}: no pair has five labels, so its authors' are not known"
        )
    position, author = five["position"].to_numpy(), five["author"].to_numpy(dtype=int)
    gold = corpus.labels[position]
    unchanged = len(position) == len(corpus) and (author == gold).all()
    table = corpus.table.iloc[position].assign(label=author, majority=five["majority"].to_numpy(dtype=int))
    lacking = len(corpus) - len(position)
    skipped = {**corpus.skipped, **({LACKING: lacking} if lacking else {})}
    return replace(corpus, table=table, name=corpus.name if unchanged else corpus.name + BY_AUTHORS, skipped=skipped)
