"""Tidy tables with intervals, from predictions: accuracy over suites and seeds, numbers by level of difficulty.

``suite_table(logits, suite, seed=0)`` has a row for each test set; ``across_seeds`` puts such tables together.

Each training has its own levels, so tables by level have one row for each training and pair: training, position (of the
pair in its corpus), level (0 easy, 1 ambiguous, 2 hard), premise (any code that is equal for equal premises), and the
columns that a function names. All trainings have the same positions. Their intervals are over trainings and premises,
or pairs if the table has no column premise (`stats.over_trainings`).

The last part exports results for people: suspected label errors as a ranked list (`review_list`), cleanlab's arrays,
the pairs that a filter left out. These contain the corpus's text, so they are written to `paths.EXPORTS`, which git
ignores, and never into a table.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from scipy.stats import t as student

from nli_lib import stats
from nli_lib.corpora.corpus import COLUMNS, LABELS, Corpus, CorpusError, collapse
from nli_lib.measure import check_scored
from nli_lib.measure.consensus import AGREE, THRESHOLD, logit_gap, mismatch, prunable, self_confidence, suspects
from nli_lib.measure.dynamics import LEVELS
from nli_lib.select.selection import TWIN, Selection
from nli_lib.store import atomic
from nli_lib.tables import write_csv

Suite = Mapping[str, Corpus]  # title -> test set
NUMBERS = ("n", "correct", "accuracy", "low", "high", "seed")


def correct_predictions(
    logits: np.ndarray, labels: np.ndarray, classes: Sequence[str] = LABELS, rule: str = "argmax"
) -> np.ndarray:
    """Mark the correct predictions, (N,) bool. logits (N, 3) ordered as LABELS, labels (N,) indices into ``classes``.

    For a test set with fewer classes, the ``rule`` "argmax" maps the most probable of the three, and "sum" adds the
    probabilities of classes that become one, then takes the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.evaluate import correct_predictions
    >>> logits = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> correct_predictions(logits, np.array([0, 2]))
    array([ True, False])
    """
    check_scored(logits, labels, epochs=False)
    return np.asarray(collapse(np.asarray(logits), tuple(classes), rule)) == np.asarray(labels)


def accuracy_row(correct: np.ndarray) -> dict[str, float]:
    """The columns n, correct, accuracy, low, high of a table's row, from the mask of correct predictions (N,) bool."""
    value, low, high, n, *_ = stats.share(correct)
    return {"n": n, "correct": int(np.sum(correct)), "accuracy": value, "low": low, "high": high}


class Skill(NamedTuple):
    """Skill of models: accuracy, compared with the share of the majority label; unseen: True if, as far as is known,
    the pairs are not among their training pairs."""

    accuracy: stats.Estimate
    majority: float
    unseen: bool = True

    @property
    def learnt(self) -> bool:
        """True if the whole interval lies above the majority baseline."""
        return self.accuracy.low > self.majority

    @property
    def words(self) -> str:
        """One sentence for a page, a console or a file, with a second one as a warning if nothing was learnt."""
        (right, low, high, n, *_), most = self.accuracy, self.majority
        said = f"The models predict {right:.1%} [{low:.1%}, {high:.1%}] of {n:,} labels"
        said += " that they did not train on" if self.unseen else ", which they may have trained on"
        said += f". Always giving the majority label would predict {most:.1%}."
        if not self.learnt:
            said += " The models are no better: they have not learnt the task, and what they contradict says nothing"
            said += " about the labels."
        return said


def skill(correct: int, n: int, majority: float, *, seeds: int = 1, unseen: bool = True) -> Skill:
    """Make the `Skill` of models that predict ``correct`` of ``n`` labels; ``majority``: share of the majority
    label."""
    return Skill(stats.wilson(correct, n, seeds=seeds), float(majority), unseen)


def suite_table(
    predictions: Mapping[str, np.ndarray], suite: Suite, *, classes: Sequence[str] = LABELS, seed: int | None = None
) -> pd.DataFrame:
    """Accuracy on every member of a suite: columns title, n, correct, accuracy, low, high, rule, seed.

    ``predictions`` maps a title to logits (N, C), ordered as the model's ``classes``. Sets with these classes have one
    row (rule argmax); the others, which only a three-class model can predict, have two, one for each rule of
    `correct_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.corpora.planted import make_split
    >>> from nli_lib.evaluate import suite_table
    >>> test = make_split("test", 30)
    >>> suite_table({"planted test": np.eye(3)[test.labels]}, {"planted test": test})[["title", "n", "accuracy"]]
              title   n  accuracy
    0  planted test  30       1.0
    """
    rows = []
    for title, corpus in suite.items():
        scores, gold = check_scored(predictions[title], corpus.labels, epochs=False)
        right = {"argmax": scores.argmax(axis=1) == gold}
        if corpus.classes != tuple(classes):
            right = {rule: correct_predictions(scores, gold, corpus.classes, rule) for rule in ("argmax", "sum")}
        rows += [{"title": title, **accuracy_row(each), "rule": rule} for rule, each in right.items()]
    return pd.DataFrame(rows, columns=["title", "n", "correct", "accuracy", "low", "high", "rule"]).assign(seed=seed)


