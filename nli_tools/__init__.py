"""Tools for a user's corpus: the commands of `nli-study` that take one, and exchange with other tools.

The names here read and write other tools' files and objects, and explore a corpus in a notebook. Only `RecordLogits`
imports torch.
"""

from importlib import import_module

READ_AND_WRITE = ("read_dynamics", "read_cartography", "read_coordinates", "write_cartography", "write_td_metrics")
FRAMES = ("from_pandas", "to_dataset", "to_pandas")
ANNOTATORS = ("read_label_studio", "write_label_studio", "read_argilla", "write_argilla")
NAMES = {
    "nli_tools.exchange": ("Dynamics", *READ_AND_WRITE, *FRAMES, *ANNOTATORS, "datalab", "issues"),
    "nli_tools.explorer": ("explore",),
    "nli_lib.learn.recorder": ("RecordLogits",),
}
PLACES = {name: module for module, names in NAMES.items() for name in names}

__all__ = sorted(PLACES)


def __getattr__(name: str) -> object:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
