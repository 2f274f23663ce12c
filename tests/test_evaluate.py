"""Tables of accuracy and of levels, and what a reviewer takes away. Fast, any machine: pytest tests/test_evaluate.py"""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from nli_lib import evaluate
from nli_lib.corpora.corpus import LABELS, Corpus, CorpusError
from nli_lib.evaluate import across_seeds, correct_predictions, correlation_table, level_gap, review_list, suite_table
from nli_lib.select.selection import Selection
from nli_lib.stats import t_interval, wilson, with_trainings
from nli_lib.tables import read_csv, unguarded

TWO = ("entailment", "not_entailment")


def corpus(labels, *, classes=LABELS, name="toy", **extra):
    table = {"uid": [f"{name}-{i}" for i in range(len(labels))], "premise": "A cat sits.", "hypothesis": "It sits."}
    table |= {"label": labels, "corpus": name, "split": "test", **extra}
    return Corpus(pd.DataFrame(table), name, "test", classes)


def test_accuracy_of_three_classes():
    logits = np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3], [3, 0, 0.0]])
    row = evaluate.accuracy_row(correct_predictions(logits, np.array([0, 1, 2, 1])))
    _, low, high, *_ = wilson(3, 4)
    assert row == {"n": 4, "correct": 3, "accuracy": 0.75, "low": low, "high": high}


def test_the_two_rules_differ_where_entailment_leads_without_half_the_mass():
    logits = np.log([[0.4, 0.3, 0.3], [0.6, 0.2, 0.2]])
    assert correct_predictions(logits, np.array([0, 0]), TWO, "argmax").tolist() == [True, True]
    assert correct_predictions(logits, np.array([0, 0]), TWO, "sum").tolist() == [False, True]


def test_bad_predictions_are_refused():
    for logits, said in (([[np.nan, 0, 0], [1, 0, 0]], "not finite .1 rows"), ([[0, 0, 0]] * 3, "give one label each")):
        with pytest.raises(ValueError, match=said):
            correct_predictions(np.array(logits), np.array([0, 0]))
    with pytest.raises(ValueError, match="n > 0"):
        evaluate.accuracy_row(np.zeros(0, dtype=bool))


def test_suite_table_reports_both_rules_of_two_class_sets():
    suite = {"three": corpus([0, 1, 2]), "two": corpus([0, 1], classes=TWO, name="pair")}
    predictions = {"three": np.eye(3) * 4, "two": np.log([[0.4, 0.3, 0.3], [0.1, 0.1, 0.8]])}
    three, *two = suite_table(predictions, suite, seed=7)[["title", "rule", "accuracy", "n", "seed"]].values.tolist()
    assert three == ["three", "argmax", 1.0, 3, 7] and two == [["two", "argmax", 1.0, 2, 7], ["two", "sum", 0.5, 2, 7]]
    mine = {"two": np.array([[0, 1], [0, 1.0]])}  # a model of these two classes is judged by its own
    own = suite_table(mine, {"two": suite["two"]}, classes=TWO, seed=3)
    assert own[["correct", "rule", "seed"]].values.tolist() == [[1, "argmax", 3]]


def test_agreement_by_hand():
    pairs = pd.DataFrame({"label": [0, 0, 1, 2], "kind": ["a", "a", "a", "b"]})
    found = evaluate.agreement(pairs, [0, 1, 1, 2], ["kind"]).set_index("kind")
    assert found["n"].tolist() == [3, 1] and found["agree"].tolist() == [2, 1]
    # intended 2/3, 1/3 of labels 0, 1; predicted 1/3, 2/3: at random 2/9 + 2/9
    assert found.loc["a", ["share", "chance", "most"]].tolist() == pytest.approx([2 / 3, 4 / 9, 2 / 3])
    assert (found["low"] < found["share"] + 1e-9).all()


def test_majority_is_the_best_constant_answer():
    suite = {"toy": corpus([1, 1, 2]), "pair": corpus([0, 1, 1, 1], classes=TWO, name="pair")}
    toy, pair = evaluate.majority_table(suite)[["title", "label", "accuracy"]].values.tolist()
    assert toy == ["toy", "neutral", pytest.approx(2 / 3)] and pair == ["pair", "not_entailment", 0.75]
    with pytest.raises(CorpusError, match="name a folder that holds one in DATA_DIR"):
        evaluate.majority_table({})


