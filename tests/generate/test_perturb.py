"""DISCO's spans, prompts, demonstrations and filter. Run alone: pytest tests/generate/test_perturb.py"""

import string
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from cells import functions
from hypothesis import given, settings, strategies as st
from tiny_words import corpus_from

from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, Corpus, CorpusError
from nli_lib.corpora.planted import counterfactuals
from nli_lib.errors import PackageError
from nli_lib.generate import perturb as p
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import LanguageModelError
from nli_lib.generate.pairs import corpus_of
from nli_lib.generate.perturb import CODE_2022, CODE_2023, NOUN, PAPER, Demonstration
from nli_lib.select.selection import KEPT

CHAPTER = functions("40_spans_and_prompts")

# ---------------------------------------------------------------- spans

SENTENCES = ["Two women are doing dishes in their kitchen.", "Run", "", "The dog did not chase the dog.", "?!"]
WITH_REPLACEMENT, TWO = CHAPTER.SPAN_RULES[1:]


@pytest.fixture(scope="module")
def found():
    return p.find_spans(SENTENCES)


def test_chunks_and_the_phrases_around_them(found):
    first = {"Two women": NOUN, "dishes": NOUN, "their kitchen": NOUN, "are doing": p.VERB}
    first |= {"are doing dishes": p.PREDICATE, "in their kitchen": p.PREPOSITION}
    kinds = found.set_index(["text", "span"])["kind"]
    assert kinds[0].to_dict() == first and kinds[3, "did not chase"] == p.VERB


def test_a_span_stands_where_it_says_and_a_text_of_one_word_or_none_has_none(found):
    for row in found.itertuples():
        assert SENTENCES[row.text][row.start :].startswith(row.span)
        assert row.times == SENTENCES[row.text].count(row.span) >= 1
        assert row.span == row.span.strip() != SENTENCES[row.text].strip(" .?!")
    assert found["text"].is_monotonic_increasing and set(found["text"]) == {0, 3}
    assert p.find_spans([]).columns.tolist() == p.SPAN_COLUMNS
    assert CHAPTER.choose_spans(p.find_spans(["Run"]), WITH_REPLACEMENT).empty


def test_a_span_whose_letters_occur_again_says_how_often():
    spans = p.find_spans(["A cat sees the cat in the catalogue.", "The dog did not chase the dog."]).set_index("span")
    assert spans.loc[["the cat", "the dog"], "times"].tolist() == [2, 1]  # in "the catalogue", too


def test_the_rules_that_choose_spans(found):
    twice = p.find_spans(["The dogs like the dogs near the dogs."])
    assert twice["span"].duplicated().any() and not CHAPTER.choose_spans(twice)["span"].duplicated().any()
    many = pd.concat([found[found["text"] == 0].assign(text=at) for at in range(300)], ignore_index=True)
    drawn, apart = (CHAPTER.choose_spans(many, rule, seed=1) for rule in (WITH_REPLACEMENT, TWO))
    assert all((each["text"].value_counts() == 2).all() and each["span"].nunique() == 6 for each in (drawn, apart))
    assert drawn.duplicated(["text", "span"]).sum() / 300 == pytest.approx(1 / 6, abs=0.07)  # of six spans
    assert not apart.duplicated(["text", "span"]).any()
    single = many.drop_duplicates("text")
    assert (CHAPTER.choose_spans(single, WITH_REPLACEMENT)["text"].value_counts() == 1).all()
    some, again = (CHAPTER.choose_spans(found, most=3, seed=4) for _ in range(2))
    assert (some["text"].value_counts() <= 3).all() and len(some) == 6
    assert some.equals(again) and some.set_index(["text", "start"]).index.is_monotonic_increasing


def test_without_the_parser_one_line_says_what_to_install(monkeypatch):
    p.parser.cache_clear()
    monkeypatch.setitem(sys.modules, p.MODEL, None)
    with pytest.raises(PackageError, match="need spaCy and its small English model: pip install -c constraints.txt"):
        p.parser()
    p.parser.cache_clear()


