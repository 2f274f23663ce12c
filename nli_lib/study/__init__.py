"""The study: what runs, and what people call. `begin` is a notebook's way in.

What a notebook needs (pandas, scipy, IPython) takes two seconds to import and is imported when it is asked for, because
the processes that only run notebooks are modules of this package too.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nli_lib.study.dial import ParameterError
    from nli_lib.study.notebook import Study, begin, show_interactive
    from nli_lib.study.standing import StudyError

__all__ = ["ParameterError", "Study", "StudyError", "begin", "show_interactive"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = {"ParameterError": "dial", "StudyError": "standing"}.get(name, "notebook")
    return getattr(import_module(f"{__name__}.{home}"), name)
