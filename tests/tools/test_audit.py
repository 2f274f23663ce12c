"""`nli-study audit` and `card`: what is found, said and shown, the curves beside it, and the commands on files.

Run alone: pytest tests/tools/test_audit.py. With NLI_DATA, real corpora too."""

import collections
import hashlib
import importlib.util
import itertools
import json
import re
import string
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from audited import call, corpus, elements, export, numbers_of, planted, ran, shuffled, text_of, write, written

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import CONTRADICTION_OR_NOT, LABELS, TWO_WAY, CorpusError, concat
from nli_lib.errors import StudyError, UserError
from nli_lib.measure.features import features_in_shards, z_from_counts, z_statistics
from nli_lib.measure.giveaways import cross_fitted
from nli_lib.stats import Estimate
from nli_lib.study.runner import Request
from nli_tools import audit as audits, audit_page, own_corpus
from nli_tools.audit import Figure, audit, comparable, percent, plain, reference, sample_premises, with_classes


def values(figures):
    return {name: figure.estimate.value for name, figure in figures.items()}


def test_repeated_pairs_and_leakage_by_hand():
    found = audits.repeated(corpus([
        ("A man sleeps.", "He rests", "entailment"),
        ("a man  sleeps", "he rests!", "entailment"),  # the same but for case, blanks and punctuation
        ("A man sleeps.", "he rests", "neutral"),  # the same with another label
        ("A man sleeps.", "He runs", "contradiction"), ("A dog sleeps.", "He runs", "contradiction")]))  # fmt: skip
    assert values(found) == {"majority": 0.4, "duplicates": 0.4, "conflicts": 0.6, "hypotheses": 0.6}
    assert all(0 <= f.estimate.low <= f.estimate.value <= f.estimate.high <= 1 for f in found.values())
    train = corpus([("A man sleeps.", "He rests", "entailment"), ("A dog.", "It barks", "neutral")])
    test = corpus([
        ("a man sleeps", "he rests.", "neutral"),  # the pair, whatever its label
        ("a dog", "he rests", "neutral"),  # premise and hypothesis, not as a pair
        ("a cat", "it barks", "neutral"), ("a cat", "it sleeps", "neutral")])  # fmt: skip
    leaked = values(audits.leakage(train, test))
    assert leaked == {"leaked pairs": 0.25, "leaked premises": 0.5, "leaked hypotheses": 0.75}
    # punctuation without ASCII does not make another text where there are no blanks
    rows = [("雨停了。", "天晴"), ("雨停了", "天 晴！"), ("“雨”", "a — b"), ("雨", "a  b")]
    found = audits.repeated(corpus([(*row, "neutral") for row in rows]))
    assert found["duplicates"].estimate.value == 0.25  # the third and fourth hypotheses differ in a dash


def remembered(hypotheses, size=600):
    """Pairs whose label is their hypothesis's own, drawn at random: nothing to learn, much to remember."""
    random = np.random.default_rng(0)
    label, drawn = random.permutation(np.arange(hypotheses) % 3), enumerate(random.integers(0, hypotheses, size))
    return corpus([(f"premise {at}", f"w{one} v{one}{'.' * (at % 2)}", LABELS[label[one]]) for at, one in drawn])


def test_a_hypothesis_is_not_remembered_from_another_fold():
    pairs = remembered(120)
    premises = cross_fitted(pairs.hypothesis, pairs.labels, groups=pd.factorize(pairs.premise)[0])
    assert (premises.argmax(axis=1) == pairs.labels).mean() > 0.8  # what premises alone would let through
    found = audit(pairs)
    assert found.figures["hypothesis only"].estimate.value < 0.45
    assert found.figures["gain"].estimate.over == "premises and hypotheses"
    groups, whole = audits.kept_together(pairs)
    assert whole and len(set(groups)) == len(np.unique(np.char.rstrip(pairs.hypothesis.astype(str), ".")))
    assert not [note for note in found.notes if "hypothes" in note]
    # few hypotheses beside every premise cannot be kept together, and that is said
    pairs = remembered(3)
    groups, whole = audits.kept_together(pairs)
    assert not whole and len(set(groups)) == len(pairs)
    found = audit(pairs)
    assert found.figures["hypothesis only"].estimate.value > 0.9
    assert [note for note in found.notes if "share their hypothesis" in note]
    # a class without a pair has no number
    pairs = remembered(120)
    figures = audit(pairs[pairs.labels < 2]).figures
    *there, absent = (figures[f"dropped: {name}"].estimate for name in LABELS)
    assert np.isnan(absent.value) and absent.n == 0 and all(0 <= each.value <= 1 and each.n for each in there)
    assert figures["hypothesis only"].estimate.value > 0.3  # of two labels, whatever the classes are called