# ---------------------------------------------------------------- prompts

PAIR = ("Two women are doing dishes.", "The women are cleaning", "are doing dishes")
SHOWN = [Demonstration("A man runs.", "He rests.", "runs", "sleeps")]


MINE = corpus_from([("The cat sat.", "A cat.", 0), ("Cats catch cats.", "Mice.", 1), ("It rains.", "Sun.", 2)])


def spans(*rows):
    return pd.DataFrame(rows, columns=["text", "start", "span"]).assign(kind=NOUN, times=1)


def answer(text, api="completions", reason=""):
    return Answer(key="k", text=text, reason=reason, api=api, started="now", seconds=0.1, served="tiny")


def test_the_masked_prompts_of_the_code_to_the_character():
    assert p.masked_prompt(*PAIR, "neutral", SHOWN, name=CODE_2022) == (
        "Complete the story with creative content so that the conclusion is irrelevant. Do not repeat the conclusion. "
        "\n\nstory: A man [blank].\n conclusion: He rests.\n [blank] should be: sleeps\n\n"
        "story: Two women [blank].\n conclusion: The women are cleaning\n [blank] should be:"
    )
    assert p.masked_prompt(*PAIR, "neutral", SHOWN, name=CODE_2023) == (
        "Given the statement and what you know about the world, complete the conclusion (fill in the blank) so that "
        "the conclusion is iconclusive based on the statement. Do not repeat the conclusion, be creative. \n\n"
        "statement: A man [blank]. \nconclusion: He rests. \n[blank] should be\nsleeps\n\n"
        "statement: Two women [blank]. \nconclusion: The women are cleaning \n[blank] should be"
    )


def test_the_papers_masked_prompt_says_possible():
    said = [p.masked_prompt(*PAIR, label, name=PAPER).splitlines()[0] for label in LABELS]
    assert [line.split(" is ")[1].split(".")[0] for line in said] == ["true", "possible", "false"]
    paper, code = (p.masked_prompt(*PAIR, "entailment", name=name) for name in (PAPER, CODE_2022))
    assert paper == code


@pytest.mark.parametrize(("name", "label", "behind"), [
    (PAPER, "contradiction", ". It is false that"),
    (PAPER, "neutral", ". It is possible that"),
    (CODE_2022, "contradiction", ". Based on the above context, We definitely can not conclude that"),
    (CODE_2022, "neutral", ". Based on the above context, It is possible that"),
    (CODE_2023, "neutral", "., it is iconclusive that")])  # fmt: skip
def test_insertion_before_and_behind_the_gap(name, label, behind):
    before = "Given a statement Two women " if name == CODE_2023 else "Two women "
    assert p.insertion_prompt(*PAIR, label, name=name) == (before, f"{behind} The women are cleaning")


@pytest.mark.realdata
def test_the_prompts_of_2022_are_those_of_the_released_file():
    """Masked problems end in "should be:", insertion has its prefix and suffix; first runs ended in "output:"."""
    table = load("disco", "n2c").table
    masked, inserted = (table[table[column].notna()] for column in ("prompt", "prefix"))
    assert (len(masked), len(inserted)) == (1809, 1667)
    for rows, form in ((masked, p.masked_prompt), (inserted, p.insertion_prompt)):
        for row in rows.itertuples():
            made = form(row.origin_premise, row.hypothesis, row.span_prev, "contradiction", name=CODE_2022)
            released = row.prompt if rows is masked else (row.prefix, row.suffix)
            assert (made.split("\n\n", 1)[1] if rows is masked else made) == released


