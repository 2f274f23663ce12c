"""`nli-study suspects`: a list of contradicted labels, its page, and a reviewer's decisions.

`run` is the command. `score` makes a list without training, from linear models on words or a user's probabilities;
`finish` adds to every list, including that of trained models, a statement on its models and its page::

    made = worklist(table, classes=corpus.classes, title="mine.csv", said=[...])
    write_page(folder / "suspects.html", made)

The page works from disk and without a network. It contains the texts of the corpus and shows them as text: they are
JSON without any "<", the script (worklist.js) puts them into text nodes, and the page's policy forbids loading and
sending.

A reviewer's decisions give the rest of the list a new order (`reorder`), and say how right the list is (`how_right`).
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, logit, softmax
from scipy.stats import entropy

from nli_lib.agreement import average_precision, precision_within
from nli_lib.corpora import load
from nli_lib.corpora.corpus import SIDES, Corpus, CorpusError, canonical
from nli_lib.errors import StudyError
from nli_lib.evaluate import Skill, export_review, review_list, skill, write_jsonl
from nli_lib.measure import consensus
from nli_lib.measure.consensus import EVERY, next_suspects, wrong_among
from nli_lib.measure.giveaways import PAIR_PASSES, PAIR_PENALTY, out_of_fold, pair_ngrams
from nli_lib.select.selection import folds as draw_folds
from nli_lib.stats import percentile_interval, resample_counts
from nli_lib.store import now, reading, write_json
from nli_lib.study.dial import as_options, read_scale
from nli_lib.study.runner import Request
from nli_lib.tables import read_csv, write_csv
from nli_tools import own_corpus
from nli_tools.own_corpus import ToolError, read_probabilities

MOST = 5_000  # suspects in a page: enough for a review, and a browser opens it at once
LIST_SHOWN = ("uid", "premise", "hypothesis", "gold", "predicted", "kind", "gap", "p_gold")
GIVEN = ("decision", "fix_to", "note", "when", "learnt")  # a reviewer's answers about a suspect


def worklist(
    table: pd.DataFrame,
    *,
    classes: Sequence[str],
    title: str,
    said: Sequence[str] = (),
    warning: str = "",
    command: str = "",
    most: int = MOST,
) -> dict:
    """The content of the page and the widget: a value for `json.dumps`.

    Parameters
    ----------
    table
        from `evaluate.review_list`, in the order of review, perhaps with the columns `GIVEN`; the first ``most`` rows
        are used, and every decided one
    classes
        the labels for corrections
    said
        sentences about the list; warning: an important one; command: the command that learns from all suspects
    """
    given = table.reindex(columns=list(GIVEN), fill_value="").fillna("").astype(str)
    decided = given[["decision", "note"]].ne("").any(axis=1).to_numpy()
    chosen = decided | (np.arange(len(table)) < most)
    rows = table.loc[chosen, list(LIST_SHOWN)].astype({"uid": str, "gap": float, "p_gold": float})
    rows = rows.join(table.loc[chosen, [name for name in ("votes", *FOUND[2:]) if name in table]])
    said = list(said)
    if not chosen.all():
        said.append(f"This page has {chosen.sum():,} of {len(table):,} suspects; suspects.csv has all of them.")
    built = now()
    made = given[decided].assign(when=lambda part: part["when"].where(part["when"] != "", built))
    # a browser keeps decisions by this key: another corpus or model makes another list
    told = table[["uid", "premise", "hypothesis", "gold", "predicted"]].sort_values("uid").to_json(orient="values")
    scale = [float(table["gap"].mean()), float(table["gap"].std(ddof=0)) or 1.0] if len(table) else [0.0, 1.0]
    key = f"nli-suspects-{hashlib.sha256((title + told).encode()).hexdigest()[:16]}"
    about = {"key": key, "built": built, "title": title, "classes": list(classes), "every": EVERY}
    about |= {"warning": warning, "said": said, "command": command, "prior": PRIOR, "scale": scale}
    decisions = zip(rows["uid"][decided[chosen]], made.to_dict("records"), strict=True)
    return {**about, "rows": rows.to_dict("records"), "made": [[uid, each] for uid, each in decisions]}


def write_page(path: Path, made: dict) -> Path:
    """Write a `worklist` as one html file, completely or not at all; return the path."""
    names, here = ("css", "js", "html"), Path(__file__)
    parts = {name: here.with_name(f"worklist.{name}").read_text(encoding="utf-8") for name in names}
    # "<" could end the script element, and "<!--" changes the parsing of the rest
    parts["list"] = json.dumps(made, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    template = jinja2.Template(parts.pop("html"), keep_trailing_newline=True)
    return own_corpus.write(path, template.render(title=made["title"], **parts))


def read_page(path: Path) -> dict:
    """Read the `worklist` of a page."""
    page = Path(path).read_text(encoding="utf-8").partition('<script type="application/json" id="list">')[2]
    return json.loads(page.partition("</script>")[0])


# ---------------------------------------------------------------- decisions


ASIDE = "decisions_set_aside.csv"  # in a list's folder: decisions on labels that are not in the list now
# a decision's meaning for the label: wrong (1), right (0), or no information for learning an order
DECISIONS = {"fix": 1.0, "keep": 0.0, "ambiguous": np.nan}


def read_decisions(path: Path, classes: Sequence[str] | None = None) -> pd.DataFrame:
    """Read the decisions in a csv with columns uid and decision and perhaps fix_to, note, when and learnt; index uid.

    Columns `GIVEN` and the two texts of the pair, "" if empty: decision, one of `DECISIONS`; fix_to, the right label,
    by the library's name. Empty rows are left out; rows with only a note are not.

    Raises
    ------
    StoreError
        If the file cannot be read; `ToolError` for a missing column, an unknown decision, a label that is not in
        ``classes`` or comes without the decision fix, or a uid that is decided twice.
    """
    table, words = read_csv(path), ", ".join(DECISIONS)
    for name in ("uid", "decision"):
        if name not in table:
            cure = f"Add a column named decision to suspects.csv, and write {words} or nothing into each row."
            raise ToolError(f"{path} has no column {name!r}. {cure}")
    made = table.reindex(columns=["uid", *GIVEN, *SIDES], fill_value="").assign(line=np.arange(2, len(table) + 2))
    made["decision"] = made["decision"].str.strip().str.lower()
    made = made[made[["decision", "fix_to", "note"]].ne("").any(axis=1)]
    fixed = made["fix_to"].str.strip()
    made["fix_to"] = fixed.map(lambda name: canonical(name) or name)
    known = made["fix_to"].isin(classes) if classes else made["fix_to"].map(canonical).notna()
    among = f" ({', '.join(classes)})" if classes else ""
    beside = (fixed != "") & (made["decision"] != "fix")
    checks = {
        f"decision {{decision!r}}: write {words} or nothing": ~made["decision"].isin(["", *DECISIONS]),
        f"fix_to {{fix_to!r}}: write a label of the corpus{among}": (fixed != "") & ~known,
        "fix_to {fix_to!r} needs the decision fix, not {decision!r}: change one of the two": beside,
        "uid {uid!r} is decided twice: keep only one of the two": made["uid"].duplicated(),
    }
    for said, wrong in checks.items():
        for row in made[wrong].head(1).to_dict("records"):
            raise ToolError(f"{path}, row {row['line']}, {said.format(**row)}.")
    return made.set_index("uid")[[*GIVEN, *SIDES]]


def joined(earlier: pd.DataFrame | None, later: pd.DataFrame) -> pd.DataFrame:
    """Merge decisions from `read_decisions`; if both decide, the later one counts, and a note without a decision
    withdraws no decision."""
    if earlier is None:
        return later
    later = later[(later["decision"] != "") | ~later.index.isin(earlier.index)]
    return pd.concat([earlier[~earlier.index.isin(later.index)], later])


def kept(folder: Path, classes: Sequence[str] | None = None) -> pd.DataFrame | None:
    """The decisions and notes in the list of ``folder``, which a new run would overwrite, and those set aside; None if
    there are none. Raises the errors of `read_decisions`, so that a typing error costs no review."""
    path, aside = folder / "suspects.csv", folder / ASIDE
    made = read_decisions(aside, classes) if aside.is_file() else None
    if path.is_file():
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            names = [name.strip(' "') for name in re.split("[,;\t]", lines.readline().strip())]
        if "decision" in names:
            made = joined(made, read_decisions(path, classes))
    return made if made is not None and len(made) else None


def reorder(folder: Path, decided: pd.DataFrame) -> str:
    """Rewrite suspects.csv and suspects.jsonl of ``folder``; return a sentence about the result.

    Parameters
    ----------
    decided
        from `read_decisions`. The labels without a decision come first, in the order that `next_suspects` learns from
        the others, which come last. Decisions on labels that are not in the list are counted and set aside in `ASIDE`,
        for a later list; so are those with other texts than the list has for their uid, as after rows of a file without
        ids have moved. A note stays with its label, decided or not.
    """
    table = read_list(folder).drop(columns=list(GIVEN), errors="ignore")
    uid = table["uid"].astype(str)
    listed, strange = table.set_axis(uid).reindex(decided.index), ~decided.index.isin(uid)
    for side in SIDES:  # white space is ignored, and so is a side that the decision does not have
        here, there = (each[side].fillna("").str.split().str.join(" ") for each in (decided, listed))
        strange |= (here.ne("") & there.ne("") & here.ne(there)).to_numpy()
    aside, given = decided[strange], decided.loc[~strange, list(GIVEN)].reindex(uid)
    made = given["decision"].replace("", np.nan).set_axis(table.index)
    counts = made.value_counts()
    order = next_suspects(table["gap"].to_numpy(dtype=float), table["kind"], made.map(DECISIONS).astype(float))
    still_open = order[made.isna().to_numpy()[order]]
    learnt = {"fix", "keep"} <= set(counts.index)
    given["learnt"] = np.where(given["decision"].isin(["fix", "keep"]), "yes", "") if learnt else ""
    columns = [name for name in GIVEN if name == "decision" or given[name].fillna("").ne("").any()]
    table = table.assign(**{name: given[name].fillna("").to_numpy() for name in columns})
    table = table.iloc[np.concatenate([still_open, np.flatnonzero(made.notna())])]
    write_list(folder, table.assign(rank=np.arange(1, len(table) + 1)))
    told = ", ".join(f"{counts.get(word, 0):,} {word}" for word in DECISIONS)
    if len(aside):
        write_csv(folder / ASIDE, aside.reset_index(names="uid"))
    else:
        (folder / ASIDE).unlink(missing_ok=True)
    if gone := (aside["decision"] != "").sum():
        told += f"; set aside in {ASIDE}, because their labels or texts are not in the list: {gone:,}"
    rest = "learnt from them" if learnt else "of the gap until at least one label is fixed and one is kept"
    return f"{len(made.dropna()):,} decisions ({told}). The other {len(still_open):,} suspects are in the order {rest}."


DEPTHS, AHEAD = (100, 300), 50  # of a list: how many of its first suspects are wrong, and of the next ones
PRIOR = {name: getattr(consensus, name.upper()) for name in ("rate", "spread", "kind", "rise", "steep")}
PRIOR |= {"depths": list(DEPTHS), "ahead": AHEAD}
EXPECTED = "p_wrong"  # the column with each label's probability to be wrong
_LOW, _HIGH = expit(logit(consensus.RATE) + 1.96 * consensus.SPREAD * np.array([-1, 1]))
PRIOR_SAID = (
    f"How many are wrong: before any decision, {consensus.RATE:.0%} of the suspects are expected to be wrong "
    f"[{_LOW:.0%}, {_HIGH:.0%}], more where the gap is wider. A Bayesian logistic regression on direction and gap "
    "learns from the decisions; the intervals are 95%. Ambiguous labels are not counted."
)


def how_right(gap: ArrayLike, kind: ArrayLike, decided: ArrayLike, waiting: ArrayLike) -> tuple[NDArray, str]:
    """Each suspect's probability to be wrong, and a sentence about the first ones in the order of review and the next
    ones; "" if all are decided. The page computes the same.

    gap, kind, decided (N,) as in `wrong_among`; waiting: positions of what is undecided, in the order of review. What
    is neither decided nor waiting is not counted.
    """
    done = np.flatnonzero(np.isfinite(np.asarray(decided, dtype=float)))
    order = np.concatenate([done, np.asarray(waiting, dtype=int)])
    wanted = [depth for depth in DEPTHS if len(done) < depth < len(order)]
    wanted += [len(order)] * (len(order) <= max(DEPTHS))
    groups = [*(order[:depth] for depth in wanted), order[len(done) :][:AHEAD]]
    probability, found = wrong_among(gap, kind, decided, groups)
    if len(done) == len(order):
        return probability, ""
    said = []
    for size, numbers in zip(map(len, groups), found, strict=True):
        about, low, high = (int(np.floor(each * (100 / size if size > 100 else 1) + 0.5)) for each in numbers)
        amount = f"{about}% [{low}%, {high}%]" if size > 100 else f"about {about} [{low}, {high}]"
        name = "all" if size == len(order) else "the first"
        said.append(f"of {name} {size} suspects, {amount} are wrong")
    said[-1] = f"the next {size} would find {amount}"
    start = f"From {len(done)} decision{'s' * (len(done) > 1)}" if len(done) else "By the prior alone"
    return probability, f"{start}: {'; '.join(said)}."


def beside_label(table: pd.DataFrame, decided: ArrayLike) -> str:
    """A sentence about the order of the gap among the decided labels, overall and within a label, and about the label
    alone, its control; "" with fewer than `EVERY` decisions or without a wrong label and a right one.

    table: a list; decided (N,): 1 wrong, 0 right, NaN undecided. The interval is over premises (1,000 resamples).
    """
    known = np.isfinite(decided := np.asarray(decided, dtype=float))
    wrong, part = decided[known] == 1, table[known]
    if len(part) < EVERY or wrong.all() or not wrong.any():
        return ""
    draws = resample_counts(len(part), groups=part["premise"], resamples=1000)
    weights = np.stack([each for each in draws if each[wrong].any()])
    rates = pd.Series(wrong).groupby(part["gold"].to_numpy()).transform("mean")
    found = precision_within(part["gap"], wrong, part["gold"], weights)
    value, low, high, *_ = percentile_interval(*found, n=len(part))
    chance, _ = precision_within(np.zeros(len(part)), wrong, part["gold"], weights)
    return (
        f"Among the {len(part)} decided labels, the order by gap has an average precision of "
        f"{average_precision(part['gap'], wrong):.2f} (label alone: {average_precision(rates, wrong):.2f}), "
        f"within a label {value:.2f} [{low:.2f}, {high:.2f}] (chance: {chance:.2f})."
    )


# ---------------------------------------------------------------- error or variation


# a user's columns with the labels of several people
SEVERAL = r"(?i)(?:annotator|human|people)?[ _-]?(?:labels|label[ _-]?\d+|annotator[ _-]?\d+)(?: \(own\))?"


def variation(
    table: pd.DataFrame, place: ArrayLike, probabilities: ArrayLike, labels: ArrayLike, classes: Sequence[str]
) -> dict[str, ArrayLike]:
    """The disagreement of people about pairs or, where their labels are not known, the uncertainty of the models.

    A contradicted label may be an error or, where people split, one of several defensible ones.

    variation
        entropy of the labels divided by its largest value, 0 (all agree) to 1
    variation_by
        "people: entailment 2, neutral 3" where columns of the pair (`SEVERAL`) hold two labels or more, by name and
        apart or in one list; else "models": the entropy of their probabilities, temperature-scaled on all labels

    Parameters
    ----------
    table
        (K,) pairs with their own columns; place (K,): their positions in the corpus
    probabilities
        (N, C) out of sample, of the whole corpus; labels (N,)

    References
    ----------
    Guo et al. (2017), On calibration of modern neural networks: temperature scaling.
    """
    logits, rows = np.log(np.maximum(probabilities, FLOOR)), np.arange(len(labels))
    cells = [table[name].astype(str) for name in table if re.fullmatch(SEVERAL, name)]
    given = sum(("," + each for each in cells), pd.Series("", table.index)).str.split(r"[,;|/]").explode()
    given = given.str.strip(" []()'\"").map(canonical)
    counts = pd.crosstab(given.index, given).reindex(index=table.index, columns=list(classes), fill_value=0)
    people = counts.sum(axis=1).to_numpy() > 1
    heat = minimize_scalar(lambda heat: -log_softmax(logits / heat, axis=1)[rows, labels].mean(), bounds=(0.05, 20)).x
    shares = np.where(people[:, None], counts, softmax(logits[place] / heat, axis=1))
    said = [", ".join(f"{name} {n}" for name, n in row.items() if n) for row in counts.to_dict("records")]
    said = [f"people: {each}" if known else "models" for each, known in zip(said, people, strict=True)]
    return {"variation": (entropy(shares, axis=1) / np.log(len(classes))).round(4), "variation_by": said}


def read_list(folder: Path) -> pd.DataFrame:
    """Read the list of a folder, suspects.jsonl, from `evaluate.review_list` and perhaps `reorder`."""
    with (folder / "suspects.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return pd.DataFrame(rows) if rows else read_csv(folder / "suspects.csv")  # for the columns of an empty list


def write_list(folder: Path, table: pd.DataFrame) -> None:
    """Write a list as suspects.csv and suspects.jsonl."""
    write_csv(folder / "suspects.csv", table)
    write_jsonl(folder / "suspects.jsonl", table)


# ---------------------------------------------------------------- suspects


FLOOR = 1e-12  # smallest probability used in a logarithm
FAST_FOLDS, TRAINED_FOLDS = 5, 10
MODELS = "models"  # the column that says whether the models of a list are better than the majority
FOUND = (MODELS, EXPECTED, "variation", "variation_by")  # the columns that `finish` adds
BETTER = {True: "better than the majority", False: "not better than the majority"}
PAGE, RECORD = "suspects.html", "suspects.json"
CROSS_SCORING, JUDGED = "31_cross_scoring", "32_which_labels_are_wrong"  # the chapters that train the models of a list


@dataclass(frozen=True)
class Asked:
    """The way of scoring labels: by trained models, by linear ones (``fast``), or from a file of probabilities.

    Attributes
    ----------
    folds
        number of models, each scoring pairs that it did not see, on folds that keep a premise together; None:
        `TRAINED_FOLDS`, with ``fast`` `FAST_FOLDS`
    fast
        use linear models on words (`pair_ngrams`) or, with ``embeddings``, on frozen sentence embeddings
        (`pair_vectors`), which need torch and minutes
    probs
        a file of the user's out-of-sample probabilities
    decided
        a file with decisions, from which the order of the rest of the list is learnt

    Raises
    ------
    StudyError
        If options contradict each other.
    """

    folds: int | None = None
    seeds: int = 1
    fast: bool = False
    embeddings: bool = False
    probs: Path | None = None
    decided: Path | None = None

    def __post_init__(self):
        if (self.fast or self.probs) and (self.seeds > 1 or (self.fast and self.probs)):
            raise StudyError("--fast and --probs cannot be combined with each other or with --seeds.")
        if self.embeddings and not self.fast:
            raise StudyError("--embeddings needs --fast.")

    @property
    def count(self) -> int:
        return self.folds or (FAST_FOLDS if self.fast else TRAINED_FOLDS)

    @property
    def part(self) -> str:
        """The folder of such a list within a study's exports."""
        return "embeddings" if self.embeddings else "fast" if self.fast else "probs" if self.probs else ""


