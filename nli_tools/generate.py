"""`nli-study generate`: chapters 11 to 13 generate pairs from a user's corpus, for people to review.

`nli-study counterfactuals`: chapters 40 and 41 on one corpus make pairs to review, and a list of dropped ones, with
reasons. After a stop, both continue.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from nli_lib.corpora.corpus import Corpus
from nli_lib.evaluate import write_jsonl
from nli_lib.generate import llm, perturb
from nli_lib.generate.journal import Journal
from nli_lib.generate.llm import LanguageModelError, Request, Sampling, ask
from nli_lib.generate.pairs import WANLI, prompts
from nli_lib.generate.perturb import template
from nli_lib.select.selection import KEPT
from nli_lib.study import runner, standing
from nli_lib.study.dial import read_scale
from nli_tools.own_corpus import ToolError

CHAPTERS = EXEMPLARS, WRITES, FILTERS = "11_exemplars", "12_overgenerate", "13_filter_by_variability"
KEPT_SHARE = 0.5  # share that the filter by variability keeps, of the pairs that pass the heuristics
BETTER = "name a better language model (OPENAI_BASE_URL, --model)."
FILE = "generated.jsonl"
COLUMNS = ["uid", "premise", "hypothesis", "label", "intended_label", "origin_uid", "origin_corpus", "maker"]


def generate(request: runner.Request, n: int, model: str | None = None) -> Path:
    """Run the three chapters on the requested corpus and write the resulting pairs; return the path of the file.

    Parameters
    ----------
    n
        largest number of pairs; it decides how many exemplars are used (`exemplars_for`)
    model
        language model, as its server calls it; None: the dial's

    Raises
    ------
    ToolError
        If a chapter does not finish; the same command continues there.
    """
    wanli = read_scale(request.scale).wanli
    given = {EXEMPLARS: {"CONTEXTS": exemplars_for(n, wanli.draws)}, WRITES: {"GENERATOR": model}, FILTERS: {}}
    _run(given, WRITES, model or wanli.generator, request)
    return write_pairs(request)


def check_labels(corpus: Corpus, disco: str | None = None) -> None:
    """Raise `ToolError` if the prompt has no word for a label of the corpus: the prompt of a version of ``disco`` for
    counterfactuals, else WANLI's."""
    words = template(disco)["masked"]["words"] if disco else prompts()[WANLI]["words"]
    if unknown := [name for name in corpus.classes if name not in words]:
        told = f"{corpus.name}: the prompt has no word for the label {unknown[0]!r}"
        raise ToolError(f"{told}; it knows {', '.join(words)}.")


def _run(chapters: Mapping[str, dict[str, object]], asks: str, model: str, request: runner.Request) -> None:
    """Run chapters in turn, each with its parameters, after a check of the language model that ``asks`` needs.

    If a chapter is only missing answers of the model, the next one follows. Raises `ToolError` if one does not finish.
    """
    if runner.stale(asks, replace(request, others=chapters[asks])):
        check_server(model, request.exports / f"{asks}.journal.jsonl")
    for name, own in chapters.items():
        (end,) = runner.run([name], replace(request, others=own))
        incomplete = end.state == standing.INCOMPLETE and standing.unanswered(standing.read(name, request.study))
        if end.state != standing.FINISHED and not incomplete:
            raise ToolError(f"{name} did not finish. The same command continues there.")


def exemplars_for(n: int, draws: int) -> int:
    """Number of exemplars that give ``n`` pairs, and no more, if every continuation parses and passes the
    heuristics."""
    return max(1, int(n / (draws * KEPT_SHARE)))


def check_server(model: str, path: Path) -> None:
    """Raise `LanguageModelError` before anything is trained if the language model cannot be used: no package, no
    server, no key. A server of OPENAI_BASE_URL is asked for a few tokens, which the journal in `path` counts."""
    if not os.environ.get(llm.ADDRESS):
        llm.weights(model)
        return
    with Journal(path) as journal:
        # a new draw: an earlier answer says nothing about today
        asked = Request(model=model, prompt="1, 2,", sampling=Sampling(max_tokens=16), draw=len(journal.lines))
        try:
            ask([asked], journal, tries=2)
        except LanguageModelError:
            last = journal.answers.get(asked.key)
            if not last or last.finish != "length":  # a reasoning model needs more tokens, and gets them later
                raise