def majority_table(suite: Suite) -> pd.DataFrame:
    """The majority baseline: the accuracy of always predicting a test set's most frequent label.

    Columns title, label, n, correct, accuracy, low, high. Raises `CorpusError`, saying what to do, if the suite is
    empty.
    """
    if not suite:
        raise CorpusError("no evaluation set is at hand: name a folder that holds one in DATA_DIR (see data/README.md)")
    rows = []
    for title, corpus in suite.items():
        counts = np.bincount(corpus.labels, minlength=len(corpus.classes))
        row = accuracy_row(corpus.labels == counts.argmax())
        rows.append({"title": title, "label": corpus.classes[int(counts.argmax())], **row})
    return pd.DataFrame(rows)


def across_seeds(table: pd.DataFrame, *, value: str = "accuracy") -> pd.DataFrame:
    """One row for each setting, over its seeds: mean, std (ddof = 1), min, max, seeds, low, high.

    Settings are the columns other than measured numbers: title, rule, and any others in the table (model, view). low
    and high are the t interval over seeds. With one seed there is no spread: std, low and high are NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> from nli_lib.evaluate import across_seeds
    >>> runs = pd.DataFrame({"title": "test", "seed": [0, 1, 2], "n": 100, "accuracy": [0.80, 0.82, 0.84]})
    >>> across_seeds(runs)[["title", "mean", "low", "high"]].round(2)
      title  mean   low  high
    0  test  0.82  0.77  0.87
    """
    keys = [column for column in table.columns if column not in {*NUMBERS, value}]
    for repeated in table.loc[table.duplicated([*keys, "seed"]), "seed"]:
        raise ValueError(f"seed {repeated} appears twice in one setting of {keys}")
    settings = table.astype({value: float}).groupby(keys, sort=False, dropna=False)[value]
    found = settings.agg(["mean", "std", "min", "max", "count"]).rename(columns={"count": "seeds"})
    half = student.ppf((1 + stats.LEVEL) / 2, found["seeds"] - 1) * found["std"] / np.sqrt(found["seeds"])
    found["low"], found["high"] = found["mean"] - half, found["mean"] + half
    return found.reset_index()


def seed_gains(table: pd.DataFrame, one: str, *, value: str = "accuracy") -> pd.DataFrame:
    """``value`` under the condition ``one`` minus that under each other condition, within every seed.

    table: title, condition, seed, n, ``value``. Columns: title, other, and the fields of `t_interval` over the seeds
    that both have; no row if either condition is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from nli_lib.evaluate import seed_gains
    >>> runs = pd.DataFrame({"title": "test", "condition": ["filtered"] * 2 + ["random twin"] * 2, "seed": [0, 1] * 2})
    >>> runs = runs.assign(n=100, accuracy=[0.82, 0.84, 0.80, 0.82])
    >>> seed_gains(runs, "filtered")[["other", "value"]].round(2)
             other  value
    0  random twin   0.02
    """
    wide = table.pivot(index=["title", "seed"], columns="condition", values=value)
    sizes, rows = table.groupby("title", sort=False)["n"].first(), []
    for other in wide.columns.drop(one) if one in wide else ():
        gains = (wide[one] - wide[other]).dropna().groupby("title")
        found = {title: stats.t_interval(gain, n=sizes[title]) for title, gain in gains}
        rows += [{"title": title, "other": other, **found[title]._asdict()} for title in sizes.index if title in found]
    return pd.DataFrame(rows, columns=["title", "other", *stats.Estimate._fields])


