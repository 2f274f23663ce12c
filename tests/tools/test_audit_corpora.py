"""Audit and card of real corpora, as plain files with foreign column names.

NLI_DATA=... pytest tests/tools/test_audit_corpora.py
"""

import csv
import json
import os
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora import concat, load
from nli_tools.commands import app

DATA = os.environ.get("NLI_DATA")  # a home of one's own unsets it
pytestmark = [pytest.mark.realdata, pytest.mark.slow, pytest.mark.skipif(not DATA, reason="NLI_DATA is not set")]
NAMES = {"premise": "passage", "hypothesis": "assertion", "label": "judgement"}
COLUMNS = ",".join(f"{ours}={theirs}" for ours, theirs in NAMES.items())


def written(folder, corpus, ending=".csv", n=None, names=NAMES):
    """A corpus as a user's file: foreign column names, other spellings of nothing, and a column of their own."""
    table = corpus.table[["premise", "hypothesis"]].assign(label=np.array(corpus.classes, object)[corpus.labels])
    table = pd.DataFrame(np.resize(table.to_numpy(), (n or len(table), 3)), columns=list(table)).rename(columns=names)
    path = folder / f"theirs{ending}"
    if ending == ".jsonl":
        table.assign(note="ours").to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        table.assign(note="ours").to_csv(
            path, index=False, sep="\t" if ending == ".tsv" else ",", quoting=csv.QUOTE_ALL
        )
    return path


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def audited(path, *more):
    done = call("audit", path, "--columns", COLUMNS, *more)
    assert done.exit_code == 0, (done.output, done.exception)
    carded = call("card", path, "--columns", COLUMNS, *more)
    assert carded.exit_code == 0 and carded.stdout.startswith("## Data quality")
    (content,) = paths.EXPORTS.glob("*/audit.json")
    page = content.with_name("audit.html").read_text(encoding="utf-8")
    return json.loads(content.read_text(encoding="utf-8")), page, carded.stdout


def plain_words(text):
    """Words by the definition, one letter after the other."""
    kept = "".join(letter for letter in text.lower() if letter not in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    return kept.split()


def independent(path, label_column, hypothesis_column, feature, label):
    """Share and number of the pairs whose hypothesis has a word, read from the file with pandas and counted plainly."""
    table = pd.read_json(path, lines=True) if path.suffix == ".jsonl" else pd.read_csv(
        path, sep="\t" if path.suffix == ".tsv" else ",", keep_default_na=False
    )  # fmt: skip
    has = table[hypothesis_column].map(lambda text: feature in plain_words(text))
    return (table.loc[has, label_column] == label).mean(), int(has.sum()), table


def check(path, names, content, page, card):
    """Two numbers of the page by an independent computation: the majority, and the share of the strongest word."""
    words = [each for each in content["features"] if re.fullmatch(r"\S+@hypothesis", each["feature"])]
    best = max(words, key=lambda each: each["z"]["value"])
    word = best["feature"].removesuffix("@hypothesis")
    share, n, table = independent(path, names["label"], names["hypothesis"], word, best["label"])
    assert (best["share"]["value"], best["pairs"]["value"]) == (pytest.approx(share), n)
    counts = Counter(table[names["label"]])
    base = counts[best["label"]] / len(table)
    assert best["z"]["value"] == pytest.approx((share - base) / np.sqrt(base * (1 - base) / n))
    most = max(counts.values()) / len(table)
    assert content["figures"]["majority"]["value"] == pytest.approx(most)
    for text in (page, card):
        assert f"{100 * most:.1f}%" in text
        assert f"“{word}”" in text and f"{100 * share:.1f}%" in text
    assert content["figures"]["pairs"]["value"] == len(table)
    assert set(content["classes"]) == set(counts)
    return content["figures"]


@pytest.mark.parametrize(
    ("corpus", "split", "ending"),
    [("snli", "test", ".csv"), ("wanli", "train", ".jsonl"), ("med", "test", ".tsv"), ("fever", "validation", ".csv")],
)
def test_a_corpus_gives_right_numbers(home, tmp_path, corpus, split, ending):
    given = load(corpus, split, data_dir=DATA)
    path = written(tmp_path, given, ending)
    content, page, card = audited(path)
    figures = check(path, NAMES, content, page, card)
    assert len(given.classes) == len(content["classes"]) and len(content["reference"]) == 3
    assert (
        figures["hypothesis only"]["low"] <= figures["hypothesis only"]["value"] <= figures["hypothesis only"]["high"]
    )
    if corpus == "snli":  # more than a quarter of the labels are given away, as everybody has found
        assert figures["gain"]["low"] > 0.2 and content["features"][0]["label"] == "entailment"


def test_sixty_nine_rows_give_a_page_or_one_refusal(home, tmp_path):
    rte = load("rte", "train", data_dir=DATA)
    path = written(tmp_path, rte[np.arange(69)])
    content, page, card = audited(path)
    check_small = content["figures"]["majority"]["value"]
    labels = Counter(pd.read_csv(path)["judgement"])
    assert check_small == pytest.approx(max(labels.values()) / 69) and content["figures"]["pairs"]["value"] == 69
    assert any("Fewer than 100 rows of a class" in warning for warning in content["warnings"])
    assert "expect wide intervals" in page and "69 pairs" in card
    done = call("audit", written(tmp_path, rte[np.arange(30)]), "--columns", COLUMNS)
    assert "an audit: 20 rows of each class are needed, and there are" in str(done.exception)


def test_a_hundred_thousand_rows(home, tmp_path):
    folder = DATA
    names = {"snli": ("train", "validation", "test"), "mnli": ("train", "validation_matched"), "wanli": ("train",)}
    parts = [load(name, split, data_dir=folder) for name, splits in names.items() for split in splits]
    whole = concat(parts, name="all")
    path = written(tmp_path, whole, n=100_000)
    content, page, card = audited(path)
    figures = check(path, NAMES, content, page, card)
    assert figures["pairs"]["value"] == 100_000 and content["compared at"] == 15_000
    assert set(content["own figures at that size"]) >= {"gain", "highest z", "dropped", "above"}
    assert content["own figures at that size"]["highest z"]["value"] < figures["highest z"]["value"]
    assert content["notes"] == [
        "The hypothesis-only model is fitted to 50,000 of 100,000 pairs, drawn at random by premise."
    ]
    assert "at 15,000" in page
