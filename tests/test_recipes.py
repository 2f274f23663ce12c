"""The recipes of the book run as they stand there. Run alone: pytest tests/test_recipes.py"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.planted import make_split
from nli_tools import read_cartography

RECIPES = Path(__file__).resolve().parents[1] / "book" / "recipes"


def follow(name, folder, monkeypatch, **given):
    """Run a page's code blocks in a folder, one after another; what they leave."""
    monkeypatch.chdir(folder)
    text = (RECIPES / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 4 and all(len(line) <= 120 for block in blocks for line in block.splitlines())
    names = dict(given)
    for number, block in enumerate(blocks):
        exec(compile(block, f"{name}, block {number}", "exec"), names)
    return names


def mine(pairs=300, **renamed):
    """A user's table: names for labels, columns by any name."""
    corpus = make_split("train", pairs)
    table = corpus.table[["uid", "premise", "hypothesis"]].assign(label=np.array(corpus.classes)[corpus.labels])
    return corpus, table.rename(columns=renamed)


def test_every_recipe_is_followed_here():
    assert {path.stem for path in RECIPES.glob("*.md")} == {"own_logits", "own_file", "own_probabilities"}


@pytest.mark.slow
def test_own_logits_to_a_map(tmp_path, monkeypatch):
    torch, transformers, datasets = map(pytest.importorskip, ("torch", "transformers", "datasets"))
    corpus, table = mine(60)
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "mine.csv", index=False)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=50, num_labels=3, **sizes))
    words = [[2 + len(text) % 40 for text in pair] for pair in zip(corpus.premise, corpus.hypothesis, strict=True)]
    given = {"uid": corpus.uid.tolist(), "input_ids": words, "label": corpus.labels.tolist()}
    options = {"num_train_epochs": 2, "per_device_train_batch_size": 16, "report_to": "none", "save_strategy": "no"}
    options |= {"use_cpu": True, "disable_tqdm": True}
    arguments = transformers.TrainingArguments(output_dir=str(tmp_path / "out"), **options)
    named = {"model": model, "arguments": arguments, "dataset": datasets.Dataset.from_dict(given)}
    left = follow("own_logits", tmp_path, monkeypatch, **named, collate=transformers.default_data_collator)
    assert left["recorded"].uid.tolist() == pd.read_csv("mine.csv")["uid"].tolist() != corpus.uid.tolist()
    place = dict(zip(left["recorder"].uid.tolist(), range(60), strict=True))
    expected = left["recorder"].logits[:, [place[name] for name in left["corpus"].uid]]
    np.testing.assert_array_equal(left["recorded"].logits, expected)
    assert (tmp_path / "map.png").stat().st_size > 10_000
    np.testing.assert_array_equal(read_cartography(tmp_path / "training_dynamics").logits, expected)
    assert len(left["explorer"].table) == 60


def test_own_file_to_a_filtered_corpus_and_its_twin(tmp_path, monkeypatch):
    _, table = mine(900, premise="context", hypothesis="claim", label="verdict")
    table.assign(note="mine").to_csv(tmp_path / "mine.csv", index=False)
    left = follow("own_file", tmp_path, monkeypatch)
    filtered, twin = load(str(tmp_path / "filtered.csv")), load(str(tmp_path / "twin.csv"))
    assert 0 < len(filtered) < 900 and filtered.counts == twin.counts and set(filtered.uid) != set(twin.uid)
    reasons = pd.read_csv(tmp_path / "reasons.csv")
    assert reasons["kept"].sum() == len(filtered) and (reasons.loc[reasons["kept"], "reason"] == "kept").all()
    assert (reasons["note"] == "mine").all() and left["filtered"].size == len(filtered)


def test_own_probabilities_to_a_list_of_suspects(tmp_path, monkeypatch):
    pytest.importorskip("cleanlab")
    corpus, table = mine()
    table.to_csv(tmp_path / "mine.csv", index=False)
    random = np.random.default_rng(0)
    flipped, truth = random.choice(300, 15, replace=False), corpus.labels.copy()
    truth[flipped] = (truth[flipped] + 1) % 3
    probabilities = random.dirichlet(np.ones(3), 300) * 0.3
    probabilities[np.arange(300), truth] += 0.7
    np.savez(tmp_path / "probs.npz", pred_probs=probabilities, fold=np.arange(300) % 5)
    left = follow("own_probabilities", tmp_path, monkeypatch)
    assert set(pd.read_csv(tmp_path / "suspects.csv")["uid"]) == set(corpus.uid[flipped])
    assert left["learnt"] == pytest.approx(285 / 300) and left["majority"] < 0.5
    assert {path.name for path in tmp_path.glob("*/*")} >= {"label_studio_suspects.json", "argilla_records.json"}
    assert len(left["found"]) == 300
