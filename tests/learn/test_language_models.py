"""Language models by name. Alone: pytest tests/learn/test_language_models.py"""

import numpy as np
import pytest
import torch
from test_decoder import weights  # noqa: F401  a fixture: a small file made as the shipped one
from tiny_generator import make_language_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from nli_lib import paths
from nli_lib.learn import generator
from nli_lib.learn.generator import Part, first_pieces, language_model, load, make
from nli_lib.learn.model import find_model, load_tokenizer


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make_language_model(tmp_path_factory.mktemp("whole"), "llama")


@pytest.fixture
def packaged(whole, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "MODELS", tmp_path)
    monkeypatch.setattr(generator, "find_model", lambda name: whole)
    monkeypatch.setattr(generator, "LOWER_LAYERS", {generator.PACKAGED: 2})
    return whole


def test_one_layer_and_the_first_pieces(packaged, tmp_path):
    folder = make(Part(layers=1, pieces=300), tmp_path / "part")
    model, original = load(str(folder)), load(packaged)
    assert model.config.num_hidden_layers == 1 and model.config.vocab_size == 300
    assert torch.equal(model.get_input_embeddings().weight, original.get_input_embeddings().weight[:300])
    assert torch.equal(model.model.layers[0].mlp.up_proj.weight, original.model.layers[0].mlp.up_proj.weight)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert make(Part(layers=1, pieces=300), folder).joinpath("model.safetensors").stat().st_mtime_ns == stamp
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part", "part.lock"]


def test_the_whole_model_of_a_quantised_file(weights, monkeypatch, tmp_path):  # noqa: F811
    """As the package ships it: saved in fp32, in transformers' format, with the file's own logits."""
    monkeypatch.setattr(generator, "resolve_model", lambda name: str(weights))
    model = load(str(make(Part(), tmp_path / "whole")))
    original = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
    assert model.config.num_hidden_layers == original.config.num_hidden_layers == 4
    ids = torch.tensor([[1, 99, 30, 201, 5]])
    with torch.inference_mode():
        torch.testing.assert_close(model(input_ids=ids).logits, original(input_ids=ids).logits)
    tokenizer = load_tokenizer(str(tmp_path / "whole"))
    assert tokenizer.eos_token_id == 2 and tokenizer("man", add_special_tokens=True)["input_ids"][-1] != 0


def test_the_first_pieces_write_any_text(whole):
    """Ids below the cut stay what they were, every text comes back, and a cut at nothing cuts nothing."""
    tokenizer = AutoTokenizer.from_pretrained(whole)
    cut = first_pieces(tokenizer, 290)
    texts = ["the old man sleeps outside", "zyx é 漢 quickly!", ""]
    for text in texts:
        ids = cut(text, add_special_tokens=False)["input_ids"]
        assert max(ids, default=0) < 290 and cut.decode(ids) == text
        assert [cut.convert_ids_to_tokens(each) for each in ids] == tokenizer.convert_ids_to_tokens(ids)
    assert len(cut("outside")["input_ids"]) > len(tokenizer("outside")["input_ids"])
    same = first_pieces(tokenizer, len(tokenizer))
    assert [same(text)["input_ids"] for text in texts] == [tokenizer(text)["input_ids"] for text in texts]
    assert (cut.bos_token_id, cut.eos_token_id) == (tokenizer.bos_token_id, tokenizer.eos_token_id)


def test_a_name_is_found_by_the_loop_once_it_was_asked_for(packaged, monkeypatch, tmp_path):
    monkeypatch.setitem(generator.PARTS, "tiny-part", Part(layers=1, pieces=300))
    monkeypatch.setitem(generator.HUB_MODELS, "tiny-part", "not yet made")  # and gone after the test
    assert language_model("tiny-part") == "tiny-part"
    assert find_model("tiny-part") == str(tmp_path / "tiny-part")
    assert len(load_tokenizer("tiny-part")) == 300


def test_any_other_name_is_left_to_the_hub_or_a_folder(whole):
    assert language_model(whole) == whole and np.isfinite(float(load(whole).get_input_embeddings().weight.sum()))
    assert language_model("openai-community/gpt2-large") == "openai-community/gpt2-large"
    assert find_model("gpt2-large") == "openai-community/gpt2-large"
