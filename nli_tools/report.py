"""What a report says of the levels of difficulty of somebody's corpus: their sizes, how firm they are, their pairs.

part = level_figures(corpus, [(pair.logits, hypothesis.logits), ...], contradicted=flags)

The levels come from models that were trained on these very pairs. The one number here that does not is the share of
labels that models contradict which did not train on them, level by level and beside random twins.

The page of a report: audit, suspects, levels and comparison of one corpus, self-contained, to be opened from disk.

Text of the corpus goes through jinja's escaping alone; the page has no script and forbids all requests.

`nli-study report`: audit, suspects, levels and comparison of one corpus in one page and one file of numbers.

report.html, report.json     in the folder of the corpus; the audit leaves its own two files beside them

What was measured before and still holds is taken as it is. What cannot be measured is named with the reason.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.levels import by_training, estimate, level_means
from nli_lib.measure.difficulty import FEATURES, LEVELS, dynamics_features, level_agreement, levels
from nli_lib.measure.features import spaced
from nli_lib.measure.giveaways import out_of_fold, pair_ngrams
from nli_lib.plots import COLOURS, TWIN
from nli_lib.stats import Estimate, mean_and_range, means_of
from nli_lib.study import record as records
from nli_lib.study.dial import is_own_file, read_scale, run_spec
from nli_lib.study.runner import Request, version
from nli_tools import audit_page, compare, own_corpus, suspects
from nli_tools.audit import SHARE, Figure, distance, ends, percent, sample_premises
from nli_tools.audit_page import as_estimate, shown, templates
from nli_tools.suspects import contradicted

MIXTURES = 5  # seeds of the mixture, to see how much the levels depend on it
MOST = 10  # pairs of the hard level that are shown
WORDS, CONTRADICTED = "words of the hypothesis", "contradicted"
UNITS = {WORDS: "words", CONTRADICTED: SHARE}
RAND = "adjusted Rand index"
CHANCE = 0.2  # an index below which the levels of two trainings have hardly anything in common


def level_figures(
    corpus: Corpus,
    trainings: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    contradicted: ArrayLike | None = None,
    said: str = "",
) -> dict:
    """The numbers of the levels as plain values, each with interval and unit.

    trainings     logits (E, N, C) of a model of the pair and of one of the hypothesis alone, for each training
    contradicted  (N,) bool, labels that models contradict which did not train on them; said: how it was trained

    Keys: said, learnt (whether the models of the pair fit these labels better than the majority label does), next
    (what to do), figures, rows (the pairs of the hard level of lowest confidence). The figures are the share of each
    level, of each label in it, the mean number of words of its hypotheses and its share of contradicted labels, both
    also of the level's random twin; how many of these labels either model predicts in the end; and how far the levels
    of two trainings, and of two seeds of the mixture, agree. Raises `ValueError` where the pairs do not fall into three
    levels.
    Source: the difficulty paper, section 3; see `measure.difficulty.levels`.
    """
    labels, premise = corpus.labels, pd.factorize(corpus.premise)[0]
    features = [dynamics_features(*each, labels) for each in trainings]
    fits = [[levels(each, seed=seed) for seed in range(MIXTURES)] for each in features]
    scores = {WORDS: pc.count_substring(spaced(corpus.hypothesis), " ").to_numpy() + 1}
    if contradicted is not None:
        scores[CONTRADICTED] = np.asarray(contradicted, dtype=float)
    table = pd.concat(
        pd.DataFrame({"training": at, "position": range(len(corpus)), "premise": premise, "gold": labels} | scores)
        .assign(level=each[0], corpus="")
        for at, each in enumerate(fits)
    )  # fmt: skip
    found = _shares(table, corpus.classes) | _means(table, list(scores)) | _agreement(fits)
    for at, view in enumerate(("pair", "hypothesis")):
        right = np.array([np.asarray(each[at])[-1].argmax(axis=1) == labels for each in trainings], dtype=float)
        found[f"fitted by the {view}"] = _share(estimate(table, means_of(right)))
    learnt = found["fitted by the pair"].estimate.low > np.bincount(labels).max() / len(labels)
    return {
        "said": said,
        "learnt": bool(learnt),
        "next": _next(found, learnt=learnt),
        "figures": {name: each.as_json() | {"trainings": each.estimate.seeds} for name, each in found.items()},
        "rows": _hardest(corpus, features, fits),
    }


def _shares(table: pd.DataFrame, classes: Sequence[str]) -> dict[str, Figure]:
    level, gold = by_training(table, "level"), by_training(table, "gold")
    found = {}
    for at, name in enumerate(LEVELS):
        found[name] = _share(estimate(table, means_of((level == at).astype(float))))
        inside = [np.where(level == at, gold == label, np.nan) for label in range(len(classes))]
        for label, each in zip(classes, inside, strict=True):
            found[f"{name}: {label}"] = _share(estimate(table, means_of(each)))
    return found


def _share(found: Estimate, unit: str = SHARE) -> Figure:
    """A share, whose interval ends at 0 and 1; another unit has no ends."""
    if unit == SHARE:
        found = found._replace(low=max(0.0, found.low), high=min(1.0, found.high))
    return Figure(found, unit)


def _means(table: pd.DataFrame, scores: list[str]) -> dict[str, Figure]:
    rows, seeds = level_means(table, scores), table["training"].nunique()
    over = "premises and trainings" if seeds > 1 else "premises"
    return {
        f"{row.level}: {row.score}{f', {TWIN}' if row.condition == TWIN else ''}": _share(
            Estimate(row.value, row.low, row.high, row.n, seeds, over), UNITS[row.score]
        )
        for row in rows.itertuples()
    }


def _agreement(fits: Sequence[Sequence[NDArray]]) -> dict[str, Figure]:
    """Mean and range of the adjusted Rand index between trainings, and between seeds of the mixture."""

    def between(pairs: list[tuple[NDArray, NDArray]], over: str) -> Figure:
        values = np.array([level_agreement(*each)["adjusted Rand"] for each in pairs])
        spread = mean_and_range(values, n=len(pairs[0][0]), over=f"{over}, range")._replace(seeds=len(fits))
        if len(values) < 2:
            spread = spread._replace(low=np.nan, high=np.nan)  # one pair has no range
        return Figure(spread, RAND)

    mixtures = [pair for each in fits for pair in combinations(each, 2)]
    found = {"another mixture": between(mixtures, "pairs of seeds")}
    if len(fits) > 1:
        found["another training"] = between(list(combinations([each[0] for each in fits], 2)), "pairs of trainings")
    return found


def _hardest(corpus: Corpus, features: Sequence[NDArray], fits: Sequence[Sequence[NDArray]]) -> list[dict]:
    """The pairs that are hard in most trainings, of them those of lowest confidence (mean over the trainings)."""
    votes = np.mean([each[0] == LEVELS.index("hard") for each in fits], axis=0)
    confidence = np.mean([each[:, FEATURES.index("pair confidence")] for each in features], axis=0)
    first = np.lexsort((confidence, -votes))[: min(MOST, int((votes > 0).sum()))]
    n = len(features)
    return [
        {
            "uid": str(corpus.uid[at]),
            "premise": str(corpus.premise[at]),
            "hypothesis": str(corpus.hypothesis[at]),
            "label": corpus.classes[corpus.labels[at]],
            "hard": {"value": float(votes[at]), "unit": "share of the trainings", "n": n},
            "confidence": {"value": round(float(confidence[at]), 4), "unit": "probability, mean", "n": n},
        }
        for at in first
    ]


def _next(found: dict[str, Figure], *, learnt: bool) -> str:
    again = found.get("another training")
    if not learnt:
        return (
            "Do not read the levels yet: the models fit these labels no better than the most frequent label does. "
            "Train longer (--epochs), or add pairs."
        )
    hard = found["hard"].estimate
    share = f"the {percent(hard.value)} {ends(hard)} of the pairs that are hard to learn"
    if again is not None and again.estimate.value < CHANCE:
        return (
            f"Do not cut the corpus by difficulty: the levels of two trainings agree hardly more than chance would "
            f"have it (adjusted Rand index {again.estimate.value:.2f})."
        )
    own, twin = (found.get(f"hard: {CONTRADICTED}{end}") for end in ("", f", {TWIN}"))
    if own is None or twin is None:
        return f"Look at {share} before any of them is dropped: hard may mean wrong, rare or simply difficult."
    (value, low, *_), (other, _, high, *_) = own.estimate, twin.estimate
    said = (
        f"of their labels, models that did not train on them contradict {percent(value)}, of a random twin's "
        f"{percent(other)}"
    )
    if low > high:
        return f"Review {share} first, for wrong labels gather there: {said}."
    if value > other:
        return f"Look at {share} before any of them is dropped: {said}, which may be chance."
    return f"Do not take {share} for mislabelled: {said}."


# ---------------------------------------------------------------- report page


FORMAT = 1  # of report.json
PARTS = ("audit", "suspects", "levels", "comparison")


def next_steps(parts: Mapping[str, Mapping]) -> list[str]:
    """What to do next, in the order of the parts: three sentences of the audit, one of each other part."""
    steps = list(parts["audit"]["next"])
    return steps + [parts[name]["next"] for name in PARTS[1:] if name in parts]


def page(content: Mapping) -> str:
    """The html of a report. content: what report.json holds, see `nli_tools.report`."""
    template = templates(html=True)
    template.filters |= {"in_words": in_words, "points": distance}
    parts = shown(content["audit"]) | (compare.shown(content["comparison"]) if "comparison" in content else {})
    return template.get_template("report.html").render(
        **parts, report=content, level_colours=COLOURS, twin=TWIN, score_names=(CONTRADICTED, WORDS)
    )


def in_words(figure: Mapping) -> str:
    """A number of any unit with its interval, for reading."""
    estimate = as_estimate(figure)
    form = {"words": "{:.1f}".format, RAND: "{:.2f}".format}.get(figure["unit"], percent)
    return f"{form(estimate.value)} {ends(estimate, form)}".rstrip()


# ---------------------------------------------------------------- report


PAGE, NUMBERS = "report.html", "report.json"
COMPARE = "nli-study compare FILE --test HELD_OUT"


def run(
    request: Request,
    test: str | None = None,
    *,
    fast: bool,
    most: int,
    seeds: int,
    changes: Mapping[str, object],
) -> list[Path]:
    """Report on the corpus of a request, with leakage to a test file where one is named; the files that were written.

    fast     train no network: levels are left out
    most     pairs whose levels are measured, at most: of a larger corpus a part, drawn by premise
    seeds    trainings of each view; changes: fields of their `RunSpec`, such as model and epochs
    """
    if "model" in changes and not fast:
        compare.check_encoder(request.scale, changes)
    folder, numbers = paths.EXPORTS / request.study, audit_page.content(request, test)
    corpus = own_corpus.read(request.corpus, request)
    parts, missing = {"audit": numbers}, {}

    def add(name: str, measure) -> None:
        print(f"{name} ...", flush=True)
        try:
            parts[name] = measure()
        except (UserError, ValueError, ModuleNotFoundError) as error:
            missing[name] = compare.absent(error) if isinstance(error, ModuleNotFoundError) else str(error)
            print(f"{name}: not measured. {missing[name]}", flush=True)

    scores, how, link = np.empty(0), "", ""
    try:
        scores, how, link = score(corpus, request)
    except UserError as error:
        missing["suspects"] = str(error)
    if len(scores):
        add("suspects", lambda: contradicted(corpus, scores, how=how, page=link))
    if fast:
        missing["levels"] = "no network was trained (--fast)"
    else:
        wrong = scores.argmax(axis=1) != corpus.labels if len(scores) else None
        add("levels", lambda: measure_levels(corpus, request, wrong, most=most, seeds=seeds, changes=changes))
    if (found := compare.stored(request)) is not None:
        parts["comparison"] = found
    else:
        missing["comparison"] = f"none was made of this corpus as it is now: {COMPARE}"
    content = {
        "format": FORMAT,
        "version": version(),
        "corpus": numbers["corpus"],
        "digest": numbers["digest"],
        "next": next_steps(parts),
        "missing": missing,
        **parts,
    }
    for sentence in content["next"]:
        print(sentence)
    return [
        own_corpus.write(folder / PAGE, page(content)),
        own_corpus.write(folder / NUMBERS, own_corpus.as_text(content)),
    ]


# ---------------------------------------------------------------- suspects


def score(corpus: Corpus, request: Request) -> tuple[NDArray[np.float64], str, str]:
    """Out-of-sample probabilities (N, C), how they were made, and where the list to work through lies ("" where there
    is none): of a list that is at hand, the user's own first, then that of trained models; else of linear models."""
    folder = paths.EXPORTS / request.study
    for part in ("probs", "", "embeddings", "fast"):
        if (found := _at_hand(corpus, folder / part, request)) is not None:
            return *found, str(Path(part) / suspects.PAGE)
    folds = suspects.FAST_FOLDS
    fold, features = suspects.fold_of_each(corpus, folds), pair_ngrams(corpus.premise, corpus.hypothesis)
    how = f"Each label was scored by one of {folds} linear models on words that was not trained on it."
    return out_of_fold(features, corpus.labels, fold, say=print), how, ""


