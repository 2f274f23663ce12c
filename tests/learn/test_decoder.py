"""The lower layers of a language model. Alone: pytest tests/learn/test_decoder.py

The file is small and made here, as the shipped one is made: its 49,152 tokens would take half a minute to read.
"""

import gguf
import numpy as np
import pytest
import torch
import transformers
from tokenizers.pre_tokenizers import ByteLevel

from nli_lib.learn.model import END, load_tokenizer, lower_layers

NAME, WHOLE, LAYERS, WIDTH, HEADS = "tiny", 4, 2, 32, 4


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A GGUF file of SmolLM2's architecture, kind of tokenizer and special tokens, its weights random."""
    path = tmp_path_factory.mktemp("weights") / "tiny.gguf"
    tokens = [END, "<|im_start|>", "<|im_end|>", *sorted(ByteLevel.alphabet()), "Ġm", "an"]
    file = gguf.GGUFWriter(path, "llama")
    file.add_block_count(WHOLE)
    file.add_context_length(64)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(2 * WIDTH)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS // 2)
    file.add_rope_dimension_count(WIDTH // HEADS)
    file.add_rope_freq_base(10_000.0)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_vocab_size(len(tokens))
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("smollm")
    file.add_token_list(tokens)
    file.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(tokens) - 3))
    file.add_token_merges(["Ġ m", "a n"])
    for add, token in zip((file.add_unk_token_id, file.add_bos_token_id, file.add_eos_token_id), range(3), strict=True):
        add(token)
    file.add_pad_token_id(2)
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
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return path


@pytest.fixture(scope="module")
def made(weights, tmp_path_factory):
    """(folder, the whole model that its layers are from)."""
    folder = lower_layers(weights, LAYERS, tmp_path_factory.mktemp("models") / NAME)
    return folder, transformers.AutoModel.from_pretrained(weights.parent, gguf_file=weights.name)


@pytest.fixture
def folder(made):
    return made[0]


def test_the_lower_layers_compute_what_they_do_in_the_whole_model(made):
    folder, whole = made[0], made[1].eval()
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
