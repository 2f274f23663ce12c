"""`nli-study suspects`: a list of the labels that are contradicted, and its page.

`run` is the command. `score` makes a list without training, by linear models on words or of a user's own probabilities;
`finish` gives every list, that of trained models too, a word on its models and its page.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.evaluate import Skill, export_review, review_list, skill
from nli_lib.measure.giveaways import PAIR_PASSES, PAIR_PENALTY, out_of_fold, pair_ngrams
from nli_lib.report.worklist import GIVEN, worklist, write_page
from nli_lib.select.selection import folds as draw_folds
from nli_lib.store import reading, write_json
from nli_lib.study import own_corpus
from nli_lib.study.decisions import DecisionError, joined, kept, read_decisions, read_list, reorder, write_list
from nli_lib.study.parameters import ParameterError, as_options
from nli_lib.study.probabilities import read_probabilities
from nli_lib.study.schedule import Request

FAST_FOLDS, TRAINED_FOLDS = 5, 10
FLOOR = 1e-12  # the least probability whose logarithm is taken
MODELS = "models"  # the column that says whether the models of a list are better than the majority
BETTER = {True: "better than the majority", False: "not better than the majority"}
AGAIN = "delete its folder and run nli-study suspects again"  # for a file that is damaged
PAGE, RECORD = "suspects.html", "suspects.json"
CROSS_SCORING, JUDGED = "31_cross_scoring", "32_which_labels_are_wrong"  # the chapters that train the models of a list


@dataclass(frozen=True)
class Asked:
    """How labels are scored: by trained models, by linear ones (``fast``), or as a file of probabilities has them.

    folds  models, each scoring what it did not see; None: `TRAINED_FOLDS`, with ``fast`` `FAST_FOLDS`
    decided  a file with decisions that put the rest of the list into an order learnt from them

    Raises `ParameterError` for what does not go together.
    """

    folds: int | None = None
    seeds: int = 1
    fast: bool = False
    embeddings: bool = False
    probs: Path | None = None
    decided: Path | None = None

    def __post_init__(self):
        if (self.fast or self.probs) and (self.seeds > 1 or (self.fast and self.probs)):
            raise ParameterError("--fast and --probs stand alone: they take neither each other nor --seeds.")
        if self.embeddings and not self.fast:
            raise ParameterError("--embeddings goes with --fast.")

    @property
    def count(self) -> int:
        return self.folds or (FAST_FOLDS if self.fast else TRAINED_FOLDS)

    @property
    def part(self) -> str:
        """The folder of such a list within a study's exports."""
        return "embeddings" if self.embeddings else "fast" if self.fast else "probs" if self.probs else ""


def run(request: Request, asked: Asked) -> Iterator[str]:
    """Make the list of a corpus and its page, line by line of what is to be printed.

    A list that is there may hold decisions: they are read before it is written anew.
    """
    least = 2 if asked.probs else max(own_corpus.ROWS, 2 * asked.count)
    own = own_corpus.look_at(request, f"{asked.count} folds" if least > own_corpus.ROWS else "suspects", least)
    folder = paths.EXPORTS / request.study / asked.part
    names, classes = (tuple(own.table), own.classes) if own else ((), None)
    if asked.decided and "decision" in names:
        raise DecisionError(f"{request.corpus} has a column decision of its own: rename it there.")
    made = None if "decision" in names else kept(folder, classes)
    if asked.decided:
        made = joined(made, read_decisions(asked.decided, classes))
    if asked.part:
        given = {"folds": asked.count, "embeddings": asked.embeddings, "probs": asked.probs}
        scored = own or own_corpus.named_corpus(request)
        how = score(scored, folder, **given, columns=request.columns)
        yield from (str(folder / name) for name in ("suspects.csv", "suspects.jsonl", "cleanlab.npz"))
    else:
        if own:
            fold_of_each(own, asked.count)  # what cannot be divided is said before anything is trained
        how = f"Each label was scored by one of {asked.count} trained models that did not see it."
        chapters = {CROSS_SCORING: {"FOLDS": asked.count, "WAYS_PAIRS": 0}, JUDGED: {}}
        own_corpus.run_chapters(chapters, request)
    set_apart(folder, names)
    if made is not None:
        yield reorder(folder, made)
    command = f"The same for the whole list: {_command(request, asked)}"
    title = Path(request.corpus).name
    yield from finish(folder, title, how=how, command=command, own=names, decided=made is not None) or []


