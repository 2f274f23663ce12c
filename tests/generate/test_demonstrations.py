"""Demonstrations by nearest neighbours. Run alone: pytest tests/generate/test_demonstrations.py"""

import os

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.planted import counterfactuals
from nli_lib.generate.perturb import (
    DEMONSTRATED,
    LONGEST,
    NUMBER,
    Demonstration,
    DemonstrationError,
    all_problems,
    at_random,
    from_revisions,
    nearest,
)

ORIGINALS, REVISED = counterfactuals(60, seed=2)


def vectors(texts):
    """Two numbers a text, so that nearness can be worked out by hand."""
    return np.array([[len(text), text.count("a")] for text in texts], dtype=float)


def problems_of(positions, insertion=()):
    rows = [(at, 0, ORIGINALS.premise[position].split()[0], "noun chunk", 1) for at, position in enumerate(positions)]
    spans = pd.DataFrame(rows, columns=["text", "start", "span", "kind", "times"])
    return all_problems(ORIGINALS, spans, positions, insertion=insertion)[0]


POOL = from_revisions(*counterfactuals(80, seed=3))


def test_revisions_become_demonstrations():
    found = from_revisions(ORIGINALS, REVISED)
    assert found.columns.tolist() == DEMONSTRATED and len(found) == len(REVISED)
    first = found.iloc[0]
    assert first["premise"] == ORIGINALS.premise[0] and first["span"] in first["premise"]
    assert first["output"] == REVISED.table["replacement"][0]
    assert found["direction"].nunique() == 6
    assert max(found["span"].str.split().str.len().max(), found["output"].str.split().str.len().max()) <= LONGEST


def test_broken_revisions_and_strangers_are_left_out():
    originals, revised = counterfactuals(30, seed=2, broken=0.5)
    broken = revised.table["broken"].to_numpy(dtype=bool)
    assert len(from_revisions(originals, revised)) == (~broken).sum()
    assert from_revisions(ORIGINALS[:0], REVISED).empty
    same = REVISED.table.assign(premise=np.repeat(ORIGINALS.premise, 2))
    unchanged = type(REVISED)(same, "same", "test")
    assert from_revisions(ORIGINALS, unchanged).empty


def test_the_nearest_come_last_and_there_are_as_many_as_the_code_shows():
    problems = problems_of(np.arange(12))
    found = nearest(ORIGINALS, problems, POOL, vectors)
    for row, shown in zip(problems.itertuples(), found, strict=True):
        direction = f"{'enc'[ORIGINALS.labels[row.position]]}2{'enc'[row.target]}"
        assert len(shown) == NUMBER.get(direction, 4)
        known = POOL[POOL["direction"] == direction]
        own = vectors([ORIGINALS.premise[row.position] + ORIGINALS.hypothesis[row.position]])
        away = np.linalg.norm(vectors(list(known["premise"] + known["hypothesis"])) - own, axis=1)
        distance = dict(zip(zip(known["premise"], known["hypothesis"], strict=True), away, strict=True))
        far = [distance[each.premise, each.hypothesis] for each in shown]
        assert far == sorted(far, reverse=True) and far == sorted(sorted(away)[: len(far)], reverse=True)
    assert all(len(shown) == 2 for shown in nearest(ORIGINALS, problems, POOL, vectors, number=2))


def test_the_slip_of_2022_gives_a_batch_the_neighbours_of_one_problem():
    problems = problems_of(np.flatnonzero(ORIGINALS.labels == 0))
    e2n = problems[problems["target"] == 1].reset_index(drop=True)
    own, shared = (nearest(ORIGINALS, e2n, POOL, vectors, batch=batch) for batch in (None, 5))
    assert shared[:5] == [own[0]] * 5 and shared[5:10] == [own[1]] * 5  # looked up by the batch's number
    assert shared != own


def test_no_problem_is_shown_its_own_premise():
    pool = from_revisions(ORIGINALS, REVISED)
    problems = problems_of(np.arange(9))
    for row, shown in zip(problems.itertuples(), nearest(ORIGINALS, problems, pool, vectors), strict=True):
        assert all(each.premise != ORIGINALS.premise[row.position] for each in shown)


def test_insertion_has_none_and_a_direction_without_any_is_an_error():
    problems = problems_of(np.arange(6), insertion=["e2n", "n2e", "e2c", "c2e", "n2c", "c2n"])
    assert nearest(ORIGINALS, problems, POOL[:0], vectors) == [[]] * len(problems)
    assert at_random(ORIGINALS, problems, POOL) == [[]] * len(problems)
    with pytest.raises(DemonstrationError, match="there is no demonstration of "):
        nearest(ORIGINALS, problems_of(np.arange(6)), POOL[:0], vectors)
    assert nearest(ORIGINALS, problems[:0], POOL[:0], vectors) == []


def test_the_random_twin_has_the_same_direction_and_number():
    problems = problems_of(np.arange(6))
    found = at_random(ORIGINALS, problems, POOL, seed=1)
    near = nearest(ORIGINALS, problems, POOL, vectors)
    assert [len(each) for each in found] == [len(each) for each in near] and found != near
    known = {Demonstration(*row[:4]): row[4] for row in POOL.itertuples(index=False)}
    for row, shown in zip(problems.itertuples(), found, strict=True):
        assert {known[each][2] for each in shown} == {"enc"[row.target]}


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA is not set: the real corpora are not read")
def test_human_cad_has_demonstrations_of_every_direction():
    found = from_revisions(load("cad", "original/train"), load("cad", "revised_premise/train"))
    assert found["direction"].value_counts().min() > 300
