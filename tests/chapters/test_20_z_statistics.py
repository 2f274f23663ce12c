"""The pair quoted beside a feature. Run alone: pytest tests/chapters/test_20_z_statistics.py"""

import numpy as np
from cells import functions
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

first_pairs = functions("20_z_statistics").first_pairs


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 4))), max_size=12))
def test_first_pairs_are_those_of_a_search(pairs):
    dense = np.array([[at in held for at in range(5)] for _, held in pairs], bool).reshape(-1, 5)
    labels = np.array([label for label, _ in pairs], dtype=int)
    found = first_pairs(sparse.csr_array(dense), labels, n_classes=3)
    for feature in range(5):
        for label in range(3):
            expected = [i for i in range(len(pairs)) if dense[i, feature] and labels[i] == label]
            assert found[feature, label] == (expected or [-1])[0]