def write_pairs(request: runner.Request) -> Path:
    """Write the pairs that the filters kept, most ambiguous first, and print counts of the others.

    One line for each pair, with `COLUMNS` and max_variability; ``label`` is the intended one, which nobody has judged.
    """
    folder = request.exports
    written, passed = (pd.read_parquet(folder / f"{name}.pairs.parquet") for name in (WRITES, FILTERS))
    kept = passed[passed["kept"].astype(bool)].sort_values("max_variability", ascending=False, kind="stable")
    failed = written["text"].isna().sum()
    print(
        f"{len(written) - failed:,} continuations were written"
        + (f", {failed:,} requests failed (the same command asks again)" if failed else "")
        + f"; {(written['reason'] == '').sum():,} have the form of a pair, "
        f"{len(passed):,} pass the heuristics, and the most ambiguous {len(kept):,} of them are kept."
    )
    if kept.empty:
        raise ToolError(f"No pair is left: raise --n, or {BETTER}")
    table = kept.assign(label=kept["intended_label"])[[*COLUMNS, "max_variability"]]
    return write_jsonl(folder / FILE, table.round({"max_variability": 4}))


# ---------------------------------------------------------------- counterfactuals


DISCO_CHAPTERS = ASKS, DISCO_FILTER = "40_spans_and_prompts", "41_perturb_and_filter"
EACH = 0.5  # originals for each wanted pair: one of about eight perturbations has to survive
COUNTERFACTUALS, DROPPED = "counterfactuals.jsonl", "counterfactuals.dropped.jsonl"
JUDGED = [*COLUMNS, "origin_premise", "origin_label", "direction", "span", "generation", "shift"]
TOO_MANY = "more than were wanted; this one has a smaller shift"


def counterfactuals(request: runner.Request, n: int, model: str | None = None) -> tuple[Path, Path]:
    """Run both chapters on the requested corpus and write the kept and the dropped pairs; return the paths.

    Parameters
    ----------
    n
        largest number of pairs; it decides how many premises are perturbed: n times `EACH`, at least three
    model
        language model, as its server calls it; None: the dial's

    Raises
    ------
    ToolError
        If a chapter does not finish; the same command continues there.
    """
    given = {ASKS: {"ORIGINALS": max(3, round(n * EACH))}, DISCO_FILTER: {"GENERATOR": model}}
    if runner.stale(ASKS, replace(request, others=given[ASKS])):
        perturb.parser()
    _run(given, DISCO_FILTER, model or read_scale(request.scale).disco.generator, request)
    return write_counterfactuals(request, n)


def write_counterfactuals(request: runner.Request, n: int) -> tuple[Path, Path]:
    """Write the n kept pairs with the largest shift, and a file of all dropped ones; print the counts.

    One line for each pair, with `JUDGED`; ``label`` is the intended one, which nobody has judged. A dropped pair also
    has a reason, and no shift if it was dropped before that.
    """
    folder = request.exports
    written = pd.read_parquet(folder / f"{DISCO_FILTER}.written.parquet")
    order = written["shift"].where(written["reason"] == KEPT).rank(ascending=False, method="first")
    reason = written["reason"].mask((written["reason"] == KEPT) & (order > n), TOO_MANY)
    table = written.assign(reason=reason, label=written["intended_label"], shift=written["shift"].round(4))
    kept = table[reason == KEPT].sort_values("shift", ascending=False, kind="stable")
    wrote = written["text"].notna().sum()
    print(f"Of {len(table):,} requested perturbations, {wrote:,} were written and {len(kept):,} are kept.")
    if wrote < len(table):
        print("The same command asks for the others again.")
    print("Dropped:")
    for why, count in reason[reason != KEPT].value_counts().items():
        print(f"{count:>7,}  {why}")
    dropped = write_jsonl(folder / DROPPED, table.loc[reason != KEPT, [*JUDGED, "reason"]])
    if kept.empty:
        raise ToolError(f"No counterfactual is left; {dropped} gives the reason for each. Raise --n, or {BETTER}")
    return write_jsonl(folder / COUNTERFACTUALS, kept[JUDGED]), dropped