def test_the_code_replaces_every_occurrence_and_the_paper_one():
    """ "cat" stands in "catch" too; by insertion, the code loses the hypothesis behind the second gap."""
    given = premise, _, _, _ = "A cat can catch it.", "A cat.", "cat", "neutral"
    assert "A [blank] can [blank]ch it" in p.masked_prompt(*given, name=CODE_2022)
    assert "A [blank] can catch it" in p.masked_prompt(*given, name=PAPER)
    assert p.insertion_prompt(*given, name=CODE_2022) == ("A ", " can ")
    assert p.insertion_prompt(*given, name=PAPER)[1].endswith("that A cat.")
    assert "A cat can [blank]ch it" in p.masked_prompt(*given, start=premise.rindex("cat"), name=PAPER)


# ---------------------------------------------------------------- problems and answers


def test_a_problem_for_each_span_and_each_other_label():
    problems, placed = p.all_problems(MINE, spans((0, 0, "The cat"), (1, 0, "Cats"), (1, 5, "catch")), [0, 2])
    assert placed.reason.tolist() == ["kept", p.ABSENT, p.ABSENT]  # the second text is "It rains."
    assert problems[["position", "target"]].to_numpy().tolist() == [[0, 1], [0, 2]]
    assert p.directions(MINE, problems).tolist() == ["e2n", "e2c"]
    twice, _ = p.all_problems(MINE, spans((0, 0, "The cat"), (0, 0, "The cat")), [0])
    assert twice["draw"].tolist() == [0, 0, 1, 1]
    assert len({each.key for each in p.requests(p.prompts_of(MINE, twice), model="tiny")}) == 4


def test_a_span_that_stands_twice_is_two_spans_and_each_has_its_gap():
    """The second "at" of "Cats catch cats." begins at 6."""
    twice = p.all_problems(MINE, spans((0, 1, "at"), (0, 6, "at")), [1], insertion=["n2e", "n2c"])[0]
    assert twice["draw"].tolist() == [0, 0, 0, 0]
    assert p.prompts_of(MINE, twice, name=PAPER)["prompt"].tolist() == ["C", "C", "Cats c", "Cats c"]


def test_requests_by_mask_and_by_insertion():
    problems, _ = p.all_problems(MINE, spans((0, 0, "It")), [2], insertion=["c2n"])
    masked, inserted = p.requests(p.prompts_of(MINE, problems, [SHOWN, SHOWN]), model="tiny")
    assert problems["mode"].tolist() == ["masked", "insertion"]
    assert masked.suffix is None and "sleeps" in masked.prompt and masked.sampling.stop == ("\n\n",)
    assert inserted.suffix.endswith("It is possible that Sun.") and inserted.prompt == ""
    assert inserted.sampling.stop == ("stop", "\n", ".")


def test_what_cannot_be_asked_or_filtered_is_named():
    two = Corpus(MINE.table.assign(label=[0, 1, 0]), "two", "train", ("entailment", "not_entailment"))
    with pytest.raises(CorpusError, match="no word for the label 'not_entailment'"):
        p.prompts_of(two, p.all_problems(two, spans((0, 0, "The cat")), [0])[0])
    with pytest.raises(LanguageModelError, match=r"there is no prompt 'disco': choose from 'disco, paper'"):
        p.masked_prompt(*PAIR, "neutral", name="disco")
    with pytest.raises(LanguageModelError, match="there is no filter 'disco'"):
        p.rules_met(pairs("x"), name="disco")
    problems, placed = p.all_problems(MINE, spans(), [0, 1])
    assert len(problems) == len(placed) == 0 and p.perturbed(MINE, problems, []).empty
    with pytest.raises(CorpusError, match="mine: no premise has a span that can be replaced"):
        p.prompts_of(MINE, problems)
    problems, _ = p.all_problems(MINE, spans((0, 0, "It")), [2])
    with pytest.raises(CorpusError, match="1 groups of demonstrations for 2 problems"):
        p.prompts_of(MINE, problems, [SHOWN])
    with pytest.raises(CorpusError, match="1 answers for 2 problems"):
        p.perturbed(MINE, problems, [answer("x")])


