"""A file of lines that only ever grows: each line is one JSON object, and counts when it is on disk.

It is read at once, and written inside a `with` block, by one process at a time. A last line that was cut off, by a kill
or a full disk, is as if it had not been written. Any other line that cannot be read is an error.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from nli_lib.errors import UserError


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

    line      the class of a line; name: what a message calls one
    error     the class of the errors; cure: what to do about a line that cannot be read
    patience  seconds to wait for another process that writes
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
