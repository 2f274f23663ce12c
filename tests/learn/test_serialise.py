"""A pair as one sequence, and back. Alone: pytest tests/learn/test_serialise.py"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_generator import END as EOS
from tiny_generator import make_tokenizer
from tiny_words import make_corpus

from nli_lib.corpora.corpus import LABELS
from nli_lib.learn import text as pair_text
from nli_lib.learn.encode import SequenceError, frame, label_pieces, pieces, relabelled, sequences
from nli_lib.learn.text import parse


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(bos_token="<s>")


def texts_of(tokens, tokenizer):
    return [tokenizer.decode(tokens[np.array([at])].columns["input_ids"]) for at in range(len(tokens))]


def test_the_order_and_the_separators(tokenizer, corpus):
    first = texts_of(sequences(corpus, tokenizer, 128), tokenizer)[0]
    premise, hypothesis, label = corpus.premise[0], corpus.hypothesis[0], corpus.classes[corpus.labels[0]]
    assert first == f"<s>{premise}\n{label}\n{hypothesis}{EOS}"


def test_round_trip(tokenizer):
    corpus = make_corpus(40)
    premise = [f"Line one\nand\ttwo {at}" for at in range(40)]  # a line break in a text must not look like a separator
    corpus = replace(corpus, table=corpus.table.assign(premise=premise))
    texts = [
        text.removeprefix("<s>").removesuffix(EOS) for text in texts_of(sequences(corpus, tokenizer, 128), tokenizer)
    ]
    read = parse(texts, corpus.classes)
    assert (read["reason"] == "").all()
    assert read["premise"].tolist() == [" ".join(text.split()) for text in premise]
    assert read["hypothesis"].tolist() == corpus.hypothesis.tolist()
    assert read["label"].tolist() == corpus.labels.tolist()


def test_slow_twin(tokenizer, corpus):
    """The layout, pair by pair, as the docstring says it."""
    tokens, around = sequences(corpus, tokenizer, 128), frame(corpus.classes, tokenizer)
    for at in range(len(corpus)):
        p, h = (
            tokenizer(text, add_special_tokens=False)["input_ids"]
            for text in (corpus.premise[at], corpus.hypothesis[at])
        )
        name = around.labels[corpus.labels[at]]
        mine = tokens[np.array([at])].columns
        assert mine["input_ids"].tolist() == [around.start, *p, *name, *h, around.end]
        assert mine["part"].tolist() == [1] * (1 + len(p)) + [2] * len(name) + [3] * len(h) + [4]


def test_flags_follow_their_pieces(tokenizer, corpus):
    (p, p_lengths), (h, _) = (pieces(side, tokenizer) for side in (corpus.premise, corpus.hypothesis))
    random = np.random.default_rng(0)
    flags = random.random(len(p)) < 0.5, random.random(len(h)) < 0.5
    columns = sequences(corpus, tokenizer, 128, flags).columns
    assert np.array_equal(columns["flagged"][columns["part"] == 3].numpy(), flags[1])
    first = columns["flagged"][1 : 1 + p_lengths[0]].numpy()
    assert np.array_equal(first, flags[0][: p_lengths[0]])
    assert columns["flagged"].sum() == flags[0].sum() + flags[1].sum()


def test_a_long_pair_is_cut_at_the_longer_text_and_still_ends(tokenizer):
    corpus = make_corpus(1)
    table = corpus.table.assign(premise="dog " * 60, hypothesis="a cat eats")
    tokens = sequences(replace(corpus, table=table), tokenizer, 40)
    assert tokens.lengths.max() <= 40
    text = texts_of(tokens, tokenizer)[0]
    assert text.endswith(f"\na cat eats{EOS}") and text.count("dog") < 60
    with pytest.raises(SequenceError, match="no room"):
        sequences(corpus, tokenizer, 6)


@pytest.mark.parametrize("max_length", [14, 21, 24, 40])
def test_what_is_cut_piece_by_piece(tokenizer, max_length):
    """The last piece of the longer text, of equally long ones the premise's, until any label would fit."""
    classes, random = ("entailment", "not_entailment"), np.random.default_rng(0)  # names of different lengths
    texts = [[" ".join(["dog"] * random.integers(1, 25)) for _ in range(30)] for _ in range(2)]
    table = make_corpus(30).table.assign(premise=texts[0], hypothesis=texts[1], label=np.arange(30) % 2)
    corpus, around = replace(make_corpus(30), table=table, classes=classes), frame(classes, tokenizer)
    tokens, room = sequences(corpus, tokenizer, max_length), max_length - 2 - max(map(len, around.labels))
    for at, both in enumerate(zip(*texts, strict=True)):
        p, h = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in both)
        while len(p) + len(h) > room:
            (p if len(p) >= len(h) else h).pop()
        name, mine = around.labels[corpus.labels[at]], tokens[np.array([at])].columns
        assert mine["input_ids"].tolist() == [around.start, *p, *name, *h, around.end]


def test_a_piece_of_each_text_is_the_least_room(tokenizer, corpus):
    longest = max(map(len, frame(corpus.classes, tokenizer).labels))
    assert sequences(corpus, tokenizer, longest + 4).lengths.max() == longest + 4
    with pytest.raises(SequenceError, match="no room"):
        sequences(corpus, tokenizer, longest + 3)


@pytest.mark.parametrize("classes", [LABELS, ("entailment", "neutral", "contradiction of all that was said")])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_another_label_changes_the_label_alone(tokenizer, corpus, step, classes):
    """Against the sequences of a corpus that has those labels; their names may have unequal numbers of pieces."""
    corpus = replace(corpus, classes=classes)
    pieces_of = label_pieces(frame(corpus.classes, tokenizer))
    assert (pieces_of < 0).any() == (classes != LABELS)
    wrong = (corpus.labels + step) % 3
    batch = sequences(corpus, tokenizer, 128).batch(np.arange(10))
    other = relabelled(batch, torch.tensor(wrong[:10]), pieces_of)
    written = sequences(replace(corpus, table=corpus.table.assign(label=wrong)), tokenizer, 128).batch(np.arange(10))
    real = written["part"] > 0
    assert torch.equal(other["part"], written["part"])
    assert torch.equal(other["input_ids"][real], written["input_ids"][real])
    assert torch.equal(other["attention_mask"].bool(), real)


def test_reasons():
    lines = [
        "a\nneutral\nb",
        None,
        "a neutral b",
        "a\nb\nneutral\nc",
        "a\nmaybe\nb",
        " \nneutral\nb",
        "a\nneutral\n",
        "a<s>\nneutral\nb",
    ]
    found = parse(lines, ("entailment", "neutral"), special=["<s>"])
    wanted = ["", pair_text.CUT_OFF, pair_text.FEW, pair_text.MANY, pair_text.NO_LABEL]
    assert found["reason"].tolist() == [*wanted, pair_text.NO_PREMISE, pair_text.NO_HYPOTHESIS, pair_text.SPECIAL]
    assert found["label"].tolist() == [1] + [-1] * 7
    assert found["premise"].isna().tolist() == [False] + [True] * 7
    assert len(parse([], ("a",))) == 0


def test_a_tokenizer_without_an_end_is_refused():
    tokenizer = make_tokenizer()
    tokenizer.eos_token = None
    with pytest.raises(SequenceError, match="no token that ends"):
        frame(("a",), tokenizer)
