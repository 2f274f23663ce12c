"""An audit finds what was planted, and equals the plain definitions. Run alone: pytest tests/tools/test_audit.py"""

import collections
import string

import numpy as np
import pandas as pd
import pytest
from audited import corpus, planted, written

from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, Corpus
from nli_lib.measure.features import features_in_shards, z_from_counts, z_statistics
from nli_lib.measure.giveaways import cross_fitted
from nli_tools import audit as audits
from nli_tools.audit import audit, comparable, hypothesis_alone, kept_together, leakage, repeated, sample_premises


def test_repeated_pairs_by_hand():
    found = repeated(
        corpus([
            ("A man sleeps.", "He rests", "entailment"),
            ("a man  sleeps", "he rests!", "entailment"),  # the same but for case, blanks and punctuation
            ("A man sleeps.", "he rests", "neutral"),  # the same with another label
            ("A man sleeps.", "He runs", "contradiction"),
            ("A dog sleeps.", "He runs", "contradiction"),
        ])
    )  # fmt: skip
    values = {name: figure.estimate.value for name, figure in found.items()}
    assert values == {"majority": 0.4, "duplicates": 0.4, "conflicts": 0.6, "hypotheses": 0.6}
    assert all(0 <= f.estimate.low <= f.estimate.value <= f.estimate.high <= 1 for f in found.values())


def test_leakage_by_hand():
    train = corpus([("A man sleeps.", "He rests", "entailment"), ("A dog.", "It barks", "neutral")])
    test = corpus([
        ("a man sleeps", "he rests.", "neutral"),  # the pair, whatever its label
        ("a dog", "he rests", "neutral"),  # premise and hypothesis, not as a pair
        ("a cat", "it barks", "neutral"),
        ("a cat", "it sleeps", "neutral"),
    ])  # fmt: skip
    values = {name: figure.estimate.value for name, figure in leakage(train, test).items()}
    assert values == {"leaked pairs": 0.25, "leaked premises": 0.5, "leaked hypotheses": 0.75}


def remembered(hypotheses, size=600):
    """Pairs whose label is their hypothesis's own, drawn at random: nothing to learn, much to remember."""
    random = np.random.default_rng(0)
    label = random.permutation(np.arange(hypotheses) % 3)
    rows = []
    for at in range(size):
        one = random.integers(0, hypotheses)
        dot = "." if at % 2 else ""
        rows.append((f"premise {at}", f"w{one} v{one}{dot}", LABELS[label[one]]))
    return corpus(rows)


def test_a_hypothesis_is_not_remembered_from_another_fold():
    pairs = remembered(120)
    premises = cross_fitted(pairs.hypothesis, pairs.labels, groups=pd.factorize(pairs.premise)[0])
    assert (premises.argmax(axis=1) == pairs.labels).mean() > 0.8  # what premises alone would let through
    found = audit(pairs)
    assert found.figures["hypothesis only"].estimate.value < 0.45
    assert found.figures["gain"].estimate.over == "premises and hypotheses"
    groups, whole = kept_together(pairs)
    assert whole and len(set(groups)) == len(np.unique(np.char.rstrip(pairs.hypothesis.astype(str), ".")))
    assert not [note for note in found.notes if "hypothes" in note]


def test_few_hypotheses_beside_every_premise_are_said_to_be_split():
    pairs = remembered(3)
    groups, whole = kept_together(pairs)
    assert not whole and len(set(groups)) == len(pairs)
    found = audit(pairs)
    assert found.figures["hypothesis only"].estimate.value > 0.9
    assert [note for note in found.notes if "linked by equal hypotheses" in note]


def test_a_character_that_was_planted_in_texts_without_blanks_is_found():
    found = audit(written(blanks=False, seed=0, told=0.6))
    assert found.figures["gain"].estimate.low > 0 and found.figures["area"].estimate.low > 0.5
    best = found.top.loc[found.top["z"].idxmax()]
    assert best["label"] == LABELS[2] and best["feature"] in ("没@hypothesis", "有@hypothesis", "没 有@hypothesis")
    assert found.figures["detectable"].estimate.value >= 3
    assert found.figures["without blanks"].estimate.value == 1
    assert found.notes[0].startswith("Texts without blanks: characters and pairs of characters stand for words")