def run(request: Request, asked: Asked) -> Iterator[str]:
    """Make the list of a corpus and its page; yield the lines to print.

    Decisions in an existing list are read before it is rewritten.
    """
    request = request if asked.part else request.apart("suspects")
    least = 2 if asked.probs else max(own_corpus.MIN_ROWS, 2 * asked.count)
    own = own_corpus.look_at(request, f"{asked.count} folds" if least > own_corpus.MIN_ROWS else "suspects", least)
    folder = request.exports / asked.part
    names, classes = (tuple(own.table), own.classes) if own else ((), None)
    if asked.decided and "decision" in names:
        raise ToolError(f"{request.corpus} already has a column named decision: rename it in that file.")
    made = None if "decision" in names else kept(folder, classes)
    if asked.decided:
        made = joined(made, read_decisions(asked.decided, classes))
    if asked.part:
        dial = read_scale(request.scale)
        split = dial.train_split if request.corpus == dial.corpus else "train"
        how = score(own or load(request.corpus, split, data_dir=request.data_dir), folder, asked, request.columns)
        yield from (str(folder / name) for name in ("suspects.csv", "suspects.jsonl", "cleanlab.npz"))
    else:
        if own:
            fold_of_each(own, asked.count)  # raises an error before anything is trained if the corpus cannot be divided
        how = f"Each label was scored by one of {asked.count} trained models that did not see it."
        chapters = {CROSS_SCORING: {"FOLDS": asked.count, "WAYS_PAIRS": 0}, JUDGED: {}}
        own_corpus.run_chapters(chapters, request)
    set_apart(folder, names)
    if made is not None:
        yield reorder(folder, made)
    told = {"how": how, "command": f"To do this for the whole list: {_command(request, asked)}"}
    yield from finish(folder, Path(request.corpus).name, **told, own=names, decided=made is not None)


