"""Tokens and batches. Alone: pytest tests/learn/test_encode.py"""

import numpy as np
import pytest
import torch

from nli_lib.learn.encode import encode, shuffled_batches, sorted_batches
from nli_lib.learn.model import load_tokenizer


@pytest.mark.parametrize("view", ["pair", "hypothesis", "premise"])
def test_views_are_what_the_tokenizer_gives(encoder, corpus, view):
    tokenizer = load_tokenizer(encoder)
    texts, others = corpus.texts(view)
    tokens = encode(texts, others, tokenizer, max_length=12)
    expected = tokenizer(texts, others, truncation="longest_first", max_length=12)["input_ids"]
    assert len(tokens) == len(corpus)
    assert tokens.columns["input_ids"].tolist() == [piece for row in expected for piece in row]
    assert tokens.lengths.tolist() == list(map(len, expected))
    assert tokens.lengths.max() <= 12


def test_a_batch_is_what_the_tokenizer_pads(encoder, corpus):
    tokenizer = load_tokenizer(encoder)
    tokens = encode(*corpus.texts(), tokenizer, 32)
    rows = np.array([3, 0, 7])
    expected = tokenizer([corpus.premise[i] for i in rows], [corpus.hypothesis[i] for i in rows], padding=True)
    batch = tokens.batch(rows)
    assert {name: values.tolist() for name, values in batch.items()} == dict(expected)


def test_a_batch_of_one_length_has_no_mask(encoder, corpus):
    tokens = encode(*corpus.texts(), load_tokenizer(encoder), 32)
    same = np.flatnonzero(tokens.lengths == tokens.lengths[0])
    assert "attention_mask" not in tokens.batch(same)


def test_batches_hold_every_row_once_and_depend_on_seed_and_epoch_only():
    lengths = np.random.default_rng(0).integers(3, 60, 1001)
    first = shuffled_batches(lengths, 32, seed=1, epoch=2)
    again = shuffled_batches(lengths, 32, seed=1, epoch=2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert sorted(np.concatenate(first)) == list(range(1001))
    for other in (shuffled_batches(lengths, 32, 1, 3), shuffled_batches(lengths, 32, 2, 2)):
        assert not np.array_equal(np.concatenate(first), np.concatenate(other))
    padded = sum(len(rows) * lengths[rows].max() for rows in first)
    assert padded < 1.1 * lengths.sum()  # a plain shuffle pads to about 1.9


def test_batches_of_prediction_go_from_long_to_short():
    batches = sorted_batches(np.array([2, 9, 4, 7]), 3)
    assert [rows.tolist() for rows in batches] == [[1, 3, 2], [0]]


def test_an_empty_corpus_encodes_to_nothing(encoder):
    tokens = encode([], [], load_tokenizer(encoder), 32)
    assert len(tokens) == 0
    assert tokens.vocabulary.tolist() == [0]
    assert tokens.columns["input_ids"].dtype == torch.int64


def test_a_part_is_encoded_as_the_part_alone(encoder, corpus):
    tokenizer = load_tokenizer(encoder)
    tokens = encode(*corpus.texts(), tokenizer, 32)
    for keep in (corpus.labels == 1, np.array([7, 3]), np.zeros(50, bool)):
        part, alone = tokens[keep], encode(*corpus[keep].texts(), tokenizer, 32)
        for name in ("input_ids", "token_type_ids"):
            assert part.columns[name].tolist() == alone.columns[name].tolist()
        assert part.offsets.tolist() == alone.offsets.tolist()
