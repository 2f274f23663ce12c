"""Imported by the server from which the drill's processes are forked: what takes seconds to be imported."""

import sklearn.linear_model  # noqa: F401

from nli_lib.generate import samples  # noqa: F401
from nli_lib.learn import cross, generator, predict  # noqa: F401
from nli_lib.study import audit, book, cli, compare  # noqa: F401
