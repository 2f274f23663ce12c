"""The hundred BERTs of McCoy et al. beside MultiNLI dev matched. Alone: pytest tests/corpora/test_berts.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import people, sources
from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.people import hundred_berts


def mnli(n, index=None, split="validation_matched"):
    rows = {"uid": [f"u{i}" for i in range(n)], "premise": "A dog runs.", "hypothesis": "It moves.", "label": 0}
    table = pd.DataFrame(rows).assign(corpus="mnli", split=split)
    return Corpus(table if index is None else table.assign(index=index), "mnli", split)


@pytest.fixture
def released(tmp_path, monkeypatch):
    """A short release in the official form; the number of rows it must have is shortened with it."""
    monkeypatch.setattr(people, "ROWS", 4)
    path = tmp_path / "berts_of_a_feather" / people.PREDICTION_FILES[0]
    path.parent.mkdir()
    path.write_text("index,number of correct responses (out of 100)\n0,100\n1,0\n2,57\n3,99\n")
    return path


def test_joined_by_index(released, tmp_path):
    found = hundred_berts(mnli(3, index=[3, 0, 2]), data_dir=str(tmp_path))
    assert found["position"].tolist() == [0, 1, 2]
    assert found["right"].tolist() == [99, 100, 57]


def test_without_an_index_the_whole_split_is_in_order(released, tmp_path):
    assert hundred_berts(mnli(4), data_dir=str(tmp_path))["right"].tolist() == [100, 0, 57, 99]
    with pytest.raises(CorpusError, match="3 of 4 examples and no field 'index'"):
        hundred_berts(mnli(3), data_dir=str(tmp_path))


def test_other_corpora_and_missing_files_give_an_empty_table(released, tmp_path):
    assert hundred_berts(mnli(4, split="train"), data_dir=str(tmp_path)).empty
    released.unlink()
    assert list(hundred_berts(mnli(4), data_dir=str(tmp_path)).columns) == ["position", "right"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("index,correct\n0,100\n1,0\n2,57\n", "row 4"),  # cut short
        ("index,correct\n0,100\n1,0\n1,57\n3,99\n", "row 4"),  # an index twice
        ("index,correct\n0,100\n1,101\n2,57\n3,99\n", "row 3"),
        ("index,correct\n0,100\n1,0.5\n2,57\n3,99\n", "row 3"),
        ("index,correct\n0,100\n1,0\nx,57\n3,99\n", "row 4"),
        ("index,correct\n0,many\n1,0\n2,57\n3,99\n", "row 2"),
        ("number,right\n0,100\n", "columns 'index' and"),
        ("", "cannot be read as a table"),
        ("index,correct\n0,100\n1,0,5\n", "cannot be read as a table"),
    ],
)
def test_a_file_that_does_not_fit_is_one_error(released, tmp_path, text, said):
    released.write_text(text)
    with pytest.raises(CorpusError, match=said) as told:
        hundred_berts(mnli(4), data_dir=str(tmp_path))
    assert str(released) in str(told.value)


def test_bytes_that_are_no_text_and_an_index_that_is_no_number_are_named(released, tmp_path):
    with pytest.raises(CorpusError, match="example 2, field 'index': 'x' is no place"):
        hundred_berts(mnli(2, index=["0", "x"]), data_dir=str(tmp_path))
    released.write_bytes(b"index,correct\n0,\xff\n")
    with pytest.raises(CorpusError, match=f"{released}: cannot be read as a table"):
        hundred_berts(mnli(4), data_dir=str(tmp_path))


@pytest.mark.realdata
def test_the_real_counts_belong_to_the_real_corpus():
    corpus = sources.load("mnli", "validation_matched")
    found = hundred_berts(corpus)
    assert len(found) == len(corpus) == 9_815
    assert np.array_equal(found["position"], np.arange(9_815))
    assert 83 < found["right"].mean() < 85.5  # the hundred models' mean accuracy, 84% (McCoy et al., Table 1)
