"""What an audit says in words, and its page, file and card. Run alone: pytest tests/tools/test_audit_page.py"""

import html.parser
import json
import re

import numpy as np
import pandas as pd
import pytest
from audited import corpus, planted, written

from nli_lib.corpora.corpus import LABELS
from nli_lib.stats import Estimate
from nli_tools import audit_page
from nli_tools.audit import Figure, audit, ends, percent, plain, points, reference, visible, whose
from nli_tools.audit_page import next_steps

NASTY = "<script>alert(1)</script>"


def content(given, test=None, **facts):
    found = audit(given, test)
    beside = reference(given.classes, len(given))
    facts = {"next": next_steps(found, beside, found.figures, test="t.csv" if test else ""), "version": "1", **facts}
    facts |= {"digest": "0" * 64, "test": {"name": "t.csv", "digest": "1", "pairs": len(test)} if test else None}
    return found, audit_page.as_json(given, found, dict(found.figures), beside, **facts)


class Elements(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.links = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]


def test_numbers_are_written_so_that_nothing_is_rounded_to_nought():
    assert [percent(x) for x in (0, 0.5, 0.00012, 1, float("nan"))] == ["0.0%", "50.0%", "0.012%", "100.0%", "–"]
    assert percent(0.0000097) == "<0.01%"
    assert [points(x) for x in (0.1234, -0.02)] == ["+12.3 points", "−2.0 points"]
    assert ends(Estimate(0.5, 0.4, 0.6, 1)) == "[40.0%, 60.0%]" and ends(Estimate(1, np.nan, np.nan, 1)) == ""


def test_features_in_plain_english():
    assert plain("nobody is@hypothesis") == "“nobody is” in the hypothesis"
    assert plain("没 有@hypothesis") == "“没有” in the hypothesis"
    assert plain("hypo-len< 5") == "hypothesis of fewer than 5 words"
    assert plain("lex-overlap> 0.7") == "more than 70% of the hypothesis's words in the premise"
    assert plain("len-ratio [0.25, 0.5)") == "hypothesis 0.25 to 0.5 times as long as the premise"
    assert plain("len-ratio [2, inf)") == "hypothesis 2 times as long as the premise, or more"
    assert plain("hypo-len< 5", "characters") == "hypothesis of fewer than 5 characters"
    assert whose("nobody@hypothesis") == "that have “nobody” in the hypothesis"
    assert whose("hypo-len< 5") == "with a hypothesis of fewer than 5 words"
    assert visible("a\x00b\u202ec") == "a\\u0000b\\u202ec" and visible("x" * 90) == "x" * 79 + "…"


def test_three_sentences_follow_from_the_numbers():
    found, _ = content(planted())
    beside = reference(LABELS, 240)
    rows, alone, features = next_steps(found, beside, found.figures)
    assert rows.startswith("Nothing has to be cleaned first: no pair stands here with two labels") and "--test" in rows
    assert alone.startswith("Report a hypothesis-only baseline") and "more than in SNLI" in alone
    assert "“zebra” in the hypothesis, of which 100.0% are entailment" in features
    one = planted()
    one = type(one)(one.table.assign(premise="It rains."), "mine", "train")
    assert "all pairs have one premise" in content(one)[1]["next"][1]
    shuffled = planted()
    shuffled = type(shuffled)(
        shuffled.table.assign(label=np.random.default_rng(1).permutation(shuffled.labels)), "mine", "train"
    )
    _, alone, features = content(shuffled)[1]["next"]
    assert alone.startswith("Do not call the corpus free of artifacts") and features.startswith(
        "Leave the z-filter aside"
    )


def test_a_rare_label_is_judged_by_the_area_and_not_by_the_accuracy():
    rare = {"blanks": True, "seed": 0, "shares": (0.95, 0.05), "n": 600}
    told, silent = (content(written(**rare, told=each))[1] for each in (0.7, 0.0))
    found, none = told["next"][1], silent["next"][1]
    assert found.startswith("Report a hypothesis-only baseline beside every model, and not by its accuracy")
    assert none.startswith("Do not call the corpus free of artifacts yet: nothing was found, but the accuracy")
    assert "of the pairs one answer" in none and "[0.0, 0.0" not in none
    high = silent["figures"]["area"]["high"]
    assert f"in 600 pairs an area of up to {high:.2f} would not show." in none
    assert f"{told['figures']['area']['value']:.2f}" in audit_page.page(told)
    assert "0.0 <small>one answer to 100.0%</small>" in audit_page.page(silent)
    assert "Area under the ROC curve" in audit_page.card(told) and "one answer" in audit_page.card(told)


