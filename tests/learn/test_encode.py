"""Tokens and batches, a pair as one sequence and back, flagged word pieces. Alone: pytest tests/learn/test_encode.py"""

import string
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_models import END as EOS, make_tokenizer
from tiny_words import make_corpus

from nli_lib.corpora.corpus import LABELS
from nli_lib.errors import TrainingError
from nli_lib.learn import encode as module, text as pair_text
from nli_lib.learn.encode import encode, flagged_pieces, frame, pieces, sequences
from nli_lib.learn.model import load_tokenizer
from nli_lib.learn.text import parse
from nli_lib.measure.features import tokenize


@pytest.mark.parametrize("view", ["pair", "hypothesis", "premise"])
def test_views_are_what_the_tokenizer_gives(encoder, corpus, view):
    tokenizer = load_tokenizer(encoder)
    texts, others = corpus.texts(view)
    tokens = encode(texts, others, tokenizer, max_length=12)
    expected = tokenizer(texts, others, truncation="longest_first", max_length=12)["input_ids"]
    assert len(tokens) == len(corpus)
    assert tokens.columns["input_ids"].tolist() == [piece for row in expected for piece in row]
    assert tokens.lengths.tolist() == list(map(len, expected)) and tokens.lengths.max() <= 12


def test_a_batch_is_what_the_tokenizer_pads_and_one_of_one_length_has_no_mask(encoder, corpus):
    tokenizer = load_tokenizer(encoder)
    tokens, rows = encode(*corpus.texts(), tokenizer, 32), np.array([3, 0, 7])
    expected = tokenizer([corpus.premise[i] for i in rows], [corpus.hypothesis[i] for i in rows], padding=True)
    assert {name: values.tolist() for name, values in tokens.batch(rows).items()} == dict(expected)
    same = np.flatnonzero(tokens.lengths == tokens.lengths[0])
    assert "attention_mask" not in tokens.batch(same)


