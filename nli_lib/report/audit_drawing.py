"""The drawings of an audit's page: points of svg elements that its template writes down."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from nli_lib.report.audit_reference import curves
from nli_lib.report.audit_words import percent, short_points, z_words
from nli_lib.stats import Estimate

WIDTH, HEIGHT = 300, 190  # of a curve's drawing
CURVES = {
    "gain": "Hypothesis alone above the most frequent label, points",
    "highest z": "Strongest feature, z",
    "dropped": "Share that the z-filter drops",
}


def as_estimate(figure: Mapping) -> Estimate:
    value, low, high = (np.nan if figure[end] is None else figure[end] for end in ("value", "low", "high"))
    return Estimate(value, low, high, figure["n"], over=figure["over"])


def strip(own: Estimate, beside: Mapping[str, float]) -> dict:
    """Where one's own value and those of the corpora stand between the smallest and the largest of them, 4 to 96."""
    known = np.array([own.value, own.low, own.high, *beside.values()], dtype=float)
    known = known[np.isfinite(known)]
    first, width = (known.min(), np.ptp(known) or 1.0) if len(known) else (0.0, 1.0)

    def place(value: float) -> float | None:
        return round(4 + 92 * (value - first) / width, 1) if np.isfinite(value) else None

    ours = {end: place(getattr(own, end)) for end in ("value", "low", "high")}
    return {**ours, "beside": {corpus: place(value) for corpus, value in beside.items()}}


def curve_drawing(content: Mapping, figure: str) -> dict:
    """One figure of the reference corpora over the number of pairs, and one's own: points of an svg, 300 by 190."""
    known = curves().dropna(subset=["value"])
    known = known[(known["classes"] == "/".join(content["classes"])) & (known["figure"] == figure)]
    own = [(each["n"], as_estimate(each)) for each in _own(content, figure)]
    own = [(n, each) for n, each in own if np.isfinite(each.value) and n > 0]
    sizes = np.array([*known["n"], *(n for n, _ in own)], dtype=float)
    values = np.array([*known["low"], *known["high"], *(end for _, e in own for end in e[:3] if np.isfinite(end)), 0.0])
    form = {"gain": short_points, "highest z": z_words}.get(figure, percent)
    if not len(sizes):
        return {"title": CURVES[figure], "lines": {}, "own": [], "x": [], "y": []}
    left, right, top, bottom = 54, WIDTH - 8, 8, HEIGHT - 24
    x_first, x_last = np.log(sizes.min()), np.log(sizes.max()) if np.ptp(sizes) else np.log(sizes.max()) + 1
    rows = MaxNLocator(4).tick_values(values.min(), values.max() if np.ptp(values) else values.max() + 1)
    y_first, y_last = rows[0], rows[-1]

    def x(n: float) -> float:
        return round(left + (right - left) * (np.log(n) - x_first) / (x_last - x_first), 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * (value - y_first) / (y_last - y_first), 1)

    lines = {
        corpus: " ".join(f"{x(row.n)},{y(row.value)}" for row in curve.sort_values("n").itertuples())
        for corpus, curve in known.groupby("corpus", sort=False)
    }
    ticks = [n for n in (100, 1_000, 10_000, 100_000, 1_000_000) if sizes.min() <= n <= sizes.max()]
    marks = [
        {
            "x": x(n),
            "y": y(e.value),
            "low": y(e.low if np.isfinite(e.low) else e.value),
            "high": y(e.high if np.isfinite(e.high) else e.value),
        }
        for n, e in own
    ]
    return {
        "title": CURVES[figure],
        "lines": lines,
        "own": marks,
        "x": [(x(n), f"{n:,}") for n in ticks],
        "y": [(y(value), form(value)) for value in rows.round(10)],
    }


def _own(content: Mapping, figure: str) -> Sequence[Mapping]:
    """One's own figure for the whole corpus, and where that is larger than the curves at their size."""
    parts = content["figures"], content["own figures at that size"]
    return [part[figure] for part in parts if figure in part]
