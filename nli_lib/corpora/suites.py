"""Suites: named lists of evaluation sets, with the rule by which two-class sets are scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.load import sources


@dataclass(frozen=True)
class Member:
    """One evaluation set of a suite.

    corpus, split  as for `nli_lib.corpora.load.sources.load`
    title          the name in tables and figures, unique within a suite
    rule           how three-way predictions meet a two-class set: "argmax" (argmax, then collapse) or "sum" (collapse
                   the probabilities, then argmax), see `nli_lib.corpora.labels.collapse`; no matter for three classes
    """

    corpus: str
    split: str
    title: str
    rule: str = "argmax"


_SNLI_TEST = Member("snli", "test", "SNLI test")
_SNLI_HARD = Member("snli", "test_hard", "SNLI-hard")
_MNLI = (
    Member("mnli", "validation_matched", "MultiNLI matched"),
    Member("mnli", "validation_mismatched", "MultiNLI mismatched"),
)
_HANS = Member("hans", "validation", "HANS")
_ANLI = tuple(Member("anli", f"test_r{i}", f"ANLI R{i}") for i in (1, 2, 3))
_SICK = Member("sick", "test", "SICK test")
_BREAKING = Member("breaking_nli", "test", "Breaking NLI")
_CAD = Member("cad", "revised_combined/test", "Human-CAD revised")
_TWO_WAY = (
    Member("qnli", "validation", "QNLI"),
    Member("rte", "validation", "RTE"),
    Member("wnli", "train", "WNLI"),
    Member("med", "test", "MED"),
)
_FEVER = Member("fever", "validation", "FEVER")

SUITES: dict[str, tuple[Member, ...]] = {
    # what a model trained on SNLI is tested on
    "snli": (_SNLI_TEST, _SNLI_HARD, *_MNLI, _HANS, *_ANLI, _SICK, _BREAKING, _CAD),
    # the out-of-domain sets of WANLI that are public, for a model trained on MultiNLI or WANLI
    "wanli": (*_MNLI, Member("wanli", "test", "WANLI test"), _HANS, _TWO_WAY[0], _TWO_WAY[2], _FEVER, *_ANLI),
    # every set with two classes, where the collapse rule matters
    "two_way": (_HANS, *_TWO_WAY, _FEVER),
    # human counterfactuals, by the side that was revised
    "counterfactual": (
        Member("cad", "original/test", "Human-CAD original"),
        Member("cad", "revised_premise/test", "Human-CAD premise"),
        Member("cad", "revised_hypothesis/test", "Human-CAD hypothesis"),
        _CAD,
    ),
    # the official files of the stress test of Naik et al., from MultiNLI dev matched
    "stress": (
        Member("stress", "word_overlap/matched", "word overlap"),
        Member("stress", "negation/matched", "negation"),
        Member("stress", "length_mismatch/matched", "length mismatch"),
        Member("stress", "spelling_swap/matched", "spelling: swap"),
        Member("stress", "spelling_keyboard/matched", "spelling: keyboard"),
        Member("stress", "spelling_content/matched", "spelling: content words"),
        Member("stress", "spelling_function/matched", "spelling: function words"),
        Member("stress", "antonym/matched", "antonym"),
        Member("stress", "numerical", "numerical"),
    ),
    "planted": (Member("planted", "test", "Planted test"), Member("planted", "challenge", "Planted challenge")),
}


def members(name: str) -> tuple[Member, ...]:
    """The members of a suite; an unknown name is a `CorpusError` that lists the known ones."""
    if name not in SUITES:
        raise CorpusError(f'suite="{name}" is not one of {", ".join(SUITES)}.')
    return SUITES[name]


def suite_for(corpus: str) -> str:
    """The suite on which a model trained on this corpus is tested: the corpus's own, where there is one, else SNLI's."""
    return corpus if corpus in SUITES else "snli"


def load_suite(
    name: str, data_dir: str | Path | None = None, limit: int | None = None, seed: int = 0
) -> tuple[dict[str, Corpus], dict[str, str]]:
    """The corpora of a suite by title, and the members that could not be loaded, title -> reason.

    limit  examples of each member, sampled with `seed`; None takes all
    """
    return load_each({each.title: (each.corpus, each.split) for each in members(name)}, data_dir, limit, seed)


def load_each(
    sets: Mapping[str, tuple[str, str]], data_dir: str | Path | None = None, limit: int | None = None, seed: int = 0
) -> tuple[dict[str, Corpus], dict[str, str]]:
    """Load title -> (corpus, split): those at hand by title, and the others, title -> reason. See `load_suite`."""
    folder = sources.data_folder(data_dir)
    loaded: dict[str, Corpus] = {}
    missing: dict[str, str] = {}
    for title, (corpus, split) in sets.items():
        try:
            loaded[title] = sources.load(corpus, split, data_dir, limit, seed)
        except CorpusError as error:
            # Reasons are printed in the book, where the folder of whoever ran the study says nothing.
            missing[title] = str(error).replace(f"{folder}/", "").replace(str(folder), "the data folder")
    return loaded, missing
