"""The one base of our own errors: a message for a person, without the traceback of our own checks."""

import contextlib
from collections.abc import Iterator

INSTALL = "pip install -c constraints.txt -e '.[study,offline]'"


class UserError(Exception):
    """Something that a user can mend: the message names the file, row or field, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints: the message alone."""
        return [f"{type(self).__name__}: {self}"]


class PackageError(UserError, ModuleNotFoundError):
    """A package is not installed; the message says what needs it and how to get it."""


@contextlib.contextmanager
def packages(what: str) -> Iterator[None]:
    """Turn a package that the block does not find into a `PackageError` which says that `what` need it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise PackageError(f"{what} need packages that are not here ({error}): {INSTALL}") from None
