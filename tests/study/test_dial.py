"""The dial is typed, recipes are specs. Run alone: pytest tests/study/test_dial.py"""

import re
import shutil

import pytest

from nli_lib.errors import StudyError
from nli_lib.store import RunSpec
from nli_lib.study import dial
from nli_lib.study.dial import Dial, read_scale, recipes, run_spec


@pytest.fixture
def noted():
    return {}


@pytest.fixture
def small(noted):
    return Dial(read_scale("small"), noted.__setitem__)


def small_that_says(text, folder):
    shutil.copytree(dial.FOLDER, folder, dirs_exist_ok=True)
    (folder / "small.yaml").write_text(text)
    return read_scale("small", folder)


@pytest.mark.parametrize(("said", "told"), [
    ("consensus:\n  fold: 10\n", r'small.yaml: consensus.fold: there is no such key; did you mean "folds"'),
    ("corpus: [", "small.yaml: "),
    ("corpus: [snli]", "corpus: a text is needed, and .'snli'. is a list"),
    ("limit: 5\nseeds: true", "seeds: a number is needed, and True is a truth value"),
    ("mixing:\n  share: 1", "mixing.share: 1 does not lie between 0 and 1"),
    ("mixing: 3", "mixing. has no keys, but 3")])  # fmt: skip
def test_a_wrong_key_or_value_is_refused_by_file_and_name(tmp_path, said, told):
    with pytest.raises(StudyError, match=told):
        small_that_says(said, tmp_path)


def test_a_file_says_what_differs_from_the_whole_one(tmp_path):
    mine, full = small_that_says("seeds: 2\nexperts:\n  betas: [1, 2]\n", tmp_path), read_scale("full")
    assert (mine.seeds, mine.experts.betas, mine.corpus) == (2, (1, 2), full.corpus)
    assert vars(mine.experts) == {**vars(full.experts), "betas": (1, 2)}


def test_every_key_of_the_whole_file_is_explained_by_a_comment():
    lines = (dial.FOLDER / "full.yaml").read_text().splitlines()
    keys = [at for at, line in enumerate(lines) if re.match(r"( {2})?\w+: ?\S|  \w+:$", line)]
    assert len(keys) > 150
    assert [lines[at] for at in keys if not lines[at - 1].lstrip().startswith("#")] == []


def test_what_is_read_is_noted_with_its_value(small, noted):
    assert (small.seeds, small.difficulty.corpora["snli"]) == (3, ("test", "validation"))
    assert set(noted) == {"seeds", "difficulty.corpora"}
    assert noted["difficulty.corpora"]["snli"] == ["test", "validation"]  # as json reads it
    with pytest.raises(AttributeError, match="no key wanli.compare; there are: compared"):
        small.wanli.compare  # noqa: B018


def test_recipes_become_specs(small, noted):
    spec = run_spec("difficulty", small, corpus="snli", view="hypothesis", epochs=2)
    assert (spec.epochs, spec.clip, spec.learning_rate, spec.model) == (2, 1.5, 1e-4, "minilm")
    assert set(noted) == {"learning_rate", "model"}
    full = read_scale("full")
    assert run_spec("consensus", full, corpus="snli").model == "electra-small"
    assert run_spec("wanli", full, corpus="snli") == RunSpec(corpus="snli")
    for paper, recipe in recipes().items():  # each names fields of the spec
        watched = {"validation": "validation"} if "patience" in recipe else {}
        assert run_spec(paper, small, corpus="snli", **watched).corpus == "snli"
