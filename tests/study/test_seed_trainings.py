"""Alone: pytest tests/study/test_seed_trainings.py"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.select.arms import ARM, TrainingSet
from nli_lib.select.mix import TWIN
from nli_lib.spec import RunSpec
from nli_lib.store import StoreError
from nli_lib.study import trainings
from nli_lib.study.trainings import costs, file_of, of_seed, record, recorded, right_of, trained

ARMS = ["base", "AUM", "our DISCO added"]


class Planned:
    """A plan whose models are right about random pairs: what each seed asks of it is counted."""

    def __init__(self, seeds=2, **changed):
        self.dial = SimpleNamespace(**dict.fromkeys(trainings.DECIDE, 1), **{})
        self.threshold, self.study, self.added, self.asked = 0.1, "smoke", {}, []
        self.base, self.seeds = load("planted", "train", limit=30), seeds
        self.tested = {"one": load("planted", "test", limit=13), "other": load("planted", "validation", limit=5)}
        self.__dict__ |= changed

    def seeds_of(self, arm):
        return range(self.seeds if arm == "base" else 1)

    def arms_of(self, seed, among=None):
        return [arm for arm in (ARMS if among is None else among) if seed in self.seeds_of(arm)]

    def candidates(self, seed):
        return self.base

    def additions(self, seed):
        return self.added

    def spec_of(self, corpus, seed, **fields):
        return RunSpec(corpus=corpus.name, model="minilm", seed=seed)

    def sets(self, seed, arms=None):
        wanted = self.arms_of(seed, arms)
        absent = {arm: "no pairs of it" for arm in wanted if arm == "our DISCO added" and not self.added}
        made = TrainingSet(self.base, 30, added=4, labels=30)
        return {(arm, which): made for arm in wanted if arm not in absent for which in (ARM, TWIN)}, absent

    def updates(self, made):
        return 3

    def tested_run(self, made, seed, tests):
        self.asked.append(seed)
        draw = np.random.default_rng([seed, len(self.asked)])
        about = {"seconds": 2.0, "device": "a machine"}
        run = SimpleNamespace(store=SimpleNamespace(read_json=lambda name: about))
        return run, {title: draw.random(len(test)) < 0.5 for title, test in tests.items()}

    def scoring_seconds(self, seed, arm):
        return 5.0 if arm == "AUM" else 0.0


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)


def test_a_recorded_seed_is_taken_over_and_equals_what_was_trained():
    plan = Planned()
    path = record(plan, 0)
    assert path == file_of(plan, 0) and path.is_file()
    there = pd.read_parquet(path)
    other = Planned()
    table = trained(other, other.tested)
    assert set(other.asked) == {1}  # the other seed alone
    pd.testing.assert_frame_equal(table[table["seed"] == 0].reset_index(drop=True)[there.columns], there)
    right = right_of(table, other.tested)
    assert {key: rows["one"].shape for key, rows in right.items()} == {
        ("base", ARM): (2, 13), ("base", TWIN): (2, 13), ("AUM", ARM): (1, 13), ("AUM", TWIN): (1, 13)
    }  # fmt: skip
    bits = np.random.default_rng([0, 1]).random(13) < 0.5  # the first that was asked for
    assert np.array_equal(right["base", ARM]["one"][0], bits)
    assert list(table.loc[table["reason"] != "", "arm"]) == ["our DISCO added"]


def test_some_arms_alone_are_recorded_and_the_others_trained():
    plan = Planned()
    assert set(trained(plan, plan.tested, ["base"])["arm"]) == {"base"}
    record(plan, 0, ["AUM"])
    first = pd.read_parquet(file_of(plan, 0))
    assert set(first["arm"]) == {"AUM"}
    other = Planned(seeds=1)
    table = trained(other, other.tested)
    assert len(other.asked) == 2  # the base and its twin
    assert table["arm"].drop_duplicates().tolist() == ARMS  # in the order of the plan, wherever they come from
    assert set(trained(other, other.tested, ["base"])["arm"]) == {"base"}
    record(other, 0, ["base"])  # added to those that are there
    both = pd.read_parquet(file_of(other, 0))
    assert set(both["arm"]) == {"AUM", "base"}
    bits = "right: one"
    assert both.loc[both["arm"] == "AUM", bits].tolist() == first[bits].tolist()


@pytest.mark.parametrize(
    "changed",
    [
        {"threshold": 0.2},
        {"base": load("planted", "train", limit=31)},
        {"tested": {"one": load("planted", "test", limit=12), "other": load("planted", "validation", limit=5)}},
        {"spec_of": lambda corpus, seed, **fields: RunSpec(corpus=corpus.name, model="minilm", seed=seed, epochs=9)},
        {"dial": SimpleNamespace(**dict.fromkeys(trainings.DECIDE, 2))},
    ],
    ids=["threshold", "corpus", "test", "recipe", "dial"],
)
def test_a_seed_that_rests_on_something_else_is_trained_anew_and_says_so(changed, capsys):
    record(Planned(), 0)
    plan = Planned(**changed)
    assert recorded(plan, 0, plan.tested).empty
    assert "0 rows are taken over, 5 rest on other data, settings or code" in capsys.readouterr().out
    trained(plan, plan.tested)
    assert set(plan.asked) == {0, 1}


def test_another_source_is_trained_on_and_nothing_else(capsys):
    record(Planned(seeds=1), 0)
    plan = Planned(seeds=1, added={"our DISCO": load("planted", "validation", limit=7)})
    table = trained(plan, plan.tested)
    assert len(plan.asked) == 2  # the new arm and its twin
    assert "4 rows are taken over, 1 rest on" in capsys.readouterr().out
    assert table["arm"].drop_duplicates().tolist() == ARMS and (table["reason"] == "").all()
    record(plan, 0)
    again = Planned(seeds=1, added={"our DISCO": load("planted", "validation", limit=8)})
    trained(again, again.tested)
    assert len(again.asked) == 2


def test_two_processes_record_arms_of_one_seed():
    class Slow(Planned):
        def tested_run(self, made, seed, tests):
            if not self.asked:
                record(Planned(seeds=1), 0, ["base"])  # another process ends meanwhile
            return super().tested_run(made, seed, tests)

    record(Slow(seeds=1), 0, ["AUM"])
    assert set(recorded(Planned(seeds=1), 0, Planned().tested)["arm"]) == {"AUM", "base"}


def test_other_code_that_chooses_pairs_makes_a_recorded_seed_void(monkeypatch):
    record(Planned(), 0)
    monkeypatch.setattr(trainings, "dependences", lambda roots: {roots[0]: "other"})
    assert recorded(Planned(), 0, Planned().tested).empty


def test_a_damaged_file_is_named_with_what_to_do():
    path = record(Planned(), 0)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError, match=r"seed-0.parquet cannot be read.*delete it to train this seed again"):
        trained(Planned(), Planned().tested)


def test_a_seed_or_an_arm_that_the_plan_has_not_is_refused():
    with pytest.raises(trainings.SeedError, match="has the seeds 0 to 1, and not 2"):
        record(Planned(), 2)
    with pytest.raises(trainings.SeedError, match="seed 1 has no arm 'AUM', but base"):
        record(Planned(), 1, ["AUM"])


def test_what_an_arm_costs_by_hand():
    table = of_seed(Planned(), 0, Planned().tested)
    table.loc[table["arm"] == "AUM", "arm"] = "our WANLI added"  # 4 pairs added, 10 tokens and half a second each
    spent = costs(table, {"our WANLI": (10.0, 0.5)}).set_index("arm")
    assert spent.loc["our WANLI added"].to_list() == [2.0 + 5.0 + 4 * 0.5, 40.0, 30.0]
    assert spent.loc["base"].to_list() == [2.0, 0.0, 30.0]
