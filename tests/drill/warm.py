"""Imported by the server from which the drill's processes are forked: what takes seconds to be imported."""

import sklearn.linear_model  # noqa: F401

from nli_lib.learn import generator, predict  # noqa: F401
from nli_lib.study import book, cli, parts  # noqa: F401
from nli_tools import audit, compare  # noqa: F401
