"""Arms of a comparison at an equal budget: what each intervention makes of one base corpus, and its random twin.

An arm is a training set with a fixed number of rows, the *budget*, so all arms are equal in rows and in updates. Its
twin has the same number of different pairs, with the same labels and from the same places, drawn at random::

    pool = Pool(candidates, additions={"WANLI": wanli}, choices=chosen, absent=why_not)    # one for each training
    sets, absent = training_sets(pool, budget=3000, share=0.25, seed=0)
    sets["WANLI added", ARM].corpus, sets["WANLI added", TWIN].corpus           # Corpora of 3,000 rows each
    absent["DISCO added"]                                                       # why an arm is missing, a sentence

The contract, with the budget B, the share s and a = round(s B):

*start*
    B - a random pairs of the candidates; every arm that adds or swaps begins with it
"base"
    the start; twin: another draw of the same number of candidates (the difference of two draws of one corpus: no
    effect)
"more"
    the start and a other candidates; twin: the start alone, with repeated rows
"chosen"
    B of the candidates that ``Pool.choices[arm]`` keeps, or all of them if they are fewer; twin: the same number of
    candidates of each label
"added"
    the start and a pairs of ``Pool.additions[source]``; twin: the start and a other candidates with their labels
"swapped"
    the start with a of its pairs replaced by pairs of the source; twin: replaced by other candidates with their labels
"mixed"
    the arm chooses among candidates and additions together (Z-Aug, Par-Z, Seq-Z): B - a kept candidates and a kept
    additions; twin: the same numbers of candidates and additions with the same labels, not filtered
"objective"
    the pairs of "more", trained with another loss; twin: the same pairs with the control of that loss

A set of fewer than B different pairs repeats some of them until it has B rows (`TrainingSet.distinct` counts the
different ones), and its twin repeats equally often. An arm and its twin draw in the same random order, so they share
whatever the arm did not change. The order of rows has no meaning for a training, and equal seeds give equal sets. The
candidates must contain no pair twice and none of the additions; `candidates_of` draws them so. An arm without its
addition or choice in the pool is left out. ``Pool.absent`` may give a better reason than this module can, under the
name of the arm, of the source, or of one of the arm's `needs`.

Nothing is trained here. `Arm.needs` names what has to be trained or scored first: "features" (only the texts),
"dynamics" (logits of every epoch of a model of the pair), "levels" (and of a model of the hypothesis alone), "cross
scores" (logits of models that were not trained on the pair), "generated" (pairs from a generator). `choices` turns
these into ``Pool.choices``::

    made, why = choices(candidates, pair=run.logits, cross=logits)      # arm -> Selection, missing -> reason
    Pool(candidates, choices=made, absent=why)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import COLUMNS, SIDES, Corpus, CorpusError, concat, overlap
from nli_lib.measure.consensus import THRESHOLD, prunable, suspects
from nli_lib.measure.dynamics import dynamics_features, levels, margin, variability
from nli_lib.measure.giveaways import joint_features
from nli_lib.select.selection import TWIN, Selection, alike, drawn, sample, swap_in, training_subsets, without_copies
from nli_lib.select.zfilter import z_filter, z_mix

NO_NEUTRAL = (
    "it prunes entailments that models call neutral, and this corpus has the labels {}: see nli-study suspects for the "
    "labels that models contradict"
)


def choices(
    candidates: Corpus,
    *,
    pair: ArrayLike | None = None,
    hypothesis: ArrayLike | None = None,
    cross: ArrayLike | None = None,
    generated: Corpus | None = None,
    threshold: float = THRESHOLD,
    seed: int = 0,
) -> tuple[dict[str, Selection], dict[str, str]]:
    """Make `select.arms.Pool.choices` from what has been computed for M candidates; also return the reasons for missing
    ones.

    The z-filter needs only the texts. Sources: see `select.zfilter`, `select.selection` and `measure.consensus`.

    Parameters
    ----------
    pair
        (E, M, C) logits of every epoch of a model trained on them: ambiguous third, AUM
    hypothesis
        (E', M, C) of a model trained on their hypotheses: easy, hard
    cross
        (M, C) logits of models that were not trained on the pair: consensus pruning above the ``threshold``
    generated
        Corpus of K pairs that a generator wrote: Z-Aug, Par-Z, Seq-Z; their filter uses the seed
    """
    made: dict[str, Selection] = {}
    absent: dict[str, str] = {}
    gold, classes = candidates.labels, candidates.classes
    more = candidates[:0] if generated is None or generated.classes != classes else generated
    try:
        table, labels = joint_features(candidates, more.table)
    except ValueError as error:  # a label too rare for the cross-fitted prediction
        absent |= dict.fromkeys(("features", "generated"), str(error))
    else:
        options = {"names": table.names, "seed": seed, "n_classes": len(classes)}
        made["z-filter"] = z_filter(table.matrix[: len(gold)], gold, **options)
        if len(more):
            parts = table.matrix, labels, np.arange(len(labels)) < len(gold)
            made |= {way: z_mix(way.lower(), *parts, **options) for way in ("Z-Aug", "Par-Z", "Seq-Z")}
    if not prunable(classes):
        absent["consensus pruning"] = NO_NEUTRAL.format(", ".join(classes))
    elif cross is not None:
        wrong = suspects(cross, gold, threshold=threshold)
        made["consensus pruning"] = Selection.where(~wrong, dropped=f"another label, by more than {threshold:g}")
    if pair is not None:
        level = np.zeros(len(gold), np.int64)
        if hypothesis is not None:
            try:
                level = levels(dynamics_features(pair, hypothesis, gold))
            except ValueError as error:
                hypothesis, absent["levels"] = None, str(error)
        parts = training_subsets(level, variability(pair, gold), margin(pair, gold))
        made |= {"ambiguous third": parts["data maps"], "AUM": parts["aum"]}
        made |= {} if hypothesis is None else {name: parts[name] for name in ("easy", "hard")}
    return made, absent


# ---------------------------------------------------------------- arms


ARM, BY_PEOPLE = "arm", "by_people"
CLASSIFY, PRODUCT, PRODUCT_TWIN = "classify", "product of experts", "product of experts, another hypothesis"
GENERATED = "G*"  # the source that Z-Aug, Par-Z and Seq-Z choose from
CANDIDATES = 3  # for each pair of the budget: a third of the candidates, such as the ambiguous third, is the budget
LEAST = 24  # smallest budget, in pairs, at which anything is compared


@dataclass(frozen=True)
class Arm:
    """One intervention: its name in tables, the form of its training set (see the module), and its inputs.

    Attributes
    ----------
    source
        key of ``Pool.additions``; an arm that chooses is found in ``Pool.choices`` by its name
    needs
        inputs that have to be computed first, by the names in the module's docstring
    people
        True if people wrote or judged the additions: each pair then counts as one human label. A boolean column
        `BY_PEOPLE` in the addition's table decides it pair by pair instead (originals of DISCO's revisions)
    """

    name: str
    form: str
    source: str = ""
    needs: str = ""
    people: bool = False


_ALL = yaml.safe_load(Path(__file__).with_name("arms.yaml").read_text(encoding="utf-8"))
ARMS = tuple(Arm(**each) for each in _ALL)
BY_NAME = {arm.name: arm for arm in ARMS}


class TrainingSet(NamedTuple):
    """A set to train on: `corpus` has exactly the budget's number of rows, `distinct` of them different pairs.

    Attributes
    ----------
    objective
        `CLASSIFY`, `PRODUCT` or `PRODUCT_TWIN`
    added
        rows that do not come from the candidates, before any repeats
    labels
        human labels that were needed to make it: of its pairs, or of all candidates if it chose among them
    """

    corpus: Corpus
    distinct: int
    objective: str = CLASSIFY
    added: int = 0
    labels: int = 0


@dataclass(frozen=True, eq=False)
class Pool:
    """The material for the arms of one training.

    Attributes
    ----------
    candidates
        M pairs of the base corpus, no pair twice and none that is also in an addition: see `candidates_of`
    additions
        source -> Corpus with the candidates' classes
    choices
        name of an arm -> its Selection of the candidates (M,); for a mixed arm, of the candidates followed by the
        additions of its source (M + K,)
    absent
        name of an arm, source or need -> the reason why it is missing
    """

    candidates: Corpus
    additions: Mapping[str, Corpus] = field(default_factory=dict)
    choices: Mapping[str, Selection] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------- sizes


def budget_of(corpus: Corpus) -> int:
    """The largest budget for which a corpus has `CANDIDATES` candidates for each pair. Repeated pairs count once.

    Raises
    ------
    CorpusError
        If the budget is below `LEAST`; the message gives the number of pairs that are needed.
    """
    pairs = len(without_copies(corpus))
    if pairs // CANDIDATES < LEAST:
        raise CorpusError(
            f"{corpus.name}/{corpus.split}: {pairs:,} different pairs are too few to compare training sets on: "
            f"{CANDIDATES * LEAST:,} are needed at the very least."
        )
    return pairs // CANDIDATES


def candidates_of(corpus: Corpus, additions: Iterable[Corpus], *, size: int | None, seed: int = 0) -> Corpus:
    """Draw ``size`` random pairs of a corpus, or all if there are fewer (None: all), with no pair twice and none that
    is in an addition, under any label."""
    once = corpus[~corpus.table.duplicated(SIDES).to_numpy()]
    for each in additions:
        once = once[~overlap(once, each)["pairs"].to_numpy()]
    return sample(once, min(size or len(once), len(once)), seed=seed)


# ---------------------------------------------------------------- training sets

Sets = dict[tuple[str, str], TrainingSet]


def training_sets(
    pool: Pool, *, budget: int, share: float = 0.25, arms: Sequence[str | Arm] | None = None, seed: int = 0
) -> tuple[Sets, dict[str, str]]:
    """Make the training sets of a comparison, by (arm, `ARM` or `TWIN`), and say why an arm cannot be made, name ->
    reason.

    Parameters
    ----------
    budget
        rows of every training set; share: the part of them that is added or swapped in, between 0 and 1
    arms
        names in `BY_NAME`, or `Arm` objects, in the wanted order; None: all of `ARMS`

    Raises
    ------
    CorpusError
        If there are fewer candidates than twice the budget less the share (the base and its twin), or no arm has the
        name.
    """
    made: Sets = {}
    absent: dict[str, str] = {}
    extra = round(share * budget)
    if not 0 < extra < budget / 2:
        raise CorpusError(f"a share of {share:g} of {budget:,} pairs is {extra:,}: it must be 1 at least, below a half")
    if budget < LEAST or len(pool.candidates) < 2 * (budget - extra):
        raise CorpusError(
            f"{pool.candidates.name}/{pool.candidates.split}: a budget of {budget:,} pairs needs {LEAST:,} at least, "
            f"and {2 * (budget - extra):,} candidates, better {CANDIDATES * budget:,}; there are "
            f"{len(pool.candidates):,}."
        )
    for wanted in ARMS if arms is None else arms:
        if not isinstance(wanted, Arm) and wanted not in BY_NAME:
            raise CorpusError(f'"{wanted}" is not one of the arms: {", ".join(BY_NAME)}.')
        arm = wanted if isinstance(wanted, Arm) else BY_NAME[wanted]
        if reason := why_absent(arm, pool, extra):
            absent[arm.name] = reason
            continue
        both = _arm_and_twin(arm, pool, budget, extra, seed)
        # a model cannot learn a label without pairs
        if missing := set(pool.candidates.labels.tolist()) - set(both[0].corpus.labels.tolist()):
            names = ", ".join(pool.candidates.classes[label] for label in sorted(missing))
            absent[arm.name] = f"of {len(both[0].corpus):,} pairs that it keeps, none is {names}"
            continue
        for which, each in zip((ARM, TWIN), both, strict=True):
            # fill up to the budget: all pairs equally often, or once more if the seed's draw says so
            corpus = each.corpus
            corpus = Corpus(corpus.table[list(COLUMNS)], corpus.name, corpus.split, corpus.classes)
            whole, left = divmod(budget, len(corpus))
            filled = concat([corpus] * whole + [sample(corpus, left, seed=seed)], name=corpus.name)
            made[arm.name, which] = each._replace(corpus=filled)
    return made, absent


def why_absent(arm: Arm, pool: Pool, extra: int) -> str:
    """Return the reason why the pool does not allow an arm that adds ``extra`` pairs, or "" if it does."""
    known = [pool.absent[key] for key in (arm.name, arm.source, arm.needs) if key and key in pool.absent]
    if arm.source and arm.source not in pool.additions:
        return known[0] if known else f"no pairs of {arm.source} are at hand"
    chooses = arm.form in ("chosen", "mixed")
    if chooses and arm.name not in pool.choices:
        return known[0] if known else f"{arm.needs} of the candidates were not computed"
    if not arm.source:
        return ""
    source = pool.additions[arm.source]
    there = int(pool.choices[arm.name].keep[len(pool.candidates) :].sum()) if chooses else len(source)
    if source.classes != pool.candidates.classes:
        return f"{arm.source} has the classes {', '.join(source.classes)}, not {', '.join(pool.candidates.classes)}"
    return f"{arm.source} has {there:,} pairs for this arm, and {extra:,} are added" if there < extra else ""


def _arm_and_twin(arm: Arm, pool: Pool, budget: int, extra: int, seed: int) -> tuple[TrainingSet, TrainingSet]:
    """The training sets of an arm and its twin, before any pair is repeated."""
    candidates = pool.candidates
    first = drawn(candidates, budget - extra, seed=seed)
    start, rest = candidates[first], candidates[~first]

    def plain(corpus: Corpus) -> TrainingSet:
        return TrainingSet(corpus, len(corpus), labels=len(corpus))

    if arm.form == "base":
        return plain(start), plain(alike(rest, start, seed))
    if arm.form in ("more", "objective"):
        more = plain(sample(candidates, min(budget, len(candidates)), seed=seed))
        if arm.form == "more":
            return more, plain(start)
        return more._replace(objective=PRODUCT), more._replace(objective=PRODUCT_TWIN)
    if arm.form == "chosen":
        kept = _first_kept(candidates, pool.choices[arm.name].keep, budget, seed)
        return plain(kept)._replace(labels=len(candidates)), plain(alike(candidates, kept, seed))

    source = pool.additions[arm.source]

    def human(piece: Corpus) -> int:  # pairs of an addition that people wrote or judged
        return int(piece.table[BY_PEOPLE].sum()) if BY_PEOPLE in piece.table else len(piece) * arm.people

    def joined(begin: Corpus, piece: Corpus) -> TrainingSet:
        both = concat([begin, piece], name=f"{begin.name} + {arm.source}")
        return TrainingSet(both, len(both), added=len(piece), labels=len(begin) + human(piece))

    if arm.form == "mixed":
        of_base, of_source = np.split(pool.choices[arm.name].keep, [len(candidates)])
        start = _first_kept(candidates, of_base, budget - extra, seed)
        piece = _first_kept(source, of_source, extra, seed)
        other = start if of_base.all() else alike(candidates, start, seed)
        # the filter looks at the label of every candidate, even if it keeps them all
        made = joined(start, piece)._replace(labels=len(candidates) + human(piece))
        return made, joined(other, alike(source, piece, seed))
    piece = sample(source, extra, seed=seed)
    others = alike(rest, piece, seed)
    if arm.form == "added":
        return joined(start, piece), plain(concat([start, others], name=start.name))
    swapped = TrainingSet(swap_in(start, piece, seed=seed), len(start), added=extra, labels=len(start) - extra)
    twin = TrainingSet(swap_in(start, others, seed=seed), len(start), labels=len(start))
    return swapped._replace(labels=swapped.labels + human(piece)), twin


def _first_kept(corpus: Corpus, keep: NDArray[np.bool_], size: int, seed: int) -> Corpus:
    """Up to ``size`` random pairs among those that are kept. They are drawn in the order of `alike`, so a twin has the
    same pairs except those that the arm dropped, and less differs by chance."""
    order = np.random.default_rng(seed).permutation(len(corpus))
    return corpus[np.sort(order[keep[order]][:size])]
