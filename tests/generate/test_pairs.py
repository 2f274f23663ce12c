"""WANLI's prompts, parsing, heuristics and costs. Run alone: pytest tests/generate/test_pairs.py"""

import string
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from cells import functions
from hypothesis import given, strategies as st
from tiny_words import cases, corpus_from

from nli_lib.claims import paper_value
from nli_lib.corpora.corpus import CorpusError
from nli_lib.generate import pairs as made
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import Budget
from nli_lib.generate.pairs import COPIED, EXAMPLE, FAILED, PHRASE, PHRASES, SHORT, UNPARSED, WANLI
from nli_lib.select.selection import KEPT


def answer(text, **more):
    whole = {"api": "completions", "served": "m", "finish": "stop", "started": "2026-01-01", "seconds": 4.0} | more
    return Answer(**{"key": f"{text}{more}", "text": text} | whole)


# ---------------------------------------------------------------- prompts

# The paper's Table 8, without its italics and its last three examples.
TABLE_8 = Path(__file__).with_name("table_8.txt").read_text(encoding="utf-8")


def test_table_8_of_wanli_is_rebuilt_from_its_examples():
    items = [item.split("\n") for item in TABLE_8.split("\n\n")[1:-1]]
    pairs = [(premise[3:], line.removeprefix("Implication: ")) for premise, line in items]
    assert len(pairs) == 2 and made.continue_examples(pairs, "entailment") == TABLE_8


WORDS = {"entailment": "Implication", "neutral": "Possibility", "contradiction": "Contradiction"}


@pytest.mark.parametrize(("label", "word"), WORDS.items())
def test_each_label_has_its_word(label, word):
    text = made.continue_examples([("A {b} c.", "D %s e.")] * 2, label)
    assert text.endswith(f"1. A {{b}} c.\n{word}: D %s e.\n\n2. A {{b}} c.\n{word}: D %s e.\n\n3.")
    with pytest.raises(KeyError):
        made.continue_examples([("a", "b")], "maybe")


def test_a_line_end_in_a_text_does_not_break_the_template_and_many_blanks_take_no_time():
    clock, blanks = time.process_time(), " " * 200_000
    for run in ("\r\n", f"{blanks}\n{blanks}"):
        text = made.continue_examples([(f"one{blanks}two \n x", f"three{run}four")], "entailment")
        assert text.endswith(f"1. one{blanks}two x\nImplication: three four\n\n2.")
    assert time.process_time() - clock < 2  # what tries every blank as a beginning takes minutes


def test_another_template_has_another_digest(monkeypatch):
    digests = {name: made.digest_prompt(name) for name in made.prompts()}
    assert digests[WANLI] == "0b800167c5f1f927" and len(set(digests.values())) == 4
    monkeypatch.setitem(made.prompts(), WANLI, made.prompts()[WANLI] | {"between": "\n"})
    assert made.digest_prompt(WANLI) != digests[WANLI]


@pytest.mark.parametrize(("text", "pair"), [
    (" A man sleeps.\nImplication: He rests.", ("A man sleeps.", "He rests.")),
    ("\n\nA.\nImplication: B. ", ("A.", "B. ")),
    ("A.\nPossibility: B.", None),  # the word of another label
    ("A man sleeps.", None), ("", None), ("A.\nImplication: B.\nImplication: C.", None),
    ("A. Implication: B.", None), ("A.\nImplication:B.", None),
    # nothing is left before the word once the text is stripped
    ("\nImplication: B.", None)])  # fmt: skip
def test_a_continuation_is_a_pair_or_is_dropped(text, pair):
    (found,) = made.parse_pairs(pd.Series([text]), pd.Series(["entailment"])).to_dict("records")
    assert tuple(found.values()) == ((*pair, "") if pair else (None, None, UNPARSED))


def test_each_text_is_parsed_by_the_word_of_its_own_label():
    texts = pd.Series(["A.\nImplication: B.", "A.\nPossibility: B.", "A.\nContradiction: B."], index=[7, 8, 9])
    found = made.parse_pairs(texts, pd.Series(["entailment", "neutral", "entailment"], index=[7, 8, 9]))
    assert found["reason"].to_dict() == {7: "", 8: "", 9: UNPARSED}


