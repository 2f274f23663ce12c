"""`nli-study report`: audit, suspects, levels and comparison of a corpus in one page and one file of numbers.

report.html, report.json
    in the folder of the corpus, together with the two files of the audit

Earlier measurements that are still valid are used again. Missing measurements are named with the reason::

    part = contradicted(corpus, probabilities, how="Each label was scored by ...", page="fast/suspects.html")
    part = level_figures(corpus, [(pair.logits, hypothesis.logits), ...], contradicted=flags)

On request, the parts of a test set are also written as tasks of lm-evaluation-harness (`write_tasks`).

The levels come from models trained on the same pairs. The only number from other models is the share of labels
contradicted by models that were not trained on them, for each level and its random twin.

The page is self-contained and opens from disk. All text of the corpus is escaped by jinja; the page has no script and
forbids all requests.
"""

import os
import re
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from nli_lib import paths
from nli_lib.corpora.corpus import LABELS, SIDES, Corpus
from nli_lib.errors import UserError
from nli_lib.evaluate import by_training, estimate, level_means, skill, write_jsonl
from nli_lib.measure import consensus
from nli_lib.measure.dynamics import FEATURES, LEVELS, dynamics_features, level_agreement, levels
from nli_lib.measure.features import spaced
from nli_lib.measure.giveaways import out_of_fold, pair_ngrams
from nli_lib.plots import COLOURS, TWIN
from nli_lib.stats import Estimate, clustered_share, mean_and_range, means_of
from nli_lib.study import standing
from nli_lib.study.dial import read_scale, run_spec
from nli_lib.study.runner import Request, version
from nli_tools import audit_page, compare, own_corpus, suspects
from nli_tools.audit import Figure, bounded, ends, percent, sample_premises
from nli_tools.audit_page import as_estimate, sentence, shown, templates

MOST_CONTRADICTED, MOST_HARD = 30, 10  # pairs on the page
MIXTURES = 5  # seeds of the mixture, to measure how much the levels depend on it
WORDS, CONTRADICTED = "words of the hypothesis", "contradicted"
RAND = "adjusted Rand index"


def _pair(corpus: Corpus, at: int) -> dict[str, object]:
    """The plain values of a pair."""
    texts = {name: str(getattr(corpus, name)[at]) for name in ("uid", "premise", "hypothesis")}
    return {**texts, "label": corpus.classes[corpus.labels[at]]}


def contradicted(corpus: Corpus, probabilities: ArrayLike, *, how: str, page: str = "") -> dict:
    """The numbers of a list of suspects as plain values, with interval and unit.

    Keys: how, page, learnt (True if the models are better than the majority label), said (a sentence about that), next
    (advice), figures (accuracy, majority, contradicted; "predicted X, labelled Y" for each pair of labels; pruned, by
    the rule of consensus cleaning, if there are all three classes), rows (the most contradicted pairs, with the
    columns of `suspects.variation`). The intervals are over premises, not over models.

    Parameters
    ----------
    probabilities
        (N, C), from models that were not trained on the pairs that they score; how: a text about the models
    page
        path of the list to review, relative to the report
    """
    logits, labels, names = np.log(np.maximum(probabilities, suspects.FLOOR)), corpus.labels, corpus.classes
    predicted, counts = logits.argmax(axis=1), np.bincount(labels, minlength=len(names))
    wrong, gap = predicted != labels, consensus.logit_gap(logits, labels)
    flags = {"accuracy": ~wrong, "majority": labels == counts.argmax(), "contradicted": wrong}
    for gold, guess in permutations(range(len(names)), 2):
        flags[f"predicted {names[guess]}, labelled {names[gold]}"] = (predicted == guess) & (labels == gold)
    if names == LABELS:
        flags["pruned"] = consensus.suspects(logits, labels)
    found = {name: clustered_share(each, corpus.premise) for name, each in flags.items()}
    task = skill(int((~wrong).sum()), len(corpus), counts.max() / len(corpus))
    told = {"learnt": task.learnt, "pruned": found.get("pruned"), "threshold": consensus.THRESHOLD}
    first = np.argsort(-gap, kind="stable")[: min(MOST_CONTRADICTED, int(wrong.sum()))]
    varied, rows = suspects.variation(corpus.table.iloc[first], first, probabilities, labels, names).values(), []
    for at, value, by in zip(first, *varied, strict=True):
        row = {**_pair(corpus, at), "predicted": names[predicted[at]], "variation by": by}
        row["gap"] = {"value": round(float(gap[at]), 4), "unit": "logits, difference"}
        rows.append({**row, "variation": {"value": float(value), "unit": "entropy, share of the largest"}})
    step = sentence("suspects", contradicted=found["contradicted"], **told)
    figures = {name: Figure(each).as_json() for name, each in found.items()}
    about = {"how": how, "page": page, "learnt": task.learnt, "said": task.words}
    return {**about, "next": step, "figures": figures, "rows": rows}


