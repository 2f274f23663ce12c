"""Two annotations become one row, by WANLI's rule. Run alone: pytest tests/generate/test_annotations.py"""

import json
import os
import string
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nli_lib.generate.review import (
    BOTH,
    COSMETIC,
    DISCARDED,
    NONE,
    ONE,
    AnnotationError,
    aggregate,
)


def answer(item, annotator, label="neutral", premise="A dog runs.", hypothesis="It moves.", discarded=False):
    made = {"premise": "A dog runs.", "hypothesis": "It moves."}
    left = {"revised_premise": premise, "revised_hypothesis": hypothesis}
    return {"item": item, "annotator": annotator, **made, **left, "label": label, "discarded": discarded}


def row(*answers, seed=0):
    (found,) = aggregate(pd.DataFrame(answers), seed=seed).to_dict("records")
    return found


def test_a_pair_that_one_discards_is_discarded():
    found = row(answer(1, "a", discarded=True, premise="changed"), answer(1, "b"))
    assert found["rule"] == DISCARDED and pd.isna(found["premise"]) and pd.isna(found["label"])


def test_where_both_revise_one_of_them_is_taken_whole():
    both = answer(1, "a", "entailment", premise="A cat."), answer(1, "b", "contradiction", hypothesis="It sits.")
    taken = {(f["premise"], f["hypothesis"], f["label"]) for f in (row(*both, seed=seed) for seed in range(20))}
    assert taken == {("A cat.", "It moves.", "entailment"), ("A dog runs.", "It sits.", "contradiction")}
    assert row(*both)["rule"] == BOTH and row(*both)["genre"] == "generated_revised"


def test_a_single_revision_is_not_taken():
    for seed in range(10):
        found = row(answer(1, "a", "entailment", premise="A cat runs."), answer(1, "b", "neutral"), seed=seed)
        assert (found["rule"], found["premise"], found["label"]) == (ONE, "A dog runs.", "neutral")
        assert found["genre"] == "generated"


def test_a_single_revision_of_punctuation_and_case_is_taken():
    for seed in range(10):
        found = row(answer(1, "a", "entailment", premise="a dog, runs"), answer(1, "b", "neutral"), seed=seed)
        assert (found["rule"], found["premise"], found["label"]) == (COSMETIC, "a dog, runs", "entailment")
        assert found["genre"] == "generated_revised"


def test_where_neither_revises_the_label_is_drawn():
    labels = [row(answer(1, "a", "entailment"), answer(1, "b", "neutral"), seed=seed)["label"] for seed in range(40)]
    assert set(labels) == {"entailment", "neutral"} and 8 < labels.count("neutral") < 32
    assert row(answer(1, "a"), answer(1, "b"))["rule"] == NONE


def slow(one, other):
    """The released script, for two annotations in their order."""
    if one["discarded"] or other["discarded"]:
        return None
    changed = [
        (each["revised_premise"], each["revised_hypothesis"]) != (each["premise"], each["hypothesis"])
        for each in (one, other)
    ]
    if all(changed):
        return one
    if any(changed):
        mine, theirs = (one, other) if changed[0] else (other, one)

        def bare(text):
            return "".join(letter for letter in text.lower() if letter not in string.punctuation)

        same = all(bare(mine[side]) == bare(mine[f"revised_{side}"]) for side in ("premise", "hypothesis"))
        return mine if same else theirs
    return one


def test_equal_to_the_released_script_in_one_of_the_two_orders():
    random, rows = np.random.default_rng(0), []
    for item in range(300):
        for annotator in "ab":
            premise = random.choice(["A dog runs.", "a dog runs", "A cat runs."], p=[0.6, 0.2, 0.2])
            label = random.choice(["entailment", "neutral", "contradiction"])
            rows.append(answer(item, annotator, label, premise=premise, discarded=random.random() < 0.1))
    found = aggregate(pd.DataFrame(rows))
    for item, kept in found.set_index("item").iterrows():
        one, other = rows[2 * item : 2 * item + 2]
        expected = [slow(one, other), slow(other, one)]
        if kept["rule"] == DISCARDED:
            assert expected == [None, None]
        else:
            made = (kept["premise"], kept["hypothesis"], kept["label"])
            assert made in [(e["revised_premise"], e["revised_hypothesis"], e["label"]) for e in expected]
    assert set(found["rule"]) == {DISCARDED, BOTH, COSMETIC, ONE, NONE}


def test_the_order_of_the_items_is_kept_and_more_than_two_are_drawn_from():
    rows = [
        answer(item, annotator, label)
        for item in (3, 1)
        for annotator, label in dict.fromkeys("abc", "neutral").items()
    ]
    assert aggregate(pd.DataFrame(rows))["item"].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([answer(7, "a")], "item 7 has one annotation"),
        ([answer(7, "a"), answer(7, "a")], "item 7 has two annotations of one annotator"),
        ([{"item": 1}], "lack the column annotator"),
    ],
)
def test_what_cannot_be_aggregated_is_named(rows, said):
    with pytest.raises(AnnotationError, match=said):
        aggregate(pd.DataFrame(rows))


@pytest.mark.realdata
def test_the_released_sample():
    folder = os.environ.get("NLI_DATA")
    path = Path(folder or ".", "wanli", "anonymized_annotations_sample.jsonl")
    if not folder or not path.is_file():
        pytest.skip("needs the real data: set NLI_DATA to their folder")
    rows = pd.DataFrame(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    rows = rows.rename(columns={"id": "item", "WorkerId": "annotator"}).assign(label=rows["gold"], discarded=False)
    untouched = {"revised_premise": rows["premise"], "revised_hypothesis": rows["hypothesis"], "annotator": "nobody"}
    found = aggregate(pd.concat([rows, rows.assign(**untouched)])).set_index("item")["rule"]
    assert found.value_counts().to_dict() == {NONE: 89, ONE: 9, COSMETIC: 2}
    assert found.index[found == COSMETIC].tolist() == [98787, 360533]
    assert set(found.index[found != NONE]) == set(rows.loc[rows["revised"].astype(bool), "item"])