def agreement(pairs: pd.DataFrame, predicted: ArrayLike, by: Sequence[str]) -> pd.DataFrame:
    """Share of pairs for which a teacher predicts the intended label, one row for each group of pairs.

    Columns: `by`, n, agree, share, low, high (Wilson), and two controls: chance, the agreement if the same intended and
    predicted labels were paired at random, and most, the share of the most frequent intended label.

    Parameters
    ----------
    pairs
        rows with "label" and the columns `by`
    predicted
        (N,) the teacher's prediction for each pair
    """
    rows = []
    for name, part in pairs.assign(predicted=np.asarray(predicted)).groupby(list(by), sort=True):
        agree = part["label"] == part["predicted"]
        found = stats.share(agree.to_numpy())
        labels, guesses = (part[column].value_counts(normalize=True) for column in ("label", "predicted"))
        chance = labels.mul(guesses, fill_value=0).sum()
        facts = {"n": len(part), "agree": int(agree.sum()), "share": found.value, "low": found.low, "high": found.high}
        rows.append({**dict(zip(by, name, strict=True)), **facts, "chance": chance, "most": labels.max()})
    return pd.DataFrame(rows, columns=[*by, "n", "agree", "share", "low", "high", "chance", "most"])


# ---------------------------------------------------------------- levels


FIGURE = 200  # resamples for an interval in a figure; a claim has more