def test_across_seeds_by_hand():
    rows = [("a", "pair", "argmax", 10, s, v) for s, v in ((0, 0.7), (1, 0.8), (2, 0.9))]
    rows.append(("b", "pair", "argmax", 10, 0, 0.5))
    table = pd.DataFrame(rows, columns=["title", "view", "rule", "n", "seed", "accuracy"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning of the one training of b would stand on the page
        wide = across_seeds(table)
    first = wide.loc[0, ["title", "view", "mean", "std", "min", "max", "seeds", "low", "high"]].tolist()
    ends = t_interval(np.array([0.7, 0.8, 0.9]))[1:3]
    assert first[:2] == ["a", "pair"] and first[2:] == pytest.approx([0.8, 0.1, 0.7, 0.9, 3, *ends])
    assert wide.loc[1, "seeds"] == 1 and wide.loc[1, ["std", "low", "high"]].isna().all()
    shuffled = across_seeds(table.sample(frac=1, random_state=3)).sort_values("title", ignore_index=True)
    pd.testing.assert_frame_equal(shuffled, wide)
    with pytest.raises(ValueError, match="seed 0 appears twice"):
        across_seeds(table.assign(seed=0))
    empty = across_seeds(pd.DataFrame(columns=["title", "seed", "accuracy"]))
    assert len(empty) == 0 and {"title", "mean", "low", "high"} <= set(empty)


def test_models_that_have_not_learnt_say_so():
    good, chance = evaluate.skill(450, 1000, 0.34), evaluate.skill(350, 1000, 0.34)
    assert good.learnt and "have not learnt" not in good.words
    assert not chance.learnt  # better, but not by more than 1,000 pairs can show
    for part in ("35.0% [32.1%, 38.0%] of 1,000 labels", "34.0%", "have not learnt the task"):
        assert part in chance.words


def test_gains_are_taken_within_a_seed():
    rows = [("gold", "one", 0, 0.8), ("gold", "one", 1, 0.7), ("gold", "two", 0, 0.7), ("gold", "two", 1, 0.62)]
    table = pd.DataFrame(rows, columns=["title", "condition", "seed", "accuracy"]).assign(n=50)
    (gain,) = evaluate.seed_gains(table, "one").to_dict("records")
    assert (gain["other"], gain["seeds"], gain["n"]) == ("two", 2, 50)
    assert gain["value"] == pytest.approx(0.09) and gain["low"] < 0.09 < gain["high"]
    assert evaluate.seed_gains(table, "none").empty


# ---------------------------------------------------------------- levels


def leveled(n=300, trainings=3):
    """One corpus: the level decides how often a model is right, labels and another score are free."""
    gold, parts = np.random.default_rng(9).integers(0, 3, n), []
    for training in range(trainings):
        random = np.random.default_rng(training)
        level = random.permutation(np.repeat([0, 1, 2], [n // 2, n // 4, n - n // 2 - n // 4]))
        right = random.random(n) < np.array([0.95, 0.6, 0.2])[level]
        measured = {"level": level, "gold": gold, "right": right.astype(float), "score": random.random(n)}
        place = {"corpus": "a", "training": training, "position": np.arange(n), "premise": np.arange(n) // 3}
        parts.append(pd.DataFrame({**place, **measured}))
    return pd.concat(parts, ignore_index=True)


def mean_by_hand(pairs, level, score="right"):
    return pairs[pairs["level"] == level].groupby("training")[score].mean()


def test_each_level_and_its_twin():
    pairs = leveled()
    found = evaluate.level_means(pairs, ["right", "score"]).set_index(["level", "score", "condition"])
    assert found.loc[("easy", "right", "level"), "value"] == pytest.approx(mean_by_hand(pairs, 0).mean())
    assert found.loc[("hard", "score", "level"), "value"] == pytest.approx(mean_by_hand(pairs, 2, "score").mean())
    assert (found["n"] == 100).all()  # premises
    assert (found["low"] < found["value"]).all() and (found["value"] < found["high"]).all()
    # nothing of the levels is left in the twins
    assert np.ptp(found.xs(("right", "random twin"), level=["score", "condition"])["value"]) < 0.15
    assert list(evaluate.level_means(pairs.replace({"level": {1: 0}}), ["right"])["level"].unique()) == ["easy", "hard"]
    assert evaluate.level_means(pairs.iloc[:0], ["right"]).empty


def test_a_gap_over_trainings_and_premises_by_its_definition():
    """A slow twin: premises drawn as whole groups of rows with the trainings kept, then Student's interval."""
    pairs = leveled(90)
    gap, each = level_gap(pairs, "right", "easy", "hard"), mean_by_hand(pairs, 0) - mean_by_hand(pairs, 2)
    of_premise, random, draws = dict(list(pairs.groupby("premise"))), np.random.default_rng(5), []
    for _ in range(500):
        again = pd.concat(of_premise[premise] for premise in random.integers(30, size=30))
        draws.append((mean_by_hand(again, 0) - mean_by_hand(again, 2)).mean())
    assert gap.value == pytest.approx(each.mean()) and gap[3:] == (30, 3, "premises and trainings")
    assert gap.high == pytest.approx(with_trainings(each.mean(), draws, each, n=30, units="premises").high, rel=0.05)


def test_one_training_has_an_interval_over_premises_alone_and_no_order_of_rows_matters():
    pairs, several = leveled(trainings=1), leveled()
    assert level_gap(pairs, "right", "easy", "hard")[3:] == (100, 1, "premises")
    assert level_gap(pairs.drop(columns="premise"), "right", "easy", "hard")[3:] == (300, 1, "pairs")
    mixed = several.sample(frac=1, random_state=1)
    assert level_gap(mixed, "right", "easy", "hard") == level_gap(several, "right", "easy", "hard")
    assert evaluate.by_training(mixed, "score").tolist() == evaluate.by_training(several, "score").tolist()


def test_correlations_within_each_training():
    pairs = leveled().assign(constant=1.0, easier=lambda table: -table["level"])
    found = correlation_table(pairs, ["easier", "score", "constant"], "right").set_index("score")
    expected = [part["easier"].corr(part["right"], method="spearman") for _, part in pairs.groupby("training")]
    assert found.index.tolist() == ["easier", "score"]
    assert found.loc["easier", "value"] == pytest.approx(np.mean(expected))
    assert found.loc["score", "low"] < 0 < found.loc["score", "high"]


def test_correlations_with_the_same_columns_of_other_trainings():
    pairs = leveled()
    others = pairs.assign(training=2 - pairs["training"]).sample(frac=1, random_state=3)
    found = correlation_table(pairs, ["score", "level"], others).set_index("score")
    score = pairs.pivot(index="position", columns="training", values="score")
    expected = [score[one].corr(score[2 - one], "spearman") for one in range(3)]
    assert found.loc["score", "value"] == pytest.approx(np.mean(expected))
    same = correlation_table(pairs, ["score"], pairs)
    assert same.loc[0, ["value", "low", "high"]].tolist() == pytest.approx([1] * 3)


# ---------------------------------------------------------------- exports

LOGITS = np.array([[0.0, 3.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 5.0], [1.0, 1.5, 0.0]])
GOLD, FOLD = [0, 0, 1, 0], np.array([0, 1, 1, 0])
MINE = corpus(GOLD, name="mine", uid=list("abcd"), premise='A dog, "Rex", runs.\n=1+1', hypothesis="é <b>")


def test_the_most_contradicted_comes_first():
    table = review_list(MINE, LOGITS, FOLD, votes=[3, 0, 1, 2])  # b's label is what the model says
    wanted = [[1, "c", 5.0, False, 1, 1], [2, "a", 3.0, True, 0, 3], [3, "d", 0.5, False, 0, 2]]
    assert table[["rank", "uid", "gap", "pruned", "fold", "votes"]].values.tolist() == wanted
    assert table["kind"].tolist() == ["P2G1", "P1G0", "P1G0"]
    assert table.loc[0, ["gold", "predicted"]].tolist() == ["neutral", "contradiction"]
    assert table.loc[2, "p_gold"] == pytest.approx(np.exp(1) / (np.exp(1) + np.exp(1.5) + 1), abs=1e-4)
    assert "votes" not in review_list(MINE, LOGITS, FOLD) and len(review_list(MINE, np.eye(3)[GOLD] * 4, FOLD)) == 0


def test_the_papers_rule_takes_nothing_where_a_class_of_its_names_is_missing():
    two = corpus([0, 1], classes=("entailment", "contradiction"))
    found = review_list(two, np.array([[0.0, 9.0], [0.0, 9.0]]), [0, 1])
    assert found["uid"].tolist() == ["toy-0"] and not found["pruned"].any()


def test_the_files_give_back_what_went_in(tmp_path):
    table = review_list(MINE, LOGITS, FOLD)
    paths = evaluate.export_review(tmp_path / "new", table, MINE, LOGITS, FOLD)
    again = unguarded(pd.read_csv(paths["suspects.csv"], keep_default_na=False))
    pd.testing.assert_frame_equal(again, table, check_dtype=False)
    lines = [json.loads(line) for line in paths["suspects.jsonl"].read_text(encoding="utf-8").splitlines()]
    assert [line["uid"] for line in lines] == ["c", "a", "d"] and lines[0]["premise"] == MINE.premise[0]
    with np.load(paths["cleanlab.npz"], allow_pickle=False) as arrays:
        found = {name: arrays[name].tolist() for name in ("labels", "fold", "uid", "classes")}
        assert found == {"labels": GOLD, "fold": FOLD.tolist(), "uid": list("abcd"), "classes": list(LABELS)}
        assert arrays["pred_probs"].sum(axis=1) == pytest.approx(np.ones(4))
        assert (arrays["pred_probs"].argmax(axis=1) == LOGITS.argmax(axis=1)).all()


def test_what_a_filter_left_out_is_written_with_its_reason(tmp_path):
    keep = np.array([True, False, True, False])
    chosen = Selection(keep, np.array(["kept", "no@hypothesis; null", "kept", "null"], dtype=object))
    table = read_csv(evaluate.export_filtered(tmp_path / "new" / "z.csv", MINE, chosen))
    wanted = {"uid": list("abcd"), "kept": keep.astype(str).tolist(), "reason": chosen.reason.tolist()}
    wanted |= {"premise": MINE.premise.tolist(), "gold": ["entailment", "entailment", "neutral", "entailment"]}
    assert table[list(wanted)].to_dict("list") == wanted
    with pytest.raises(ValueError, match="Length of values .3. does not match"):
        evaluate.export_filtered(tmp_path / "z.csv", MINE, Selection.all(3))


def test_the_columns_of_the_users_file_stay(tmp_path):
    own = {"source_page": [4, 3, 2, 1], "kept": "yes", "note": "-5", "raw": b"\xff\x00"}
    mine = Corpus(MINE.table.assign(**own, gold="theirs", **{"gold (own)": "too"}), "mine", "test")
    table = review_list(mine, LOGITS, FOLD)
    assert table["source_page"].tolist() == [2, 4, 1]
    assert list(table.columns[:5]) == ["rank", "uid", "premise", "hypothesis", "gold"]
    written = pd.read_csv(evaluate.export_filtered(tmp_path / "z.csv", mine, Selection.all(4)), dtype=str)
    assert written["source_page"].tolist() == list("4321")
    assert written["kept"].tolist() == ["True"] * 4 and written["kept (own)"].tolist() == ["yes"] * 4
    assert written["note"].tolist() == ["-5"] * 4  # a number is no formula
    evaluate.export_review(tmp_path, table, mine, LOGITS, FOLD)
    first = json.loads((tmp_path / "suspects.jsonl").read_text().splitlines()[0])
    assert first["raw"] == "b'\\xff\\x00'" and first["gold"] == "neutral"
    assert first["gold (own)"] == "theirs" and first["gold (own) (own)"] == "too"
