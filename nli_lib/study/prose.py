"""Prose with numbers in it: a template is filled whole or not at all."""

from __future__ import annotations

import html
import math
import numbers
import string
from collections.abc import Mapping


class ProseError(ValueError):
    """A sentence of a notebook lacks a number; the message names it. Shown without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"ProseError: {self}"]


def fill(template: str, values: Mapping[str, object]) -> str:
    """`template.format(**values)` that refuses gaps: unknown names, NaN, infinities; text values lose their HTML."""
    fields = (field for _, field, _, _ in string.Formatter().parse(template) if field is not None)
    names = {field.split(".")[0].split("[")[0] for field in fields}
    if missing := sorted(names - values.keys()):
        raise ProseError(f"say: no value for {', '.join(missing)} (given: {', '.join(sorted(values)) or 'none'})")
    for name in sorted(names):
        value = values[name]
        if value is None or (isinstance(value, numbers.Real) and not math.isfinite(value)):
            raise ProseError(f"say: {name} is {value}: the tables hold no such number")
    safe = {k: html.escape(value, quote=False) if isinstance(value, str) else value for k, value in values.items()}
    try:
        return template.format(**safe)
    except (ValueError, AttributeError, LookupError, TypeError) as error:
        raise ProseError(f"say: {template!r} cannot be filled: {error}") from error
