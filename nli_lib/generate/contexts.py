"""Contexts: groups of examples that a language model is asked to continue, the requests, and the pairs that come back.

    asked = requests(corpus, contexts, model="smollm2", draws=5)
    with serve(log), Journal(path) as journal:
        pairs = continuations(corpus, contexts, ask(asked, journal), draws=5)

A context is a row of positions in the corpus: the seed, then its neighbours, the nearest first; -1 where one is
missing.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import Request, Sampling
from nli_lib.generate.prompts import WANLI, continue_examples, parse_pairs, prompts

SAMPLING = Sampling(temperature=1.0, top_p=0.5, max_tokens=120, stop=("\n\n",))  # WANLI's Table 5
FAILED = "the request failed"


class ContextError(UserError, ValueError):
    """Contexts that do not fit the corpus, the prompt or the answers; the message says which."""


def examples(corpus: Corpus, contexts: ArrayLike) -> list[list[tuple[str, str]]]:
    """The (premise, hypothesis) of each context's examples in the order of its prompt: the seed last, before it its
    neighbours, the nearest closest to it; a missing one is left out.

    contexts (S, k + 1). Source: WANLI, section 2.2 and Figure 2 (W5).
    """
    pairs = np.array([*zip(corpus.premise, corpus.hypothesis, strict=True), ("", "")], dtype=object)
    contexts = np.asarray(contexts)[:, ::-1]
    return [[tuple(pair) for pair in pairs[row[row >= 0]]] for row in contexts]


def requests(
    corpus: Corpus, contexts: ArrayLike, *, model: str, draws: int, sampling: Sampling = SAMPLING, name: str = WANLI
) -> list[Request]:
    """``draws`` requests for each context (S, k + 1), those of one context together, (S draws,).

    All examples of a context have one label, the seed's, whose word the prompt `name` uses. Raises `ContextError`
    where they have not.
    """
    contexts = np.asarray(contexts)
    labels = np.append(corpus.labels, -1)[contexts]
    mixed = ((labels != labels[:, :1]) & (contexts >= 0)).any(axis=1)
    if mixed.any():
        raise ContextError(f"context {int(mixed.argmax())}: its examples have different labels")
    names = np.array(corpus.classes, dtype=object)[labels[:, 0]]
    if unknown := set(names) - set(prompts()[name].words):
        raise ContextError(f"{corpus.name}: the prompt {name!r} has no word for the label {min(unknown)!r}")
    texts = examples(corpus, contexts)
    asked = [continue_examples(pairs, label, name=name) for pairs, label in zip(texts, names, strict=True)]
    return [
        Request(model=model, prompt=prompt, sampling=sampling, draw=draw) for prompt in asked for draw in range(draws)
    ]


def continuations(
    corpus: Corpus, contexts: ArrayLike, answers: Sequence[Answer], *, draws: int, name: str = WANLI
) -> pd.DataFrame:
    """One row an answer, (S draws,), in their order.

    uid, context (row of ``contexts``), draw; text, what the model wrote; finish; premise, hypothesis, missing where
    there is no pair; reason: "" for a pair, why the text was not parsed, or `FAILED` with the kind of failure;
    label (a number) and intended_label (its name), those of the context; origin_uid and origin_corpus, of the seed;
    maker, as the server names the model.
    """
    contexts = np.asarray(contexts)
    if len(answers) != draws * len(contexts):
        raise ContextError(f"{len(answers)} answers for {len(contexts)} contexts with {draws} draws each")
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


def corpus_of(pairs: pd.DataFrame) -> Corpus:
    """Generated pairs as a corpus, whose label is the intended one until somebody has judged it.

    ``pairs``: rows of `continuations` that have a premise and a hypothesis.
    """
    table = pairs.drop(columns=["text", "finish", "reason"], errors="ignore")
    table = table.assign(corpus="generated", split="train")
    return Corpus(table, "generated", "train", source=f"continuations by {', '.join(pairs['maker'].unique())}")
