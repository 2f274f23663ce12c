"""Batch files, out and in. Run alone: pytest tests/generate/test_batch.py"""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from bad_server import reply

from nli_lib.generate import llm
from nli_lib.generate.journal import Journal
from nli_lib.generate.llm import BatchError, Request, Sampling, read_batch, write_batch

REQUESTS = [Request(model="m", prompt=f"prompt {n}", sampling=Sampling(stop=("\n",)), draw=n) for n in range(5)]


def result(request, body, status=200, error=None):
    response = {"status_code": status, "request_id": "r", "body": body}
    return json.dumps({"id": "b", "custom_id": request.key, "response": response, "error": error})


@pytest.mark.parametrize(("api", "url"), [("completions", "/v1/completions"), ("chat", "/v1/chat/completions")])
def test_a_line_is_what_the_format_asks_for(tmp_path, api, url):
    (path,) = write_batch([*REQUESTS, REQUESTS[0]], tmp_path / "batch", api=api)
    assert path.name == "batch-1.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["custom_id"] for line in lines] == [each.key for each in REQUESTS]
    assert {(line["method"], line["url"]) for line in lines} == {("POST", url)}
    assert lines[0]["body"] == REQUESTS[0].body(api)


def test_files_are_divided_at_the_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(llm, "LINES", 2)
    paths = write_batch(REQUESTS, tmp_path / "batch")
    assert [len(path.read_text().splitlines()) for path in paths] == [2, 2, 1]
    size = len(paths[0].read_text())
    monkeypatch.setattr(llm, "LINES", 100)
    monkeypatch.setattr(llm, "BATCH_BYTES", size)
    assert all(path.stat().st_size <= size for path in write_batch(REQUESTS, tmp_path / "small"))


def test_no_request_writes_no_file(tmp_path):
    assert write_batch([], tmp_path / "batch") == [] and not list(tmp_path.iterdir())


def test_answers_are_read_in_any_order_and_failures_with_their_reasons(tmp_path):
    one, two, three, four, five = REQUESTS
    stranger = Request(model="m", prompt="of another batch")
    lines = [
        result(three, json.loads(reply("c", api="chat"))),
        result(one, json.loads(reply("a\u2028"))).replace("\\u2028", "\u2028"),  # a line end to Unicode, not to JSON
        result(two, {"error": {"message": "too long"}}, status=400),
        result(four, json.loads(reply("x", choices=2))),
        result(stranger, json.loads(reply("x"))),
    ]
    (tmp_path / "out.jsonl").write_text("\n".join(lines) + "\n")
    expired = {"id": "b", "custom_id": five.key, "response": None, "error": {"code": "batch_expired"}}
    (tmp_path / "errors.jsonl").write_text(json.dumps(expired) + "\n")
    with Journal(tmp_path / "journal.jsonl") as journal:
        assert read_batch(tmp_path / "out.jsonl", REQUESTS, journal) == {"answered": 2, "failed": 2, "unknown": 1}
        assert read_batch(tmp_path / "errors.jsonl", REQUESTS, journal) == {"answered": 0, "failed": 1, "unknown": 0}
        again = read_batch(tmp_path / "out.jsonl", REQUESTS, journal)
    assert again["answered"] == 0  # what is in the journal is not taken twice
    answers = [journal.answers[each.key] for each in REQUESTS]
    assert [each.text for each in answers] == ["a\u2028", None, "c", None, None]
    assert [each.api for each in answers[:3:2]] == ["completions", "chat"]
    assert "too long" in answers[1].reason and "2 texts" in answers[3].reason and "batch_expired" in answers[4].reason


KEY = f'"custom_id": "{REQUESTS[0].key}"'
NONE = ["{", "[]", "3", '{"response": {}}', '{"custom_id": [1]}', '{"custom_id": 1}']
NONE += [f'{{{KEY}, "response": {part}}}' for part in ('"late"', "[1]", '{"status_code": 200, "body": "late"}')]


@pytest.mark.parametrize("line", NONE)
def test_a_line_that_is_no_result_is_named(tmp_path, line):
    (tmp_path / "out.jsonl").write_text(line + "\n")
    with Journal(tmp_path / "j") as journal, pytest.raises(BatchError, match=r"out.jsonl: line 1 is no result"):
        read_batch(tmp_path / "out.jsonl", REQUESTS, journal)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with Journal(tmp_path / "j") as journal, pytest.raises(BatchError, match=r"none.jsonl cannot be read"):
        read_batch(tmp_path / "none.jsonl", REQUESTS, journal)


def test_what_a_batch_has_cost_is_counted_once_with_what_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-batch-0123456789abcdef")
    lines = [
        result(REQUESTS[0], json.loads(reply("x", choices=2))),
        result(REQUESTS[1], json.loads(reply("x", usage=False))),
        result(REQUESTS[2], {"error": {"message": "-" * 290 + "sk-batch-0123456789abcdef"}}, status=401),
    ]
    (tmp_path / "out.jsonl").write_text("\n".join(lines) + "\n")
    with Journal(tmp_path / "journal.jsonl") as journal:
        for _ in range(2):
            read_batch(tmp_path / "out.jsonl", REQUESTS, journal)
        assert [(each.paid, each.estimated) for each in journal.lines] == [(10, False), (3, True), (0, False)]
    assert "sk-batch" not in (tmp_path / "journal.jsonl").read_text()
