"""The study: what runs, and what people call. `begin` is a notebook's way in."""

from nli_lib.study.notebook import ParameterError, Study, StudyError, begin
from nli_lib.study.show import show_interactive

__all__ = ["ParameterError", "Study", "StudyError", "begin", "show_interactive"]
