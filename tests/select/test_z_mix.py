"""Alone: pytest tests/select/test_z_mix.py"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nli_lib.corpora import from_dataset
from nli_lib.select.zfilter import compare_ways, z_filter, z_mix


@pytest.fixture(scope="module")
def corpora():
    """900 pairs, every third generated; word 0 gives contradiction away in both, word 1 in the generated ones alone."""
    random = np.random.default_rng(1)
    labels, base = random.integers(0, 3, 900), np.arange(900) % 3 != 0
    present = random.random((900, 30)) < 0.1
    present[:, 0] = random.random(900) < np.where(labels == 2, 0.5, 0.05)
    present[:, 1] = random.random(900) < np.where((labels == 2) & ~base, 0.5, 0.05)
    return sparse.csr_array(present.astype(np.uint8)), labels, base


def test_the_three_ways_are_made_of_the_filter(corpora):
    matrix, labels, base = corpora
    options = {"k": 2, "batch_size": 20, "seed": 5}
    own = z_filter(matrix[base], labels[base], **options)
    rest = matrix[~base], labels[~base]
    kept = {way: z_mix(way, *corpora, **options).keep for way in ("z-aug", "par-z", "seq-z")}
    assert kept["z-aug"][base].all()
    assert (kept["z-aug"][~base] == z_filter(*rest, given=(matrix[base], labels[base]), **options).keep).all()
    assert (kept["par-z"][base] == own.keep).all() and (kept["seq-z"][base] == own.keep).all()
    assert (kept["par-z"][~base] == z_filter(*rest, **options).keep).all()
    given = matrix[base][own.keep], labels[base][own.keep]
    assert (kept["seq-z"][~base] == z_filter(*rest, given=given, **options).keep).all()


def test_every_row_has_its_reason(corpora):
    found = z_mix("seq-z", *corpora, k=2, batch_size=20)
    assert ((found.reason == "kept") == found.keep).all() and 0 < found.size < len(found)


def test_nothing_generated_and_nothing_else(corpora):
    matrix, labels, _ = corpora
    for base in (np.ones(900, bool), np.zeros(900, bool)):
        assert len(z_mix("seq-z", matrix, labels, base)) == 900
    with pytest.raises(ValueError, match="'z-augment'"):
        z_mix("z-augment", *corpora)


def test_the_three_ways_compared_on_two_corpora():
    texts = [f"{word} {n % 9}" for n, word in enumerate(["yes", "perhaps", "no"] * 40)]
    labels = ["entailment", "neutral", "contradiction"] * 40
    frame = pd.DataFrame({"premise": [f"scene {n}" for n in range(120)], "hypothesis": texts, "label": labels})
    own, other = (from_dataset(frame[at::2], name, "train") for at, name in enumerate(("own", "other")))
    table = compare_ways(own, other, k=2, batch_size=5).set_index("way")
    assert table.index.tolist() == ["z-aug", "par-z", "seq-z"]
    assert table.loc["z-aug", "of D0"] == 1 > table.loc["z-aug", "of G"]
    assert (table["kept"] == (60 * table["of D0"] + 60 * table["of G"]).round()).all()
