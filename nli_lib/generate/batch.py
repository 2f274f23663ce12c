"""OpenAI's Batch files: requests written for a cheaper queue or a cluster, and their answers read into the journal.

`vllm run-batch` and other servers take the same files. Answers come back in any order, failures in a file of their own.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from nli_lib.errors import UserError
from nli_lib.generate.journal import Answer, Journal, on_one_line
from nli_lib.generate.llm import Request
from nli_lib.generate.reply import answer_of, counted
from nli_lib.store import atomic, now

LINES, BYTES = 50_000, 200_000_000  # that one file may have
URLS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}


class BatchError(UserError, ValueError):
    """A batch file is malformed; the message names the file, the line and the field."""


def write_batch(requests: Iterable[Request], stem: Path, *, api: str = "completions") -> list[Path]:
    """Write requests to `stem`-1.jsonl, `stem`-2.jsonl, ..., as many files as the limits ask for; their paths."""
    parts, size = [[]], 0
    for request in {each.key: each for each in requests}.values():
        fields = {"custom_id": request.key, "method": "POST", "url": URLS[api], "body": request.body(api)}
        line = json.dumps(fields) + "\n"
        if len(parts[-1]) == LINES or size + len(line) > BYTES:
            parts.append([])
            size = 0
        parts[-1].append(line)
        size += len(line)
    parts = [lines for lines in parts if lines]
    paths = [Path(f"{stem}-{number}.jsonl") for number in range(1, len(parts) + 1)]
    for path, lines in zip(paths, parts, strict=True):
        with atomic(path) as draft:
            draft.write_text("".join(lines), encoding="utf-8")
    return paths


def read_batch(path: Path, requests: Sequence[Request], journal: Journal) -> dict[str, int]:
    """Add the answers of one file of results, or of errors, to the journal; how many were answered, failed, unknown.

    unknown  lines whose request is none of `requests`; they are left out

    Raises `BatchError` naming the file and the line that is no result.
    """
    known, counts = {each.key: each for each in requests}, {"answered": 0, "failed": 0, "unknown": 0}
    try:
        lines = Path(path).read_bytes().splitlines()  # as bytes: a text may hold line ends that only Unicode knows
    except OSError as error:
        raise BatchError(f"{path} cannot be read ({error.strerror}): name a file of results or of errors.") from None
    for number, line in enumerate(lines, start=1):
        try:
            result = json.loads(line)
            key, response, error = result["custom_id"], result.get("response") or {}, result.get("error")
            status, body = response.get("status_code"), response.get("body") or {}
            if not isinstance(key, str) or not isinstance(body, dict):
                raise TypeError
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise BatchError(
                f"{path}: line {number} is no result of a batch: it needs custom_id and response, with its body. "
                "Take it out, or fetch the file again."
            ) from None
        if key not in known:
            counts["unknown"] += 1
        elif not journal.answered(key):
            answer, last = _answer(known[key], status, body, error), journal.answers.get(key)
            if not last or (last.reason, last.paid) != (answer.reason, answer.paid):  # a file that is read twice
                journal.add(answer)
            counts["answered" if answer.text is not None else "failed"] += 1
    return counts


def _answer(request: Request, status: object, body: dict, error: object) -> Answer:
    api = "chat" if body.get("object") == "chat.completion" else "completions"
    whole = {"started": now(), "seconds": 0.0}
    if not error and status == 200:
        return answer_of(json.dumps(body).encode(), request, api, **whole)
    said = on_one_line(str(error or body.get("error") or f"status {status}"))
    prompt, completion = counted(body)
    cost = {"prompt_tokens": prompt or 0, "completion_tokens": completion or 0}
    return Answer(key=request.key, text=None, reason=said, api=api, **cost, **whole)