def test_texts_without_blanks_are_measured_in_characters():
    found = audit(written(blanks=False, seed=0, told=0.6))
    assert found.figures["gain"].estimate.low > 0 and found.figures["area"].estimate.low > 0.5
    best = found.top.loc[found.top["z"].idxmax()]
    assert best["label"] == LABELS[2] and best["feature"] in ("没@hypothesis", "有@hypothesis", "没 有@hypothesis")
    assert found.figures["detectable"].estimate.value >= 3 and found.figures["without blanks"].estimate.value == 1
    assert found.notes[0].startswith("Texts without spaces: in 100.0% of the hypotheses, characters and")
    for seed in range(2):  # nothing was planted, nothing is found
        found = audit(written(blanks=False, seed=seed)).figures
        assert not found["gain"].estimate.low > 0 and found["detectable"].estimate.value == 0, seed
        assert found["area"].estimate.low < 0.5 < found["area"].estimate.high, seed
    rows = [(f"p {at}", f"word_{at}_and_no_blank_between_words", LABELS[at % 3]) for at in range(60)]
    (note,) = audit(corpus(rows)).notes
    assert note.startswith("100.0% of the hypotheses are longer than 20 characters and have no more than 2 words")


def test_an_artifact_of_a_rare_label_is_found_and_its_absence_is_not():
    for told, seed in itertools.product((0.0, 0.7), range(3)):
        found = audits.hypothesis_alone(written(blanks=True, seed=seed, told=told, shares=(0.95, 0.05), n=600))
        assert found["one answer"].estimate.value > 0.95, seed  # so the accuracy hides it
        area = found["area"].estimate
        assert area.low > 0.5 if told else area.low < 0.5 < area.high < 0.8, seed


def test_z_over_shares_is_its_formula_and_null_is_nought():
    counts = np.array([[30, 10], [60, 40], [0, 0]])  # the second is the null feature
    z = audits.z_over_shares(counts)
    assert z[0, 0] == pytest.approx((30 - 40 * 0.6) / np.sqrt(40 * 0.6 * 0.4))
    assert z[1].tolist() == [0, 0] and np.isneginf(z[2]).all()
    balanced = np.array([[30, 10, 5], [50, 50, 50]])
    assert audits.z_over_shares(balanced)[0] == pytest.approx(z_from_counts(balanced).z[0])


@pytest.mark.parametrize("classes", [LABELS, TWO_WAY])
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


def test_shuffled_labels_show_nothing():
    found = audit(shuffled(planted())).figures
    assert found["gain"].estimate.low < 0 and found["detectable"].estimate.value == 0
    assert found["above"].estimate.value == pytest.approx(found["by chance"].estimate.value, abs=0.04)


def check_top(given):
    """The strongest words of a corpus and their shares are those that a count by dictionaries finds."""
    counted, names = collections.defaultdict(collections.Counter), list(given.classes)
    for text, label in zip(given.hypothesis, given.labels, strict=True):
        for word in set(text.lower().translate(str.maketrans("", "", string.punctuation)).split()):
            counted[word][label] += 1
    table = features_in_shards(given.premise, given.hypothesis)
    top = audits.top_table(table, z_statistics(table.matrix, given.labels, len(names)).counts, given)
    words = top[top["feature"].str.fullmatch(r"\w+@hypothesis")]
    assert len(words) > 3
    for row in words.itertuples():
        label, seen = names.index(row.label), counted[row.feature.removesuffix("@hypothesis")]
        n, base = seen.total(), (given.labels == label).mean()
        assert (row.n, row.share) == (n, seen[label] / n)
        assert row.z == pytest.approx((seen[label] / n - base) / np.sqrt(base * (1 - base) / n))
        assert row.low <= row.share <= row.high and row.z_low <= row.z <= row.z_high
    return top


def test_top_features_equal_a_count_by_dictionaries_and_nested_ones_are_shown_once():
    top = check_top(load("planted", "train", limit=600))
    for start in ("hypo-len<", "hypo-len>", "lex-overlap>", "len-ratio"):
        assert top.loc[top["feature"].str.startswith(start), "label"].is_unique
    assert "null" not in set(top["feature"]) and (top.groupby("label")["rank"].max() <= 20).all()


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("name", ["snli/test", "wanli/train", "med/test", "fever/validation"])
def test_top_features_of_a_real_corpus_equal_a_count_by_dictionaries(name):
    given = load(*name.split("/"))
    check_top(given)
    if name == "snli/test":  # more than a quarter of the labels are given away, as everybody has found
        assert audits.hypothesis_alone(given)["gain"].estimate.low > 0.2