def _at_hand(corpus: Corpus, folder: Path, request: Request) -> tuple[NDArray[np.float64], str] | None:
    """Probabilities of a list of suspects that was made of this very corpus, and how; None where there is none."""
    record = suspects.recorded(folder)
    if not record:
        return None
    trained = records.read(suspects.CROSS_SCORING, request.study) if folder.name == request.study else {}
    digests = {each["digest"] for each in trained.get("corpora", {}).values()}
    if record.get("digest") != corpus.digest and corpus.digest[:16] not in digests:
        return None
    found = suspects.arrays(folder)
    same = np.array_equal(found["uid"], corpus.uid.astype(str)) and found["classes"].tolist() == [*corpus.classes]
    return (found["pred_probs"], record["how"]) if same else None


# ---------------------------------------------------------------- levels


def measure_levels(
    corpus: Corpus,
    request: Request,
    wrong: NDArray[np.bool_] | None,
    *,
    most: int,
    seeds: int,
    changes: Mapping[str, object],
) -> dict:
    """Train both views on the corpus as the difficulty paper does, and give `level_figures`. Stopped, it continues.

    wrong (N,) bool, the labels that other models contradict, or None
    """
    from nli_lib.learn.fit import fit  # torch

    rows = sample_premises(corpus, most)
    part = corpus[rows] if len(rows) < len(corpus) else corpus
    place = {"corpus": request.corpus, "split": part.split, "limit": None}
    if is_own_file(request.corpus):
        place["content"] = records.corpus_file(request.corpus, request.data_dir)
    if len(part) < len(corpus):
        place["subset"] = f"{len(part)} pairs, {part.digest[:8]}"
    spec = run_spec("difficulty", read_scale(request.scale), **place, **changes)
    views, trainings = ("pair", "hypothesis"), []
    often = "one training" if seeds == 1 else f"{seeds} trainings"
    print(f"{len(views)} models, {often} of each on {len(part):,} pairs (epochs: {spec.epochs})", flush=True)
    for seed in range(seeds):
        runs = [fit(spec.model_copy(update={"view": view, "seed": seed}), part) for view in views]
        trainings.append(tuple(run.logits for run in runs))
    said = (
        f"{Path(spec.model).name}, {often} of each view (epochs: {spec.epochs}) on {len(part):,} of "
        f"{len(corpus):,} pairs: a small scale."
    )
    return level_figures(part, trainings, contradicted=None if wrong is None else wrong[rows], said=said)
