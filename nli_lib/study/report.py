"""`nli-study report`: audit, suspects, levels and comparison of one corpus in one page and one file of numbers.

report.html, report.json     in the folder of the corpus; the audit leaves its own two files beside them

What was measured before and still holds is taken as it is. What cannot be measured is named with the reason.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.measure.giveaways import out_of_fold, pair_ngrams
from nli_lib.report import report_page
from nli_lib.report.audit_figures import sample_premises
from nli_lib.report.contradicted import contradicted
from nli_lib.report.level_figures import level_figures
from nli_lib.study import audit, compare, own_corpus, suspects
from nli_lib.study import manifest as records
from nli_lib.study.carried import version
from nli_lib.study.dial import read_scale
from nli_lib.study.parameters import is_own_file
from nli_lib.study.recipes import run_spec
from nli_lib.study.schedule import Request

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
    folder, numbers = paths.EXPORTS / request.study, audit.content(request, test)
    corpus = own_corpus.read(request.corpus, request)
    parts, missing = {"audit": numbers}, {}

    def add(name: str, measure) -> None:
        print(f"{name} ...", flush=True)
        try:
            parts[name] = measure()
        except (UserError, ValueError, ModuleNotFoundError) as error:
            missing[name] = compare.absent(error) if isinstance(error, ModuleNotFoundError) else str(error)
            print(f"{name}: not measured. {missing[name]}", flush=True)

    scores, how, page = np.empty(0), "", ""
    try:
        scores, how, page = score(corpus, request)
    except UserError as error:
        missing["suspects"] = str(error)
    if len(scores):
        add("suspects", lambda: contradicted(corpus, scores, how=how, page=page))
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
        "format": report_page.FORMAT,
        "version": version(),
        "corpus": numbers["corpus"],
        "digest": numbers["digest"],
        "next": report_page.next_steps(parts),
        "missing": missing,
        **parts,
    }
    for sentence in content["next"]:
        print(sentence)
    return [
        own_corpus.write(folder / PAGE, report_page.page(content)),
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