def test_comparable_holds_the_figures_of_the_audit_and_the_order_of_the_rows_does_not_matter():
    given = planted()
    found, compared = audit(given), comparable(given)
    whole = values(found.figures)
    for name, value in compared.items():
        if name != "dropped":  # the mean of several orders there, one here
            assert value == whole[name], name
    assert "highest z" in compared and "above" in compared
    order = [1 - audits._filtered(features_in_shards(given.premise, given.hypothesis), given, at).keep.mean()
             for at in range(audits.ORDERS[0])]  # fmt: skip
    assert compared["dropped"] == order[0] and 0 < order[0] < 1 and whole["dropped"] == pytest.approx(np.mean(order))
    assert whole["gain"] == pytest.approx(compared["hypothesis only"] - compared["majority"])
    turned = audit(given[np.random.default_rng(3).permutation(len(given))])
    for name in ("majority", "duplicates", "conflicts", "hypotheses", "highest z", "detectable", "above"):
        assert whole[name] == pytest.approx(turned.figures[name].estimate.value)
    assert found.top["feature"].tolist() == turned.top["feature"].tolist()


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
        "The hypothesis-only model is fitted to 120", "Features and z-filter are computed from 100"]  # fmt: skip
    assert len(found.kept) == len(found.featured) == 100 and found.figures["pairs"].estimate.value == 240


def test_few_premises_and_tiny_classes_do_not_fail():
    texts = [f"hypothesis {at} zebra" if at % 3 else f"text {at}" for at in range(60)]
    one = [("the same", text, LABELS[at % 3]) for at, text in enumerate(texts)]
    assert audit(corpus(one)).figures["hypothesis only"].estimate.value > 0.3
    found = audit(corpus([(f"p{at}", f"h{at}", LABELS[min(at, 2)]) for at in range(9)]))
    assert np.isnan(found.figures["gain"].estimate.value)
    assert found.top.empty and np.isnan(found.figures["highest z"].estimate.value)


# ---------------------------------------------------------------- words and page


NASTY = "<script>alert(1)</script>"


def content(given, test=None, beside=None):
    found = audit(given, test)
    beside = reference(given.classes, len(given)) if beside is None else beside
    facts = {"next": audit_page.next_steps(found, beside, found.figures, test="t.csv" if test else ""), "version": "1"}
    facts |= {"digest": "0" * 64, "test": {"name": "t.csv", "digest": "1", "pairs": len(test)} if test else None}
    return found, audit_page.as_json(given, found, dict(found.figures), beside, **facts)


def test_numbers_and_features_in_plain_english():
    shares = {0: "0.0%", 0.5: "50.0%", 0.00012: "0.012%", 1: "100.0%", np.nan: "–", 0.0000097: "<0.01%"}
    assert {x: percent(x) for x in shares} == shares  # nothing is rounded to nought
    assert [audits.points(x) for x in (0.1234, -0.02)] == ["+12.3 points", "−2.0 points"]
    assert audits.ends(Estimate(0.5, 0.4, 0.6, 1)) == "[40.0%, 60.0%]"
    assert audits.ends(Estimate(1, np.nan, np.nan, 1)) == ""
    known = {
        "nobody is@hypothesis": "“nobody is” in the hypothesis", "没 有@hypothesis": "“没有” in the hypothesis",
        "hypo-len< 5": "hypothesis of fewer than 5 words",
        "lex-overlap> 0.7": "more than 70% of the hypothesis's words in the premise",
        "len-ratio [0.25, 0.5)": "hypothesis 0.25 to 0.5 times as long as the premise",
        "len-ratio [2, inf)": "hypothesis 2 times as long as the premise, or more"}  # fmt: skip
    assert {feature: plain(feature) for feature in known} == known
    assert plain("hypo-len< 5", "characters") == "hypothesis of fewer than 5 characters"
    assert audits.whose("nobody@hypothesis") == "that have “nobody” in the hypothesis"
    assert audits.whose("hypo-len< 5") == "with a hypothesis of fewer than 5 words"
    assert audits.visible("a\x00b\u202ec") == "a\\u0000b\\u202ec" and audits.visible("x" * 90) == "x" * 79 + "…"


def test_three_sentences_follow_from_the_numbers():
    found, _ = content(planted())
    rows, alone, features = audit_page.next_steps(found, reference(LABELS, 240), found.figures)
    assert rows.startswith("Nothing needs cleaning first: no pair has two labels") and "--test" in rows
    assert alone.startswith("Report a hypothesis-only baseline") and "more than in SNLI" in alone
    assert "“zebra” in the hypothesis, of which 100.0% are entailment" in features
    one = planted()
    one = type(one)(one.table.assign(premise="It rains."), "mine", "train")
    assert "all pairs have one premise" in content(one)[1]["next"][1]
    _, alone, features = content(shuffled(planted()))[1]["next"]
    assert alone.startswith("Do not call the corpus free of artifacts")
    assert features.startswith("Leave the z-filter aside")