# ---------------------------------------------------------------- contexts


def corpus(classes=("entailment", "neutral", "contradiction")):
    labels = [min(label, len(classes) - 1) for label in (0, 0, 0, 1, 1, 2)]
    rows = [(f"Premise {n}.", f"Hypothesis {n}.", label) for n, label in enumerate(labels)]
    return corpus_from(rows, name="tiny", classes=classes)


def test_requests_hold_the_papers_prompt_and_sampling_and_the_nearest_neighbour_before_the_seed():
    one, two = ([(f"Premise {n}.", f"Hypothesis {n}.") for n in row] for row in ((1, 2, 0), (4, 3)))
    contexts = np.array([[0, 2, 1], [3, 4, -1]])
    assert made.examples(corpus(), contexts) == [one, two]
    asked = made.requests(corpus(), contexts, model="m", draws=2)
    assert [request.draw for request in asked] == [0, 1, 0, 1] and len({request.key for request in asked}) == 4
    assert asked[0].prompt == asked[1].prompt == made.continue_examples(one, "entailment")
    assert asked[2].prompt == made.continue_examples(two, "neutral")
    sampling = asked[0].sampling
    printed = [paper_value(f"wanli-appc.2-{name}") for name in ("top-p", "temperature", "max-tokens")]
    assert [sampling.top_p, sampling.temperature, sampling.max_tokens] == printed and sampling == made.SAMPLING
    assert (sampling.stop, sampling.presence_penalty, sampling.frequency_penalty) == (("\n\n",), 0, 0)


def test_a_context_of_two_labels_and_a_label_without_a_word_are_refused():
    with pytest.raises(CorpusError, match="context 1: its examples have different labels"):
        made.requests(corpus(), np.array([[0, 1], [0, 3]]), model="m", draws=1)
    with pytest.raises(CorpusError, match="tiny: the prompt .* has no word for the label 'not_entailment'"):
        made.requests(corpus(("entailment", "not_entailment")), np.array([[3, 4]]), model="m", draws=1)
    with pytest.raises(CorpusError, match="1 answers for 2 contexts with 2 draws each"):
        made.continuations(corpus(), [[0, 1], [3, 4]], [answer("x")], draws=2)


def test_what_comes_back_says_where_it_is_from_and_why_it_is_no_pair():
    answers = [answer(" It rains.\nImplication: It is wet. "), answer("Nothing.", finish="length")]
    answers += [answer(None, reason="RateLimitError: 429, busy", served="")]
    answers += [answer("It rains.\nPossibility: It is cold.")]
    found = made.continuations(corpus(), [[1, 0], [4, 3]], answers, draws=2)
    expected = {"reason": ["", UNPARSED, f"{FAILED}: RateLimitError", ""], "maker": ["m", "m", "", "m"]}
    expected |= {"uid": ["u1+0", "u1+1", "u4+0", "u4+1"], "origin_uid": ["u1", "u1", "u4", "u4"]}
    expected |= {"origin_corpus": ["tiny"] * 4, "intended_label": ["entailment"] * 2 + ["neutral"] * 2}
    assert found[list(expected)].to_dict("list") == expected
    assert found.loc[0, ["premise", "hypothesis"]].tolist() == ["It rains.", "It is wet. "]
    assert found["premise"].isna().tolist() == [False, True, True, False]
    left = made.corpus_of(found[found["reason"] == ""])
    assert left.labels.tolist() == [0, 1] and left.hypothesis[1] == "It is cold."
    assert {"origin_uid", "origin_corpus", "maker", "intended_label"} <= set(left.table)
    assert left.source == "continuations by m"


def test_nothing_that_can_be_used_is_an_empty_corpus():
    found = made.continuations(corpus(), [[0, 1]], [answer("no"), answer("")], draws=2)
    assert len(made.corpus_of(found[found["reason"] == ""])) == 0
    nothing = np.empty((0, 5), int)
    none = made.continuations(corpus(), nothing, [], draws=5)
    assert len(none) == 0 and "reason" in none and made.requests(corpus(), nothing, model="m", draws=5) == []


# ---------------------------------------------------------------- heuristics

