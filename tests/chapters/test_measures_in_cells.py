"""What one chapter measures in its cells: 10, 14, 16, 21, 26, 34, 42.

Alone: pytest tests/chapters/test_measures_in_cells.py"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import functions
from hypothesis import given, settings, strategies as st
from scipy.special import log_softmax, softmax
from scipy.stats import rankdata

from nli_lib.measure.dynamics import DOUBT, scores
from nli_lib.measure.features import ZStatistics, features, join, prediction, z_statistics

RUN = np.random.default_rng(0).normal(size=(4, 30, 3)), np.arange(30) % 3


def test_10_a_table_of_scores_has_a_row_for_each_example_and_run():
    specs = [SimpleNamespace(seed=seed, corpus="planted") for seed in (0, 1)]
    runs = [SimpleNamespace(logits=RUN[0] * (1 + spec.seed), labels=RUN[1], spec=spec) for spec in specs]
    table = functions("10_data_map").score_table(runs)
    assert list(table["position"]) == [*range(30), *range(30)] and set(DOUBT) < set(table)
    np.testing.assert_array_equal(table[table["seed"] == 1]["margin"], scores(runs[1].logits, RUN[1])["margin"])


def test_16_words_of_either_text_count_once_a_pair():
    premises = np.array(["a dog runs", "a dog runs", "two cats sit", "nobody sleeps"], dtype=object)
    hypotheses = np.array(["a dog moves", "nobody runs", "cats", "nobody is awake"], dtype=object)
    found = functions("16_artifacts").pair_words(SimpleNamespace(premise=premises, hypothesis=hypotheses))
    column = dict(zip(found.names, found.matrix.toarray().T.tolist(), strict=True))
    expected = {"nobody": [0, 1, 0, 1], "runs": [1, 1, 0, 0], "cats": [0, 0, 1, 0]}
    assert expected.items() <= column.items() and not any("@" in name for name in column)


# ---------------------------------------------------------------- 14: revisions


REVISED, SUPPLY = functions("14_human_review"), " is the only source of continuous electric power for the city."


@pytest.mark.parametrize(("before", "after", "change", "changed"),
    [  # after three of the paper's Table 6; and characters, where there are no blanks
    ("雨停了。", "大雨停了。", 1, False), (f"The power plant{SUPPLY}", f"It{SUPPLY}", -2, True),
    ("The king has met the queen before.", "The king has met the queen in person before.", 2, False),
    ("I still don't know how the system works.", "The system is how the system works.", -1, True),
    ("He said it.", "It said he. He!", 1, False),  # more often, but no other set
    ("He said it.", "He said that.", 0, True)])  # fmt: skip
def test_14_changes_by_hand(before, after, change, changed):
    assert REVISED.word_change([before], [after]).tolist() == [change]
    assert (REVISED.pronouns(before) != REVISED.pronouns(after)) is changed


@pytest.mark.parametrize(("text", "found"), [
    ("She's at her desk, and THEY know it.", {"she", "her", "they", "it"}),
    ("He’ll see: I'm mine.", {"he", "i", "mine"}), ("One must know one's own.", {"one's"}),
    ("This is what others said that nobody knew.", set()), ("The theist hit hers.", {"hers"}),
    ("", set())])  # fmt: skip
def test_14_pronouns_of_a_text(text, found):
    assert REVISED.pronouns(text) == found and all(word == word.lower() for word in REVISED.PRONOUNS)


# ---------------------------------------------------------------- 21: the lead of a prediction


def test_21_the_lead_of_a_prediction():
    """6 over 2 for the first label, 4 over 3 for the second; what 19 pairs have is too rare."""
    lead = functions("21_z_filter").prediction_lead
    names = np.array(["hypo-only-pred=0", "hypo-only-pred=1", "a@hypothesis", "rare@hypothesis"], dtype=object)
    found = ZStatistics(np.array([[6, -6], [-6, 4], [2, 3], [9, 1.0]]), np.array([50, 50, 20, 19]), np.zeros((4, 2)))
    np.testing.assert_allclose(lead([found, found], names), [[3, 4 / 3]] * 2)
    # one that is a word ties with it, and one that never predicts two of the labels has no lead there
    labels = np.arange(120) % 3
    table = features(["a scene"] * 120, [f"word{label} here" for label in labels])
    both = [join(table, prediction(each, n_classes=3)) for each in (labels, np.zeros(120, int))]
    (leads,), (other,) = (lead([z_statistics(each.matrix, labels)], each.names) for each in both)
    assert leads.tolist() == [1, 1, 1] and np.isnan(other).sum() == 2


# ---------------------------------------------------------------- 26: words that a prediction goes by


EXPERTS = functions("26_product_of_experts", training=None, tests=None)
TEXTS = ["Nobody sleeps.", "a man  sleeps", "Outside"]


def test_26_each_word_is_left_out_once():
    table = EXPERTS.without_each_word(TEXTS)
    assert table["row"].tolist() == [0, 0, 1, 1, 1, 2]
    assert table["word"].tolist() == ["nobody", "sleeps", "a", "man", "sleeps", "outside"]
    assert table["text"].tolist() == ["sleeps.", "Nobody", "man sleeps", "a sleeps", "a man", ""]
    assert EXPERTS.without_each_word([]).empty and EXPERTS.without_each_word([""]).empty
    table = EXPERTS.without_each_word(["雨停了"])  # each character, where there are no blanks
    assert table["word"].tolist() == ["雨", "停", "了"] and table["text"].tolist() == ["停了", "雨了", "雨停"]


def linear(texts, weights):
    """A model that adds up one vector a word: leaving a word out takes its vector away."""
    zero = np.zeros(3)
    return np.array([sum((weights.get(w.lower().strip("."), zero) for w in text.split()), zero) for text in texts])


def test_26_the_evidence_is_the_definition():
    weights = {"nobody": np.array([0.0, 0.0, 3.0]), "sleeps": np.array([0.5, -0.5, 0.0])}
    table = EXPERTS.without_each_word(TEXTS)
    whole, without = linear(TEXTS, weights), linear(table["text"], weights)
    found = EXPERTS.word_evidence(whole, without, table).set_index("word")
    assert found.index.tolist() == sorted(found.index) and found.loc["sleeps", "n"] == 2
    slow = np.array([log_softmax(whole[row]) - log_softmax(without[at]) for at, row in enumerate(table["row"])])
    for word in found.index:
        assert found.loc[word, [0, 1, 2]].to_numpy(float) == pytest.approx(slow[table["word"] == word].mean(axis=0))
    assert found.loc["nobody", 2] > 0 > found.loc["nobody", 0] and found.loc["man", 0] == pytest.approx(0)
    assert EXPERTS.word_evidence(whole, without, table, min_count=2)["word"].tolist() == ["sleeps"]
    # a word that stands twice in a text is one text, and its evidence the mean over both places
    table = EXPERTS.without_each_word(["so so", "so"])
    whole, without = np.log([[0.5, 0.5], [0.5, 0.5]]), np.log([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]])
    (row,) = EXPERTS.word_evidence(whole, without, table).to_dict("records")
    assert row["n"] == 2 and row[0] == pytest.approx(np.log(2) / 3)
    assert EXPERTS.word_evidence(whole, without, table, min_count=3).empty


def test_26_planted_words_that_rank_first_have_an_area_of_one():
    evidence = pd.DataFrame({"word": list("abcd"), "n": 5, 0: [3.0, 2.0, 1.0, 0.0], 1: [0.0, 1.0, 2.0, 3.0]})
    found = EXPERTS.words_found(evidence, {0: {"a", "b"}, 1: {"a", "missing"}, 2: {"missing"}}).set_index("label")
    assert found["area"].to_dict() == {0: 1.0, 1: 0.0} and found["planted"].to_dict() == {0: 2, 1: 1}


# ---------------------------------------------------------------- 34: orders of review


KNOWN = functions("34_known_errors", np=np, pd=pd)


def test_34_orders_by_hand_and_high_where_the_models_contradict():
    (logits, labels), at = RUN, np.arange(30)
    found, p = KNOWN.suspicion(logits, labels), softmax(logits, axis=-1)
    others = np.where(np.eye(3, dtype=bool)[labels], -np.inf, p[-1])
    assert found["low p(label)"] == pytest.approx(-p[-1, at, labels])
    assert found["low normalised margin"] == pytest.approx(others.max(axis=1) - p[-1, at, labels])
    assert found["low confidence (data map)"] == pytest.approx(-p[:, at, labels].mean(axis=0))
    assert found["gap"] == pytest.approx(logits[-1].max(axis=1) - logits[-1, at, labels])
    sure = np.zeros((2, 3, 3))
    sure[:, :, 0] = [4, 0, -4]  # the label 0 is certain, open, excluded
    for name, values in KNOWN.suspicion(sure, np.zeros(3, int)).items():
        assert name.startswith("variability") or ((np.diff(values) >= 0).all() and values[2] > values[0]), name


def test_34_combinations_by_hand():
    orders, count = pd.DataFrame(KNOWN.suspicion(*RUN)), pd.Series(1 + np.arange(30) % 4)
    found = KNOWN.combine(orders, count, pd.Series(np.full(30, 0.4)))
    models = np.mean([rankdata(orders[name]) / 30 for name in KNOWN.MEMBERS], axis=0)
    assert found[KNOWN.MODELS] == pytest.approx(models) and found[KNOWN.FIVE] == pytest.approx((models + 0.6) / 2)
    assert found[KNOWN.VOTES].tolist() == (RUN[0][-1].argmax(axis=1) != RUN[1]).tolist()
    order = np.argsort(-found[KNOWN.COUNTS])
    assert (np.diff(count.to_numpy()[order]) >= 0).all()  # fewer annotators first
    assert (np.diff(models[order][count[order] == 1]) <= 0).all()


# ---------------------------------------------------------------- 42: edits and flips


QUALITY = functions("42_quality", np=np, pd=pd)


def test_42_flips_by_hand_and_the_soft_rate_is_never_below():
    judged = np.array([1, 2, 0, QUALITY.TIE])
    assert QUALITY.flipped(judged, np.array([1, 1, 1, 2])).tolist() == [True, False, False, False]
    assert QUALITY.softly_flipped(judged, np.zeros(4, int)).tolist() == [True, True, False, False]
    random = np.random.default_rng(2)
    original, judged = random.integers(0, 3, 200), random.integers(-1, 3, 200)
    target = (original + random.integers(1, 3, 200)) % 3
    assert (QUALITY.softly_flipped(judged, original) >= QUALITY.flipped(judged, target)).all()


def slow_levenshtein(a, b):
    table = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
    return table[-1][-1]


some_words = st.lists(st.sampled_from("abcd"), max_size=7)


@settings(max_examples=200, deadline=None)
@given(some_words, some_words)
def test_42_the_edit_distance_is_that_of_the_slow_twin(before, after):
    words, distance, start, kind = QUALITY.edit_of(before, after)
    assert words == len(before) and distance == slow_levenshtein(before, after) == QUALITY.edit_of(after, before)[1]
    assert 0 <= start <= 1 and (kind == "nothing") is (before == after) and kind in QUALITY.KINDS


@pytest.mark.parametrize(("before", "after", "kind", "distance", "start"), [
    ("A man sleeps.", "a man sleeps", "nothing", 0, 0), ("A man sleeps.", "A big man sleeps.", "insertion", 1, 1 / 3),
    ("A big man sleeps.", "A man sleeps.", "deletion", 1, 1 / 4),
    ("A man sleeps outside.", "A man runs outside.", "substitution", 1, 2 / 4),
    ("A man sleeps outside.", "A man is running outside.", "rewriting", 2, 2 / 4), ("a a", "a a a", "insertion", 1, 1),
    ("", "a dog", "insertion", 2, 0), ("a dog", "", "deletion", 2, 0), ("", "", "nothing", 0, 0)])  # fmt: skip
def test_42_what_was_edited(before, after, kind, distance, start):
    old, new = QUALITY.words_of([before, after])
    assert QUALITY.edit_of(old, new)[1:] == (distance, pytest.approx(start), kind)


def test_42_negations_in_any_spelling():
    texts = QUALITY.words_of(["He isn't here, no!", "Knowing another snow", "NOT", ""])
    assert QUALITY.negations(texts).tolist() == [2, 0, 1, 0]
