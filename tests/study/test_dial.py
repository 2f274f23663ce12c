"""The dial is typed, recipes are specs. Run alone: pytest tests/study/test_dial.py"""

import shutil

import pytest

from nli_lib.spec import RunSpec
from nli_lib.study import dial
from nli_lib.study.dial import Dial, DialError, read_scale, recipes, run_spec


@pytest.fixture
def noted():
    return {}


@pytest.fixture
def small(noted):
    return Dial(read_scale("small"), noted.__setitem__)


def test_an_unknown_key_is_refused_by_file_and_name(tmp_path):
    shutil.copytree(dial.FOLDER, tmp_path / "scales")
    path = tmp_path / "scales" / "small.yaml"
    path.write_text(path.read_text().replace("  folds: 10", "  fold: 10"))
    with pytest.raises(DialError, match=r"small.yaml: consensus.folds: Field required"):
        read_scale("small", tmp_path / "scales")
    path.write_text("corpus: [")
    with pytest.raises(DialError, match=r"small.yaml: "):
        read_scale.__wrapped__("small", tmp_path / "scales")


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
