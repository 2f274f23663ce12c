"""What became of generated text. Run alone: pytest tests/chapters/test_12_overgenerate.py"""

from contextlib import nullcontext

import pandas as pd
import pytest
from cells import measured

from nli_lib.corpora.corpus import Corpus
from nli_lib.generate import llm
from nli_lib.generate.journal import Answer
from nli_lib.generate.pairs import FAILED, UNPARSED
from nli_lib.study.notebook import Study

OWN, OTHER = "seed of its own context", "random twin: seed of another context"
TEXTS = ["a dog", "two cats", "a bird"]  # of the seeds, on both sides: two entailments and a neutral pair
BAD = "no pair"


def implied(premise, hypothesis):
    return f"{premise}\nImplication: {hypothesis}"


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """The chapter's tables where the model has answered each context, a row of positions, with five texts."""
    rows = {"uid": list("abc"), "premise": TEXTS, "hypothesis": TEXTS, "label": [0, 0, 1], "corpus": "tiny"}
    corpus = Corpus(pd.DataFrame(rows).assign(split="train"), "tiny", "train")
    monkeypatch.setattr(llm, "serve", lambda *_, **__: nullcontext())

    def read(*contexts_and_texts):
        contexts, texts = zip(*contexts_and_texts, strict=True)
        texts = [text for five in texts for text in five]

        def ask(requests, journal, **_):
            made = {"api": "completions", "served": "m", "started": "2026-01-01", "seconds": 1.0, "reason": "429: slow"}
            answers = [Answer(key=each.key, text=text, **made) for each, text in zip(requests, texts, strict=True)]
            for each in answers:
                journal.add(each)
            return answers

        monkeypatch.setattr(llm, "ask", ask)
        monkeypatch.setattr(Study, "exported", lambda *_: pd.DataFrame(contexts))
        return measured("12_overgenerate", tmp_path, monkeypatch, corpus=corpus).study.table

    return read


def test_outcomes_by_label(tables):
    table = tables(([0, 1], [implied("a", "b")] * 4 + [BAD]), ([1, 0], [implied("c", "d")] * 5),
        ([2, 2], [BAD] * 4 + [None]))  # fmt: skip
    found = table("answers").set_index(["title", "outcome"])
    assert found.loc[("all labels", "a pair"), ["count", "n", "share"]].tolist() == [9, 15, 0.6]
    assert found.loc[("entailment", "a pair"), "share"] == 0.9
    assert found.loc[("neutral", "a pair"), ["count", "low", "high"]].tolist() == [0, 0, 0]
    assert found.loc[("neutral", f"{FAILED}: 429"), "count"] == 1
    assert found.groupby("title")["share"].sum().tolist() == pytest.approx([1, 1, 1], abs=1e-4)
    assert table("cost").loc[0, ["answers", "failed", "contexts", "repeated"]].tolist() == [15, 1, 3, round(10 / 15, 4)]


def test_the_gallery_shows_every_outcome_once_a_context(tables):
    pairs = [implied("a", hypothesis) for hypothesis in ("b", "c", "b", "y" * 999, "e")]  # the third repeats the first
    table = tables(*(([0, 1], [pair, f"{pair} too", BAD, BAD, f"bad {at}"]) for at, pair in enumerate(pairs)))
    found = table("gallery")
    assert found["outcome"].tolist() == ["a pair"] * 3 + [UNPARSED] * 3
    assert found["text"].tolist() == [pairs[0], pairs[1], pairs[3][:300], BAD, "bad 1", "bad 2"]


def test_nothing_parsed_has_no_likeness(tables):
    table = tables(([2, 2], [BAD] * 5))
    assert table("answers")[["outcome", "share"]].to_numpy().tolist() == [["a pair", 0], [UNPARSED, 1]] * 2
    assert table("likeness").empty


def test_words_of_the_own_seed_and_of_another_by_hand(tables):
    table = tables(([0, 1], [implied("a dog", "ran")] * 5), ([1, 0], [implied("two", "cats")] * 5),
        ([2, 2], ["x\nPossibility: x"] * 5))  # fmt: skip
    found = table("likeness").set_index("seed")
    # {a, dog, ran} beside {a, dog}: 2/3, beside {two, cats}: 0; {two, cats} beside its own: 1, beside the other: 0.
    # The third context is alone with its label and has no control
    assert found.loc[OWN, "value"] == pytest.approx((2 / 3 + 1) / 2, abs=1e-5) and found.loc[OTHER, "value"] == 0
    assert found["n"].tolist() == [2, 2]