def test_what_to_clean_comes_first():
    pairs = planted().table.assign(label=lambda t: [LABELS[label] for label in t["label"]])
    rows = pairs[["premise", "hypothesis", "label"]].to_numpy().tolist()
    other = [[p, h, LABELS[(LABELS.index(label) + 1) % 3]] for p, h, label in rows[:5]]
    given = corpus(rows + other, skipped={"unknown label": 40})
    first = content(given, corpus(rows[:7]))[1]["next"][0]
    assert first.startswith(
        "Clean first: mend the 40 rows that cannot be used (14.0% of the file); then take the 7 pairs"
    )
    given = corpus(rows + other + rows[100:110])
    assert content(given)[1]["next"][0] == (
        "Clean first: decide about the 10 rows whose pair stands here with more than one label; then drop the 15 rows "
        "that repeat an earlier pair."
    )


def test_the_page_is_one_file_without_script_and_shows_text_as_text():
    rows = [(f"{NASTY} {at}", f"It is {NASTY} =1+1 {at % 7}", LABELS[at % 3]) for at in range(90)]
    given = corpus(rows)
    found, numbers = content(given)
    examples = dict(zip(found.top["feature"], given.hypothesis[found.top["first"].astype(int)], strict=True))
    examples = examples or {"none": NASTY}
    numbers["corpus"] = f"mine{NASTY}"
    numbers["features"] = numbers["features"] or []
    page = audit_page.page(numbers, examples)
    elements = Elements(page)
    assert not {"script", "img", "iframe", "object"} & set(elements.tags)
    assert [link for link in elements.links if link != "data:,"] == []
    assert "default-src 'none'" in page and NASTY not in page and "&lt;script&gt;alert(1)" in page
    assert NASTY not in audit_page.card(numbers | {"test": {"name": NASTY, "pairs": 3}, "figures": _leaked(numbers)})


def _leaked(numbers):
    one = Figure(Estimate(0.1, 0.05, 0.2, 3)).as_json()
    return numbers["figures"] | {f"leaked {side}": one for side in ("pairs", "premises", "hypotheses")}


def test_every_number_of_the_file_has_interval_and_unit():
    found, numbers = content(planted(), planted(60))
    text = json.dumps(numbers, allow_nan=False)  # NaN is no JSON
    assert json.loads(text) == numbers

    def check(value, path):
        if isinstance(value, dict) and "value" in value:
            assert set(value) == {"value", "low", "high", "unit", "n", "over"}, path
            assert value["unit"] and value["over"], path
            if value["low"] is not None and value["value"] is not None:
                assert value["low"] <= value["value"] <= value["high"], path
        elif isinstance(value, dict):
            for key, inner in value.items():
                check(inner, f"{path}/{key}")
        elif isinstance(value, list):
            for at, inner in enumerate(value):
                check(inner, f"{path}/{at}")
        else:
            plain_numbers = ("format", "compared at", "rank", "pairs")
            assert not isinstance(value, float) and (
                not isinstance(value, int) or path.rsplit("/", 1)[1] in plain_numbers
            ), path

    check(numbers, "")
    assert {"snli", "mnli", "wanli"} == set(numbers["reference"])
    assert numbers["figures"]["highest z"]["value"] == found.top["z"].max()
    assert numbers["compared at"] == 240


@pytest.mark.parametrize("classes", [LABELS, ("entailment", "neutral")])
def test_page_and_card_show_the_numbers_of_the_file(classes):
    found, numbers = content(planted(classes=classes), planted(60, classes=classes))
    page, card = audit_page.page(numbers), audit_page.card(numbers)
    assert "None" not in card and "nan" not in card.lower().replace("nanny", "")
    right = percent(found.figures["hypothesis only"].estimate.value)
    assert right in page and right in card
    assert f"{found.figures['dropped'].estimate.value:.1%}" in card
    for name in classes:
        assert f"*{name}*" in card and f">{name}</h3>" in page
    if "contradiction" not in classes:
        assert "contradiction" not in card and ">contradiction<" not in page  # no label that the corpus has not
    assert re.search(r"\| Accuracy of the hypothesis alone \| .+ \| \[.+\] \| .+ \| .+ \| .+ \|", card)
    lines = [line for line in card.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1 and len(lines) >= 12


def test_a_corpus_larger_than_the_curves_has_a_column_at_their_size():
    _, numbers = content(planted())
    numbers["compared at"] = 100
    page, card = audit_page.page(numbers), audit_page.card(numbers)
    assert "the most that is recorded of all three" in page and 'data-title="at 100 pairs"' in page
    assert "at 100 pairs, the most that is recorded" in card


def test_no_curves_for_these_classes_is_said():
    given = planted(classes=("entailment", "neutral"))
    found = audit(given)
    none = pd.DataFrame(columns=["corpus", "figure", "value", "low", "high", "at"])
    facts = {"next": next_steps(found, none, {}), "version": "1", "digest": None, "test": None}
    numbers = audit_page.as_json(given, found, dict(found.figures), none, **facts)
    assert "No curves of other corpora are recorded" in audit_page.page(numbers)
    assert "SNLI" not in audit_page.card(numbers)
