"""Prose with numbers in it: a template is filled whole or not at all."""

import math
import numbers
import re
import string
from collections.abc import Mapping

from nli_lib.errors import UserError
from nli_lib.report.names import unsigned_zero


class ProseError(UserError):
    """A sentence of a notebook lacks a number; the message names it."""


class _Filler(string.Formatter):
    """``str.format`` that refuses a field without a number in it and escapes text, however deep the field reaches."""

    def get_field(self, field_name, args, kwargs):
        value, first = super().get_field(field_name, args, kwargs)
        if value is None or (isinstance(value, numbers.Real) and not math.isfinite(value)):
            raise ProseError(f"say: {field_name} is {value}: the tables hold no such number")
        if hasattr(value, "_repr_markdown_"):
            return value.data, first
        return (as_text(value) if isinstance(value, str) else value), first

    def format_field(self, value, format_spec):
        return unsigned_zero(super().format_field(value, format_spec))


def as_text(value: str) -> str:
    """The Markdown that shows ``value`` as it is, on one line: no tag, link or role of the book comes alive in it."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", re.sub(r"[\x00-\x20\x7f-\x9f]+", " ", value))


def fill(template: str, values: Mapping[str, object]) -> str:
    """`template.format(**values)` that refuses gaps: unknown names, None, NaN, infinities.

    Text among the values is shown as text (`as_text`); what is meant as Markdown comes as IPython's ``Markdown``.
    A field may reach into a value: ``{rho.low:.2f}`` of an `Estimate`, ``{row[n]:,}`` of a table's row.
    """
    fields = (field for _, field, _, _ in string.Formatter().parse(template) if field is not None)
    names = {field.split(".")[0].split("[")[0] for field in fields}
    if missing := sorted(names - values.keys()):
        raise ProseError(f"say: no value for {', '.join(missing)} (given: {', '.join(sorted(values)) or 'none'})")
    try:
        return _Filler().vformat(template, (), values)
    except (ValueError, AttributeError, LookupError, TypeError) as error:
        raise ProseError(f"say: {template!r} cannot be filled: {error}") from error