def test_nothing_is_found_in_texts_without_blanks_where_nothing_was_planted():
    for seed in range(4):
        found = audit(written(blanks=False, seed=seed)).figures
        assert not found["gain"].estimate.low > 0 and found["detectable"].estimate.value == 0, seed
        assert found["area"].estimate.low < 0.5 < found["area"].estimate.high, seed


def test_an_artifact_of_a_rare_label_is_found_and_its_absence_is_not():
    areas = {}
    for told in (0.0, 0.7):
        for seed in range(5):
            found = hypothesis_alone(written(blanks=True, seed=seed, told=told, shares=(0.95, 0.05), n=600))
            assert found["one answer"].estimate.value > 0.95, seed  # so the accuracy hides it
            areas[told, seed] = found["area"].estimate
    assert all(areas[0.7, seed].low > 0.5 for seed in range(5))
    assert all(areas[0.0, seed].low < 0.5 < areas[0.0, seed].high < 0.8 for seed in range(5))


def test_long_hypotheses_of_one_word_are_said_to_hide_everything():
    rows = [(f"p {at}", f"word_{at}_and_no_blank_between_words", LABELS[at % 3]) for at in range(60)]
    (note,) = audit(corpus(rows)).notes
    assert note.startswith("100.0% of the hypotheses are longer than 20 characters and have no more than 2 words")


def test_punctuation_without_ascii_does_not_make_another_text_where_there_are_no_blanks():
    pairs = [("雨停了。", "天晴", "neutral"), ("雨停了", "天 晴！", "neutral"), ("“雨”", "a — b", "neutral")]
    found = repeated(corpus([*pairs, ("雨", "a  b", "neutral")]))
    assert found["duplicates"].estimate.value == 0.25  # the third and fourth hypotheses differ in a dash


def test_a_class_without_a_pair_has_no_number():
    pairs = remembered(120)
    found = audit(pairs[pairs.labels < 2])
    dropped = {name: found.figures[f"dropped: {name}"].estimate for name in LABELS}
    assert np.isnan(dropped["contradiction"].value) and dropped["contradiction"].n == 0
    assert found.figures["hypothesis only"].estimate.value > 0.3  # of two labels, whatever the classes are called
    assert all(0 <= dropped[name].value <= 1 and dropped[name].n for name in LABELS[:2])


def test_z_over_shares_is_its_formula_and_null_is_nought():
    counts = np.array([[30, 10], [60, 40], [0, 0]])  # the second is the null feature
    z = audits.z_over_shares(counts)
    assert z[0, 0] == pytest.approx((30 - 40 * 0.6) / np.sqrt(40 * 0.6 * 0.4))
    assert z[1].tolist() == [0, 0] and np.isneginf(z[2]).all()
    balanced = np.array([[30, 10, 5], [50, 50, 50]])
    assert audits.z_over_shares(balanced)[0] == pytest.approx(z_from_counts(balanced).z[0])


@pytest.mark.parametrize("classes", [LABELS, ("entailment", "not_entailment")])
def test_the_planted_word_leads_its_label_and_the_filter_drops_by_it(classes):
    found = audit(planted(classes=classes))
    best = found.top.iloc[0]
    assert (best["label"], best["rank"], best["feature"]) == (classes[0], 1, "zebra@hypothesis")
    assert best["share"] == 1.0 and best["n"] == 240 // len(classes)
    s = 1 / len(classes)
    assert best["z"] == pytest.approx(np.sqrt(best["n"] * (1 - s) / s))
    assert found.figures["highest z"].estimate.value == best["z"]
    assert found.figures["hypothesis only"].estimate.value > found.figures["majority"].estimate.high
    assert found.figures[f"dropped: {classes[0]}"].estimate.value > 0.8
    assert "zebra@hypothesis" in set(found.reasons["feature"])
    assert found.notes == [] and len(found.featured) == len(found.kept) == 240


def test_every_interval_holds_its_value_and_every_number_has_a_unit():
    for name, figure in audit(planted(), planted(60)).figures.items():
        value, low, high, n, *_ = figure.estimate
        assert low <= value <= high, name
        assert figure.unit and n > 0, name


def test_shuffled_labels_show_nothing():
    clean = planted()
    table = clean.table.assign(label=np.random.default_rng(1).permutation(clean.labels))
    found = audit(Corpus(table, "mine", "train")).figures
    assert found["gain"].estimate.low < 0
    assert found["detectable"].estimate.value == 0
    assert found["above"].estimate.value == pytest.approx(found["by chance"].estimate.value, abs=0.04)


