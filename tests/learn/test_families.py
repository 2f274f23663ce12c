"""Encoders of other families than BERT. Alone: pytest tests/learn/test_families.py

Tiny models with random weights, one epoch, against transformers' model stepped plainly (`test_loop.slow_twin`).
"""

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from test_loop import assert_equal_to_the_slow_twin
from tiny_words import WORDS

from nli_lib.learn.experts import HEAD, ProductOfExperts, expert_logits
from nli_lib.learn.fit import fit
from nli_lib.learn.predict import predict

WIDE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
CALM = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # so that two loops see the same numbers
FAMILIES = {
    "Roberta": {**WIDE, **CALM, "max_position_embeddings": 66, "type_vocab_size": 1},
    "Electra": {**WIDE, **CALM, "max_position_embeddings": 64, "embedding_size": 16},
    "DebertaV2": {
        **WIDE, **CALM, "max_position_embeddings": 64, "type_vocab_size": 0, "relative_attention": True,
        "position_buckets": 8, "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm", "share_att_key": True,
        "position_biased_input": False, "pooler_hidden_size": 32, "pooler_dropout": 0.0,
    },
    "DistilBert": {
        "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": 64,
        "dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0,
    },
    "Llama": {**WIDE, "max_position_embeddings": 64},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """Folder of a tiny model of a family, with a tokenizer for `WORDS` that knows no token types."""

    def make(family):
        folder = tmp_path_factory.mktemp(family.lower())
        entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *(f"unused{i}" for i in range(20))]
        (folder / "vocab.txt").write_text("\n".join(entries))
        names = ["input_ids", "attention_mask"]
        transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_input_names=names).save_pretrained(folder)
        torch.manual_seed(1)
        config = getattr(transformers, f"{family}Config")(vocab_size=len(entries), pad_token_id=0, **FAMILIES[family])
        getattr(transformers, f"{family}Model")(config).save_pretrained(folder)
        return str(folder)

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_an_epoch_equals_the_slow_twins(family, folder_of, make_spec, corpus):
    spec = make_spec(model=folder_of(family), weight_decay=0.1, warmup=0.1)
    assert_equal_to_the_slow_twin(spec, corpus)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_and_its_predictions(family, folder_of, make_spec, corpus, runs):
    spec = make_spec(model=folder_of(family), epochs=2, precision="bf16")
    run = fit(spec, corpus)
    assert run.logits.shape == (2, len(corpus), 3)
    assert np.isfinite(run.logits).all()
    again = predict(run, corpus)
    assert np.abs(again - run.logits[-1]).max() < 0.05  # the last epoch's weights, batches of another size


@pytest.mark.parametrize("family", FAMILIES)
def test_a_product_of_experts_and_its_bias_head(family, folder_of, make_spec, corpus, runs):
    """The bias head is trained, comes back from the stored model, and reads a text alike alone and in a padded one."""
    objective = ProductOfExperts(1.0, 1.0)
    spec = make_spec(model=folder_of(family), epochs=2, objective=objective.name)
    run = fit(spec, corpus, objective=objective)
    np.testing.assert_allclose(predict(run, corpus), run.logits[-1], atol=1e-4)
    together = expert_logits(run, corpus.hypothesis)
    alone = np.concatenate([expert_logits(run, [text]) for text in corpus.hypothesis[:4]])
    np.testing.assert_allclose(together[:4], alone, atol=1e-5)
    start, _ = objective.model(spec, corpus.classes)
    stored = load_file(run.model / "model.safetensors")
    moved = [not torch.equal(each, stored[f"{HEAD}.{name}"]) for name, each in start.expert.named_parameters()]
    assert len(moved) == 8 and all(moved)
