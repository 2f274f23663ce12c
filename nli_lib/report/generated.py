"""What a language model wrote and what became of it: outcomes, costs, examples, and what the filters kept."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import Budget
from nli_lib.generate.pairs import COPIED, EXAMPLE, PHRASE, SHORT
from nli_lib.measure.similarity import random_companions, shared_words, time_under_way
from nli_lib.select.selection import KEPT, Selection
from nli_lib.stats import Estimate, mean_over_premises

PAIR, ALL = "a pair", "all labels"
OWN, OTHER = "seed of its own context", "random twin: seed of another context"
LETTERS = 300  # of a text in the gallery


def share_of(flags: pd.Series, contexts: pd.Series) -> Estimate:
    """The share of True; the interval draws whole contexts, each with all its draws, and n counts them."""
    return mean_over_premises(flags, contexts)._replace(over="pairs")  # each context is one exemplar, a pair


def answer_table(pairs: pd.DataFrame) -> pd.DataFrame:
    """Outcomes of the continuations by intended label and in all: columns title, outcome, count, n, share, low, high.

    pairs  as `generate.pairs.continuations`; the outcome is `PAIR` or the reason
    """
    outcome = pairs["reason"].replace("", PAIR)
    outcomes = [PAIR, *sorted(set(outcome) - {PAIR})]
    rows = []
    for title, part in [(ALL, pairs), *pairs.groupby("intended_label", sort=True)]:
        for name in outcomes:
            flags = outcome[part.index] == name
            found = share_of(flags, part["context"])
            rows.append((title, name, int(flags.sum()), len(part), found.value, found.low, found.high))
    return pd.DataFrame(rows, columns=["title", "outcome", "count", "n", "share", "low", "high"]).round(5)


def likeness_to_seeds(pairs: pd.DataFrame, corpus: Corpus, contexts: ArrayLike, *, seed: int = 0) -> pd.DataFrame:
    """Words that generated pairs have in common with the seed of their own context, and with that of another one.

    pairs     rows of `generate.pairs.continuations` that have a premise and a hypothesis; contexts (S, k + 1)
    The control, `OTHER`, is the seed of a random other context of the same label; pairs without one are left out.
    Columns seed (`OWN` or `OTHER`), value (mean Jaccard index of the words of both texts), low, high, n: the interval
    draws whole contexts. No rows where there is no pair.
    """
    seeds, row = np.asarray(contexts)[:, 0], pairs["context"].to_numpy()
    others = random_companions(corpus.labels[seeds], np.arange(len(seeds)), k=1, seed=seed)[row, 0]
    known = others >= 0
    texts = [
        *_together(pairs["premise"], pairs["hypothesis"]),
        *_together(corpus.premise[seeds], corpus.hypothesis[seeds]),
    ]
    at = np.flatnonzero(known)
    rows = []
    for name, context in ((OWN, row), (OTHER, others)) if len(at) else ():
        values = shared_words(texts, at, len(pairs) + context[at])
        rows.append((name, *mean_over_premises(values, row[at])[:4]))
    return pd.DataFrame(rows, columns=["seed", "value", "low", "high", "n"])


def _together(premises: ArrayLike, hypotheses: ArrayLike) -> list[str]:
    return [f"{premise} {hypothesis}" for premise, hypothesis in zip(premises, hypotheses, strict=True)]


def cost_table(lines: Sequence[Answer], budget: Budget) -> pd.DataFrame:
    """One row: what answers cost in tokens, seconds and money, and which share of them was cut off.

    lines    all attempts at the requests, as `Journal.attempts` gives them: tokens and money count those as well that
             brought no text; everything else counts the last of each request
    seconds is the time in which the server had something to answer; the tokens a second are those of the answers, NaN
    where none took any time, as in a batch; money in the currency of the budget's price;
    cut_off the share of answers that ended at the largest number of tokens; estimated, where there are any, how many
    attempts the server did not count the tokens of.
    """
    every = pd.DataFrame([line.model_dump() for line in lines])
    prompt, completion = every[["prompt_tokens", "completion_tokens"]].sum()
    table = every.drop_duplicates("key", keep="last")
    guessed = int(every["estimated"].sum())
    started = pd.to_datetime(table["started"], utc=True, format="ISO8601").dt.tz_localize(None)
    busy = time_under_way(started.to_numpy(), table["seconds"].to_numpy())
    return pd.DataFrame(
        {
            "served": [", ".join(sorted(set(table["served"]) - {""}))],
            "answers": [len(table)],
            "failed": [int(table["text"].isna().sum())],
            "prompt_tokens": [int(prompt)],
            "completion_tokens": [int(completion)],
            "seconds": [round(busy, 1)],
            "tokens_per_second": [round(completion / busy, 1) if busy else np.nan],
            "money": [round(budget.cost(prompt, completion), 4)],
            "cut_off": [round(float((table["finish"] == "length").mean()), 4)],
            **({"estimated": [guessed]} if guessed else {}),
        }
    )


def cost_lines(cost: pd.Series) -> pd.DataFrame:
    """A row of `cost_table` to be read: one line an entry that is known, in the column "value"."""
    looks = {"served": "{}", "tokens_per_second": "{:,.1f}", "money": "{:,.2f}"}
    looks |= dict.fromkeys(["cut_off", "repeated"], "{:.1%}")
    told = {name: looks.get(name, "{:,.0f}").format(value) for name, value in cost.dropna().items()}
    return pd.Series(told, name="value").rename(index=lambda name: name.replace("_", " ")).to_frame()


def gallery(pairs: pd.DataFrame, *, each: int = 3) -> pd.DataFrame:
    """The first continuations of every outcome: columns outcome, intended_label, text, cut to `LETTERS` characters."""
    shown = pairs.assign(outcome=pairs["reason"].replace("", PAIR)).drop_duplicates(["outcome", "text"])
    shown = shown.drop_duplicates(["outcome", "context"]).groupby("outcome", sort=True).head(each)
    shown = shown.sort_values("outcome", kind="stable")[["outcome", "intended_label", "text"]]
    return shown.assign(text=shown["text"].str.slice(stop=LETTERS)).reset_index(drop=True)


def drop_table(passed: Selection, contexts: pd.Series) -> pd.DataFrame:
    """What became of parsed pairs under the heuristics, in their order: columns reason, count, n, share, low, high.

    contexts (N,) of each pair; no rows where there is no pair.
    """
    rows = []
    for name in (SHORT, COPIED, PHRASE, EXAMPLE, KEPT) if len(passed) else ():
        flags = pd.Series(passed.reason == name)
        found = share_of(flags, contexts)
        rows.append((name, int(flags.sum()), len(passed), found.value, found.low, found.high))
    return pd.DataFrame(rows, columns=["reason", "count", "n", "share", "low", "high"]).round(5)


def dropped_examples(pairs: pd.DataFrame, passed: Selection, *, each: int = 2) -> pd.DataFrame:
    """The first pairs that each heuristic drops: columns reason, intended_label, premise, hypothesis."""
    shown = pairs.assign(reason=passed.reason)[~passed.keep].groupby("reason", sort=True).head(each)
    return shown.sort_values("reason", kind="stable")[["reason", "intended_label", "premise", "hypothesis"]]
