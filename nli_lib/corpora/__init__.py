"""Corpora: the form of an example, and its sources."""

from nli_lib.corpora.corpus import Corpus, CorpusError, check_enough, concat, duplicates, overlap
from nli_lib.corpora.sources import from_dataset, load, names

__all__ = ["Corpus", "CorpusError", "check_enough", "concat", "duplicates", "from_dataset", "load", "names", "overlap"]