def test_batches_hold_every_row_once_and_depend_on_seed_and_epoch_only():
    lengths = np.random.default_rng(0).integers(3, 60, 1001)
    first, again = (module.shuffled_batches(lengths, 32, seed=1, epoch=2) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert sorted(np.concatenate(first)) == list(range(1001))
    for other in (module.shuffled_batches(lengths, 32, 1, 3), module.shuffled_batches(lengths, 32, 2, 2)):
        assert not np.array_equal(np.concatenate(first), np.concatenate(other))
    padded = sum(len(rows) * lengths[rows].max() for rows in first)
    assert padded < 1.1 * lengths.sum()  # a plain shuffle pads to about 1.9


def test_batches_of_prediction_go_from_long_to_short():
    assert [rows.tolist() for rows in module.sorted_batches(np.array([2, 9, 4, 7]), 3)] == [[1, 3, 2], [0]]


def test_an_empty_corpus_encodes_to_nothing(encoder):
    tokens = encode([], [], load_tokenizer(encoder), 32)
    assert len(tokens) == 0 and tokens.vocabulary.tolist() == [0] and tokens.columns["input_ids"].dtype == torch.int64


def test_a_part_is_encoded_as_the_part_alone(encoder, corpus):
    tokenizer = load_tokenizer(encoder)
    tokens = encode(*corpus.texts(), tokenizer, 32)
    for keep in (corpus.labels == 1, np.array([7, 3]), np.zeros(50, bool)):
        part, alone = tokens[keep], encode(*corpus[keep].texts(), tokenizer, 32)
        for name in ("input_ids", "token_type_ids"):
            assert part.columns[name].tolist() == alone.columns[name].tolist()
        assert part.offsets.tolist() == alone.offsets.tolist()


# ---------------------------------------------------------------- sequences


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(bos_token="<s>")


def texts_of(tokens, tokenizer):
    return [tokenizer.decode(tokens[np.array([at])].columns["input_ids"]) for at in range(len(tokens))]


def ids_of(text, tokenizer):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def test_round_trip(tokenizer):
    corpus = make_corpus(40)
    premise = [f"Line one\nand\ttwo {at}" for at in range(40)]  # a line break in a text must not look like a separator
    corpus = replace(corpus, table=corpus.table.assign(premise=premise))
    texts = texts_of(sequences(corpus, tokenizer, 128), tokenizer)
    first = f"Line one and two 0\n{corpus.classes[corpus.labels[0]]}\n{corpus.hypothesis[0]}"
    assert texts[0] == f"<s>{first}{EOS}"  # the order and the separators
    read = parse([text.removeprefix("<s>").removesuffix(EOS) for text in texts], corpus.classes)
    assert (read["reason"] == "").all() and read["premise"].tolist() == [" ".join(text.split()) for text in premise]
    assert read["hypothesis"].tolist() == corpus.hypothesis.tolist()
    assert read["label"].tolist() == corpus.labels.tolist()


@pytest.mark.parametrize("max_length", [14, 21, 24, 40, 128])
def test_the_layout_and_what_is_cut_piece_by_piece(tokenizer, max_length):
    """The last piece of the longer text, of equally long ones the premise's, until any label would fit."""
    classes, random = ("entailment", "not_entailment"), np.random.default_rng(0)  # names of different lengths
    texts = [[" ".join(["dog"] * random.integers(1, 25)) for _ in range(30)] for _ in range(2)]
    table = make_corpus(30).table.assign(premise=texts[0], hypothesis=texts[1], label=np.arange(30) % 2)
    corpus, around = replace(make_corpus(30), table=table, classes=classes), frame(classes, tokenizer)
    tokens, room = sequences(corpus, tokenizer, max_length), max_length - 2 - max(map(len, around.labels))
    for at, both in enumerate(zip(*texts, strict=True)):
        p, h = (ids_of(text, tokenizer) for text in both)
        while len(p) + len(h) > room:
            (p if len(p) >= len(h) else h).pop()
        name, mine = around.labels[corpus.labels[at]], tokens[np.array([at])].columns
        assert mine["input_ids"].tolist() == [around.start, *p, *name, *h, around.end]
        assert mine["part"].tolist() == [1] * (1 + len(p)) + [2] * len(name) + [3] * len(h) + [4]


def test_flags_follow_their_pieces(tokenizer, corpus):
    (p, p_lengths), (h, _) = (pieces(side, tokenizer) for side in (corpus.premise, corpus.hypothesis))
    random = np.random.default_rng(0)
    flags = random.random(len(p)) < 0.5, random.random(len(h)) < 0.5
    columns = sequences(corpus, tokenizer, 128, flags).columns
    assert np.array_equal(columns["flagged"][columns["part"] == 3].numpy(), flags[1])
    assert np.array_equal(columns["flagged"][1 : 1 + p_lengths[0]].numpy(), flags[0][: p_lengths[0]])
    assert columns["flagged"].sum() == flags[0].sum() + flags[1].sum()


def test_a_piece_of_each_text_is_the_least_room(tokenizer, corpus):
    longest = max(map(len, frame(corpus.classes, tokenizer).labels))
    assert sequences(corpus, tokenizer, longest + 4).lengths.max() == longest + 4
    with pytest.raises(TrainingError, match="no room"):
        sequences(corpus, tokenizer, longest + 3)


@pytest.mark.parametrize("classes", [LABELS, ("entailment", "neutral", "contradiction of all that was said")])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_another_label_changes_the_label_alone(tokenizer, corpus, step, classes):
    """Against the sequences of a corpus that has those labels; their names may have unequal numbers of pieces."""
    corpus = replace(corpus, classes=classes)
    pieces_of = module.label_pieces(frame(corpus.classes, tokenizer))
    assert (pieces_of < 0).any() == (classes != LABELS)
    wrong = (corpus.labels + step) % 3
    batch = sequences(corpus, tokenizer, 128).batch(np.arange(10))
    other = module.relabelled(batch, torch.tensor(wrong[:10]), pieces_of)
    written = sequences(replace(corpus, table=corpus.table.assign(label=wrong)), tokenizer, 128).batch(np.arange(10))
    real = written["part"] > 0
    assert torch.equal(other["part"], written["part"])
    assert torch.equal(other["input_ids"][real], written["input_ids"][real])
    assert torch.equal(other["attention_mask"].bool(), real)


def test_reasons():
    lines = ["a\nneutral\nb", None, "a neutral b", "a\nb\nneutral\nc", "a\nmaybe\nb"]
    lines += [" \nneutral\nb", "a\nneutral\n", "a<s>\nneutral\nb"]
    found = parse(lines, ("entailment", "neutral"), special=["<s>"])
    wanted = ["", pair_text.CUT_OFF, pair_text.FEW, pair_text.MANY, pair_text.NO_LABEL]
    assert found["reason"].tolist() == [*wanted, pair_text.NO_PREMISE, pair_text.NO_HYPOTHESIS, pair_text.SPECIAL]
    assert found["label"].tolist() == [1] + [-1] * 7 and found["premise"].isna().tolist() == [False] + [True] * 7
    assert len(parse([], ("a",))) == 0


def test_a_tokenizer_without_an_end_is_refused():
    tokenizer = make_tokenizer()
    tokenizer.eos_token = None
    with pytest.raises(TrainingError, match="no token that ends"):
        frame(("a",), tokenizer)


# ---------------------------------------------------------------- flagged pieces


@pytest.mark.parametrize(("texts", "words", "whole", "flagged"), [
    # words: the dog outside | theres a cat ("--" is none); a piece that is punctuation alone is not flagged
    (["The dog, outside.", "there's  a -- cat"], [0, 1, 1, 1, 0, 1], None, [" dog outside", "theres cat"]),
    # pieces of single letters show that the whole word is flagged, whatever the vocabulary makes of it
    (["zyxwv quickly"], [1, 0], None, ["zyxwv"]),
    # whole: its punctuation too
    (["a dog.", "a cat."], [0, 0, 0, 0], [True, False], ["a dog.", ""])])  # fmt: skip
def test_flagged_pieces_by_hand(tokenizer, texts, words, whole, flagged):
    ids, lengths = pieces(texts, tokenizer)
    flags = flagged_pieces(texts, words, tokenizer, whole=whole)
    assert len(flags) == len(ids)
    ends = np.cumsum(lengths)
    found = [tokenizer.decode(ids[end - n : end][flags[end - n : end]]) for n, end in zip(lengths, ends, strict=True)]
    assert found == flagged


def test_flagged_pieces_against_a_slow_twin(tokenizer):
    """Piece by piece: does it hold a sign of a flagged word that is no punctuation?"""
    random = np.random.default_rng(3)
    signs = [*"abcé .,'-\t", "dog", "outside"]
    texts = ["".join(random.choice(signs, 12)) for _ in range(40)] + ["", "...", "é"]
    flags = random.random(len(tokenize(texts).ids)) < 0.4
    ours, wanted, word = flagged_pieces(texts, flags, tokenizer), [], 0
    for text in texts:
        text, flagged = " ".join(text.split()), set()
        at = 0
        for chunk in text.split(" ") if text else ():
            if chunk.strip(string.punctuation):
                if flags[word]:
                    flagged |= {at + k for k, sign in enumerate(chunk) if sign not in string.punctuation}
                word += 1
            at += len(chunk) + 1
        spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        wanted += [any(k in flagged for k in range(*span)) for span in spans]
    assert ours.tolist() == wanted and any(wanted) and not all(wanted)


def test_texts_beyond_the_first_chunk_have_their_own_flags(tokenizer, monkeypatch):
    texts, flags = ["a dog.", "a cat eats", "outside", "a dog", "eats."], [0, 1, 0, 0, 1, 1, 0, 1, 1]
    whole = flagged_pieces(texts, flags, tokenizer, whole=[0, 0, 0, 1, 0])
    monkeypatch.setattr(module, "CHUNK", 2)
    assert flagged_pieces(texts, flags, tokenizer, whole=[0, 0, 0, 1, 0]).tolist() == whole.tolist()


def test_flags_of_other_texts_are_refused(tokenizer):
    with pytest.raises(TrainingError, match="2 flags for 3 words"):
        flagged_pieces(["a red dog"], [True, False], tokenizer)
