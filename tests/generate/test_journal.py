"""The journal of a language model. Run alone: pytest tests/generate/test_journal.py"""

import os

import pytest

from nli_lib.generate.journal import Answer, Journal
from nli_lib.store import StoreError


def answer(key, text="x", **fields):
    whole = {"api": "completions", "started": "2026-01-01T00:00:00+00:00", "seconds": 0.5} | fields
    return Answer(key=key, text=text, **whole)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "j"


def written(path, *answers):
    with Journal(path) as journal:
        for each in answers:
            journal.add(each)
    return journal


def test_answers_come_back_whatever_they_hold(path):
    texts = ["", "two\nlines", "\u2028\x00\x1b", "é 漢 \U0001f600", '{"key": "a"}', None]
    written(path, *(answer(str(at), text, reason="" if text is not None else "why") for at, text in enumerate(texts)))
    assert [each.text for each in Journal(path).answers.values()] == texts
    assert len(path.read_bytes().splitlines()) == len(texts)
    assert [Journal(path).answered(str(number)) for number in range(7)] == [True] * 5 + [False] * 2


def test_the_last_answer_to_a_request_counts(path):
    busy, now = answer("a", None, reason="busy", prompt_tokens=1), answer("a", prompt_tokens=2, completion_tokens=3)
    for each in (written(path, busy, now, answer("b", None, reason="gone")), Journal(path)):
        assert [each.answered(key) for key in "ab"] == [True, False] and len(each.lines) == 3
        assert (each.prompt_tokens, each.completion_tokens) == (3, 3)


def test_a_line_that_was_cut_off_is_as_if_not_written(path):
    written(path, answer("a"), answer("b"))
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:cut])
        assert list(Journal(path).answers) == ["a"]
    written(path, answer("c"))
    assert list(Journal(path).answers) == ["a", "c"]


def test_a_failed_write_leaves_whole_lines(path, monkeypatch):
    written(path, answer("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key": "half')

    def full(_):
        raise OSError(28, "No space left on device")

    with Journal(path) as journal:
        with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
            patched.setattr(os, "fsync", full)
            journal.add(answer("b"))
        assert path.read_bytes() == whole and list(journal.answers) == ["a"]
        journal.add(answer("c"))
    assert list(Journal(path).answers) == ["a", "c"]


@pytest.mark.parametrize("line", ["{", "[]", '{"key": "a"}', "\x00\x00", "<html>"])
def test_a_damaged_line_is_named(path, line):
    written(path, answer("a"))
    path.write_bytes(path.read_bytes() + line.encode() + b"\n")
    with pytest.raises(StoreError, match=r"j: line 2 is no answer .* Delete the line"):
        Journal(path)


def test_one_writer_at_a_time_and_none_outside_the_block(path):
    with Journal(path), pytest.raises(StoreError, match="another process"):
        Journal(path).__enter__()
    with pytest.raises(StoreError, match="reading alone"):
        Journal(path).add(answer("a"))
    written(path, answer("a"))


def test_the_summary_tells_the_answers_to_some_requests_apart(path):
    failed = answer("b", None, reason="busy")
    journal = written(path, answer("a", "one", served="m"), failed, answer("c", "three", served="n"))
    summary = journal.summary(["b", "a", "a", "nobody asked"])
    digest = summary["digest"]
    assert summary == {"answered": 1, "failed": 1, "served": ["m"], "digest": digest, "reason": "busy"}
    assert journal.summary(["a", "b"]) == summary != journal.summary(["a", "c"])
    assert journal.complete(["a", "c"]) and not journal.complete(["a", "b"]) and not journal.complete(["d"])
    assert written(path, answer("a", "another", served="m")).summary(["a", "b"])["digest"] != digest