# ---------------------------------------------------------------- levels


Trainings = Sequence[tuple[ArrayLike, ArrayLike]]


def level_figures(corpus: Corpus, trainings: Trainings, *, contradicted: NDArray | None = None, said: str = "") -> dict:
    """The numbers of the levels as plain values, with interval and unit.

    Keys: said, learnt (True if the models of the pair fit these labels better than the majority label does), next
    (advice), figures, rows (the pairs of the hard level with the lowest confidence), pairs (level -> uids; of several
    trainings the middle level). The figures are the share of each
    level and of each label in it, the mean number of words of its hypotheses and its share of contradicted labels, both
    also for the level's random twin; the share of labels that either model predicts at the end; and the agreement of
    the levels of two trainings, and of two seeds of the mixture. Raises `ValueError` if the pairs do not form three
    levels.

    Parameters
    ----------
    trainings
        logits (E, N, C) of a model of the pair and of a model of the hypothesis alone, for each training
    contradicted
        (N,) bool, labels contradicted by models that were not trained on them; said: a text about the trainings

    References
    ----------
    The difficulty paper, section 3; see `measure.dynamics.levels`.
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
    found = _level_shares(table, corpus.classes, list(scores)) | _agreement(fits)
    for at, view in enumerate(("pair", "hypothesis")):
        right = np.array([np.asarray(each[at])[-1].argmax(axis=1) == labels for each in trainings], dtype=float)
        found[f"fitted by the {view}"] = bounded(estimate(table, means_of(right)))
    needed = f"hard: {CONTRADICTED}", f"hard: {CONTRADICTED}, {TWIN}", "another training"
    own, twin, again = (found[name].estimate if name in found else None for name in needed)
    learnt = bool(found["fitted by the pair"].estimate.low > np.bincount(labels).max() / len(labels))
    # below an index of 0.2 the levels of two trainings have little in common
    told = {"learnt": learnt, "hard": found["hard"].estimate, "again": again, "least": 0.2}
    # of the pairs that are hard in most trainings, those with the lowest confidence (mean over the trainings)
    votes = np.mean([each[0] == LEVELS.index("hard") for each in fits], axis=0)
    confidence = np.mean([each[:, FEATURES.index("pair confidence")] for each in features], axis=0)
    first = np.lexsort((confidence, -votes))[: min(MOST_HARD, int((votes > 0).sum()))]
    n, rows = len(features), []
    for at in first:
        hard = {"value": float(votes[at]), "unit": "share of the trainings", "n": n}
        sure = {"value": round(float(confidence[at]), 4), "unit": "probability, mean", "n": n}
        rows.append({**_pair(corpus, at), "hard": hard, "confidence": sure})
    step = sentence("levels", own=own, twin=twin, **told)
    figures = {name: each.as_json() | {"trainings": each.estimate.seeds} for name, each in found.items()}
    middle = np.floor(np.median([each[0] for each in fits], axis=0))
    uids = {name: corpus.uid[middle == at].astype(str).tolist() for at, name in enumerate(LEVELS)}
    return {"said": said, "learnt": learnt, "next": step, "figures": figures, "rows": rows, "pairs": uids}


def _level_shares(table: pd.DataFrame, classes: Sequence[str], scores: list[str]) -> dict[str, Figure]:
    """The share of each level and of each label in it, and the mean scores in it and in its random twin."""
    level, gold, found = by_training(table, "level"), by_training(table, "gold"), {}
    for at, name in enumerate(LEVELS):
        inside = {f"{name}: {label}": np.where(level == at, gold == each, np.nan) for each, label in enumerate(classes)}
        for called, flags in ({name: (level == at).astype(float)} | inside).items():
            found[called] = bounded(estimate(table, means_of(flags)))
    seeds = table["training"].nunique()
    over = "premises and trainings" if seeds > 1 else "premises"
    for row in level_means(table, scores).itertuples():
        mean = Estimate(row.value, row.low, row.high, row.n, seeds, over)
        called = f"{row.level}: {row.score}{f', {TWIN}' if row.condition == TWIN else ''}"
        found[called] = Figure(mean, "words") if row.score == WORDS else bounded(mean)
    return found


def _agreement(fits: Sequence[Sequence[NDArray]]) -> dict[str, Figure]:
    """Mean and range of the adjusted Rand index between trainings, and between seeds of the mixture."""
    compared = {"another mixture": ("seeds", [pair for each in fits for pair in combinations(each, 2)])}
    if len(fits) > 1:
        compared["another training"] = ("trainings", list(combinations([each[0] for each in fits], 2)))
    found = {}
    for name, (of, pairs) in compared.items():
        values = np.array([level_agreement(*each)["adjusted Rand"] for each in pairs])
        spread = mean_and_range(values, n=len(fits[0][0]), over=f"pairs of {of}, range")._replace(seeds=len(fits))
        if len(values) < 2:
            spread = spread._replace(low=np.nan, high=np.nan)  # a single pair has no range
        found[name] = Figure(spread, RAND)
    return found


# ---------------------------------------------------------------- report page


def page(content: Mapping) -> str:
    """The html of a report. content: the content of report.json, see `nli_tools.report`."""
    template = templates(html=True)
    template.filters["in_words"] = in_words
    parts = shown(content["audit"]) | (compare.shown(content["comparison"]) if "comparison" in content else {})
    known = {"level_colours": COLOURS, "twin": TWIN, "score_names": (CONTRADICTED, WORDS)}
    return template.get_template("report.html").render(**parts, **known, report=content)


def in_words(figure: Mapping) -> str:
    """Format a number of any unit with its interval."""
    estimate = as_estimate(figure)
    form = {"words": "{:.1f}".format, RAND: "{:.2f}".format}.get(figure["unit"], percent)
    return f"{form(estimate.value)} {ends(estimate, form)}".rstrip()


# ---------------------------------------------------------------- report


def run(
    request: Request, test: str | None, *, fast: bool, most: int, seeds: int, changes: Mapping[str, object], tasks: bool
) -> list[Path]:
    """Report on the corpus of a request, with leakage to a test file if one is given; return the written files.

    Parameters
    ----------
    fast
        train no network, and leave out the levels
    most
        largest number of pairs for the levels; a larger corpus is sampled by premise
    seeds
        trainings of each view; changes: fields of their `RunSpec`, such as model and epochs
    tasks
        also write the corpus and its parts by `write_tasks`
    """
    if "model" in changes and not fast:
        compare.check_encoder(request.scale, changes)
    folder, numbers = request.exports, audit_page.content(request, test)
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
        missing["levels"] = "no network was trained (--fast)."
    else:
        wrong = scores.argmax(axis=1) != corpus.labels if len(scores) else None
        add("levels", lambda: measure_levels(corpus, request, wrong, most=most, seeds=seeds, changes=changes))
    if (found := own_corpus.recorded(folder / compare.NUMBERS, compare.FORMAT, request)) is not None:
        parts["comparison"] = found
    else:
        missing["comparison"] = "no comparison of the current corpus. Run nli-study compare FILE --test HELD_OUT"
    steps = [*numbers["next"], *(part["next"] for name, part in parts.items() if name != "audit")]
    about = {"format": 1, "version": version(), "corpus": numbers["corpus"], "digest": numbers["digest"]}
    content = {**about, "next": steps, "missing": missing, **parts}
    print(*steps, sep="\n")
    files = {"report.html": page(content), "report.json": own_corpus.as_text(content)}
    written = [own_corpus.write(folder / name, text) for name, text in files.items()]
    if tasks:
        uid, made = pd.Series(corpus.uid.astype(str)), suspects.kept((folder / link).parent)
        found = {name: uid.isin(uids) for name, uids in parts.get("levels", {}).get("pairs", {}).items()}
        if len(scores):
            right = [] if made is None else made.index[made["decision"] == "keep"]
            found["unsuspected"] = (scores.argmax(axis=1) == corpus.labels) | uid.isin(right)
        written += write_tasks(folder / "tasks", corpus, {"all": uid.notna(), **found})
    return written


def write_tasks(folder: Path, corpus: Corpus, parts: Mapping[str, ArrayLike]) -> list[Path]:
    """Write parts of a corpus, name -> (N,) bool, as tasks of lm-evaluation-harness, a yaml and a jsonl file each, with
    a common tag; return the paths of the yaml files, which are used in their folder. Empty parts are left out, and the
    corpus's tasks from before are removed::

        lm_eval --include_path . --tasks mine_parts --model hf --model_args pretrained=...

    The prompt and the choices, True, Neither and False, are those of the harness's task anli.

    References
    ----------
    EleutherAI/lm-evaluation-harness, docs/task_guide.md, version 0.4.13.
    """
    tag, written = re.sub(r"\W+", "_", corpus.name), []
    for old in folder.glob(f"{tag}_*"):
        old.unlink()
    for part, rows in ((part, rows) for part, rows in parts.items() if np.any(rows)):
        about = {"tag": tag, "part": part, "task": f"{tag}_{part}", "classes": corpus.classes, "n": int(np.sum(rows))}
        write_jsonl(folder / f"{tag}_{part}.jsonl", corpus.table.loc[rows, ["uid", *SIDES, "label"]])
        text = templates(html=False).get_template("task.yaml").render(about, version=version())
        written.append(own_corpus.write(folder / f"{tag}_{part}.yaml", text))
    return written


def score(corpus: Corpus, request: Request) -> tuple[NDArray[np.float64], str, str]:
    """Out-of-sample probabilities (N, C), a text that says how they were made, and the path of the list to review (""
    if there is none): from an existing list, first the user's own, then that of trained models; else from linear
    models."""
    for part in ("probs", "", "embeddings", "fast"):
        study = request.study if part else request.apart("suspects").study
        folder = paths.EXPORTS / study / part
        if not (record := suspects.recorded(folder)):
            continue
        trained = {} if part else standing.read(suspects.CROSS_SCORING, study)
        digests = {each["digest"] for each in trained.get("corpora", {}).values()}
        if record.get("digest") != corpus.digest and corpus.digest[:16] not in digests:
            continue  # made from another corpus
        found = suspects.arrays(folder)
        if np.array_equal(found["uid"], corpus.uid.astype(str)) and found["classes"].tolist() == [*corpus.classes]:
            how = f"{record['how']} {record.get('right', '')}".strip()
            return found["pred_probs"], how, os.path.relpath(folder / suspects.PAGE, request.exports)
    folds = suspects.FAST_FOLDS
    fold, features = suspects.fold_of_each(corpus, folds), pair_ngrams(corpus.premise, corpus.hypothesis)
    how = f"Each label was scored by one of {folds} linear models on words that was not trained on it."
    return out_of_fold(features, corpus.labels, fold, say=print), how, ""


def measure_levels(
    corpus: Corpus, request: Request, wrong: NDArray | None, *, most: int, seeds: int, changes: Mapping[str, object]
) -> dict:
    """Train both views on the corpus as in the difficulty paper, and return `level_figures`. After a stop, it
    continues.

    wrong (N,) bool, labels contradicted by other models, or None
    """
    from nli_lib.learn.fit import fit  # torch

    rows = sample_premises(corpus, most)
    part = corpus[rows] if len(rows) < len(corpus) else corpus
    place = {"corpus": request.corpus, "split": part.split, "limit": None}
    place["content"] = standing.corpus_file(request.corpus, request.data_dir)
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
