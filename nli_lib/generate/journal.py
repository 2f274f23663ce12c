"""The journal of a language model: every answer, kept on disk the moment it comes.

One line of JSON an answer. Lines are only ever appended, and an answer counts when it is on disk, so that nothing is
asked or paid for twice. A study can be replayed from its journal, without any server.
"""

import json
import os
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from nli_lib.errors import UserError


class JournalError(UserError, RuntimeError):
    """A journal cannot be read, or is being written elsewhere; the message names the file and the line."""


class Answer(BaseModel):
    """What became of one request: a text, or the reason why there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(description="of the request, see `nli_lib.generate.llm.Request`")
    text: str | None = Field(description="what the model wrote; None where the request failed")
    reason: str = Field("", description="why there is no text")
    finish: str = Field("", description='why the text ends: "stop" or "length"')
    api: Literal["completions", "chat"] = Field(description="the form in which the server was asked")
    served: str = Field("", description="the model, as the server names it")
    prompt_tokens: int = 0
    completion_tokens: int = 0
    started: str = Field(description="when it was asked, UTC")
    seconds: float

    @field_validator("text", "reason", "finish", "served", mode="before")
    @classmethod
    def _can_be_written(cls, said: object) -> object:
        """Half a surrogate pair, which no file can hold, becomes a question mark."""
        return said.encode("utf-8", "replace").decode() if isinstance(said, str) else said


class Journal:
    """The answers in a file, by the key of their request: `journal.answers`.

    It is read at once, and written inside a `with` block, by one process at a time:

        with Journal(path) as journal:
            journal.add(answer)

    Of several answers to one key the last one counts: a request that failed is asked again. A last line that was cut
    off, by a kill or a full disk, is as if it had not been written. Any other line that is no answer is an error.
    """

    def __init__(self, path: Path):
        self.path = Path(path)
        self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=0)
        self._file = None
        self.answers: dict[str, Answer] = {}
        self._read()

    def _read(self) -> int:
        """Fill `answers`; where the last whole line of the file ends."""
        self.answers.clear()
        data = self.path.read_bytes() if self.path.is_file() else b""
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].splitlines(), start=1):
            try:
                answer = Answer.model_validate_json(line)
            except ValidationError as error:
                raise JournalError(
                    f"{self.path}: line {number} is no answer ({error.errors()[0]['msg']}). Delete the line: its "
                    "request is asked again."
                ) from None
            self.answers[answer.key] = answer
        return whole

    def __enter__(self) -> "Journal":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            raise JournalError(f"{self.path} is being written by another process: wait for it, or stop it.") from None
        try:
            whole = self._read()
            self._file = self.path.open("ab")
            self._file.truncate(whole)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._file = None
        self._lock.release()

    def add(self, answer: Answer) -> None:
        """Append one answer; it is on disk when this returns. Raises `JournalError` outside a `with` block."""
        if self._file is None:
            raise JournalError(f"{self.path} is open for reading alone: write inside `with Journal(path) as journal`.")
        self._file.write(json.dumps(answer.model_dump()).encode() + b"\n")  # ASCII: one line whatever the text holds
        self._file.flush()
        os.fsync(self._file.fileno())
        self.answers[answer.key] = answer

    def answered(self, key: str) -> bool:
        """Whether a request has its text."""
        return key in self.answers and self.answers[key].text is not None

    def totals(self) -> dict[str, float]:
        """Requests answered and failed, and the tokens and seconds of all that are in the journal's last word."""
        texts = [answer.text is not None for answer in self.answers.values()]
        sums = {
            name: sum(getattr(answer, name) for answer in self.answers.values())
            for name in ("prompt_tokens", "completion_tokens", "seconds")
        }
        return {"answered": sum(texts), "failed": len(texts) - sum(texts), **sums}
