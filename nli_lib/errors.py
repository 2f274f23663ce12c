"""The one base of our own errors: a message for a person, without the traceback of our own checks."""


class UserError(Exception):
    """Something that a user can mend: the message names the file, row or field, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints: the message alone."""
        return [f"{type(self).__name__}: {self}"]
