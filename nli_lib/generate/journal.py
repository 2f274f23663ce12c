"""The journal of a language model: every answer, kept on disk the moment it comes.

One line of JSON an answer. Lines are only ever appended, and an answer counts when it is on disk, so that nothing is
asked or paid for twice. A study can be replayed from its journal, without any server.
"""

import base64
import functools
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal
from urllib.parse import unquote

from pydantic import Field, field_validator

from nli_lib.errors import UserError
from nli_lib.generate.appended import Appended, Line

ADDRESS, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
SHORTEST = 8  # characters of a secret: a shorter one is no secret, and would be found in ordinary words


class JournalError(UserError, RuntimeError):
    """A journal cannot be read, or is being written elsewhere; the message names the file and the line."""


@functools.lru_cache
def _secrets(address: str, key: str) -> list[str]:
    """The key, the password in the address, and the header that it makes. An address that is none has one as well."""
    user = re.match(r"(?:[\w+.-]*://)?(.*)@", address, re.DOTALL)
    login = unquote(user[1]) if user else ""
    password = user[1].partition(":")[2] if user else ""
    found = {key.strip(), password, unquote(password), base64.b64encode(login.encode()).decode()}
    return sorted((each for each in found if len(each) >= SHORTEST), key=len, reverse=True)


def masked(text: str) -> str:
    """A text without the secrets of this process's settings, nor the first third of one that somebody has cut off."""
    for secret in _secrets(os.environ.get(ADDRESS, ""), os.environ.get(KEY, "")):
        least = min(len(secret), max(12, len(secret) // 3))
        first, *rest = text.split(secret[:least])
        more = [len(os.path.commonprefix([secret[least:], each])) for each in rest]  # noqa: RUF071
        text = first + "".join("***" + each[end:] for each, end in zip(rest, more, strict=True))
    return text


def on_one_line(text: str, longest: int = 300) -> str:
    """The beginning of a text from outside, for a message: masked first, cut afterwards."""
    return " ".join(masked(text).split())[:longest]


class Answer(Line):
    """What became of one attempt at a request: a text, or the reason why there is none. No text in it has a secret."""

    key: str = Field(description="of the request, see `nli_lib.generate.llm.Request`")
    text: str | None = Field(description="what the model wrote; None where the request failed")
    reason: str = Field("", description="why there is no text")
    finish: str = Field("", description='why the text ends: "stop" or "length"')
    api: Literal["completions", "chat"] = Field(description="the form in which the server was asked")
    served: str = Field("", description="the model, as the server names it")
    prompt_tokens: int = Field(0, description="that were paid for, also where there is no text")
    completion_tokens: int = 0
    estimated: bool = Field(False, description="whether the server did not say how many tokens, so that we guessed")
    changed: str = Field("", description="parameters that the server does not take: left out, or sent by another name")
    started: str = Field(description="when it was asked, UTC")
    seconds: float

    @field_validator("*", mode="before")
    @classmethod
    def _without_secrets(cls, given: object) -> object:
        return masked(given) if isinstance(given, str) else given

    @property
    def paid(self) -> int:
        """Tokens that it cost."""
        return self.prompt_tokens + self.completion_tokens


class Journal(Appended[Answer]):
    """The answers in a file, by the key of their request: `journal.answers`, and all of its `lines`.

        with Journal(path) as journal:
            journal.add(answer)

    Of several answers to one key the last one counts: a request that failed is asked again. All of them were paid for.
    """

    line, error, cure = Answer, JournalError, "Delete the line: its request is asked again."

    def _clear(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.lines: list[Answer] = []
        self.prompt_tokens = self.completion_tokens = 0

    def _take(self, line: Answer) -> None:
        self.answers[line.key] = line
        self.lines.append(line)
        self.prompt_tokens += line.prompt_tokens
        self.completion_tokens += line.completion_tokens

    def attempts(self, keys: Iterable[str]) -> list[Answer]:
        """All lines on some requests, those that failed among them: what the answers have cost."""
        wanted = set(keys)
        return [line for line in self.lines if line.key in wanted]

    def answered(self, key: str) -> bool:
        """Whether a request has its text."""
        return key in self.answers and self.answers[key].text is not None

    def complete(self, keys: Iterable[str]) -> bool:
        """Whether all these requests have their texts."""
        return all(map(self.answered, keys))

    def summary(self, keys: Iterable[str]) -> dict[str, object]:
        """What a record says of the answers to some requests: answered, failed, the models that served, a digest; and,
        where there is any, the commonest reason of a failure, tokens that were guessed, and changed parameters."""
        used = [self.answers[key] for key in sorted(set(keys) & self.answers.keys())]
        texts = [(answer.key, answer.text) for answer in used]
        reasons = Counter(answer.reason for answer in used if answer.text is None).most_common(1)
        lines = self.attempts(keys)
        more = {
            "reason": reasons[0][0] if reasons else "",
            "estimated": sum(line.estimated for line in lines),
            "changed": sorted({line.changed for line in lines if line.changed}),
        }
        return {
            "answered": sum(text is not None for _, text in texts),
            "failed": sum(text is None for _, text in texts),
            "served": sorted({answer.served for answer in used if answer.served}),
            "digest": hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16],
            **{name: value for name, value in more.items() if value},
        }

    def totals(self) -> dict[str, float]:
        """Requests answered and failed by their last word, and the tokens and seconds of all lines."""
        answered = sum(answer.text is not None for answer in self.answers.values())
        return {
            "answered": answered,
            "failed": len(self.answers) - answered,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "seconds": sum(line.seconds for line in self.lines),
        }
