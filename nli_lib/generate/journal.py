"""The journal of a language model: every answer, kept on disk the moment it comes.

One line of JSON an answer. Lines are only ever appended, and an answer counts when it is on disk, so that nothing is
asked or paid for twice. A study can be replayed from its journal, without any server.

A file of lines that only ever grows: each line is one JSON object, and counts when it is on disk.

It is read at once, and written inside a `with` block, by one process at a time. A last line that was cut off, by a kill
or a full disk, is as if it had not been written. Any other line that cannot be read is an error.

What a server sent, as a line of the journal: the tokens that were paid for, then the text, or why it has none.
"""

import base64
import contextlib
import functools
import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar
from urllib.parse import unquote

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nli_lib.errors import UserError

if TYPE_CHECKING:
    from nli_lib.generate import llm


class Line(BaseModel):
    """One line. Half a surrogate pair, which no file can hold, becomes a question mark."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _can_be_written(cls, given: object) -> object:
        return given.encode("utf-8", "replace").decode() if isinstance(given, str) else given


L = TypeVar("L", bound=Line)


class Appended(Generic[L]):
    """The lines of a file, each handed to `_take` in their order; a subclass says what a line is and what that means.

    Attributes
    ----------
    line
        the class of a line; name: what a message calls one
    error
        the class of the errors; cure: what to do about a line that cannot be read
    patience
        seconds to wait for another process that writes
    """

    line: ClassVar[type[Line]]
    error: ClassVar[type[UserError]]
    name: ClassVar[str] = "answer"
    cure: ClassVar[str]
    patience: ClassVar[float] = 0

    def __init__(self, path: Path):
        self.path = Path(path)
        self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=self.patience)
        self._file = None
        self._read()

    def _clear(self) -> None:
        """Forget all lines: the file is read again."""
        raise NotImplementedError

    def _take(self, line: L) -> None:
        """Take in one line, from the file or just appended to it."""
        raise NotImplementedError

    def _read(self) -> int:
        """Take in all lines; where the last whole one of the file ends."""
        self._clear()
        data = self.path.read_bytes() if self.path.is_file() else b""
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].splitlines(), start=1):
            try:
                self._take(self.line.model_validate_json(line))
            except ValidationError as error:
                why = error.errors()[0]["msg"]
                raise self.error(f"{self.path}: line {number} is no {self.name} ({why}). {self.cure}") from None
        return whole

    def __enter__(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            raise self.error(f"{self.path} is being written by another process: wait for it, or stop it.") from None
        try:
            whole = self._read()
            self._file = self.path.open("ab", buffering=0)
            self._file.truncate(whole)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._file = None
        self._lock.release()

    def add(self, line: L) -> None:
        """Append one line; it is on disk when this returns, or not at all. Outside a `with` block that is an error."""
        if self._file is None:
            word = type(self).__name__
            raise self.error(f"{self.path} is open for reading alone: write inside `with {word}(path) as opened`.")
        data = json.dumps(line.model_dump()).encode() + b"\n"  # ASCII: one line whatever the texts hold
        end = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(end)  # a line is whole or not there
            raise
        self._take(line)


# ---------------------------------------------------------------- journal


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
    """The answers in a file, by the key of their request: `journal.answers`, and all of its `lines`::

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


# ---------------------------------------------------------------- reply


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
