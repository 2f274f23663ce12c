"""Corpora: what an example is and where it comes from."""

from nli_lib.corpora.corpus import Corpus, CorpusError, concat, duplicates, overlap
from nli_lib.corpora.load.sources import load, names

__all__ = ["Corpus", "CorpusError", "concat", "duplicates", "load", "names", "overlap"]
