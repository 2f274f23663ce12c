"""What the filters drop, and who judges the half that they keep.

Alone: pytest tests/chapters/test_13_filter_by_variability.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions, measured

from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.pairs import COPIED, EXAMPLE, PHRASE, SHORT, UNPARSED
from nli_lib.learn import fit, predict
from nli_lib.measure.dynamics import max_variability
from nli_lib.select import selection
from nli_lib.study.notebook import Study

KEPT, TWIN, DROPPED = "kept half", "random twin", "dropped half"
ENTROPY, OTHER, INTENDED = "entropy (bits)", "estimated max variability", "predicts the intended label"
GENERATED, DEALT, WRITTEN = "generated pairs", "random twin: labels dealt out", "pairs by people"
AMBIGUOUS, HARDER, LABELS = "wanli-sec2.3-keeps-ambiguous", "wanli-appc.4-contradictions-harder", np.arange(120) % 3


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """What the measuring cells leave, for the logits (E, N, C) of each training, its labels and its pairs.

    sides   (premise, hypothesis) of each pair; people: labels of pairs that people wrote, and the label that each
            training predicts of them
    """
    corpus = load("planted", "train", limit=150)

    def run(logits, labels, *, sides=None, people=None):
        size = len(labels)
        sides = sides or [(f"The {n} dogs all run.", f"The {n} dogs move.") for n in range(size)]
        pairs = pd.DataFrame([*sides, (None, None)], columns=["premise", "hypothesis"])
        rows = {"uid": np.arange(size + 1).astype(str), "context": np.arange(size + 1) // 5 % 24, "label": [*labels, 0]}
        rows |= {"intended_label": np.array(corpus.classes)[rows["label"]], "reason": [""] * size + [UNPARSED]}
        pairs = pairs.assign(**rows, origin_uid="o", origin_corpus="planted", maker="m")
        contexts = pd.DataFrame(np.arange(120).reshape(24, 5))
        monkeypatch.setattr(Study, "exported", lambda _, part, notebook: {"contexts": contexts, "pairs": pairs}[part])
        monkeypatch.setattr(fit, "fit", lambda spec, _: spec.seed)
        monkeypatch.setattr(predict, "predict_epochs", lambda seed, _: logits[seed])
        labels_of_people, predicted = people or ([], None)
        written = Corpus(corpus.table.head(len(labels_of_people)).assign(label=labels_of_people), "planted", "train")
        monkeypatch.setattr(predict, "predict", lambda seed, _: np.eye(3)[predicted[seed]])
        monkeypatch.setattr(selection, "sample", lambda *_: written)
        return measured("13_filter_by_variability", tmp_path, monkeypatch, corpus=corpus, SEEDS=max(len(logits), 1))

    return run


# --- heuristics ------------------------------------------------------------------------------------------------------


def test_reasons_are_counted_in_their_order(chapter):
    sides = [("A dog runs.", "It moves."), ("A dog runs.", "a dog runs"), ("No", "It moves."), ("The speaker", "sang.")]
    study = chapter([np.zeros((2, 1, 3))], [1, 1, 1, 1], sides=sides).study
    table, found = study.table, study.table("heuristics")
    assert found["reason"].tolist() == [SHORT, COPIED, PHRASE, EXAMPLE, selection.KEPT]
    assert found["count"].tolist() == [1, 1, 1, 0, 1] and set(found["n"]) == {4}
    assert table("dropped")["reason"].tolist() == sorted([SHORT, COPIED, PHRASE])
    kept = study.claimed("wanli-appc-kept-by-heuristics")
    assert (kept.value, kept.n, kept.over) == (0.25, 1, "pairs")  # the four are of one context
    assert table("sizes").loc[0].to_dict() == {"generated": 4, "passed": 1, "kept": 0}


@pytest.mark.parametrize(("trainings", "pairs"), [(0, 0), (3, 5)])
def test_too_few_pairs_give_empty_tables(chapter, trainings, pairs):
    made = chapter([np.zeros((2, pairs, 3))] * trainings, np.zeros(pairs, int))
    assert made.keep.shape == (trainings, pairs) and made.study.claimed(AMBIGUOUS) is None
    assert all(made.study.table(part).empty for part in ("halves", "agreement", "dropped"))
    assert len(made.study.table("heuristics")) == (5 if pairs else 0)
    assert len(made.study.table("intended")) == (2 if pairs else 0)


# --- halves ----------------------------------------------------------------------------------------------------------


def planted(trainings=3, seed=0):
    """Logits (E, N, C) of trainings that all waver over the same pairs, each of which has an uncertain end."""
    random, wavers = np.random.default_rng(seed), np.arange(120) % 2 == 0
    found = random.normal(0, 0.1, (trainings, 4, 120, 3)) + np.eye(3)[LABELS] * np.where(wavers, 0.3, 4.0)[:, None]
    found[:, :2, wavers] = found[:, :2, wavers][..., ::-1] * 4  # early epochs thought otherwise
    return list(found), wavers


def test_a_planted_half_is_kept_and_others_find_it_ambiguous(chapter):
    logits, wavers = planted()
    made = chapter(logits, LABELS)
    assert np.array_equal(made.scores[1], max_variability(logits[1]))
    assert made.keep.shape == made.twin_keep.shape == (3, 120)
    assert all(np.bincount(LABELS[row]).tolist() == [20, 20, 20] for row in (*made.keep, *made.twin_keep))
    assert wavers[made.keep[0]].mean() > 0.9
    gap = made.study.claimed(AMBIGUOUS)
    assert gap.low > 0.2 and gap.n == 24 and gap.over == "premises and trainings"
    table = made.study.table("halves").set_index(["title", "part"])["value"]
    assert list(table.index) == [(name, part) for name in (ENTROPY, OTHER, INTENDED) for part in (KEPT, TWIN, DROPPED)]
    for part, chosen in ((KEPT, made.keep), (TWIN, made.twin_keep), (DROPPED, ~made.keep)):
        means = np.mean(made.judged[ENTROPY], axis=1, where=chosen)
        assert table[ENTROPY, part] == pytest.approx(means.mean(), abs=1e-5)
    assert len(made.study.table("agreement")) == 3


def test_where_each_training_wavers_elsewhere_nothing_is_found(chapter):
    logits, _ = planted()
    shuffled = [each[:, np.random.default_rng(at).permutation(120)] for at, each in enumerate(logits)]
    gap = chapter(shuffled, LABELS).study.claimed(AMBIGUOUS)
    assert gap.low < 0 < gap.high


def test_the_next_training_is_the_judge(chapter):
    logits = np.random.default_rng(0).normal(size=(2, 3, 6, 3))  # two trainings, three epochs, six pairs
    logits[:, -1] = 0
    logits[1, -1, 0] = [9, -9, -9]
    judged, bits = chapter(list(logits), [0, 0, 1, 1, 2, 2]).judged, np.log2(3)
    assert judged[ENTROPY] == pytest.approx(np.array([[0, *[bits] * 5], [bits] * 6]), abs=1e-6)
    assert judged[INTENDED].tolist() == [[1, 1, 0, 0, 0, 0]] * 2  # of equal logits the first class
    assert np.array_equal(judged[OTHER], [max_variability(logits[1]), max_variability(logits[0])])


def test_two_trainings_that_are_one_agree(chapter):
    logits, _ = planted()
    same = chapter([logits[0], logits[0]], LABELS).study.table("agreement")
    assert same[["one", "other", "spearman", "overlap"]].values.tolist() == [[0, 1, 1, 1]]
    assert 0.2 < same["twins"][0] < 0.5  # a third of what either random half has


# --- intended labels -------------------------------------------------------------------------------------------------


ASKED = [[2, 2, 0, 0], [2, 0, 0, 1]], [2, 2, 0, 0]  # predictions and labels: contradictions 1 and .5, others 1 and .5
PEOPLE = [2, 2, 1, 1], [[2, 0, 1, 1], [2, 2, 1, 1]]  # labels and predictions: contradictions .5 and 1, others 1 and 1


def last_of(predicted):
    """Logits of one epoch for each training."""
    return [np.eye(3)[[row]] for row in predicted]


def test_the_share_as_asked_for_by_hand(chapter):
    """Generated: 1 - 1 = 0 and .5 - .5 = 0; by people: .5 - 1 = -.5 and 1 - 1 = 0. The difference is (.5 + 0) / 2."""
    study = chapter(last_of(ASKED[0]), ASKED[1], people=PEOPLE).study
    assert study.claimed(HARDER).value == pytest.approx(0.25)
    found = study.table("intended").set_index(["title", "condition"])["value"]
    places = [("contradiction", GENERATED), ("contradiction", WRITTEN), ("entailment", GENERATED)]
    assert found[places].tolist() == [0.75] * 3 and ("entailment", WRITTEN) not in found, "nobody wrote one"


# nobody wrote anything; no other label was asked for; nobody wrote a contradiction
MISSING = [([2, 2, 0, 0], None), ([2, 2, 2, 2], PEOPLE), ([2, 2, 0, 0], ([1, 1, 1, 1], PEOPLE[1]))]


@pytest.mark.parametrize(("labels", "people"), MISSING)
def test_what_cannot_be_compared_is_not(chapter, labels, people):
    assert chapter(last_of(ASKED[0]), labels, people=people).study.claimed(HARDER) is None


def test_labels_dealt_out_leave_chance(chapter):
    found = chapter(last_of([LABELS]), LABELS).study.table("intended").groupby("condition")["value"].mean()
    assert found[GENERATED] == 1 and found[DEALT] == pytest.approx(1 / 3, abs=0.1)


FURTHER_BEHIND = functions("13_filter_by_variability").further_behind


def made(rng, size, chances, trainings=3):
    """Pairs of which a training predicts label c with the chance of c: right or not (T, N), labels, groups."""
    labels = rng.integers(3, size=size)
    return rng.random((trainings, size)) < np.array(chances)[labels], labels, np.arange(size)


def test_against_the_definition():
    rng = np.random.default_rng(0)
    one, other = made(rng, 60, (0.8, 0.7, 0.4)), made(rng, 40, (0.8, 0.7, 0.7))

    def behind(right, labels, training):
        rows = list(zip(labels, right[training], strict=True))
        return np.mean([hit for label, hit in rows if label == 2]) - np.mean([hit for label, hit in rows if label != 2])

    wanted = np.mean([behind(*one[:2], training) - behind(*other[:2], training) for training in range(3)])
    order = rng.permutation(60)
    for each in (one, (one[0][:, order], one[1][order], one[2][order])):
        assert FURTHER_BEHIND(each, other, 2).value == pytest.approx(wanted)


def test_a_label_that_only_generated_pairs_miss_is_found_and_the_models_own_weakness_is_not():
    rng = np.random.default_rng(1)
    weak, fair = made(rng, 1500, (0.8, 0.8, 0.4)), made(rng, 1500, (0.8, 0.8, 0.8))
    own = FURTHER_BEHIND(weak, made(rng, 1500, (0.8, 0.8, 0.4)), 2)
    assert FURTHER_BEHIND(weak, fair, 2).high < -0.2 and own.low < 0 < own.high


def test_equal_groups_of_both_kinds_are_different_groups():
    pairs = np.ones((2, 2), bool), np.array([2, 0]), np.array([7, 7])
    assert FURTHER_BEHIND(pairs, pairs, 2).n == 2
    with pytest.raises(ValueError, match="finite"):
        FURTHER_BEHIND(pairs, pairs, 1)
