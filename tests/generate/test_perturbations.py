"""Prompts of DISCO and what is made of the answers. Run alone: pytest tests/generate/test_perturbations.py"""

import os

import numpy as np
import pandas as pd
import pytest
from good_server import serving

from nli_lib.corpora import load, planted
from nli_lib.corpora.corpus import LABELS, Corpus
from nli_lib.corpora.planted import counterfactuals
from nli_lib.generate import llm
from nli_lib.generate.journal import Answer, Journal
from nli_lib.generate.llm import ask
from nli_lib.generate.pairs import digest_prompt, prompts
from nli_lib.generate.perturb import (
    ABSENT,
    CODE_2022,
    CODE_2023,
    FAILED,
    IN_HYPOTHESIS,
    NOT_INSERTED,
    PAPER,
    SAMPLING,
    VERSIONS,
    Demonstration,
    PerturbationError,
    all_problems,
    corpus_of,
    directions,
    insertion_prompt,
    masked_prompt,
    parse,
    perturbation_filter,
    perturbed,
    prompts_of,
    requests,
)

PAIR = ("Two women are doing dishes.", "The women are cleaning", "are doing dishes")
SHOWN = [Demonstration("A man runs.", "He rests.", "runs", "sleeps")]


def corpus(*rows):
    table = pd.DataFrame(rows, columns=["premise", "hypothesis", "label"])
    uid = [f"u{at}" for at in range(len(table))]
    return Corpus(table.assign(uid=uid, corpus="mine", split="train"), "mine", "train")


MINE = corpus(("The cat sat.", "A cat.", 0), ("Cats catch cats.", "Mice.", 1), ("It rains.", "Sun.", 2))


def spans(*rows):
    table = pd.DataFrame(rows, columns=["text", "start", "span"])
    return table.assign(kind="noun chunk", times=1)


def answer(text, api="completions", reason=""):
    return Answer(key="k", text=text, reason=reason, api=api, started="now", seconds=0.1, served="tiny")


def test_the_masked_prompt_of_2022_to_the_character():
    assert masked_prompt(*PAIR, "neutral", SHOWN, name=CODE_2022) == (
        "Complete the story with creative content so that the conclusion is irrelevant. Do not repeat the conclusion. "
        "\n\nstory: A man [blank].\n conclusion: He rests.\n [blank] should be: sleeps\n\n"
        "story: Two women [blank].\n conclusion: The women are cleaning\n [blank] should be:"
    )


def test_the_masked_prompt_of_2023_to_the_character():
    assert masked_prompt(*PAIR, "neutral", SHOWN, name=CODE_2023) == (
        "Given the statement and what you know about the world, complete the conclusion (fill in the blank) so that "
        "the conclusion is iconclusive based on the statement. Do not repeat the conclusion, be creative. \n\n"
        "statement: A man [blank]. \nconclusion: He rests. \n[blank] should be\nsleeps\n\n"
        "statement: Two women [blank]. \nconclusion: The women are cleaning \n[blank] should be"
    )


def test_the_papers_masked_prompt_says_possible():
    said = [masked_prompt(*PAIR, label, name=PAPER).splitlines()[0] for label in LABELS]
    assert [line.split(" is ")[1].split(".")[0] for line in said] == ["true", "possible", "false"]
    assert masked_prompt(*PAIR, "entailment", name=PAPER) == masked_prompt(*PAIR, "entailment", name=CODE_2022)


@pytest.mark.parametrize(
    ("name", "label", "behind"),
    [
        (PAPER, "contradiction", ". It is false that The women are cleaning"),
        (PAPER, "neutral", ". It is possible that The women are cleaning"),
        (
            CODE_2022,
            "contradiction",
            ". Based on the above context, We definitely can not conclude that The women are cleaning",
        ),
        (CODE_2022, "neutral", ". Based on the above context, It is possible that The women are cleaning"),
        (CODE_2023, "neutral", "., it is iconclusive that The women are cleaning"),
    ],
)
def test_insertion_before_and_behind_the_gap(name, label, behind):
    before = "Given a statement Two women " if name == CODE_2023 else "Two women "
    assert insertion_prompt(*PAIR, label, name=name) == (before, behind)


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA is not set: the real corpora are not read")
def test_the_prompts_of_2022_are_those_of_the_released_file():
    """Masked problems end in "should be:", insertion has its prefix and suffix; first runs ended in "output:"."""
    table = load("disco", "n2c").table
    masked = table[table["prompt"].notna()]
    for row in masked.itertuples():
        made = masked_prompt(row.origin_premise, row.hypothesis, row.span_prev, "contradiction", name=CODE_2022)
        assert made.split("\n\n", 1)[1] == row.prompt
    inserted = table[table["prefix"].notna()]
    assert (len(masked), len(inserted)) == (1809, 1667)
    for row in inserted.itertuples():
        made = insertion_prompt(row.origin_premise, row.hypothesis, row.span_prev, "contradiction", name=CODE_2022)
        assert made == (row.prefix, row.suffix)


