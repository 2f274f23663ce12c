"""Errors for users: a message without a traceback."""

import contextlib
from collections.abc import Iterator

INSTALL = "pip install -c constraints.txt -e '.[study,offline]'"


class UserError(Exception):
    """An error that a user can fix: the message names the file, row or field, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython prints: only the message."""
        return [f"{type(self).__name__}: {self}"]


class TrainingError(UserError, ValueError, RuntimeError):
    """A model cannot be trained, read or recorded; the message names the model, the examples or the file."""

    def __init__(self, message: str):
        # torch recreates an error of a loader's worker from its whole traceback; the message is the end of it
        super().__init__(message.rpartition(f"{type(self).__name__}: ")[2].strip())


class StudyError(UserError, ValueError, RuntimeError):
    """A parameter, a table, or a file of notebooks/ or book/ is wrong; the message names it, what was given and what is
    allowed."""


class PackageError(UserError, ModuleNotFoundError):
    """A package is not installed; the message says what needs it and how to install it."""


@contextlib.contextmanager
def packages(what: str) -> Iterator[None]:
    """Turn a package missing in the block into a `PackageError` which says that `what` need it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise PackageError(f"{what} need packages that are not here ({error}): {INSTALL}") from None
