"""The dial is typed, recipes are specs. Run alone: pytest tests/study/test_dial.py"""

import re
import shutil

import pytest

from nli_lib.store import RunSpec
from nli_lib.study import dial
from nli_lib.study.dial import Dial, ParameterError, read_scale, recipes, run_spec


@pytest.fixture
def noted():
    return {}


@pytest.fixture
def small(noted):
    return Dial(read_scale("small"), noted.__setitem__)


def test_an_unknown_key_is_refused_by_file_and_name(tmp_path):
    shutil.copytree(dial.FOLDER, tmp_path / "scales")
    path = tmp_path / "scales" / "small.yaml"
    path.write_text("consensus:\n  fold: 10\n")
    with pytest.raises(ParameterError, match=r'small.yaml: consensus.fold: there is no such key; did you mean "folds"'):
        read_scale("small", tmp_path / "scales")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("corpus: [", "small.yaml: "),
        ("corpus: [snli]", "corpus: a text is needed, and .'snli'. is a list"),
        ("limit: 5\nseeds: true", "seeds: a number is needed, and True is a truth value"),
        ("mixing:\n  share: 1", "mixing.share: 1 does not lie between 0 and 1"),
        ("mixing: 3", "mixing. has no keys, but 3"),
    ],
)
def test_a_value_of_another_kind_or_out_of_range_is_refused(tmp_path, said, told):
    shutil.copytree(dial.FOLDER, tmp_path / "scales")
    (tmp_path / "scales" / "small.yaml").write_text(said)
    with pytest.raises(ParameterError, match=told):
        read_scale("small", tmp_path / "scales")


def test_a_file_says_what_differs_from_the_whole_one(tmp_path):
    shutil.copytree(dial.FOLDER, tmp_path / "scales")
    (tmp_path / "scales" / "small.yaml").write_text("seeds: 2\nexperts:\n  betas: [1, 2]\n")
    mine, full = read_scale("small", tmp_path / "scales"), read_scale("full")
    assert (mine.seeds, mine.experts.betas, mine.corpus) == (2, (1, 2), full.corpus)
    assert vars(mine.experts) == {**vars(full.experts), "betas": (1, 2)}


def test_every_key_of_the_whole_file_is_explained_by_a_comment():
    lines = (dial.FOLDER / "full.yaml").read_text().splitlines()
    keys = [at for at, line in enumerate(lines) if re.match(r"( {2})?\w+: ?\S|  \w+:$", line)]
    assert len(keys) > 150
    assert [lines[at] for at in keys if not lines[at - 1].lstrip().startswith("#")] == []


def test_what_is_read_is_noted_with_its_value(small, noted):
    assert small.seeds == 3
    assert small.difficulty.corpora["snli"] == ("test", "validation")
    assert set(noted) == {"seeds", "difficulty.corpora"}
    assert noted["difficulty.corpora"]["snli"] == ["test", "validation"]  # as json reads it
    with pytest.raises(AttributeError, match="no key wanli.compare; there are: compared"):
        small.wanli.compare  # noqa: B018


def test_recipes_become_specs(small, noted):
    spec = run_spec("difficulty", small, corpus="snli", view="hypothesis", epochs=2)
    assert (spec.epochs, spec.clip, spec.learning_rate, spec.model) == (2, 1.5, 1e-4, "minilm")
    assert set(noted) == {"learning_rate", "model"}
    full = Dial(read_scale("full"), noted.__setitem__)
    assert run_spec("consensus", full, corpus="snli").model == "electra-small"
    assert run_spec("wanli", full, corpus="snli") == RunSpec(corpus="snli")


@pytest.mark.parametrize("paper", recipes())
def test_every_recipe_names_fields_of_the_spec(paper, small):
    watched = {"validation": "validation"} if "patience" in recipes()[paper] else {}
    assert run_spec(paper, small, corpus="snli", **watched).corpus == "snli"