@pytest.mark.parametrize(("text", "parsed"), [
    (" a\ndog \n", "adog"), ("", ""), ("\n", ""), ("[blank] should be: x", "[blank] should be: x")])  # fmt: skip
def test_line_ends_are_deleted_and_not_made_blanks(text, parsed):
    assert p.parse(text) == parsed


def test_what_becomes_of_answers():
    problems, _ = p.all_problems(MINE, spans((0, 4, "cat"), (1, 0, "Cats")), [0, 1])
    answers = [answer(text, reason="" if text is not None else "Timeout: slow") for text in ("dog\n", "", None, "x")]
    table = p.perturbed(MINE, problems, answers)
    assert table["premise"].tolist()[:2] == ["The dog sat.", "The  sat."]
    assert table["premise"].isna().tolist() == [False, False, True, False]
    assert table["reason"].tolist() == ["", "", f"{p.FAILED}: Timeout", ""]
    others = ["neutral", "contradiction", "entailment", "contradiction"]
    assert table["intended_label"].tolist() == others
    places = ["u0", "u0", "u1", "u1"], ["4-7", "4-7", "0-4", "0-4"]
    assert table["uid"].tolist() == [f"{u}>{to}@{at}" for u, to, at in zip(places[0], others, places[1], strict=True)]
    kept = corpus_of(table[table["reason"] == ""], "perturbed")
    assert kept.labels.tolist() == [1, 2, 2] and set(kept.table["maker"]) == {"tiny"}


def test_a_chat_cannot_insert_and_says_so():
    problems, _ = p.all_problems(MINE, spans((0, 0, "It")), [2], insertion=["c2n", "c2e"])
    table = p.perturbed(MINE, problems, [answer("x", api="chat"), answer("y")])
    assert table["reason"].tolist() == [p.NOT_INSERTED, ""] and table["premise"].tolist() == [None, "y rains."]


