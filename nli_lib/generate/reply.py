"""What a server sent, as a line of the journal: the tokens that were paid for, then the text, or why it has none."""

import json
import math
import re
from typing import TYPE_CHECKING, Literal

from nli_lib.generate.journal import Answer, on_one_line

if TYPE_CHECKING:
    from nli_lib.generate import llm

LONGEST = 100_000  # characters of an answer; more is a fault of the server
MOST = 1_000_000  # tokens of one request; a server that says more is not believed
BYTES_OF_TOKEN = 4  # in English
UNUSABLE = "unusable answer"  # how the reason of an answer begins that came, and was paid for


def tokens_of(text: str) -> int:
    """About how many tokens a text has."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_OF_TOKEN)


def answer_of(data: bytes, request: "llm.Request", api: Literal["completions", "chat"], **about: object) -> Answer:
    """The answer in the body of a reply whose status is good. Where a stop was left out, the text ends there."""
    body = parsed(data)
    text, finish, fault = _text(body, data, request, api)
    changed = str(about.get("changed", ""))
    if text is not None and request.sampling.stop and re.search(r"\bstop\b", changed):
        whole, text = text, re.split("|".join(map(re.escape, request.sampling.stop)), text, maxsplit=1)[0]
        finish = finish if text == whole else "stop"
    named = {"served": _word(body.get("model"), 200), "finish": _word(finish, 40)}
    reason = f"{UNUSABLE}: {fault}" if fault else ""
    return Answer(key=request.key, text=text, reason=reason, api=api, **named, **paid(request, body, text), **about)


def paid(request: "llm.Request", body: dict, text: str | None = None) -> dict[str, object]:
    """The tokens of a request that was answered, for `Answer`: as the server counts them, guessed where it does not.

    A negative number, a fraction and more than `MOST` are no counts. The guess for an answer without a text is the
    most that it may have.
    """
    prompt, completion = counted(body)
    guess = request.sampling.max_tokens if text is None else tokens_of(text)
    return {
        "prompt_tokens": tokens_of(request.prompt + (request.suffix or "")) if prompt is None else prompt,
        "completion_tokens": guess if completion is None else completion,
        "estimated": None in (prompt, completion),
    }


def counted(body: dict) -> list[int | None]:
    """The tokens of prompt and answer, as a server counts them; None where it does not."""
    usage = body.get("usage")
    given = [usage.get(f"{part}_tokens") if isinstance(usage, dict) else None for part in ("prompt", "completion")]
    fine = [type(each) in (int, float) and 0 <= each <= MOST and each == int(each) for each in given]
    return [int(each) if good else None for each, good in zip(given, fine, strict=True)]


def parsed(data: bytes) -> dict:
    """The JSON object in the body of a reply; an empty one where there is none."""
    try:
        body = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _word(given: object, longest: int) -> str:
    return on_one_line(given, longest) if isinstance(given, str) else ""


def _text(body: dict, data: bytes, request: "llm.Request", api: str) -> tuple[str | None, object, str]:
    """(text, why it ends, ""), or (None, why it ends, what is wrong with the answer)."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return (
            None,
            "",
            f"the server sent no completion but {on_one_line(data[:5000].decode('utf-8', 'replace'), 60)!r}",
        )
    if len(choices) != 1:
        return None, "", f"the server sent {len(choices)} texts where one was asked for"
    choice = choices[0] if isinstance(choices[0], dict) else {}
    holder, name = (choice.get("message"), "content") if api == "chat" else (choice, "text")
    text, finish = holder.get(name) if isinstance(holder, dict) else None, choice.get("finish_reason")
    if not isinstance(text, str):
        if finish == "length":
            most = request.sampling.max_tokens
            return None, finish, f"its {most:,} tokens were used up before it wrote a text: allow more (max_tokens)"
        why = f" (finish {on_one_line(finish, 40)!r})" if isinstance(finish, str) else ""
        return None, finish, f"the server sent a choice without a text{why}"
    if len(text) > LONGEST:
        most = request.sampling.max_tokens
        return None, finish, f"the server sent {len(text):,} characters for at most {most:,} tokens"
    try:
        data.decode()
    except UnicodeDecodeError:
        return None, finish, "the server sent what is not UTF-8"
    return text, finish, ""
