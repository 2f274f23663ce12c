"""What was changed between two versions of a sentence, as one run of words."""

import re
from collections.abc import Sequence


def edit(before: str, after: str) -> tuple[str, str]:
    """The shortest run of whole words of ``before`` and what stands in its place in ``after``; neither is empty.

    What is equal at the beginning is passed over first, then what is equal at the end.

    Raises `ValueError` where the texts are equal or have no word in common.
    """
    a, b = (re.findall(r"\s*(?:\w+|[^\w\s])", text.rstrip()) for text in (before, after))  # a mark is a word of its own
    start, end = shared_ends(a, b)
    if before == after or not start + end:
        raise ValueError(f"no single edit makes {after!r} of {before!r}")
    if start + end == min(len(a), len(b)):  # only put in, or only taken out: a word beside it joins the run
        start, end = (start - 1, end) if start else (start, end - 1)
    while start and not (a[start][0] == b[start][0] == " "):  # a run does not begin with a mark
        start -= 1
    return "".join(a[start : len(a) - end]).strip(), "".join(b[start : len(b) - end]).strip()


def shared_ends(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """How many words two sequences share at their beginning, and then at their end."""
    shorter = min(len(a), len(b))
    start = next((at for at in range(shorter) if a[at] != b[at]), shorter)
    end = next((at for at in range(shorter - start) if a[-1 - at] != b[-1 - at]), shorter - start)
    return start, end