def test_the_code_replaces_every_occurrence_and_the_paper_one():
    """ "cat" stands in "catch" too; by insertion, the code loses the hypothesis behind the second gap."""
    premise, hypothesis = "A cat can catch it.", "A cat."
    assert "A [blank] can [blank]ch it" in masked_prompt(premise, hypothesis, "cat", "neutral", name=CODE_2022)
    assert "A [blank] can catch it" in masked_prompt(premise, hypothesis, "cat", "neutral", name=PAPER)
    assert insertion_prompt(premise, hypothesis, "cat", "neutral", name=CODE_2022) == ("A ", " can ")
    assert insertion_prompt(premise, hypothesis, "cat", "neutral", name=PAPER)[1].endswith("that A cat.")
    where = {"start": premise.rindex("cat"), "name": PAPER}
    assert "A cat can [blank]ch it" in masked_prompt(premise, hypothesis, "cat", "neutral", **where)


def test_what_is_drawn_with_which_parameters():
    assert {name: each.presence_penalty for name, each in SAMPLING.items()} == dict(
        zip(VERSIONS, (0.8, 0.5, 0.5), strict=True)
    )
    for each in SAMPLING.values():
        assert (each.temperature, each.frequency_penalty, each.top_p, each.max_tokens) == (0.8, 0.8, 1.0, 256)


def test_a_problem_for_each_span_and_each_other_label():
    problems, placed = all_problems(MINE, spans((0, 0, "The cat"), (1, 0, "Cats"), (1, 5, "catch")), [0, 2])
    assert placed.reason.tolist() == ["kept", ABSENT, ABSENT]  # the second text is "It rains."
    assert problems[["position", "target"]].to_numpy().tolist() == [[0, 1], [0, 2]]
    assert directions(MINE, problems).tolist() == ["e2n", "e2c"]
    twice, _ = all_problems(MINE, spans((0, 0, "The cat"), (0, 0, "The cat")), [0])
    assert twice["draw"].tolist() == [0, 0, 1, 1]
    asked = requests(prompts_of(MINE, twice), model="tiny")
    assert len({each.key for each in asked}) == 4


def test_a_span_that_stands_twice_is_two_spans_and_each_has_its_gap():
    """The second "at" of "Cats catch cats." begins at 6."""
    twice = all_problems(MINE, spans((0, 1, "at"), (0, 6, "at")), [1], insertion=["n2e", "n2c"])[0]
    assert twice["draw"].tolist() == [0, 0, 0, 0]
    assert prompts_of(MINE, twice, name=PAPER)["prompt"].tolist() == ["C", "C", "Cats c", "Cats c"]


def test_requests_by_mask_and_by_insertion():
    problems, _ = all_problems(MINE, spans((0, 0, "It")), [2], insertion=["c2n"])
    asked = requests(prompts_of(MINE, problems, [SHOWN, SHOWN]), model="tiny")
    assert problems["mode"].tolist() == ["masked", "insertion"]
    assert asked[0].suffix is None and "sleeps" in asked[0].prompt and asked[0].sampling.stop == ("\n\n",)
    assert asked[1].suffix.endswith("It is possible that Sun.") and asked[1].prompt == ""
    assert asked[1].sampling.stop == ("stop", "\n", ".")
    with pytest.raises(PerturbationError, match="1 groups of demonstrations for 2 problems"):
        prompts_of(MINE, problems, [SHOWN])


def test_labels_and_versions_that_nobody_knows():
    two = Corpus(MINE.table.assign(label=[0, 1, 0]), "two", "train", ("entailment", "not_entailment"))
    with pytest.raises(PerturbationError, match="no word for the label 'not_entailment'"):
        prompts_of(two, all_problems(two, spans((0, 0, "The cat")), [0])[0])
    with pytest.raises(PerturbationError, match=r"there is no prompt 'disco': choose from 'disco, paper'"):
        masked_prompt(*PAIR, "neutral", name="disco")


@pytest.mark.parametrize(
    ("text", "parsed"), [(" a\ndog \n", "adog"), ("", ""), ("\n", ""), ("[blank] should be: x", "[blank] should be: x")]
)
def test_line_ends_are_deleted_and_not_made_blanks(text, parsed):
    assert parse(text) == parsed


