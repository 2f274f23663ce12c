"""The study: what runs, and what people call. `begin` is a notebook's way in."""

from nli_lib.study.interactive import show_interactive
from nli_lib.study.notebook import ParameterError, Study, StudyError, begin

__all__ = ["ParameterError", "Study", "StudyError", "begin", "show_interactive"]
