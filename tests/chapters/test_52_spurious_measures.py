"""The control for the size of the hard level. Run alone: pytest tests/chapters/test_52_spurious_measures.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.stats import t_interval

smaller_share = functions("52_spurious_measures").smaller_share


def table(shares, **columns):
    rows = [(training, share) for training, of in enumerate(shares) for share in of]
    return pd.DataFrame(rows, columns=["training", "significant"]).assign(**columns)


def test_the_smaller_share_is_parts_minus_hard_over_trainings():
    tests = pd.concat([table([[1, 0], [0, 0], [1, 1]], level="hard"), table([[1], [1], [1]], level="easy")])
    drops = np.array([0.2, 0.6, -0.4])  # parts of .7, .6 and .6 against .5, 0 and 1
    found = smaller_share(tests, table([[0.6, 0.8], [0.6, 0.6], [0.5, 0.7]]))
    assert found.value == pytest.approx(drops.mean()) and found[3:] == (2, 3, "pairs and trainings")
    assert found.high - found.value > t_interval(drops).high - drops.mean()  # the parts differ as well
    alone = smaller_share(table([[1, 0]], level="hard"), table([[0.6, 0.8]]))
    assert alone.value == pytest.approx(0.2) and alone[4:] == (1, "pairs")
