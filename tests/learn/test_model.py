"""Encoders and language models that are parts of a packaged one. Alone: pytest tests/learn/test_model.py

The packaged file is small and made here, as the shipped one is made, whose 49,152 tokens take half a minute to read.
"""

import gguf
import numpy as np
import pytest
import torch
import transformers
from tokenizers.pre_tokenizers import ByteLevel

from nli_lib import paths
from nli_lib.learn import generator
from nli_lib.learn.generator import first_pieces, language_model, load, make
from nli_lib.learn.model import END, find_model, load_tokenizer, lower_layers

WHOLE, LAYERS, WIDTH, HEADS = 4, 2, 32, 4


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A GGUF file of SmolLM2's architecture, kind of tokenizer and special tokens, its weights random."""
    path = tmp_path_factory.mktemp("weights") / "tiny.gguf"
    tokens = [END, "<|im_start|>", "<|im_end|>", *sorted(ByteLevel.alphabet()), "Ġm", "an"]
    file = gguf.GGUFWriter(path, "llama")
    known = {"block_count": WHOLE, "context_length": 64, "embedding_length": WIDTH, "feed_forward_length": 2 * WIDTH}
    known |= {"head_count": HEADS, "head_count_kv": HEADS // 2, "rope_dimension_count": WIDTH // HEADS}
    known |= {"rope_freq_base": 10_000.0, "layer_norm_rms_eps": 1e-5, "vocab_size": len(tokens)}
    known |= {"tokenizer_model": "gpt2", "tokenizer_pre": "smollm", "token_list": tokens}
    known |= {"token_types": [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(tokens) - 3)}
    known |= {"token_merges": ["Ġ m", "a n"], "unk_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    known |= {"pad_token_id": 2}
    for name, value in known.items():
        getattr(file, f"add_{name}")(value)
    half, double = WIDTH // 2, 2 * WIDTH
    shapes = {"token_embd": (len(tokens), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(WHOLE):
        inner = {"attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (half, WIDTH), "attn_v": (half, WIDTH)}
        inner |= {"attn_output": (WIDTH, WIDTH), "ffn_norm": (WIDTH,), "ffn_gate": (double, WIDTH)}
        inner |= {"ffn_up": (double, WIDTH), "ffn_down": (WIDTH, double)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in inner.items()}
    rng = np.random.default_rng(0)
    for name, shape in shapes.items():
        file.add_tensor(f"{name}.weight", rng.normal(0, 0.5, shape).astype(np.float32))
    for write in (file.write_header_to_file, file.write_kv_data_to_file, file.write_tensors_to_file, file.close):
        write()
    return path


@pytest.fixture(scope="module")
def folder(weights, tmp_path_factory):
    return lower_layers(weights, LAYERS, tmp_path_factory.mktemp("models") / "tiny")


def test_the_lower_layers_compute_what_they_do_in_the_whole_model(weights, folder):
    whole = transformers.AutoModel.from_pretrained(weights.parent, gguf_file=weights.name).eval()
    lower = transformers.AutoModel.from_pretrained(folder).eval()
    assert lower.config.num_hidden_layers == len(lower.layers) == LAYERS < len(whole.layers)
    ids = torch.tensor([[49, 255, 201, 99, 30]])
    with torch.inference_mode():
        inside = whole(ids, output_hidden_states=True).hidden_states[LAYERS]  # before the last layer norm
        torch.testing.assert_close(lower(ids).last_hidden_state, whole.norm(inside))


def test_each_text_is_closed_and_a_pair_told_apart(folder):
    tokenizer = load_tokenizer(str(folder))
    end = tokenizer.convert_tokens_to_ids(END)
    alone, pair = tokenizer("A man sleeps.")["input_ids"], tokenizer("A man sleeps.", "He rests.")["input_ids"]
    assert alone[-1] == end and pair[: len(alone)] == alone and pair[-1] == end and pair.count(end) == 2
    assert tokenizer.pad_token_id != end  # else the classifier would take the end for padding and read another token
    short = tokenizer("A man sleeps by the sea.", "He rests.", truncation="longest_first", max_length=8)["input_ids"]
    assert len(short) == 8 and short.count(end) == 2


def test_made_once_and_whole_or_absent(weights, folder, tmp_path):
    assert sorted(each.name for each in folder.parent.iterdir()) == ["tiny", "tiny.lock"]  # no draft is left
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert lower_layers(weights, LAYERS, folder) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp
    (tmp_path / "broken.gguf").write_bytes(b"GGUF nothing of the kind")
    with pytest.raises((ValueError, OSError)):
        lower_layers(tmp_path / "broken.gguf", 2, tmp_path / "models" / "broken")
    assert [each.name for each in (tmp_path / "models").iterdir()] == ["broken.lock"]


# ---------------------------------------------------------------- language models


@pytest.fixture
def whole(language_models):
    return language_models["llama"]


@pytest.fixture
def packaged(whole, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "MODELS", tmp_path)
    monkeypatch.setattr(generator, "find_model", lambda name: whole)
    monkeypatch.setattr(generator, "LOWER_LAYERS", {generator.PACKAGED: 2})
    return whole


def test_one_layer_and_the_first_pieces(packaged, tmp_path):
    folder = make(tmp_path / "part", 1, 300)
    model, original = load(str(folder)), load(packaged)
    assert model.config.num_hidden_layers == 1 and model.config.vocab_size == 300
    assert torch.equal(model.get_input_embeddings().weight, original.get_input_embeddings().weight[:300])
    assert torch.equal(model.model.layers[0].mlp.up_proj.weight, original.model.layers[0].mlp.up_proj.weight)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part", "part.lock"]


def test_the_whole_model_of_a_quantised_file(weights, monkeypatch, tmp_path):
    """As the package ships it: saved in fp32, in transformers' format, with the file's own logits."""
    monkeypatch.setattr(generator, "resolve_model", lambda name: str(weights))
    model, given = load(str(make(tmp_path / "whole", None, None))), {"gguf_file": weights.name, "dtype": torch.float32}
    original = transformers.AutoModelForCausalLM.from_pretrained(weights.parent, **given)
    assert model.config.num_hidden_layers == original.config.num_hidden_layers == WHOLE
    ids = torch.tensor([[1, 99, 30, 201, 5]])
    with torch.inference_mode():
        torch.testing.assert_close(model(input_ids=ids).logits, original(input_ids=ids).logits)
    tokenizer = load_tokenizer(str(tmp_path / "whole"))
    assert tokenizer.eos_token_id == 2 and tokenizer("man", add_special_tokens=True)["input_ids"][-1] != 0


def test_the_first_pieces_write_any_text(whole):
    """Ids below the cut stay what they were, every text comes back, and a cut at nothing cuts nothing."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(whole)
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
    monkeypatch.setitem(generator.PARTS, "tiny-part", (1, 300))
    monkeypatch.setitem(generator.HUB_MODELS, "tiny-part", "not yet made")  # and gone after the test
    assert language_model("tiny-part") == "tiny-part" and find_model("tiny-part") == str(tmp_path / "tiny-part")
    assert len(load_tokenizer("tiny-part")) == 300


def test_any_other_name_is_left_to_the_hub_or_a_folder(whole):
    assert language_model(whole) == whole and load(whole).get_input_embeddings().weight.isfinite().all()
    assert language_model("openai-community/gpt2-large") == find_model("gpt2-large") == "openai-community/gpt2-large"