def _command(request: Request, asked: Asked) -> str:
    """The command that learns a new order of a list from the export of its page."""
    given = {"scale": request.scale if request.scale != "small" else None, **as_options(request.form)}
    given |= {"data-dir": request.data_dir, "folds": asked.folds, "seeds": asked.seeds * (asked.seeds > 1)}
    given["probs"] = asked.probs and Path(asked.probs).name  # a page may be passed on: no folders
    flags = [*["--fast"] * asked.fast, *["--embeddings"] * asked.embeddings]
    more = [word for name, value in given.items() if value for word in (f"--{name}", str(value))]
    return shlex.join(["nli-study", "suspects", Path(request.corpus).name, *flags, *more, "--decided", "decisions.csv"])


def score(corpus: Corpus, folder: Path, asked: Asked, columns: Mapping[str, str] | None = None) -> str:
    """Write the list of suspects of a corpus into ``folder``, the files of `export_review`; return a text that says how
    they were scored.

    Scores of an earlier run on the same examples and number of folds are used again. If ``asked`` has a file of
    probabilities (`read_probabilities`, with ``columns``), the folds of its models are not known, and are -1 in
    cleanlab.npz.
    """
    seen = "words and characters" if own_corpus.has_unspaced(corpus) else "words"
    seen = "sentence embeddings" if asked.embeddings else seen
    record = {"digest": corpus.digest, "folds": asked.count}
    record |= {"model": f"{seen}, C {PAIR_PENALTY}, {PAIR_PASSES} passes"}
    how = f"Each label was scored by one of {asked.count} linear models on {seen} that was not trained on it (--fast)."
    if asked.probs is not None:
        fold, record, told = np.full(len(corpus), -1), {"digest": corpus.digest}, []
        probabilities = read_probabilities(asked.probs, corpus, columns, say=told.append)
        how = f"The probabilities come from {told[0]} Whether they are out of sample cannot be seen from the file."
    elif record.items() <= recorded(folder).items():
        print("Scored by an earlier run; nothing has changed since.")
        fold, probabilities = (arrays(folder)[name] for name in ("fold", "pred_probs"))
    else:
        fold = fold_of_each(corpus, asked.count)
        features = _vectors(corpus) if asked.embeddings else pair_ngrams(corpus.premise, corpus.hypothesis)
        probabilities = out_of_fold(features, corpus.labels, fold, say=partial(print, flush=True))
    logits = np.log(np.maximum(probabilities, FLOOR))
    table = review_list(corpus, logits, fold)
    if asked.probs is not None:
        table = table.drop(columns="fold")
    (folder / RECORD).unlink(missing_ok=True)  # from another corpus or model: it must not describe these arrays
    export_review(folder, table, corpus, logits, fold)
    write_json(folder / RECORD, {**record, "how": how})
    return how


