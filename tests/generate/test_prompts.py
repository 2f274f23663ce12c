"""Prompts to the character, and what is read out of the answers. Run alone: pytest tests/generate/test_prompts.py"""

import time

import pandas as pd
import pytest

from nli_lib.generate.pairs import UNPARSED, WANLI, continue_examples, digest_prompt, parse_pairs, prompts

# The paper's Table 8, without its italics.
TABLE_8 = """Write a pair of sentences that have the same relationship as the previous examples. Examples:

1. In six states, the federal investment represents almost the entire contribution for providing civil legal services \
to low-income individuals.
Implication: In 44 states, the federal investment does not represent the entire contribution for providing civil \
legal services for people of low income levels.

2. But if it's at all possible, plan your visit for the spring, autumn, or even the winter, when the big sightseeing \
destinations are far less crowded.
Implication: This destination is most crowded in the summer.

3. 5 percent of the routes operating at a loss.
Implication: 95 percent of routes are operating at either profit or break-even.

4. 30 About 10 percent of households did not
Implication: Roughly ninety percent of households did this thing.

5. 5 percent probability that each part will be defect free.
Implication: Each part has a 95 percent chance of having a defect.

6."""


def test_table_8_of_wanli_is_rebuilt_from_its_examples():
    items = [item.split("\n") for item in TABLE_8.split("\n\n")[1:-1]]
    pairs = [(premise[3:], line.removeprefix("Implication: ")) for premise, line in items]
    assert len(pairs) == 5
    assert continue_examples(pairs, "entailment") == TABLE_8


@pytest.mark.parametrize(
    ("label", "word"), [("entailment", "Implication"), ("neutral", "Possibility"), ("contradiction", "Contradiction")]
)
def test_each_label_has_its_word(label, word):
    made = continue_examples([("A {b} c.", "D %s e.")] * 2, label)
    assert made.endswith(f"1. A {{b}} c.\n{word}: D %s e.\n\n2. A {{b}} c.\n{word}: D %s e.\n\n3.")


def test_a_line_end_in_a_text_does_not_break_the_template():
    assert "1. one two\nImplication: three four\n\n2." in continue_examples(
        [("one \n two", "three\r\nfour")], "entailment"
    )


def test_a_long_run_of_blanks_takes_no_time():
    clock, blanks = time.process_time(), " " * 200_000
    made = continue_examples([(f"one{blanks}two", f"three{blanks}\n{blanks}four")], "entailment")
    assert made.endswith(f"1. one{blanks}two\nImplication: three four\n\n2.")
    assert time.process_time() - clock < 2  # what tries every blank as a beginning takes minutes


def test_a_label_without_a_word_is_an_error():
    with pytest.raises(KeyError):
        continue_examples([("a", "b")], "maybe")
    assert set(prompts()) == {"wanli, paper"}


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        (" A man sleeps.\nImplication: He rests.", ("A man sleeps.", "He rests.")),
        ("\n\nA.\nImplication: B. ", ("A.", "B. ")),
        ("A man sleeps.", None),
        ("A.\nPossibility: B.", None),  # the word of another label
        ("A.\nImplication: B.\nImplication: C.", None),
        ("A. Implication: B.", None),
        ("A.\nImplication:B.", None),
        ("", None),
        ("\nImplication: B.", None),  # nothing is left before the word once the text is stripped
    ],
)
def test_a_continuation_is_a_pair_or_is_dropped(text, pair):
    (found,) = parse_pairs(pd.Series([text]), pd.Series(["entailment"])).to_dict("records")
    if pair:
        assert (found["premise"], found["hypothesis"], found["reason"]) == (*pair, "")
    else:
        assert found["reason"] == UNPARSED and found["premise"] is None


def test_each_text_is_parsed_by_the_word_of_its_own_label():
    texts = pd.Series(["A.\nImplication: B.", "A.\nPossibility: B.", "A.\nContradiction: B."], index=[7, 8, 9])
    labels = pd.Series(["entailment", "neutral", "entailment"], index=[7, 8, 9])
    found = parse_pairs(texts, labels)
    assert found.index.tolist() == [7, 8, 9]
    assert found["reason"].tolist() == ["", "", UNPARSED]


def test_another_template_has_another_digest(monkeypatch):
    before, whole = digest_prompt(WANLI), prompts()
    assert len(before) == 16 and digest_prompt(WANLI) == before
    monkeypatch.setitem(whole, WANLI, whole[WANLI].model_copy(update={"between": "\n"}))
    assert digest_prompt(WANLI) != before
