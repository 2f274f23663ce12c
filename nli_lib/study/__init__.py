"""The study: the parts that run, and the functions that people call. A notebook starts with `begin`.

Modules for notebooks (pandas, scipy, IPython) take two seconds to import and are imported on demand, because the
processes that only run notebooks use this package too.
"""

from importlib import import_module

from nli_lib.errors import StudyError as StudyError

NAMES = ("begin", "show_interactive", "Study")


def __getattr__(name: str) -> object:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.notebook"), name)
