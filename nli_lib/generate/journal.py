"""The journal of a language model: every answer is written to disk as soon as it arrives::

    with Journal(path) as journal:
        journal.add(answer)

It is an append-only file with one JSON object on each line. A line counts once it is on disk, so nothing is asked or
paid for twice, and a study can be replayed from its journal without a server. The file is read when the journal is
opened, and written inside a `with` block, by one process at a time. A last line that was cut off, by a kill or a full
disk, is ignored; any other unreadable line is an error. No line contains a key or a password.
"""

import base64
import contextlib
import functools
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import unquote

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nli_lib.store import StoreError


class Line(BaseModel):
    """One line. Half a surrogate pair, which cannot be written to a file, becomes a question mark."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _can_be_written(cls, given: object) -> object:
        return given.encode("utf-8", "replace").decode() if isinstance(given, str) else given


class Appended:
    """The lines of an append-only file. A subclass has `_clear`, which forgets all lines, and `_take`, which adds the
    next one, read from the file or just appended.

    Raises `StoreError` if a line cannot be read, or if another process is writing the file.

    Attributes
    ----------
    line
        class of a line
    cure
        advice about a line that cannot be read
    patience
        seconds to wait for another writing process
    """

    line: ClassVar[type[Line]]
    cure: ClassVar[str]
    patience: ClassVar[float] = 0

    def __init__(self, path: Path):
        self.path = Path(path)
        self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=self.patience)
        self._file = None
        self._read()

    def _read(self) -> int:
        """Read all lines; return the end of the last complete one."""
        self._clear()
        data = self.path.read_bytes() if self.path.is_file() else b""
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].splitlines(), start=1):
            try:
                self._take(self.line.model_validate_json(line))
            except ValidationError as error:
                why = error.errors()[0]["msg"]
                raise StoreError(f"{self.path}: line {number} is no answer ({why}). {self.cure}") from None
        return whole

    def __enter__(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            raise StoreError(f"{self.path} is being written by another process: wait for it, or stop it.") from None
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

    def add(self, line: Line) -> None:
        """Append one line; when this returns, it is on disk. If it fails, nothing was written. An error outside a
        `with` block."""
        if self._file is None:
            word = type(self).__name__
            raise StoreError(f"{self.path} is open for reading alone: write inside `with {word}(path) as opened`.")
        data = json.dumps(line.model_dump()).encode() + b"\n"  # ASCII: one line, whatever the texts contain
        end = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(end)  # a line is complete or absent
            raise
        self._take(line)


# ---------------------------------------------------------------- answers


ADDRESS, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
SHORTEST = 8  # characters of a secret: a shorter one would also be found in ordinary words


@functools.lru_cache
def _secrets(address: str, key: str) -> list[str]:
    """The key, the password in the address, and the header made from it, also from an invalid address."""
    user = re.match(r"(?:[\w+.-]*://)?(.*)@", address, re.DOTALL)
    login = unquote(user[1]) if user else ""
    password = user[1].partition(":")[2] if user else ""
    found = {key.strip(), password, unquote(password), base64.b64encode(login.encode()).decode()}
    return sorted((each for each in found if len(each) >= SHORTEST), key=len, reverse=True)


def masked(text: str) -> str:
    """Mask the secrets of this process's settings in a text, and beginnings of them of at least a third."""
    for secret in _secrets(os.environ.get(ADDRESS, ""), os.environ.get(KEY, "")):
        least = min(len(secret), max(12, len(secret) // 3))
        first, *rest = text.split(secret[:least])
        more = [len(os.path.commonprefix([secret[least:], each])) for each in rest]  # noqa: RUF071
        text = first + "".join("***" + each[end:] for each, end in zip(rest, more, strict=True))
    return text


def on_one_line(text: object, longest: int = 300) -> str:
    """The beginning of a text from outside, for a message: first masked, then cut. "" for anything but a text."""
    return " ".join(masked(text).split())[:longest] if isinstance(text, str) else ""


class Answer(Line):
    """The result of one attempt at a request: a text, or the reason why there is none. It contains no secret."""

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
        """Number of tokens that were paid for."""
        return self.prompt_tokens + self.completion_tokens


class Journal(Appended):
    """The answers in a file by the key of their request, `journal.answers`, and all its `lines`.

    Of several answers to one key the last one counts, because a failed request is asked again. All were paid for.
    """

    line, cure = Answer, "Delete the line: its request is asked again."

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
        """All lines about some requests, including failures: the basis of their cost."""
        wanted = set(keys)
        return [line for line in self.lines if line.key in wanted]

    def answered(self, key: str) -> bool:
        """True if a request has its text."""
        return key in self.answers and self.answers[key].text is not None

    def complete(self, keys: Iterable[str]) -> bool:
        """True if all these requests have their texts."""
        return all(map(self.answered, keys))

    def summary(self, keys: Iterable[str]) -> dict[str, object]:
        """Summarise the answers to some requests for a record: answered, failed, the models that served, a digest; and,
        if there are any, the most common reason for a failure, tokens that were guessed, and changed parameters."""
        used = [self.answers[key] for key in sorted(set(keys) & self.answers.keys())]
        lines, texts = self.attempts(keys), [(answer.key, answer.text) for answer in used]
        reasons = Counter(answer.reason for answer in used if answer.text is None).most_common(1)
        found = {
            "answered": sum(text is not None for _, text in texts),
            "failed": sum(text is None for _, text in texts),
            "served": sorted({answer.served for answer in used if answer.served}),
            "digest": hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16],
            "reason": reasons[0][0] if reasons else "",
            "estimated": sum(line.estimated for line in lines),
            "changed": sorted({line.changed for line in lines if line.changed}),
        }
        return {name: said for name, said in found.items() if said or name not in ("reason", "estimated", "changed")}