def _command(request: Request, asked: Asked) -> str:
    """The command that learns the order of a list anew from what its page exports."""
    given = {
        "scale": request.scale if request.scale != "small" else None,
        **as_options(request.form),
        "data-dir": request.data_dir,
        "folds": asked.folds,
        "seeds": asked.seeds if asked.seeds > 1 else None,
        "probs": asked.probs,
    }
    words = ["nli-study", "suspects", request.corpus, *["--fast"] * asked.fast, *["--embeddings"] * asked.embeddings]
    words += [word for name, value in given.items() if value for word in (f"--{name}", str(value))]
    return shlex.join([*words, "--decided", "decisions.csv"])


def score(
    corpus: Corpus,
    folder: Path,
    *,
    folds: int = FAST_FOLDS,
    embeddings: bool = False,
    probs: Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> str:
    """Write the list of suspects of a corpus into ``folder``: `export_review`'s files; how they were scored, in words.

    folds       as many linear models on words (`pair_ngrams`), on folds that keep a premise together
    embeddings  or on frozen sentence embeddings (`pair_vectors`), which need torch and minutes
    probs       or a file of the user's own out-of-sample probabilities (`read_probabilities`, which takes
                ``columns``); the folds of their models are not known, and are -1 in cleanlab.npz
    What an earlier run has scored on the same examples in as many folds is found again.
    """
    seen = "words and characters" if own_corpus.has_unspaced(corpus) else "words"
    seen = "sentence embeddings" if embeddings else seen
    record = {"digest": corpus.digest, "folds": folds, "model": f"{seen}, C {PAIR_PENALTY}, {PAIR_PASSES} passes"}
    if probs is not None:
        fold, record = np.full(len(corpus), -1), {"digest": corpus.digest}
        told: list[str] = []
        probabilities = read_probabilities(probs, corpus, columns, say=told.append)
        how = f"The probabilities are those of {told[0]} Whether they are out of sample cannot be seen from them."
    else:
        how = f"Each label was scored by one of {folds} linear models on {seen} that was not trained on it (--fast)."
        if record.items() <= recorded(folder).items():
            print("Scored by an earlier run; nothing has changed since.")
            fold, probabilities = (arrays(folder)[name] for name in ("fold", "pred_probs"))
        else:
            fold = fold_of_each(corpus, folds)
            features = _vectors(corpus) if embeddings else pair_ngrams(corpus.premise, corpus.hypothesis)
            probabilities = out_of_fold(features, corpus.labels, fold, say=_say)
    logits = np.log(np.maximum(probabilities, FLOOR))
    table = review_list(corpus, logits, fold)
    if probs is not None:
        table = table.drop(columns="fold")
    (folder / RECORD).unlink(missing_ok=True)  # of another corpus or model: it must not vouch for these arrays
    export_review(folder, table, corpus, logits, fold)
    write_json(folder / RECORD, {**record, "how": how})
    return how


def set_apart(folder: Path, own: Iterable[str]) -> None:
    """Put " (own)" behind the names of those columns of the corpus, ``own``, that a list needs for its reviewer."""
    names = {name: f"{name} (own)" for name in (*GIVEN[1:], MODELS) if name in set(own)}
    if names and (folder / "suspects.jsonl").is_file():
        table = read_list(folder)
        if not set(names.values()) <= set(table):
            write_list(folder, table.rename(columns=names))


def finish(
    folder: Path, title: str, *, how: str, command: str = "", own: Iterable[str] = (), decided: bool = False
) -> list[str] | None:
    """Give a list its last column, its record and its page; what to print, or None where there is no list.

    how      how the labels were scored, in words; command: what learns the order anew from a file of decisions
    own      columns of the corpus, which `set_apart` has been told
    decided  whether `decisions.reorder` has put decisions into the list; otherwise it has none, and the gap's order
    """
    if not (folder / "suspects.jsonl").is_file():
        return None
    table, task = read_list(folder), learnt(folder)
    if not decided:  # those of a run before this one, which the reviewer has taken back
        theirs = {"decision"} & set(own)
        table = table.drop(columns=[name for name in GIVEN if name not in theirs], errors="ignore")
        table = table.sort_values("gap", ascending=False, kind="stable").assign(rank=np.arange(1, len(table) + 1))
    table = table.assign(**{MODELS: BETTER[task.learnt]})
    write_list(folder, table)
    classes = arrays(folder)["classes"].tolist()
    found = f"{len(table):,} of {task.accuracy.n:,} labels are contradicted. A contradicted label is not a wrong one."
    said, warning = [how, found], ""
    if task.learnt:
        said.insert(1, task.words)
    else:
        warning = f"{BETTER[False].capitalize()}. {task.words}"
    told = {"said": said, "warning": warning, "command": command}
    shown = table if decided else table.drop(columns=list(GIVEN), errors="ignore")
    made = worklist(shown, classes=classes, title=f"Suspect labels of {title}", **told)
    page = write_page(folder / PAGE, made)
    kept = {"how": how, "models": BETTER[task.learnt], "accuracy": task.accuracy._asdict(), "majority": task.majority}
    write_json(folder / RECORD, {**recorded(folder), **kept, "suspects": len(table)})
    widget = f"from nli_lib.report.worklist_widget import suspects_widget; suspects_widget({str(folder)!r})"
    return [how, found, warning or task.words, f"The same list in JupyterLab: {widget}", str(page)]


def learnt(folder: Path) -> Skill:
    """What the models of a list have learnt, from its cleanlab.npz."""
    found = arrays(folder)
    labels, predicted = found["labels"], found["pred_probs"].argmax(axis=1)
    majority = np.bincount(labels).max() / len(labels)
    unseen = bool((found["fold"] >= 0).all())  # -1: probabilities of the user's own
    return skill(int((predicted == labels).sum()), len(labels), majority, unseen=unseen)


def fold_of_each(corpus: Corpus, count: int) -> NDArray[np.int64]:
    """(N,) folds that keep the pairs of a premise together; a `CorpusError` says what to do where there are too few."""
    # numbers in the order of the texts: the same folds, and scikit-learn compares texts one by one, for minutes
    groups = np.unique(corpus.premise, return_inverse=True)[1]
    if (premises := int(groups.max()) + 1) < count:
        most = f"--folds {premises} at most" if premises > 1 else "a corpus of one premise has none"
        raise CorpusError(
            f"{corpus.name}: its {len(corpus):,} pairs have {premises:,} different premises, which cannot be divided "
            f"into {count} folds that keep the pairs of a premise together. Ask for fewer folds: {most}."
        )
    try:
        return draw_folds(corpus.labels, groups=groups, count=count)
    except ValueError as error:
        raise CorpusError(
            f"{corpus.name}: its {len(corpus):,} pairs of {premises:,} premises cannot be divided into {count} folds "
            f"that keep the pairs of a premise together ({error})."
        ) from None


def _vectors(corpus: Corpus) -> NDArray[np.float32]:
    from nli_lib.learn.sentences import pair_vectors

    return pair_vectors(corpus.premise, corpus.hypothesis, say=_say)


def recorded(folder: Path) -> dict:
    """The record of a list that is there, {} where there is none."""
    files = [folder / name for name in (RECORD, "suspects.jsonl", "cleanlab.npz")]
    if not all(file.is_file() for file in files):
        return {}
    with reading(files[0], AGAIN):
        return json.loads(files[0].read_text(encoding="utf-8"))


def arrays(folder: Path) -> dict[str, NDArray]:
    """The arrays of cleanlab.npz, as `export_review` wrote them."""
    path = folder / "cleanlab.npz"
    with reading(path, AGAIN), np.load(path) as found:
        return dict(found)


def _say(sentence: str) -> None:
    print(sentence, flush=True)