def set_apart(folder: Path, own: Iterable[str]) -> None:
    """Append " (own)" to the names of those columns of the corpus, ``own``, that a list needs for its reviewer."""
    names = {name: f"{name} (own)" for name in (*GIVEN[1:], *FOUND) if name in set(own)}
    if names and (folder / "suspects.jsonl").is_file():
        table = read_list(folder)
        if not set(names.values()) <= set(table):
            write_list(folder, table.rename(columns=names))


def finish(
    folder: Path, title: str, *, how: str, command: str = "", own: Iterable[str] = (), decided: bool = False
) -> list[str]:
    """Add to a list its last columns, its record and its page; return the lines to print, none if there is no list.

    Parameters
    ----------
    how
        a text that says how the labels were scored; command: the command that learns a new order from a file of
        decisions
    own
        columns of the corpus, as passed to `set_apart`
    decided
        True if `reorder` has put decisions into the list; otherwise it has none, and is ordered by gap
    """
    if not (folder / "suspects.jsonl").is_file():
        return []
    table, task = read_list(folder), learnt(folder)
    if not decided:  # decisions of an earlier run, which the reviewer has withdrawn
        theirs = {"decision"} & set(own)
        table = table.drop(columns=[name for name in GIVEN if name not in theirs], errors="ignore")
        table = table.sort_values("gap", ascending=False, kind="stable").assign(rank=np.arange(1, len(table) + 1))
    made = table["decision"].replace("", np.nan) if decided else pd.Series(np.nan, table.index)
    answers, waiting = made.map(DECISIONS).to_numpy(dtype=float), np.flatnonzero(made.isna())
    probability, right = how_right(table["gap"], table["kind"], answers, waiting)
    known = arrays(folder)
    classes, place = known["classes"].tolist(), pd.Index(known["uid"]).get_indexer(table["uid"].astype(str))
    people = variation(table, place, known["pred_probs"], known["labels"], classes)
    table = table.assign(**{EXPECTED: probability.round(4), MODELS: BETTER[task.learnt]}, **people)
    write_list(folder, table)
    found = f"{len(table):,} of {task.accuracy.n:,} labels are contradicted. A contradicted label may be right."
    control = beside_label(table, answers)
    said = [how, *[task.words] * task.learnt, found, PRIOR_SAID, *[control] * bool(control)]
    warning = "" if task.learnt else f"{BETTER[False].capitalize()}. {task.words}"
    told = {"title": f"Suspect labels of {title}", "said": said, "warning": warning, "command": command}
    shown = table if decided else table.drop(columns=list(GIVEN), errors="ignore")
    page = write_page(folder / PAGE, worklist(shown, classes=classes, **told))
    right = f"{right} {control}".strip()
    kept = {"how": how, "right": right, "models": BETTER[task.learnt], "majority": task.majority}
    kept |= {"accuracy": task.accuracy._asdict(), "suspects": len(table)}
    write_json(folder / RECORD, {**recorded(folder), **kept})
    widget = f"from nli_tools.explorer import suspects_widget; suspects_widget({str(folder)!r})"
    told = [how, found, warning or task.words, right, f"The same list in JupyterLab: {widget}", str(page)]
    return [line for line in told if line]