def test_a_rare_label_is_judged_by_the_area_and_not_by_the_accuracy():
    rare = {"blanks": True, "seed": 0, "shares": (0.95, 0.05), "n": 600}
    told, silent = (content(written(**rare, told=each))[1] for each in (0.7, 0.0))
    found, none = told["next"][1], silent["next"][1]
    assert found.startswith("Report a hypothesis-only baseline with every model, but not by its accuracy")
    assert none.startswith("Do not call the corpus free of artifacts yet: nothing was found, but the accuracy")
    assert "the same answer to" in none and "[0.0, 0.0" not in none
    assert f"in 600 pairs an area of up to {silent['figures']['area']['high']:.2f} would not show." in none
    assert f"{told['figures']['area']['value']:.2f}" in audit_page.page(told)
    assert "0.0 <small>one answer to 100.0%</small>" in audit_page.page(silent)
    assert "Area under the ROC curve" in audit_page.card(told) and "one answer" in audit_page.card(told)


def test_what_to_clean_comes_first():
    pairs = planted().table
    rows = pairs.assign(label=pairs["label"].map(dict(enumerate(LABELS))))[["premise", "hypothesis", "label"]]
    rows = rows.to_numpy().tolist()
    other = [[p, h, LABELS[(LABELS.index(label) + 1) % 3]] for p, h, label in rows[:5]]
    first = content(corpus(rows + other, skipped={"unknown label": 40}), corpus(rows[:7]))[1]["next"][0]
    said = "Clean first: fix the 40 rows that cannot be used (14.0% of the file); then remove the 7 pairs"
    assert first.startswith(said)
    said = "Clean first: decide about the 10 rows whose pair has more than one label; then drop the 15 rows that repeat"
    assert content(corpus(rows + other + rows[100:110]))[1]["next"][0] == f"{said} an earlier pair."


def test_the_page_is_one_file_without_script_and_shows_text_as_text():
    given = corpus([(f"{NASTY} {at}", f"It is {NASTY} =1+1 \u202e {at % 7}", LABELS[at % 3]) for at in range(90)])
    found, numbers = content(given)
    examples = dict(zip(found.top["feature"], given.hypothesis[found.top["first"].astype(int)], strict=True))
    numbers["corpus"] = f"mine{NASTY}"
    page = audit_page.page(numbers, examples or {"none": NASTY})
    tags, links = elements(page)
    assert not {"script", "img", "iframe", "object"} & set(tags) and set(links) <= {"data:,"}
    assert "default-src 'none'" in page and "&lt;script&gt;alert(1)" in page
    assert NASTY not in page and "\u202e" not in page
    one = Figure(Estimate(0.1, 0.05, 0.2, 3)).as_json()
    leaked = numbers["figures"] | {f"leaked {side}": one for side in ("pairs", "premises", "hypotheses")}
    assert NASTY not in audit_page.card(numbers | {"test": {"name": NASTY, "pairs": 3}, "figures": leaked})


def check_numbers(value, path=""):
    """Every number has interval and unit, but for those that count or name something."""
    if isinstance(value, dict) and "value" in value:
        assert set(value) == {"value", "low", "high", "unit", "n", "over"}, path
        assert value["unit"] and value["over"], path
        if value["low"] is not None and value["value"] is not None:
            assert value["low"] <= value["value"] <= value["high"], path
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            check_numbers(inner, f"{path}/{key}")
    elif isinstance(value, int | float):
        assert isinstance(value, int) and path.rsplit("/", 1)[1] in ("format", "compared at", "rank", "pairs"), path


