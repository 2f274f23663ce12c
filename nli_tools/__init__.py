"""Tools for a corpus of one's own: the commands of `nli-study` that take one, and what other tools make and take.

The names here read and write the files and objects of other tools, and explore a corpus in a notebook.

Nothing here imports torch before it is asked for `RecordLogits`.
"""

from importlib import import_module

PLACES = {
    "Dynamics": "nli_tools.dynamics",
    "read_dynamics": "nli_tools.dynamics",
    "read_cartography": "nli_tools.dynamics",
    "read_coordinates": "nli_tools.dynamics",
    "write_cartography": "nli_tools.dynamics",
    "write_td_metrics": "nli_tools.dynamics",
    "from_pandas": "nli_tools.dynamics",
    "to_dataset": "nli_tools.dynamics",
    "to_pandas": "nli_tools.dynamics",
    "datalab": "nli_tools.dynamics",
    "issues": "nli_tools.dynamics",
    "read_label_studio": "nli_tools.exchange",
    "write_label_studio": "nli_tools.exchange",
    "read_argilla": "nli_tools.exchange",
    "write_argilla": "nli_tools.exchange",
    "explore": "nli_tools.explorer",
    "RecordLogits": "nli_lib.learn.recorder",
}

__all__ = sorted(PLACES)


def __getattr__(name: str) -> object:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