def test_what_becomes_of_answers():
    problems, _ = all_problems(MINE, spans((0, 4, "cat"), (1, 0, "Cats")), [0, 1])
    texts = ["dog\n", "", None, "x"]
    answers = [answer(text, reason="" if text is not None else "Timeout: slow") for text in texts]
    found = perturbed(MINE, problems, answers)
    assert found["premise"].tolist()[:2] == ["The dog sat.", "The  sat."]
    assert found["reason"].tolist() == ["", "", f"{FAILED}: Timeout", ""]
    assert found["premise"].isna().tolist() == [False, False, True, False]
    assert found["intended_label"].tolist() == ["neutral", "contradiction", "entailment", "contradiction"]
    assert found["uid"].tolist() == [
        "u0>neutral@4-7",
        "u0>contradiction@4-7",
        "u1>entailment@0-4",
        "u1>contradiction@0-4",
    ]
    kept = corpus_of(found[found["reason"] == ""])
    assert kept.labels.tolist() == [1, 2, 2] and set(kept.table["maker"]) == {"tiny"}
    with pytest.raises(PerturbationError, match="3 answers for 4 problems"):
        perturbed(MINE, problems, answers[:3])


def test_a_chat_cannot_insert_and_says_so():
    problems, _ = all_problems(MINE, spans((0, 0, "It")), [2], insertion=["c2n", "c2e"])
    found = perturbed(MINE, problems, [answer("x", api="chat"), answer("y")])
    assert found["reason"].tolist() == [NOT_INSERTED, ""]
    assert found["premise"].tolist() == [None, "y rains."]


def test_no_problem_at_all():
    problems, placed = all_problems(MINE, spans(), [0, 1])
    assert len(problems) == len(placed) == 0
    found = perturbed(MINE, problems, [])
    assert found.empty
    with pytest.raises(PerturbationError, match="mine: no premise has a span that can be replaced"):
        prompts_of(MINE, problems)


def test_every_version_has_a_digest_of_its_own():
    digests = {name: digest_prompt(name) for name in (*VERSIONS, *prompts())}
    assert len(set(digests.values())) == 4
    assert digests["wanli, paper"] == "0b800167c5f1f927"


def test_a_server_that_writes_well_leaves_true_counterfactuals(monkeypatch, tmp_path):
    """What the grammar puts in the place of a span is the answer; the pairs that come out are the grammar's own."""
    originals, revised = counterfactuals(12, seed=1)
    start = [
        next(at for at in range(len(before)) if before[:at] + new + before[at + len(span) :] == after)
        for before, after, span, new in zip(
            np.repeat(originals.premise, 2),
            revised.premise,
            revised.table["span"],
            revised.table["replacement"],
            strict=True,
        )
    ]
    rows = zip(np.repeat(np.arange(12), 2), start, revised.table["span"], strict=True)
    problems, _ = all_problems(originals, spans(*rows), np.arange(12))
    to_its_own = problems["target"].to_numpy() == np.repeat(revised.labels, 2)  # each span has two problems
    aimed = problems[to_its_own].reset_index(drop=True)
    assert len(aimed) == len(revised)
    asked = requests(prompts_of(originals, aimed, name=PAPER), model="good", name=PAPER)
    table = {
        (each.prompt, each.suffix): f" {new}" for each, new in zip(asked, revised.table["replacement"], strict=True)
    }
    with serving(table) as server, Journal(tmp_path / "journal.jsonl") as journal:
        monkeypatch.setenv(llm.ADDRESS, f"http://127.0.0.1:{server.server_port}/v1")
        found = perturbed(originals, aimed, ask(asked, journal), name=PAPER)
        before = len(server.asked)
        ask(asked, journal)
    assert len(server.asked) == before  # nothing is asked for twice
    assert found["premise"].tolist() == revised.premise.tolist()
    assert found["label"].tolist() == revised.table["true_label"].tolist()
    assert set(found["direction"]) == {"e2n", "e2c", "n2e", "n2c", "c2e", "c2n"} and set(found["maker"]) == {"good"}


def test_a_model_that_answers_nothing_or_the_prompt_leaves_nothing():
    problems, _ = all_problems(MINE, spans((0, 4, "cat"), (2, 0, "It")), [0, 1, 2])
    asked = prompts_of(MINE, problems)
    echoes = perturbed(MINE, problems, [answer(prompt) for prompt in asked["prompt"]])
    assert not perturbation_filter(echoes).keep.any()
    nothing = perturbation_filter(perturbed(MINE, problems, [answer("") for _ in range(len(problems))]))
    assert set(nothing.reason) == {IN_HYPOTHESIS}


def test_the_planted_corpus_can_be_perturbed():
    pairs = planted.make_split("train", 30)
    problems, placed = all_problems(pairs, spans((0, 0, pairs.premise[4].split()[0])), [4])
    assert placed.keep.all() and len(problems) == 2