GIVEN = [("A dog runs.", "An animal moves."), ("A cat sleeps.", "A cat rests.")]


@pytest.mark.parametrize(("premise", "hypothesis", "reason"), cases("heuristics"))
def test_each_reason_by_hand(premise, hypothesis, reason):
    pair = pd.DataFrame({"premise": [premise], "hypothesis": [hypothesis]})
    found = made.heuristic_filter(pair, [[*GIVEN, ("The speaker sang.", "A song.")]]).reason[0]
    assert found == {"KEPT": KEPT, **vars(made)}[reason]


def slow(premise, hypothesis, examples):
    """The released filter, one pair after the other."""
    if len(premise.strip()) < 5 or len(hypothesis.strip()) < 5:  # of texts with blanks
        return SHORT
    sides = ["".join(c for c in side.lower() if c not in string.punctuation) for side in (premise, hypothesis)]
    if sides[0] == sides[1]:
        return COPIED
    if any(phrase in premise + hypothesis for phrase in PHRASES):
        return PHRASE
    if any(premise.strip() == a.strip() and hypothesis.strip() == b.strip() for a, b in examples):
        return EXAMPLE
    return KEPT


TEXTS = ["A dog runs.", "a dog runs", " An animal moves.", "The speaker", "abc", "A cat rests.", "", "!?.,;"]
SIDES = st.sampled_from(TEXTS)


@given(st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=12))
def test_equal_to_the_slow_twin_and_independent_of_the_order(sides):
    pairs = pd.DataFrame(sides, columns=["premise", "hypothesis"])
    found, backwards = (made.heuristic_filter(part, [GIVEN] * len(pairs)) for part in (pairs, pairs[::-1]))
    assert found.reason.tolist() == backwards.reason[::-1].tolist() == [slow(*pair, GIVEN) for pair in sides]
    assert (found.keep == (found.reason == KEPT)).all()


CLEANED = yaml.safe_load(Path(__file__).with_name("cleaned.yaml").read_text(encoding="utf-8"))


def test_cleaning_by_hand():
    clean = functions("13_filter_by_variability").clean
    assert dict(zip(CLEANED, clean(pd.Series(list(CLEANED))), strict=True)) == CLEANED


# ---------------------------------------------------------------- costs


def paid(key, **more):
    return answer(**{"text": "x", "key": key, "prompt_tokens": 100, "completion_tokens": 50} | more)


def test_what_answers_cost():
    later = {"started": "2026-01-01T00:00:02.5+00:00", "text": None, "served": ""}
    answers = [paid("a"), paid("b", finish="length"), paid("c", seconds=3.5, **later)]
    (row,) = made.cost_table(answers, Budget(price=(2.0, 10.0))).to_dict("records")
    assert (row["answers"], row["failed"], row["served"]) == (3, 1, "m")
    assert (row["prompt_tokens"], row["completion_tokens"], row["seconds"]) == (300, 150, 6.0)
    assert row["tokens_per_second"] == 25 and row["money"] == pytest.approx((600 + 1500) / 1e6, abs=1e-4)
    assert row["cut_off"] == pytest.approx(1 / 3, abs=1e-4) and "estimated" not in row
    vain = paid("a", text=None, completion_tokens=7, estimated=True)  # paid for, and asked again
    (more,) = made.cost_table([vain, *answers], Budget(price=(2.0, 10.0))).to_dict("records")
    assert (more["answers"], more["failed"], more["seconds"], more["estimated"]) == (3, 1, 6.0, 1)
    assert (more["prompt_tokens"], more["completion_tokens"]) == (400, 157) and more["money"] > row["money"]


def test_answers_without_a_time_have_no_speed_and_costs_are_told_in_lines():
    cost = made.cost_table([paid(key, seconds=0.0) for key in "ab"], Budget()).iloc[0]
    assert cost["seconds"] == 0 and np.isnan(cost["tokens_per_second"])
    told = {"served": "m", "answers": "2", "failed": "0", "prompt tokens": "200", "completion tokens": "100"}
    told |= {"seconds": "0", "money": "0.00", "cut off": "0.0%"}
    assert made.cost_lines(cost)["value"].to_dict() == told