def test_a_model_that_writes_well_leaves_true_counterfactuals():
    """What the grammar puts in the place of a span is the answer; the pairs that come out are the grammar's own."""
    originals, revised = counterfactuals(12, seed=1)
    old, new, rows = revised.table["span"], revised.table["replacement"], []
    texts = zip(np.repeat(originals.premise, 2), revised.premise, old, new, strict=True)
    for at, (before, after, span, put) in enumerate(texts):
        starts = (n for n in range(len(before)) if before[:n] + put + before[n + len(span) :] == after)
        rows.append((at // 2, next(starts), span))
    problems, _ = p.all_problems(originals, spans(*rows), np.arange(12))
    to_its_own = problems["target"].to_numpy() == np.repeat(revised.labels, 2)  # each span has two problems
    aimed = problems[to_its_own].reset_index(drop=True)
    table = p.perturbed(originals, aimed, [answer(f" {put}") for put in new], name=PAPER)
    assert table["premise"].tolist() == revised.premise.tolist()
    assert table["label"].tolist() == revised.table["true_label"].tolist()
    assert set(table["direction"]) == {"e2n", "e2c", "n2e", "n2c", "c2e", "c2n"} and set(table["maker"]) == {"tiny"}


def test_a_model_that_repeats_the_prompt_leaves_nothing():
    problems, _ = p.all_problems(MINE, spans((0, 4, "cat"), (2, 0, "It")), [0, 1, 2])
    echoes = [answer(prompt) for prompt in p.prompts_of(MINE, problems)["prompt"]]
    assert not p.perturbation_filter(p.perturbed(MINE, problems, echoes)).keep.any()


# ---------------------------------------------------------------- demonstrations

ORIGINALS, REVISED = counterfactuals(60, seed=2)
POOL = CHAPTER.from_revisions(*counterfactuals(80, seed=3))


def vectors(texts):
    """Two numbers a text, so that nearness can be worked out by hand."""
    return np.array([[len(text), text.count("a")] for text in texts], dtype=float)


def problems_of(positions, insertion=()):
    rows = [(at, 0, ORIGINALS.premise[position].split()[0]) for at, position in enumerate(positions)]
    return p.all_problems(ORIGINALS, spans(*rows), positions, insertion=insertion)[0]


def test_revisions_become_demonstrations():
    table = CHAPTER.from_revisions(ORIGINALS, REVISED)
    assert table.columns.tolist() == [*Demonstration._fields, "direction"] and len(table) == len(REVISED)
    first = table.iloc[0]
    assert first["premise"] == ORIGINALS.premise[0] and first["span"] in first["premise"]
    assert first["output"] == REVISED.table["replacement"][0] and table["direction"].nunique() == 6
    assert table[["span", "output"]].map(lambda text: len(text.split())).max(axis=None) <= 8


def test_broken_revisions_and_strangers_are_left_out():
    originals, revised = counterfactuals(30, seed=2, broken=0.5)
    assert len(CHAPTER.from_revisions(originals, revised)) == (~revised.table["broken"].astype(bool)).sum()
    unchanged = Corpus(REVISED.table.assign(premise=np.repeat(ORIGINALS.premise, 2)), "same", "test")
    assert all(CHAPTER.from_revisions(*each).empty for each in ((ORIGINALS[:0], REVISED), (ORIGINALS, unchanged)))


def test_the_nearest_come_last_and_there_are_as_many_as_the_code_shows():
    problems = problems_of(np.arange(12))
    asked = p.directions(ORIGINALS, problems)
    shown_to = p.nearest(ORIGINALS, problems, POOL, vectors)
    for position, direction, shown in zip(problems["position"], asked, shown_to, strict=True):
        assert len(shown) == p.NUMBER.get(direction, 4)
        known = POOL[POOL["direction"] == direction]
        own = vectors([ORIGINALS.premise[position] + ORIGINALS.hypothesis[position]])
        away = np.linalg.norm(vectors(list(known["premise"] + known["hypothesis"])) - own, axis=1)
        distance = dict(zip(zip(known["premise"], known["hypothesis"], strict=True), away, strict=True))
        far = [distance[each.premise, each.hypothesis] for each in shown]
        assert far == sorted(far, reverse=True) and far == sorted(sorted(away)[: len(far)], reverse=True)
    assert all(len(shown) == 2 for shown in p.nearest(ORIGINALS, problems, POOL, vectors, number=2))


def test_the_slip_of_2022_gives_a_batch_the_neighbours_of_one_problem():
    problems = problems_of(np.flatnonzero(ORIGINALS.labels == 0))
    e2n = problems[problems["target"] == 1].reset_index(drop=True)
    own, shared = (p.nearest(ORIGINALS, e2n, POOL, vectors, batch=batch) for batch in (None, 5))
    assert shared[:5] == [own[0]] * 5 and shared[5:10] == [own[1]] * 5  # looked up by the batch's number
    assert shared != own


def test_no_problem_is_shown_its_own_premise():
    pool, problems = CHAPTER.from_revisions(ORIGINALS, REVISED), problems_of(np.arange(9))
    for row, shown in zip(problems.itertuples(), p.nearest(ORIGINALS, problems, pool, vectors), strict=True):
        assert all(each.premise != ORIGINALS.premise[row.position] for each in shown)


def test_insertion_has_none_and_a_direction_without_any_is_an_error():
    problems = problems_of(np.arange(6), insertion=["e2n", "n2e", "e2c", "c2e", "n2c", "c2n"])
    assert p.nearest(ORIGINALS, problems, POOL[:0], vectors) == [[]] * len(problems)
    assert CHAPTER.at_random(ORIGINALS, problems, POOL) == [[]] * len(problems)
    assert p.nearest(ORIGINALS, problems[:0], POOL[:0], vectors) == []
    with pytest.raises(CorpusError, match="there is no demonstration of "):
        p.nearest(ORIGINALS, problems_of(np.arange(6)), POOL[:0], vectors)


def test_the_random_twin_has_the_same_direction_and_number():
    problems = problems_of(np.arange(6))
    twin = CHAPTER.at_random(ORIGINALS, problems, POOL, seed=1)
    near = p.nearest(ORIGINALS, problems, POOL, vectors)
    assert [len(each) for each in twin] == [len(each) for each in near] and twin != near
    known = {Demonstration(*row[:4]): row[4] for row in POOL.itertuples(index=False)}
    for row, shown in zip(problems.itertuples(), twin, strict=True):
        assert {known[each][2] for each in shown} == {"enc"[row.target]}


@pytest.mark.realdata
def test_human_cad_has_demonstrations_of_every_direction():
    table = CHAPTER.from_revisions(load("cad", "original/train"), load("cad", "revised_premise/train"))
    assert table["direction"].value_counts().min() > 300


# ---------------------------------------------------------------- the filter

PREMISE = "A man in a red coat walks his dog through the old town on a sunny day."
LONG = "The quick child carries a very large box of wooden toys."


def pairs(generation, hypothesis="He smiles.", premise=PREMISE, span="a sunny day", label="contradiction"):
    row = {"generation": generation, "hypothesis": hypothesis, "origin_premise": premise}
    return pd.DataFrame([row | {"premise": premise.replace(span, generation), "intended_label": label}])


def met(pair, name=CODE_2022):
    return [reason for reason, flag in p.rules_met(pair, name=name).items() if flag[0]]


SONGS = pairs("loudly sings songs", "A man sings songs.", "A man walks.", "walks")
MET = [
    (pairs("he smiles while many birds sing above him"), [p.HOLDS]),
    (pairs("very large", hypothesis=LONG), [p.IN_HYPOTHESIS]),
    (pairs("red coat"), [p.IN_PREMISE]), (pairs("smiles he"), [p.LIKE_HYPOTHESIS]),
    (pairs("town old the through dog his walks"), [p.LIKE_PREMISE]),
    (pairs("some rain, story: a cat"), [p.FORBIDDEN]), (pairs("a hill under deep snow"), [p.NEGATION]),
    (pairs("a very _ evening"), [p.GAP]), (SONGS, [p.NEW_LIKE_HYPOTHESIS]), (pairs("a rainy evening"), []),
    (pairs("He smiles!"), [p.COPIES, p.HOLDS, p.IN_HYPOTHESIS, p.LIKE_HYPOTHESIS]),
    (pairs(""), [p.IN_HYPOTHESIS, p.IN_PREMISE]),  # what is empty stands in every text
    (pairs("?!"), [p.IN_HYPOTHESIS, p.IN_PREMISE]),
    # negations are letters, for contradictions alone, and apostrophes matter
    (pairs("a grand piano"), [p.NEGATION]),
    (pairs("a hill under snow", label="neutral"), []),
    (pairs("a dog that doesn't run"), []),  # a straight apostrophe is deleted first
    (pairs("a dog that doesn\u2019t run"), [p.NEGATION]),  # a curly one is not ASCII punctuation
    (pairs("a dog that didn\u2019t run"), [])]  # fmt: skip # not in the list


@pytest.mark.parametrize(("pair", "rules"), MET)
def test_the_rules_that_a_case_meets_and_the_first_is_its_reason(pair, rules):
    """Each rule but the first has a case that it alone drops: who copies the hypothesis meets three more."""
    assert met(pair) == rules and p.perturbation_filter(pair).reason[0] == [*rules, KEPT][0]
    assert len(p.REASONS) == 10 and {reason for _, given in MET for reason in given} == set(p.REASONS)


def test_no_contraction_of_2023_can_be_met():
    straight = [word for word in p.RULES[CODE_2023].negations if "'" in word]
    assert len(straight) == 9 and all("\u2019" in word for word in p.RULES[CODE_2022].negations[3:])
    for word in (*straight, *(word.replace("'", "\u2019") for word in straight)):
        assert p.NEGATION not in met(pairs(f"it {word} rain"), CODE_2023)


def test_the_states_of_the_code_differ_in_three_places():
    assert p.RULES[PAPER] == p.RULES[CODE_2022]
    cases = [(SONGS, [p.NEW_LIKE_HYPOTHESIS], []), (pairs("It is true rain"), [p.FORBIDDEN], [])]
    for pair, earlier, later in [*cases, (pairs("statement: rain"), [], [p.FORBIDDEN])]:
        assert met(pair, CODE_2022) == earlier and met(pair, CODE_2023) == later


@pytest.mark.parametrize(("shared", "union", "side", "meets"), [
    (3, 5, "hypothesis", 0), (5, 8, "hypothesis", 1), (7, 20, "premise", 0), (4, 11, "premise", 1)])  # fmt: skip
def test_repeated_words_count_strictly_above_their_limits(shared, union, side, meets):
    """3 of 5 words are not above .6, 7 of 20 not above .35; 5 of 8 and 4 of 11 are just above."""
    words = [f"w{at}" for at in range(union)]
    rule = {"hypothesis": p.LIKE_HYPOTHESIS, "premise": p.LIKE_PREMISE}[side]
    assert (rule in met(pairs(" ".join(words[:shared]), **{side: " ".join(words)}))) == meets


def slow(row, name):
    """The released filter, written as its code is."""
    rules = p.RULES[name]
    bare = [text.lower().translate(str.maketrans("", "", string.punctuation)) for text in row[:4]]
    generation, hypothesis, premise, new = bare

    def jaccard(one, other):
        a, b = Counter(one.split()), Counter(other.split())
        return sum((a & b).values()) / sum((a | b).values()) if a or b else 1

    return [
        generation == hypothesis, hypothesis in generation, generation in hypothesis, generation in premise,
        jaccard(generation, hypothesis) > 0.6, jaccard(generation, premise) > 0.35,
        any(phrase in row[0] for phrase in rules.forbidden),
        row[4] == "contradiction" and any(word in generation for word in rules.negations),
        "_" in row[0], jaccard(new, hypothesis) > rules.overlap]  # fmt: skip


WORDS = st.lists(st.sampled_from(["a", "dog", "no", "runs,", "The", "story:", "_", "isn\u2019t", "snow"]), max_size=6)
ROWS = st.tuples(*[WORDS.map(" ".join)] * 4, st.sampled_from(["contradiction", "neutral"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=8), st.sampled_from([CODE_2022, CODE_2023]))
def test_equal_to_the_slow_twin_and_independent_of_the_order(rows, name):
    columns = ["generation", "hypothesis", "origin_premise", "premise", "intended_label"]
    table = pd.DataFrame(rows, columns=columns)
    flags = np.array(list(p.rules_met(table, name=name).values())).T
    assert flags.tolist() == [slow(row, name) for row in rows]
    forwards, backwards = (p.perturbation_filter(part, name=name).reason.tolist() for part in (table, table[::-1]))
    assert backwards[::-1] == forwards and len(p.perturbation_filter(table[:0])) == 0


@pytest.mark.realdata
@pytest.mark.parametrize(("split", "dropped"), [("e2n", 0), ("n2c", 5)])
def test_the_released_pairs_pass_the_filter_of_2022(split, dropped):
    """They passed the paper's own; five of them hold a forbidden phrase or an underscore all the same."""
    left = p.perturbation_filter(load("disco", split).table.rename(columns={"gen_out": "generation"}))
    assert (~left.keep).sum() == dropped and set(left.reason[~left.keep]) <= {p.FORBIDDEN, p.GAP}
