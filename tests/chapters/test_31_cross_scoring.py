"""How accuracy climbs from fold to fold. Run alone: pytest tests/chapters/test_31_cross_scoring.py"""

import numpy as np
import pytest
from cells import functions

climb = functions("31_cross_scoring").climb


def test_a_sawtooth_climbs_and_a_level_does_not():
    fold = np.arange(10)
    assert climb(fold, 0.88 + 0.02 * (fold % 5)) == pytest.approx(0.02)
    assert climb(fold, np.full(10, 0.88)) == pytest.approx(0)
    assert climb(np.arange(2), np.array([0.6, 0.7])) == pytest.approx(0.1)
    assert climb(np.arange(3), np.array([0.5, 0.6, 0.9])) == pytest.approx(0.1)  # the last fold alone has no slope
