"""`nli-study compare`: interventions on somebody's corpus, each beside its random twin, judged on a held-out file.

compare.html, compare.json     the page and its numbers, in the folder of the corpus
compare.csv                    one row an arm
compare_pairs.csv              one row a pair: in which share of the trainings each arm kept it

Every training is a run of the store: stopped, the same command continues. All of them have one recipe, as in the
study's own comparison at equal budgets. Before anything is trained it is said whether the test file can show a
difference that is worth knowing of, by assumption; and after the base and its twin, by what these two have shown.
"""

from collections.abc import Mapping
from pathlib import Path

from nli_lib import paths
from nli_lib.corpora import check_enough
from nli_lib.corpora.corpus import Corpus, concat
from nli_lib.corpora.labels import LABELS
from nli_lib.csv_files import write_csv
from nli_lib.report import comparison as numbers
from nli_lib.report import comparison_page
from nli_lib.report.audit_figures import stand_in
from nli_lib.report.audit_reference import with_classes
from nli_lib.select.arms import added_pairs
from nli_lib.store import alone
from nli_lib.study import own_corpus
from nli_lib.study.carried import version
from nli_lib.study.compare_work import CompareError, Plan, Work
from nli_lib.study.dial import read_scale
from nli_lib.study.schedule import Request

PAGE, NUMBERS, TABLE, PAIRS = "compare.html", "compare.json", "compare.csv", "compare_pairs.csv"


def run(request: Request, test: str, added: Mapping[str, str], plan: Plan) -> list[Path]:
    """Compare what can be done to the corpus of a request, on a test file; the files that were written.

    added  name -> file of pairs that could be added, such as those of `nli-study generate`
    """
    corpus, held_out = own_corpus.read(request.corpus, request), own_corpus.read_test(test, request)
    own_corpus.say(corpus)
    check_enough(corpus, own_corpus.ROWS, "a comparison")
    check_encoder(request.scale, plan.changes)
    additions = {name: _fitting(own_corpus.read_test(file, request), corpus) for name, file in added.items()}
    held_out = _fitting(held_out, corpus)
    seen = stand_in(held_out, concat([corpus, *_same_classes(additions, corpus)], name="trained on"))
    if seen.all():
        raise CompareError(f"{test}: all of its pairs that can be used stand in what is trained on.")
    if seen.any():
        print(f"{seen.sum():,} of the {len(seen):,} pairs of {test} are trained on as well, and are taken out of it.")
    if len(set(held_out.labels[~seen])) < 2:
        raise CompareError(f"{test}: its pairs have one label, which a model need not read anything to predict.")
    work = Work(request, corpus, held_out[~seen], Path(test).name, additions, plan)
    work.check_size(numbers.PLANNED)
    with alone(paths.RUNS / "compare" / request.study, "this comparison"):  # it deletes the weights that it has used
        right, sets, whole, absent, kept = work.everything()
    for name, reason in absent.items():
        print(f"left out: {name}: {reason}")
    content = _content(work, right, sets, whole, absent) | {
        "digest": own_corpus.digest(request.corpus, request),
        **request.form,
        "test": {"name": Path(test).name, "digest": own_corpus.digest(test, request), "pairs": len(work.test)}
        | {"taken out": int(seen.sum()), "premises": len(set(work.test.premise))},
        "added": {name: len(each) for name, each in additions.items()},
    }
    folder = paths.EXPORTS / request.study
    print(content["next"])
    return [
        own_corpus.write(folder / PAGE, comparison_page.page(content)),
        own_corpus.write(folder / NUMBERS, own_corpus.as_text(content)),
        write_csv(folder / TABLE, comparison_page.table(content)),
        write_csv(folder / PAIRS, kept),
    ]


def stored(request: Request) -> dict | None:
    """What compare.json holds of the corpus as it is now; None where there is none that this version wrote."""
    return own_corpus.recorded(paths.EXPORTS / request.study / NUMBERS, comparison_page.FORMAT, request)


def check_encoder(scale: str, changes: Mapping[str, object]) -> None:
    """Raise `CompareError` or `ModelError`, before anything begins, where this machine cannot train the encoder of a
    scale, or the "model" of the changes to its recipe."""
    try:
        from nli_lib.learn.model import load_tokenizer

        load_tokenizer(str(changes.get("model", read_scale(scale).model)))
    except ModuleNotFoundError as error:
        raise CompareError(absent(error)) from None


def absent(error: ModuleNotFoundError) -> str:
    """What to install, in words, where torch or another package of the study was not found, or that of an encoder."""
    if error.name is None:  # an error of ours, which says so
        return str(error)
    return f"{error.name} is not installed: pip install 'nli-quality-study[study,offline]'"


def _fitting(other: Corpus, corpus: Corpus) -> Corpus:
    """Pairs of three classes with the two classes of a corpus; others as they are."""
    if other.classes == LABELS and corpus.classes != LABELS:
        return with_classes(other, corpus.classes)
    return other


def _same_classes(additions: Mapping[str, Corpus], corpus: Corpus) -> list[Corpus]:
    return [each for each in additions.values() if each.classes == corpus.classes]


# ---------------------------------------------------------------- what was found


def _content(work: Work, right: Mapping, sets: Mapping, whole: Mapping, absent: Mapping[str, str]) -> dict:
    premises = {work.title: work.test.premise}
    distinct = {key: made.distinct for key, made in sets.items()}
    settings = {"whole": whole, "distinct": distinct, "rows": work.budget, "majority": work.majority}
    found = numbers.comparison(right, premises, work.title, arms=work.arms, worth=work.plan.worth, **settings)
    spec = work.spec(work.corpus, 0)
    return found | {
        "format": comparison_page.FORMAT,
        "version": version(),
        "corpus": work.corpus.name,
        "classes": list(work.corpus.classes),
        "absent": dict(absent),
        "settings": {
            "rows of a training set": work.budget,
            "added or swapped in": added_pairs(work.budget, work.plan.share),
            "candidates": len(work.candidates(0)),
            "trainings": work.plan.seeds,
            "folds": work.plan.folds,
            "encoder": Path(spec.model).name,
            "epochs": spec.epochs,
            "batch size": spec.batch_size,
            "learning rate": spec.learning_rate,
        },
    }
