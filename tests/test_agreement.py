"""Kappa with an interval. Run alone: pytest tests/test_agreement.py"""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from nli_lib.agreement import kappa
from nli_lib.generate.review import untouched


def both(ones, others):
    texts = {"premise": "a", "hypothesis": "b", "revised_premise": "a", "revised_hypothesis": "b", "discarded": False}
    rows = [
        {"item": f"{at:03}", "annotator": who, "label": label} | texts
        for at, pair in enumerate(zip(ones, others, strict=True))
        for who, label in zip("ab", pair, strict=True)
    ]
    return pd.DataFrame(rows)


def drawn(n=200, same=0.7, seed=0):
    random = np.random.default_rng(seed)
    ones = random.choice(["entailment", "neutral", "contradiction"], size=n)
    others = np.where(random.random(n) < same, ones, random.choice(["entailment", "neutral"], size=n))
    return both(ones, others)


def test_by_hand():
    """Ten pairs, eight agree; the twenty labels are 10 and 10, so that chance agrees in half: (.8 - .5) / .5 = .6."""
    found = kappa(both("eeeennnnen", "eeeennnnne"))
    assert found.value == pytest.approx(0.6) and found.n == 10 and found.over == "pairs"
    assert found.low < 0.6 < found.high <= 1


def test_the_value_is_scikit_learns_with_both_orders_counted():
    annotations = drawn()
    found, pairs = kappa(annotations), untouched(annotations)
    assert found.value == pytest.approx(cohen_kappa_score(pairs.ravel(), pairs[:, ::-1].ravel()))
    assert found.n == len(pairs) == 200


def test_what_somebody_changed_or_discarded_does_not_count():
    annotations = drawn(60)
    changed = annotations.assign(item="x" + annotations["item"])[:4]
    changed["revised_premise"], changed["discarded"] = ["other", "a", "a", "a"], [False, False, True, False]
    assert kappa(pd.concat([annotations, changed])) == kappa(annotations)


def test_equal_to_a_slow_bootstrap():
    annotations = drawn(60)
    table = annotations.pivot(index="item", columns="annotator", values="label")
    random, draws = np.random.default_rng(1), []
    for _ in range(300):
        again = table.iloc[random.integers(len(table), size=len(table))]
        draws.append(cohen_kappa_score([*again["a"], *again["b"]], [*again["b"], *again["a"]]))
    found = kappa(annotations)
    assert np.quantile(draws, [0.025, 0.975]) == pytest.approx([found.low, found.high], abs=0.05)


def test_neither_order_matters():
    annotations = drawn()
    swapped = annotations.assign(annotator=annotations["annotator"].map({"a": "b", "b": "a"}))
    assert kappa(swapped)[:3] == pytest.approx(kappa(annotations)[:3])
    assert kappa(annotations.sample(frac=1, random_state=1))[:3] == pytest.approx(kappa(annotations)[:3])


def test_bounds_and_what_has_no_kappa():
    assert kappa(both("ennc", "ennc"))[:2] == (pytest.approx(1), pytest.approx(1))
    assert kappa(both("en", "ne")).value == pytest.approx(-1)
    assert np.isnan(kappa(both("ee", "ee"))[:3]).all() and kappa(both("ee", "ee")).n == 2
    discarded = both("en", "en").assign(discarded=True)
    assert np.isnan(kappa(discarded)[:3]).all() and kappa(discarded).n == 0
