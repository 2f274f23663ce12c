"""Perturbations: requests for a new span that gives a hypothesis another label, and the pairs that the answers make.

    problems, _ = all_problems(corpus, spans, positions)
    asked = prompts_of(corpus, problems, demonstrations)
    with serve(log), Journal(path) as journal:
        pairs = perturbed(corpus, problems, ask(requests(asked, model="smollm2"), journal))

The prompts stand in `perturbations.yaml`, one entry for the paper and one for each state of its code.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict

from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import Request, Sampling
from nli_lib.select.selection import Selection

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

    demonstrations  the most similar one last; start: where the span stands, by default where it first occurs
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

    spans      as `generate.spans.find_spans` gives them, column text a place in ``positions``; positions: of the
               originals in the corpus, (S,)
    insertion  directions, such as "n2e", that are asked by insertion; the others are masked

    A span that is not in its premise makes no problem: the Selection over the spans says so. Source: D2 to D4; the code
    of 2023 drops these spans too, that of 2022 sends a prompt without a gap.
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

    demonstrations  of each problem, the most similar one last; insertion shows none
    Raises `PerturbationError` where the prompt has no word for a label, or where there is no problem at all.
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