def test_a_count_by_dictionaries_agrees():
    """Feature counts of the planted corpus, and the share of the strongest words, with loops."""
    given, counted = load("planted", "train", limit=600), collections.defaultdict(collections.Counter)
    for text, label in zip(given.hypothesis, given.labels, strict=True):
        for word in set(text.lower().translate(str.maketrans("", "", string.punctuation)).split()):
            counted[word][label] += 1
    table = features_in_shards(given.premise, given.hypothesis)
    counts = z_statistics(table.matrix, given.labels, 3).counts
    top = audits.top_table(table, counts, given)
    words = top[top["feature"].str.fullmatch(r"\w+@hypothesis")]
    assert len(words) > 3
    base = np.bincount(given.labels) / len(given)
    for row in words.itertuples():
        label, seen = LABELS.index(row.label), counted[row.feature.removesuffix("@hypothesis")]
        n = seen.total()
        assert (row.n, row.share) == (n, seen[label] / n)
        assert row.z == pytest.approx((seen[label] / n - base[label]) / np.sqrt(base[label] * (1 - base[label]) / n))
        assert row.low <= row.share <= row.high and row.z_low <= row.z <= row.z_high


def test_nested_features_are_shown_once():
    given = load("planted", "train", limit=600)
    table = features_in_shards(given.premise, given.hypothesis)
    top = audits.top_table(table, z_statistics(table.matrix, given.labels, 3).counts, given)
    for _, block in top.groupby("label"):
        for start in ("hypo-len<", "hypo-len>", "lex-overlap>", "len-ratio"):
            assert block["feature"].str.startswith(start).sum() <= 1
    assert "null" not in set(top["feature"])
    assert (top.groupby("label")["rank"].max() <= 20).all()


def test_the_order_of_the_rows_does_not_matter_to_what_is_counted():
    given = planted()
    turned = given[np.random.default_rng(3).permutation(len(given))]
    one, other = audit(given), audit(turned)
    for name in ("majority", "duplicates", "conflicts", "hypotheses", "highest z", "detectable", "above"):
        assert one.figures[name].estimate.value == pytest.approx(other.figures[name].estimate.value)
    assert one.top["feature"].tolist() == other.top["feature"].tolist()


def test_comparable_holds_the_figures_of_the_audit():
    given = planted()
    whole, plain = audit(given).figures, comparable(given)
    for name, value in plain.items():
        if name != "dropped":  # the mean of several orders there, one here
            assert value == whole[name].estimate.value, name
    assert "highest z" in plain and "above" in plain
    order = [1 - audits._filtered(features_in_shards(given.premise, given.hypothesis), given, at).keep.mean()
             for at in range(audits.ORDERS[0])]  # fmt: skip
    assert plain["dropped"] == order[0] and 0 < order[0] < 1
    assert whole["dropped"].estimate.value == pytest.approx(np.mean(order))
    assert whole["gain"].estimate.value == pytest.approx(plain["hypothesis only"] - plain["majority"])


def test_samples_hold_whole_premises_and_say_so(monkeypatch):
    given = planted()
    rows = sample_premises(given, 100, seed=4)
    assert len(rows) == 100 and (np.diff(rows) > 0).all()
    sizes = given[rows].table.groupby("premise").size()
    assert (sizes < given.table.groupby("premise").size()[sizes.index]).sum() <= 1  # one premise is cut
    monkeypatch.setattr(audits, "FEATURES_OF", 100)
    monkeypatch.setattr(audits, "HYPOTHESES_OF", 120)
    found = audit(given)
    assert [note.split(" of 240 pairs")[0] for note in found.notes] == [
        "The hypothesis-only model is fitted to 120",
        "Features and z-filter are those of 100",
    ]
    assert len(found.kept) == len(found.featured) == 100
    assert found.figures["pairs"].estimate.value == 240


def test_few_premises_and_tiny_classes_do_not_fail():
    one = corpus(
        [("the same", f"hypothesis {at} zebra" if at % 3 else f"text {at}", LABELS[at % 3]) for at in range(60)]
    )
    assert audit(one).figures["hypothesis only"].estimate.value > 0.3
    tiny = corpus([(f"p{at}", f"h{at}", LABELS[min(at, 2)]) for at in range(9)])
    found = audit(tiny)
    assert np.isnan(found.figures["gain"].estimate.value)
    assert found.top.empty and np.isnan(found.figures["highest z"].estimate.value)
