"""The study: what runs, and what people call. `begin` is a notebook's way in.

What a notebook needs (pandas, scipy, IPython) takes two seconds to import and is imported when it is asked for, because
the processes that only run notebooks are modules of this package too.
"""

from importlib import import_module

from nli_lib.errors import StudyError as StudyError

HOMES = {"begin": "notebook", "show_interactive": "notebook", "Study": "notebook"}


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