def by_training(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """A column as an array (S, N): a row for each training, with the pairs in the order of their positions."""
    return table.pivot(index="training", columns="position", values=column).to_numpy(dtype=float)


def estimate(table: pd.DataFrame, statistic: stats.Statistic, **options: object) -> stats.Estimate:
    """`over_trainings` of a statistic of the table's pairs."""
    premises = by_training(table, "premise")[0] if "premise" in table else None
    return stats.over_trainings(statistic, table["position"].nunique(), groups=premises, **options)


def level_means(table: pd.DataFrame, scores: Sequence[str], *, by: str = "corpus") -> pd.DataFrame:
    """Mean of each score in each level and in its random twin, equally many pairs with the same labels.

    Columns: ``by``, level (its name), score, condition ("level" or "random twin"), value, low, high, n (premises). A
    level that is empty in any training has no row.

    Parameters
    ----------
    table
        as above, with ``by``, gold (the label) and ``scores``
    """
    rows = []
    for group, part in table.groupby(by, sort=False):
        levels, gold = by_training(part, "level"), by_training(part, "gold")[0]
        for place, name in enumerate(LEVELS):
            chosen = [Selection.where(each == place, dropped="another level") for each in levels]
            twins = [each.random_twin(gold, seed) for seed, each in enumerate(chosen)]
            for (condition, parts), score in ((c, s) for c in (("level", chosen), (TWIN, twins)) for s in scores):
                keep = np.array([each.keep for each in parts])
                if keep.any(axis=1).all():
                    values = np.where(keep, by_training(part, score), np.nan)
                    found = estimate(part, stats.means_of(values), resamples=FIGURE)
                    rows.append((group, name, score, condition, *found[:4]))
    return pd.DataFrame(rows, columns=[by, "level", "score", "condition", "value", "low", "high", "n"])


def level_gap(table: pd.DataFrame, score: str, one: str, other: str) -> stats.Estimate:
    """Mean of a score in one level minus its mean in another."""
    levels, values = by_training(table, "level"), by_training(table, score)
    return estimate(table, stats.gaps_between(values, *(levels == LEVELS.index(name) for name in (one, other))))


def correlation_table(table: pd.DataFrame, scores: Sequence[str], target: str | pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of each score with ``target`` within each training.

    Columns: score, value, low, high, n (premises). A score that is constant in any training has no row.

    Parameters
    ----------
    target
        a column, or a table of other trainings with the same names; the target is then its column with the score's name
    """
    rows = []
    for name in scores:
        values = by_training(table, name)
        wanted = by_training(table, target) if isinstance(target, str) else by_training(target, name)
        if np.ptp(values, axis=1).all() and np.ptp(wanted, axis=1).all():
            rows.append((name, *estimate(table, stats.correlations_with(values, wanted), resamples=FIGURE)[:4]))
    return pd.DataFrame(rows, columns=["score", "value", "low", "high", "n"])


# ---------------------------------------------------------------- exports


PLACED = ("rank", "votes")  # extra columns of a list


def review_list(
    corpus: Corpus, logits: ArrayLike, fold: ArrayLike, *, threshold: float = THRESHOLD, votes: ArrayLike | None = None
) -> pd.DataFrame:
    """The examples with labels that the model contradicts, in the order of review: the most contradicted first.

    logits (N, C) and fold (N,): from `learn.predict.cross_score`. Columns: rank (from 1), uid, premise, hypothesis,
    gold, predicted (names), kind, gap (logits, see `consensus.logit_gap`), p_gold, fold, and pruned, True if the
    consensus cleaning paper's rule, with this threshold, would remove the example; the rule is about entailment and
    neutral, and removes none if one of them is not a class. If several seeds have scored the corpus, votes (N,) is the
    number of them that prune the example. The corpus's extra columns come last, as "votes (own)" if their name is
    taken.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.corpora.planted import make_split
    >>> from nli_lib.evaluate import review_list
    >>> corpus = make_split("train", 6)
    >>> logits = 3 * np.eye(3)[[1, *corpus.labels[1:]]]  # contradicts, if anything, the first label
    >>> review_list(corpus, logits, fold=np.zeros(6, dtype=int))[["rank", "gold", "predicted", "gap"]]
       rank           gold predicted  gap
    0     1  contradiction   neutral  3.0
    """
    found = {
        "predicted": np.array(corpus.classes, dtype=object)[np.argmax(logits, axis=1)],
        "kind": mismatch(logits, corpus.labels),
        "gap": logit_gap(logits, corpus.labels),
        "p_gold": self_confidence(logits, corpus.labels).round(4),
        "fold": np.asarray(fold),
        "pruned": suspects(logits, corpus.labels, threshold=threshold) & prunable(corpus.classes),
    }
    found |= {} if votes is None else {"votes": np.asarray(votes)}
    table = _beside(corpus, found).sort_values("gap", ascending=False, kind="stable").round({"gap": 4})
    table = table[table["kind"] != AGREE].reset_index(drop=True)
    table.insert(0, "rank", np.arange(1, len(table) + 1))
    return table


def export_review(
    folder: Path, table: pd.DataFrame, corpus: Corpus, logits: ArrayLike, fold: ArrayLike
) -> dict[str, Path]:
    """Write suspects.csv and suspects.jsonl (`review_list`) and cleanlab.npz; return the paths by name.

    cleanlab.npz has labels (N,), pred_probs (N, C), out of sample, with columns in the order of `classes`; fold (N,),
    the model that scored the row; uid (N,). It loads with `numpy.load` without pickle::

        arrays = numpy.load("cleanlab.npz"); find_label_issues(arrays["labels"], arrays["pred_probs"])
    """
    paths = {name: Path(folder) / name for name in ("suspects.csv", "suspects.jsonl", "cleanlab.npz")}
    write_csv(paths["suspects.csv"], table)
    write_jsonl(paths["suspects.jsonl"], table)
    with atomic(paths["cleanlab.npz"]) as draft:
        np.savez_compressed(
            draft,
            labels=corpus.labels,
            pred_probs=softmax(np.asarray(logits, dtype=np.float64), axis=1),
            fold=np.asarray(fold),
            uid=corpus.uid.astype(np.str_),
            classes=np.array(corpus.classes, dtype=np.str_),
        )
    return paths


def export_filtered(path: Path, corpus: Corpus, selection: Selection) -> Path:
    """Write every example of a corpus with the result of a selection, in the corpus's order; return the path.

    A csv (`write_csv`) of uid, premise, hypothesis, gold (a name), kept (True or False), reason ("kept", or why not)
    and the corpus's extra columns.
    """
    return write_csv(Path(path), _beside(corpus, {"kept": selection.keep, "reason": selection.reason}))


def write_jsonl(path: Path, table: pd.DataFrame) -> Path:
    """Write a table as one JSON object per line, with up to 15 decimals, completely or not at all; return the path."""
    with atomic(path) as draft:
        table.to_json(draft, orient="records", lines=True, force_ascii=False, double_precision=15, date_format="iso")
    return path


def _beside(corpus: Corpus, found: dict[str, np.ndarray]) -> pd.DataFrame:
    """A corpus's uid, texts and gold label, then the results, then the corpus's extra columns."""
    table = corpus.table[["uid", "premise", "hypothesis"]]
    table = table.assign(gold=np.array(corpus.classes, dtype=object)[corpus.labels], **found)
    return table.join(own_columns(corpus, {*table, *PLACED}))


def own_columns(corpus: Corpus, taken: Iterable[str]) -> pd.DataFrame:
    """The corpus's extra columns, as "votes (own)" if their name is taken."""
    own, taken, made = corpus.table.drop(columns=list(COLUMNS)), set(taken), {}
    for name in own:
        new = name
        while new in taken:
            new += " (own)"
        taken.add(new)
        made[new] = own[name].map(lambda value: repr(value) if isinstance(value, bytes) else value)
    return pd.DataFrame(made, index=corpus.table.index)