def learnt(folder: Path) -> Skill:
    """The skill of the models of a list, from its cleanlab.npz."""
    found = arrays(folder)
    labels, right = found["labels"], found["pred_probs"].argmax(axis=1) == found["labels"]
    unseen = bool((found["fold"] >= 0).all())  # -1: the user's probabilities
    return skill(int(right.sum()), len(labels), np.bincount(labels).max() / len(labels), unseen=unseen)


def fold_of_each(corpus: Corpus, count: int) -> NDArray[np.int64]:
    """(N,) folds that keep the pairs of a premise together; raises `CorpusError`, saying what to do, if there are too
    few premises."""
    # numbers in the order of the texts give the same folds; scikit-learn would take minutes to compare texts one by one
    groups = np.unique(corpus.premise, return_inverse=True)[1]
    cannot = f"cannot be divided into {count} folds that keep the pairs of a premise together"
    if (premises := int(groups.max()) + 1) < count:
        most = f"--folds {premises} at most" if premises > 1 else "a corpus of one premise has none"
        told = f"{corpus.name}: its {len(corpus):,} pairs have {premises:,} different premises"
        raise CorpusError(f"{told}, which {cannot}. Ask for fewer folds: {most}.")
    try:
        return draw_folds(corpus.labels, groups=groups, count=count)
    except ValueError as error:
        told = f"{corpus.name}: its {len(corpus):,} pairs of {premises:,} premises"
        raise CorpusError(f"{told} {cannot} ({error}).") from None


def _vectors(corpus: Corpus) -> NDArray[np.float32]:
    from nli_lib.learn.text import pair_vectors

    return pair_vectors(corpus.premise, corpus.hypothesis, say=partial(print, flush=True))


def recorded(folder: Path) -> dict:
    """The record of an existing list, {} if there is none."""
    if not all((folder / name).is_file() for name in (RECORD, "suspects.jsonl", "cleanlab.npz")):
        return {}
    with reading(folder / RECORD, "delete its folder and run nli-study suspects again"):
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))


def arrays(folder: Path) -> dict[str, NDArray]:
    """Read the arrays of cleanlab.npz, written by `export_review`."""
    path = folder / "cleanlab.npz"
    with reading(path, "delete its folder and run nli-study suspects again"), np.load(path) as found:
        return dict(found)
