"""`nli-study counterfactuals`: chapters 40 and 41 on one corpus, and what they leave: pairs to review, and all that was
dropped, with the reason."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.evaluate import write_jsonl
from nli_lib.generate import spans
from nli_lib.generate.perturbations import template
from nli_lib.select.selection import KEPT
from nli_lib.study import schedule
from nli_lib.study.dial import read_scale
from nli_lib.study.generate import check_server, goes_on, journal_of

CHAPTERS = ASKS, FILTERS = "40_spans_and_prompts", "41_perturb_and_filter"
EACH = 0.5  # originals for each pair that is wanted: one of some eight perturbations has to survive
FILE, DROPPED = "counterfactuals.jsonl", "counterfactuals.dropped.jsonl"
COLUMNS = ["uid", "premise", "hypothesis", "label", "intended_label", "origin_uid", "origin_corpus", "maker"]
COLUMNS += ["origin_premise", "origin_label", "direction", "span", "generation", "shift"]
TOO_MANY = "more than were wanted, and the shift is smaller"


class CounterfactualError(UserError, RuntimeError):
    """No counterfactuals can be, or were, made; the message says why and what to do."""


def counterfactuals(request: schedule.Request, n: int, model: str | None = None) -> tuple[Path, Path]:
    """Run both chapters on the corpus that was asked for, and write what they leave: the kept pairs, the dropped ones.

    n      pairs that are wanted, at most; it decides how many premises are perturbed (`EACH`)
    model  language model, as its server calls it; None: the dial's

    Raises `CounterfactualError` where a chapter does not finish; the same command continues there.
    """
    others = {ASKS: {"ORIGINALS": originals_for(n)}, FILTERS: {"GENERATOR": model}}
    if schedule.stale(ASKS, replace(request, others=others[ASKS])):
        spans.check_parser()
    if schedule.stale(FILTERS, replace(request, others=others[FILTERS])):
        check_server(model or read_scale(request.scale).disco.generator, journal_of(request, FILTERS))
    for name in CHAPTERS:
        (end,) = schedule.run([name], replace(request, others=others[name]))
        if not goes_on(name, request, end):
            raise CounterfactualError(f"{name} did not finish. The same command continues there.")
    return write_pairs(request, n)


def originals_for(n: int) -> int:
    """How many premises are perturbed to leave about n pairs; three at least, one of each label."""
    return max(3, round(n * EACH))


def check_labels(corpus: Corpus, version: str) -> None:
    """Raise `CounterfactualError` where the prompt has no word for a label of the corpus."""
    words = template(version).masked.words
    if unknown := [name for name in corpus.classes if name not in words]:
        raise CounterfactualError(
            f"{corpus.name}: the prompt has no word for the label {unknown[0]!r}; it knows {', '.join(words)}."
        )


def write_pairs(request: schedule.Request, n: int) -> tuple[Path, Path]:
    """Write the n kept pairs of the largest shift, and beside them everything that was dropped; print the counts.

    One line a pair, with `COLUMNS`; ``label`` is the intended one, which nobody has judged. A dropped one has a reason
    besides, and no shift where it did not come so far.
    """
    folder = paths.EXPORTS / request.study
    written = pd.read_parquet(folder / f"{FILTERS}.written.parquet")
    order = written["shift"].where(written["reason"] == KEPT).rank(ascending=False, method="first")
    reason = written["reason"].mask((written["reason"] == KEPT) & (order > n), TOO_MANY)
    table = written.assign(reason=reason, label=written["intended_label"], shift=written["shift"].round(4))
    kept = table[reason == KEPT].sort_values("shift", ascending=False, kind="stable")
    wrote = written["text"].notna().sum()
    print(f"Of {len(table):,} perturbations that were asked for {wrote:,} were written, and {len(kept):,} are kept.")
    if wrote < len(table):
        print("The same command asks for the others again.")
    print("Dropped:")
    for why, count in reason[reason != KEPT].value_counts().items():
        print(f"{count:>7,}  {why}")
    write_jsonl(folder / DROPPED, table.loc[reason != KEPT, [*COLUMNS, "reason"]])
    if kept.empty:
        raise CounterfactualError(
            f"No counterfactual is left; {folder / DROPPED} says why, one by one. Raise --n, or name a better language "
            "model (OPENAI_BASE_URL, --model)."
        )
    return write_jsonl(folder / FILE, kept[COLUMNS]), folder / DROPPED
