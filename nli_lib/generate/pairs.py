"""Pairs that a language model writes after examples, by WANLI: requests, parsing of answers, filters, and costs::

    asked = requests(corpus, contexts, model="smollm2", draws=5)
    with serve(log), Journal(path) as journal:
        pairs = continuations(corpus, contexts, ask(asked, journal), draws=5)

A context is a row of positions in the corpus: the seed, then its neighbours, the nearest first; -1 where one is
missing. `prompts.yaml` has the papers' exact prompts, including DISCO's (`generate.perturb`).
"""

import functools
import hashlib
import json
import re
import string
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import yaml
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import Budget, Request, Sampling
from nli_lib.measure.features import spaced, unspaced
from nli_lib.measure.similarity import time_under_way
from nli_lib.select.selection import KEPT, Selection

WANLI = "wanli, paper"
UNPARSED = "not one premise and one hypothesis"


@functools.cache
def prompts() -> dict[str, dict]:
    """All templates of `prompts.yaml` by name and version."""
    return yaml.safe_load(Path(__file__).with_name("prompts.yaml").read_text(encoding="utf-8"))


def digest_prompt(name: str) -> str:
    """Sixteen hex digits that identify a template in a record."""
    whole = json.dumps(prompts()[name], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def continue_examples(pairs: Sequence[tuple[str, str]], label: str, *, name: str = WANLI) -> str:
    """The prompt that asks for another pair like these.

    Parameters
    ----------
    pairs
        premise and hypothesis of each example: the seed last, the most similar one before it
    label
        name of the label that all of them have

    Notes
    -----
    *Departures*: a line end within a text becomes a blank; the paper's code sends it unchanged, which breaks the
    template.

    References
    ----------
    WANLI, section 2.2 and Tables 8 to 11 (W5).
    """
    prompt = prompts()[name]
    word = prompt["words"][label]
    plain = [[re.sub(r"\s+", lambda run: " " if "\n" in run[0] else run[0], side) for side in pair] for pair in pairs]
    examples = [
        prompt["example"].format(number=number, premise=premise, word=word, hypothesis=hypothesis)
        for number, (premise, hypothesis) in enumerate(plain, start=1)
    ]
    return prompt["whole"].format(examples=prompt["between"].join(examples), number=len(pairs) + 1)


def parse_pairs(texts: pd.Series, labels: pd.Series, *, name: str = WANLI) -> pd.DataFrame:
    """Parse the pair in each continuation: columns premise, hypothesis, reason, with the index of ``texts``.

    texts
        the model's texts, (N,); labels: names of the requested labels, (N,)
    reason
        "", or the reason why there is no pair and no texts: a continuation is a pair if it has exactly one line end
        followed by the word of its label, a colon and a blank

    References
    ----------
    WANLI's code (W7), which strips the text on the left and drops texts that cannot be parsed.
    """
    marks = "\n" + labels.map(prompts()[name]["words"]) + ": "
    parts = [text.lstrip().split(mark) for text, mark in zip(texts, marks, strict=True)]
    found = [(*part, "") if len(part) == 2 else (None, None, UNPARSED) for part in parts]
    return pd.DataFrame(found, columns=["premise", "hypothesis", "reason"], index=texts.index)


# ---------------------------------------------------------------- contexts


SAMPLING = Sampling(temperature=1.0, top_p=0.5, max_tokens=120, stop=("\n\n",))  # WANLI's Table 5
FAILED = "the request failed"


def examples(corpus: Corpus, contexts: ArrayLike) -> list[list[tuple[str, str]]]:
    """The (premise, hypothesis) of each context's examples in the order of the prompt: the seed last, its neighbours
    before it, the nearest closest to it; missing ones are left out.

    contexts (S, k + 1). Source: WANLI, section 2.2 and Figure 2 (W5).
    """
    pairs = np.array([*zip(corpus.premise, corpus.hypothesis, strict=True), ("", "")], dtype=object)
    contexts = np.asarray(contexts)[:, ::-1]
    return [[tuple(pair) for pair in pairs[row[row >= 0]]] for row in contexts]


def requests(
    corpus: Corpus, contexts: ArrayLike, *, model: str, draws: int, sampling: Sampling = SAMPLING, name: str = WANLI
) -> list[Request]:
    """Make ``draws`` requests for each context (S, k + 1), those of one context together, (S draws,).

    All examples of a context have the seed's label; the prompt `name` uses its word. Raises `CorpusError` if they do
    not.
    """
    contexts = np.asarray(contexts)
    labels = np.append(corpus.labels, -1)[contexts]
    mixed = ((labels != labels[:, :1]) & (contexts >= 0)).any(axis=1)
    if mixed.any():
        raise CorpusError(f"context {int(mixed.argmax())}: its examples have different labels")
    names = np.array(corpus.classes, dtype=object)[labels[:, 0]]
    if unknown := set(names) - set(prompts()[name]["words"]):
        raise CorpusError(f"{corpus.name}: the prompt {name!r} has no word for the label {min(unknown)!r}")
    texts = examples(corpus, contexts)
    asked = [continue_examples(pairs, label, name=name) for pairs, label in zip(texts, names, strict=True)]
    form = {"model": model, "sampling": sampling}
    return [Request(prompt=prompt, draw=draw, **form) for prompt in asked for draw in range(draws)]


def continuations(
    corpus: Corpus, contexts: ArrayLike, answers: Sequence[Answer], *, draws: int, name: str = WANLI
) -> pd.DataFrame:
    """Parse the answers, one row each, (S draws,), in their order.

    Columns: uid, context (row of ``contexts``), draw; text, from the model; finish; premise, hypothesis, missing if
    there is no pair; reason: "" for a pair, else why the text was not parsed, or `FAILED` with the kind of failure;
    label (a number) and intended_label (its name), those of the context; origin_uid and origin_corpus, of the seed;
    maker, the server's name for the model.
    """
    contexts = np.asarray(contexts)
    if len(answers) != draws * len(contexts):
        raise CorpusError(f"{len(answers)} answers for {len(contexts)} contexts with {draws} draws each")
    row = np.repeat(np.arange(len(contexts)), draws)
    seed, draw = contexts[row, 0], np.tile(np.arange(draws), len(contexts))
    label = corpus.labels[seed]
    table = pd.DataFrame(
        {
            "uid": [f"{uid}+{number}" for uid, number in zip(corpus.uid[seed], draw, strict=True)],
            "context": row,
            "draw": draw,
            "text": pd.Series([answer.text for answer in answers], dtype=object),
            "finish": [answer.finish for answer in answers],
            "label": label,
            "intended_label": np.array(corpus.classes, dtype=object)[label],
            "origin_uid": corpus.uid[seed],
            "origin_corpus": corpus.name,
            "maker": [answer.served for answer in answers],
        }
    )
    parsed = parse_pairs(table["text"].fillna(""), table["intended_label"], name=name)
    failed = table["text"].isna().to_numpy()
    kinds = [f"{FAILED}: {answer.reason.partition(':')[0]}" for answer in answers]
    parsed["reason"] = parsed["reason"].where(~failed, kinds)
    return table.join(parsed)


def corpus_of(pairs: pd.DataFrame, name: str = "generated") -> Corpus:
    """Make a corpus of a language model's pairs, with the intended labels, which nobody has judged yet.

    ``pairs``: rows of `continuations` or `perturbed` with a premise and a hypothesis.
    """
    table = pairs.drop(columns=["text", "finish", "reason"], errors="ignore").assign(corpus=name, split="train")
    return Corpus(table, name, "train", source=f"continuations by {', '.join(pairs['maker'].unique())}")


# ---------------------------------------------------------------- heuristics


SHORTEST, UNSPACED_SHORTEST = 5, 2  # characters of a side, also where one character is a syllable or a word
SHORT, COPIED, PHRASE, EXAMPLE = "short", "hypothesis copies the premise", "speaks of the prompt", "copies an example"
# from the paper's released code; its text names the first three
PHRASES = ("pair of sentences", "previous examples", "same relationship as", "The speaker")
UNPUNCTUATED = str.maketrans("", "", string.punctuation)


def heuristic_filter(pairs: pd.DataFrame, examples: Sequence[Sequence[tuple[str, str]]]) -> Selection:
    """Filter generated pairs; a dropped pair gets the first reason that applies.

    1. `SHORT`: a side has fewer than five characters without its outer blanks; in texts written without blanks
       (`measure.features.unspaced`) fewer than two
    2. `COPIED`: both sides are equal in lower case, without ASCII punctuation (without any, if there are no blanks)
    3. `PHRASE`: one of `PHRASES` occurs in premise and hypothesis, joined together; letter case counts
    4. `EXAMPLE`: both sides equal those of an example, without outer blanks

    Parameters
    ----------
    pairs
        premise and hypothesis, (N,)
    examples
        for each pair the (premise, hypothesis) of the examples in its prompt

    References
    ----------
    WANLI, section 2.3, and its `filtering/filter.py` (W8). "The speaker" is only in the code.
    """
    premise, hypothesis = (pairs[side].str.strip() for side in ("premise", "hypothesis"))
    bare = [spaced(side.str.lower().str.translate(UNPUNCTUATED)) for side in (pairs["premise"], pairs["hypothesis"])]
    short = [side.str.len() < np.where(unspaced(side), UNSPACED_SHORTEST, SHORTEST) for side in (premise, hypothesis)]
    together = pairs["premise"] + pairs["hypothesis"]
    given = [{(a.strip(), b.strip()) for a, b in each} for each in examples]
    meets = {
        SHORT: short[0] | short[1],
        COPIED: pc.equal(*bare),
        PHRASE: np.logical_or.reduce([together.str.contains(phrase, regex=False) for phrase in PHRASES]),
        EXAMPLE: [pair in known for pair, known in zip(zip(premise, hypothesis, strict=True), given, strict=True)],
    }
    flags = [np.asarray(flag, dtype=bool) for flag in meets.values()]
    reason = np.select(flags, list(meets), default=KEPT).astype(object)
    return Selection(reason == KEPT, reason)


# ---------------------------------------------------------------- costs


def cost_table(lines: Sequence[Answer], budget: Budget) -> pd.DataFrame:
    """One row with the cost of answers in tokens, seconds and money, and the share of them that was cut off.

    Tokens and money count all attempts, including those without a text; everything else counts the last attempt of each
    request. seconds is the time in which the server had something to answer; tokens per second are those of the
    answers, NaN if none took any time; money is in the currency of the budget's prices; cut_off is the share of answers
    that ended at the maximum number of tokens; estimated, if present, is the number of attempts without the server's
    count of tokens.

    Parameters
    ----------
    lines
        all attempts at the requests, as returned by `Journal.attempts`
    """
    every = pd.DataFrame([line.model_dump() for line in lines])
    prompt, completion = every[["prompt_tokens", "completion_tokens"]].sum()
    table = every.drop_duplicates("key", keep="last")
    started = pd.to_datetime(table["started"], utc=True, format="ISO8601").dt.tz_localize(None)
    busy = time_under_way(started.to_numpy(), table["seconds"].to_numpy())
    cost = {
        "served": ", ".join(sorted(set(table["served"]) - {""})),
        "answers": len(table),
        "failed": int(table["text"].isna().sum()),
        "prompt_tokens": int(prompt),
        "completion_tokens": int(completion),
        "seconds": round(busy, 1),
        "tokens_per_second": round(completion / busy, 1) if busy else np.nan,
        "money": round(budget.cost(prompt, completion), 4),
        "cut_off": round(float((table["finish"] == "length").mean()), 4),
    }
    if guessed := int(every["estimated"].sum()):
        cost["estimated"] = guessed
    return pd.DataFrame([cost])


def cost_lines(cost: pd.Series) -> pd.DataFrame:
    """A row of `cost_table` for reading: one line for each known entry, in the column "value"."""
    looks = {"served": "{}", "tokens_per_second": "{:,.1f}", "money": "{:,.2f}"}
    looks |= dict.fromkeys(["cut_off", "repeated"], "{:.1%}")
    told = {name: looks.get(name, "{:,.0f}").format(value) for name, value in cost.dropna().items()}
    return pd.Series(told, name="value").rename(index=lambda name: name.replace("_", " ")).to_frame()