@pytest.mark.parametrize("classes", [LABELS, ("entailment", "neutral")])
def test_the_file_is_whole_and_page_and_card_show_its_numbers(classes):
    found, numbers = content(planted(classes=classes), planted(60, classes=classes))
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers  # NaN is no JSON
    check_numbers(numbers)
    assert set(numbers["reference"]) == {"snli", "mnli", "wanli"} and numbers["compared at"] == 240
    assert numbers["figures"]["highest z"]["value"] == found.top["z"].max()
    page, card = audit_page.page(numbers), audit_page.card(numbers)
    assert "None" not in card and "nan" not in card.lower().replace("nanny", "")
    right = percent(found.figures["hypothesis only"].estimate.value)
    assert right in page and right in card and f"{found.figures['dropped'].estimate.value:.1%}" in card
    for name in LABELS:  # no label that the corpus has not
        assert (f"*{name}*" in card) == (f">{name}</h3>" in page) == (name in classes)
    assert re.search(r"\| Accuracy of the hypothesis alone \| .+ \| \[.+\] \| .+ \| .+ \| .+ \|", card)
    lines = [line for line in card.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1 and len(lines) >= 12


def test_a_larger_corpus_has_a_column_at_the_size_of_the_curves_and_without_curves_there_is_none():
    _, numbers = content(planted())
    numbers["compared at"] = 100
    page, card = audit_page.page(numbers), audit_page.card(numbers)
    assert "the largest size recorded for all three" in page and 'data-title="at 100 pairs"' in page
    assert "at 100 pairs, the largest size recorded" in card
    none = pd.DataFrame(columns=["corpus", "figure", "value", "low", "high", "at"])
    _, numbers = content(planted(classes=("entailment", "neutral")), beside=none)
    assert "No figures of other corpora are recorded" in audit_page.page(numbers)
    assert "SNLI" not in audit_page.card(numbers)


# ---------------------------------------------------------------- curves of other corpora


BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "audit_curves.py"
found = importlib.util.spec_from_file_location("made_audit_curves", BENCHMARK)
making = importlib.util.module_from_spec(found)
found.loader.exec_module(making)


def test_the_recorded_curves_are_numbers_that_can_be():
    table = audits.curves()
    assert list(table) == list(making.COLUMNS) and set(table["corpus"]) == {"snli", "mnli", "wanli"}
    assert not table.duplicated(["corpus", "classes", "figure", "n"]).any()
    assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()
    assert table[~table["figure"].isin(["highest z", "gain"])][["low", "value", "high"]].stack().between(0, 1).all()
    assert set(table["classes"]) == {"/".join(classes) for classes in making.SETS} | {"any"}
    for key, most in table.groupby(["corpus", "classes"])["n"].max().items():
        # of two classes out of three WANLI's sample has 10,000 pairs
        assert most >= (6_000 if key[1] == "any" else 10_000), key
    # written by nobody who guessed: the strongest feature stands out the more, the more pairs there are
    z = table[(table["figure"] == "highest z") & (table["classes"] == "/".join(LABELS))]
    assert (z.sort_values("n").groupby("corpus")["value"].agg(["first", "last"]).diff(axis=1)["last"] > 5).all()


def test_a_figure_is_interpolated_over_the_logarithm_of_the_pairs(monkeypatch):
    rows = [
        (corpus, classes, figure, n, value, value - 0.1, value + 0.1, 3) for corpus in ("snli", "wanli")
        for classes, figure in (("entailment/neutral", "gain"), ("any", "leaked pairs"))
        for n, value in ((100, 0.2), (10_000, 0.4))]  # fmt: skip
    table = pd.DataFrame(rows, columns=making.COLUMNS)
    monkeypatch.setattr(audits, "curves", lambda: table)
    found = reference(("entailment", "neutral"), 1_000)
    assert found["value"].tolist() == pytest.approx([0.3] * 4) and found["low"].tolist() == pytest.approx([0.2] * 4)
    assert set(found["at"]) == {1_000}
    most = reference(("entailment", "neutral"), 500_000)
    assert set(most["at"]) == {10_000} and most["value"].tolist() == pytest.approx([0.4] * 4)
    assert reference(LABELS, 1_000).empty  # not recorded, and leakage alone is not shown


def test_classes_are_left_out_or_joined():
    whole = load("planted", "train", limit=300)
    pair = with_classes(whole, ("entailment", "contradiction"))
    assert len(pair) == (whole.labels != 1).sum() and pair.counts["contradiction"] == whole.counts["contradiction"]
    two = with_classes(whole, TWO_WAY)
    assert len(two) == 300 and two.counts["not_entailment"] == 300 - whole.counts["entailment"]
    assert with_classes(whole, CONTRADICTION_OR_NOT).counts["contradiction"] == whole.counts["contradiction"]


def test_curves_are_what_they_say(monkeypatch):
    """Of a small corpus: the mean of the draws is that of `comparable`, and a single set is its own test set."""
    monkeypatch.setattr(making, "SETS", (LABELS,))
    parts = [load("planted", "train", limit=300), load("planted", "test", limit=200)]
    made = pd.concat(making.make_curves({"snli": parts, "wanli": parts[:1]}, sizes=(60, 100)))
    drawn = [audits.leakage(parts[0][sample_premises(parts[0], 100, seed)], parts[1]) for seed in range(10)]
    drawn = [each["leaked premises"].estimate.value for each in drawn]
    row = made.query("corpus == 'snli' and classes == 'any' and n == 100 and figure == 'leaked premises'").iloc[0]
    assert (row["value"], row["low"], row["high"]) == pytest.approx((np.mean(drawn), min(drawn), max(drawn)))
    whole = concat(parts, name="snli")
    drawn = [comparable(whole[sample_premises(whole, 60, seed)], seed=seed)["above"] for seed in range(10)]
    row = made.query("corpus == 'snli' and n == 60 and figure == 'above'").iloc[0]
    assert row["value"] == pytest.approx(np.nanmean(drawn)) and row["draws"] == np.isfinite(drawn).sum()
    figures = set(made[made["corpus"] == "wanli"]["figure"])
    assert "majority" not in figures and "leaked pairs" in figures


# ---------------------------------------------------------------- commands


def pairs(n=90, labels=LABELS):
    """n invented pairs, two a premise at most; *nobody* in those of the last label."""
    given = [labels[at % len(labels)] for at in range(n)]
    who = ["Nobody" if label == labels[-1] else "She" for label in given]
    return [(f"Person {at // 2} walks in town {at % 5}", f"{who[at]} is {at}", given[at]) for at in range(n)]


@pytest.fixture
def here(home, monkeypatch, tmp_path):
    """An empty folder to call from, with a file of `pairs`, mine.csv."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write(folder / "mine.csv", pairs())
    return folder


def audited(*words, rows=None, **form):
    """The numbers of an audit of mine.csv, into which rows are written first."""
    if rows:
        write(Path("mine.csv"), rows, **form)
    ran("audit", "mine.csv", *words)
    return numbers_of("audit.json")


def test_an_audit_writes_two_files_the_same_each_time_and_tells_its_progress(here, home):
    before, text = set(home.rglob("*")), (here / "mine.csv").read_bytes()
    said, new = ran("audit", "mine.csv").splitlines(), {path for path in home.rglob("*") if path.is_file()} - before
    assert {path.name for path in new} == {"audit.html", "audit.json"}
    assert len({path.parent for path in new}) == 1 and (here / "mine.csv").read_bytes() == text
    content, first = numbers_of("audit.json"), {path: path.read_bytes() for path in new}
    assert said[-5:] == [*content["next"], *(str(path) for path in sorted(new))]
    assert content["figures"]["pairs"]["value"] == 90 and content["test"] is None
    assert content["features"][0]["feature"] and content["classes"] == list(LABELS)
    assert any("Fewer than 100 rows of a class" in warning for warning in content["warnings"])
    assert "expect wide intervals" in text_of("audit.html")
    stages = [line for line in call("audit", "mine.csv").stderr.splitlines() if line.startswith("[")]
    assert {path: path.read_bytes() for path in paths.EXPORTS.glob("*/*")} == first
    assert [line.split("] ")[1].split(",")[0] for line in stages] == list(audit_page.STAGES)
    assert all("s left" in line for line in stages[1:])


def test_time_left_is_by_what_the_stages_took(capsys, monkeypatch):
    times = iter(range(0, 1000, 10))
    monkeypatch.setattr(audit_page.time, "monotonic", lambda: next(times))
    clock = audit_page.Clock()
    clock.rows = 10_000  # 0.15 s foretold for the repeated pairs, which take 10
    for stage in ("repeated pairs", "z-filter"):
        with clock(stage):
            pass
    first, second = (int(line.rsplit("about ")[1].split()[0]) for line in capsys.readouterr().err.splitlines())
    assert second > 3 * first


def test_a_test_file_is_compared_and_may_have_other_column_names(here, monkeypatch):
    write(here / "test.tsv", [*pairs(6), *[("new", f"text {at}", "neutral") for at in range(18)]], delimiter="\t")
    content = audited("--test", "test.tsv")
    assert content["figures"]["leaked pairs"]["value"] == 0.25
    assert content["test"]["name"] == "test.tsv" and content["test"]["pairs"] == 24
    assert "remove the 6 pairs of test.tsv" in content["next"][0]
    assert "Test pairs found here" in text_of("audit.html") and "25.0%" in text_of("audit.html")
    export("audit.json").unlink()
    write(here / "test.csv", pairs(12), header=("sentence1", "sentence2", "gold_label"))
    words = ["--columns", "premise=context,hypothesis=claim,label=verdict", "--test", "test.csv"]
    content = audited(*words, rows=pairs(), header=("context", "claim", "verdict"))
    assert content["figures"]["leaked pairs"]["value"] == 1.0
    asked = []
    monkeypatch.setattr(own_corpus, "load", lambda name, split, **more: asked.append((name, split)))
    own_corpus.read_test("planted", Request("smoke", "mine.csv"))
    assert asked == [("planted", "test")]


def test_the_list_of_the_filter_is_written_where_it_is_asked_for(here, monkeypatch):
    audited("--pairs")
    path = export("z_filter.csv")
    table = pd.read_csv(path)
    assert len(table) == 90 and set(table["kept"]) <= {True, False}
    assert (table["kept"] == (table["reason"] == "kept")).all() and audited() and path.is_file()
    assert audited(rows=pairs(60)) and not path.exists()  # of another state of the file
    monkeypatch.setattr(audits, "FEATURES_OF", 90)
    (note,) = audited("--pairs", rows=pairs(120))["notes"]
    assert note == "Features and z-filter are computed from 90 of 120 pairs, drawn at random by premise."
    assert note in text_of("audit.html") and len(pd.read_csv(path)) == 90


def test_a_feature_of_the_premise_is_shown_with_a_premise(here):
    subject = ("The zebra", "A man", "A man")
    audited(rows=[(f"{subject[at % 3]} is {at}", f"He {at % 7}", LABELS[at % 3]) for at in range(120)])
    assert re.search("“zebra” in the premise.*<bdi>The zebra is 0</bdi>", text_of("audit.html"))


def test_rows_that_cannot_be_used_are_said_everywhere(here):
    content = audited(rows=[*pairs(), *[("A man", "He", "-")] * 30, ("", "empty", "neutral")])
    said, figures = ran("audit", "mine.csv"), content["figures"]
    assert "31 of 121 rows were left out" in said and "Clean first: fix the 31 rows" in said
    assert (figures["skipped: no gold label"]["value"], figures["skipped: empty text"]["value"]) == (30, 1)
    assert "no gold label 30" in text_of("audit.html") and "empty text 1" in text_of("audit.html")


REFUSED = [
    (pairs(9), [], "an audit: 20 rows of each class are needed, and there are entailment 3"),
    (pairs(90, LABELS[:1]), [], "20 rows of each class are needed"),
    (pairs(), ["--columns", "premise=hypothesis,hypothesis=hypothesis"], "is used twice"),
    (pairs(), ["--test", "gone.csv"], "no such file")]  # fmt: skip


@pytest.mark.parametrize(("rows", "words", "said"), REFUSED)
def test_what_cannot_be_audited_is_one_message_before_anything_is_written(here, rows, words, said):
    write(here / "mine.csv", rows)
    fault = call("audit", "mine.csv", *words).exception
    assert isinstance(fault, CorpusError | StudyError) and said in str(fault)
    assert "no such file" in str(call("audit", "yours.csv").exception) and not list(paths.EXPORTS.rglob("*"))


def test_the_card_is_that_of_the_audit_or_audits_first(here, monkeypatch):
    said = ran("card", "mine.csv")
    assert text_of("card.md").startswith("## Data quality\n") and str(export("card.md")) in said
    asked, run = [], audit_page.run
    monkeypatch.setattr(audit_page, "run", lambda *words, **more: asked.append(words) or run(*words, **more))

    def card(*words):
        """What is said, and how often the card of mine.csv has had it audited so far."""
        return ran("card", "mine.csv", *words), len(asked)

    assert card()[1] == 0  # the audit of the same file is there
    write(here / "test.csv", pairs(12))
    assert card("--test", "test.csv")[1] == 1
    assert "**Leakage:** of 12 test pairs (test.csv), 100.0%" in text_of("card.md") and "changed" not in card()[0]
    write(here / "test.csv", pairs(15))
    assert "test.csv has changed since the audit that found the leakage" in card()[0]
    (here / "mine.csv").write_text((here / "mine.csv").read_text().replace("Nobody", "Somebody"))
    assert card()[1] == 2  # another file than the one that was audited
    export("audit.json").write_text("[1")
    assert card()[1] == 3 and card("--test", "test.csv")[1] == 4
    assert card("--test", "planted")[1] == 5 and "test pairs (planted)" in text_of("card.md")
    monkeypatch.setattr(own_corpus, "load", None)
    assert card("--test", "planted")[1] == 5
    assert call("card", "mine.csv", "--test", "snli").exit_code == 1 and len(asked) == 6  # not the leakage to another


def test_croissant_holds_the_numbers_of_the_audit(here):
    path = write(here / "a b.csv", pairs())
    assert "Add license, creator, url" in ran("card", path, "--croissant")
    figures, made = numbers_of("audit.json")["figures"], numbers_of("croissant.json")
    (file,), (records,) = made["distribution"], made["recordSet"]
    assert file["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() and file["contentUrl"] == "a%20b.csv"
    names = {each["name"] for each in records["field"]}
    rows = [{name: row.pop(f"quality/{name}") for name in names} for row in map(dict, records["data"])]
    assert {row.pop("figure"): row for row in rows} == figures and len(rows) == len(figures) > 20
    judge = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed (.ci/setup test): no judge")
    read = judge.Dataset(jsonld=made)
    said = sorted(re.findall(r"(\w+)\" is recommended", str(read.metadata.issues.warnings)))
    assert said == ["citeAs", "datePublished", "license", "version"] and not read.metadata.issues.errors
    found = {row["quality/figure"]: row["quality/value"] for row in read.records("quality")}
    assert found == pytest.approx({name: each["value"] for name, each in figures.items()})


def test_an_audit_of_other_columns_is_another_audit(here):
    rows = [(premise, hypothesis, "It rains.", label) for premise, hypothesis, label in pairs()]
    write(here / "mine.csv", rows, header=("premise", "one", "other", "label"))
    asked = [Request("smoke", "mine.csv", columns={"hypothesis": name}) for name in ("one", "other")]
    first, second = (audit_page.content(each) for each in asked)
    assert first["columns"] == {"hypothesis": "one"} and second["columns"] == {"hypothesis": "other"}
    assert first["digest"] == second["digest"] and first["next"] != second["next"]


def test_other_kinds_of_files_give_the_same_numbers(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # a package that an audit does without
    figures, table = audited()["figures"], pd.read_csv("mine.csv")
    table.to_parquet("a.parquet")
    table.to_json("a.json", orient="records")
    write(here / "blob", pairs())
    (here / "link.csv").symlink_to(here / "blob")  # is the file that its own name says
    for name in ("a.json", "a.parquet", "link.csv"):
        export("audit.json").unlink()
        assert ran("audit", name) and numbers_of("audit.json")["figures"] == figures, name


def test_a_corpus_without_an_n_gram_in_twenty_pairs_and_texts_without_a_word(here):
    words = ["".join(chr(0xAC00 + (7 * at + 13 * k) % 9000) for k in range(5)) for at in range(590)]
    content = audited(rows=[(*(f"{words[n]} {words[n]}" for n in (at, at + 500)), LABELS[at % 3]) for at in range(90)])
    assert content["figures"]["by chance"]["value"] is None
    assert audited(rows=[(f"Person {at} walks", ("...", "?!")[at % 2], LABELS[at % 3]) for at in range(90)])


def test_texts_without_blanks_are_said_and_what_needs_blanks_is_refused(here):
    signs, ends = "山水火木金土人口手足目耳", ("对", "许", "没")
    rows = [("".join(signs[at // each % 12] for each in (1, 5, 7, 11)), signs[at % 7] + ends[at % 3] + signs[at % 11])
            for at in range(90)]  # fmt: skip
    content = audited(rows=[(*row, LABELS[at % 3]) for at, row in enumerate(rows)])
    assert "predict 100.0%" in content["next"][1]
    assert {"对@hypothesis", "许@hypothesis", "没@hypothesis"} <= {each["feature"] for each in content["features"]}
    said = "characters and pairs of characters are counted instead of words"
    assert f"{said}." in ran("audit", "mine.csv")
    for text in (ran("card", "mine.csv"), text_of("audit.html")):
        assert said in text and "“没” in the hypothesis" in text and " of the hypothesis's words" not in text
    for command in ("counterfactuals", "debias"):
        refused = call(command, "mine.csv").exception
        assert isinstance(refused, CorpusError) and "texts without spaces between words; the" in str(refused)
    assert "linear models on words and characters" in ran("suspects", "mine.csv", "--fast")


def test_a_large_corpus_is_compared_at_the_size_of_the_curves(here, monkeypatch):
    curve = audit_page.reference(LABELS, 90)
    monkeypatch.setattr(audit_page, "reference", lambda classes, n: curve)
    content = audited(rows=pairs(240))
    own = content["own figures at that size"]
    assert content["compared at"] == 90 and own["gain"]["n"] == 90
    assert own["highest z"]["value"] < content["figures"]["highest z"]["value"]  # z grows with the pairs
    assert all(each["low"] <= each["value"] <= each["high"] for each in own.values() if each["value"] is not None)


def test_no_space_on_disk_and_no_room_in_memory_are_one_message(here, monkeypatch):
    with monkeypatch.context() as full:
        full.setattr(paths, "EXPORTS", Path("/proc/nobody/writes/here"))
        fault = call("audit", "mine.csv").exception
    assert isinstance(fault, UserError | OSError) and "/proc/nobody" in str(fault)

    size, request = (here / "mine.csv").stat().st_size, Request(scale="small", corpus=str(here / "mine.csv"))
    said = r"mine\.csv: too large to be read here at once: use a part of it"
    with monkeypatch.context() as full, pytest.raises(CorpusError, match=said):
        full.setattr(own_corpus, "load", Mock(side_effect=MemoryError))
        own_corpus.read(request.corpus, request)
    memory = SimpleNamespace(available=size * own_corpus.TIMES - 1)
    monkeypatch.setattr(own_corpus.psutil, "virtual_memory", lambda: memory)
    with pytest.raises(CorpusError, match=r"mine\.csv: a file of 0\.0 GB takes about 0 GB .*use a part of it"):
        own_corpus.read(request.corpus, request)  # refused before it is read
    memory.available += 1
    assert len(own_corpus.read(request.corpus, request)) == 90
