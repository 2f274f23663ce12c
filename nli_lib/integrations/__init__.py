"""Integrations: what other tools make and take, as arrays and tables. Files, other libraries and a notebook's widgets.

Nothing here imports torch before it is asked for `RecordLogits`.
"""

from importlib import import_module

PLACES = {
    "Dynamics": "integrations.dynamics",
    "read_dynamics": "integrations.dynamics",
    "read_cartography": "integrations.cartography",
    "read_coordinates": "integrations.cartography",
    "write_cartography": "integrations.cartography",
    "write_td_metrics": "integrations.cartography",
    "from_pandas": "integrations.frames",
    "to_dataset": "integrations.frames",
    "to_pandas": "integrations.frames",
    "datalab": "integrations.label_issues",
    "issues": "integrations.label_issues",
    "read_label_studio": "integrations.label_studio",
    "write_label_studio": "integrations.label_studio",
    "read_argilla": "integrations.argilla",
    "write_argilla": "integrations.argilla",
    "explore": "integrations.explorer",
    "RecordLogits": "learn.recorder",
}

__all__ = sorted(PLACES)


def __getattr__(name: str) -> object:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"nli_lib.{PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
