"""Arms of a comparison at an equal budget: what each intervention makes of one base corpus, and its random twin.

An arm is a training set of exactly so many rows, the *budget*, so that all arms are equal in rows and in updates. It
has a twin: as many different pairs of the same labels from the same places, drawn at random::

    pool = Pool(candidates, additions={"WANLI": wanli}, choices=chosen, absent=why_not)    # one for each training
    sets, absent = training_sets(pool, budget=3000, share=0.25, seed=0)
    sets["WANLI added", ARM].corpus, sets["WANLI added", TWIN].corpus           # Corpora of 3,000 rows each
    absent["DISCO added"]                                                       # why an arm is not there, in words

The contract, in terms of the budget B, the share s and a = round(s B):

*start*
    B - a random pairs of the candidates; all that adds or swaps begins with it
"base"
    the start; twin: another draw of as many candidates (what two draws of one corpus differ by: no effect)
"more"
    the start and a other candidates; twin: the start alone, whose rows repeat
"chosen"
    B of the candidates that ``Pool.choices[arm]`` keeps, or all of them where they are fewer; twin: as many candidates
    of each label
"added"
    the start and a pairs of ``Pool.additions[source]``; twin: the start and a other candidates of the labels of those
"swapped"
    the start with a of its pairs replaced by pairs of the source; twin: by other candidates of those labels
"mixed"
    the arm chooses among candidates and additions at once (Z-Aug, Par-Z, Seq-Z): B - a kept candidates and a kept
    additions; twin: as many candidates and as many additions of the same labels, not filtered
"objective"
    the pairs of "more", trained with another loss; twin: the same pairs with that loss's own control

A set of fewer than B different pairs repeats some of them until it has B rows (`TrainingSet.distinct` counts the
different ones); its twin does so as often. An arm and its twin draw in the same random order, so that they have in
common what the arm did not change. Rows are in no order that a training depends on, and equal seeds give equal
sets. The candidates must hold no pair twice and none of the additions; `candidates_of` draws them so. An arm lacks its
input where the pool has no such addition or choice: it is left out, and ``Pool.absent`` may say why better than this
module can, by the name of the arm, of the source, or of what it `needs`.

Nothing here trains. What an arm needs to be trained or scored first stands in `Arm.needs`: "features" (nothing but the
texts), "dynamics" (logits of every epoch of a model of the pair), "levels" (and of one of the hypothesis alone), "cross
scores" (logits of models that did not see the pair), "generated" (pairs of a generator). `choices` makes
``Pool.choices`` of them::

    made, why = choices(candidates, pair=run.logits, cross=logits)      # arm -> Selection, what is lacking -> reason
    Pool(candidates, choices=made, absent=why)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import COLUMNS, SIDES, Corpus, CorpusError, concat, overlap
from nli_lib.measure.consensus import THRESHOLD, prunable, suspects
from nli_lib.measure.dynamics import dynamics_features, levels, margin, variability
from nli_lib.measure.giveaways import joint_features
from nli_lib.select.selection import (
    TWIN,
    Selection,
    drawn,
    of_labels,
    sample,
    swap_in,
    training_subsets,
    without_copies,
)
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
    """`select.arms.Pool.choices` from what has been computed of M candidates, and why others are lacking.

    The z-filter needs the texts alone. Sources: those of `select.zfilter`, `select.selection`, `measure.consensus`.

    Parameters
    ----------
    pair
        (E, M, C) logits of every epoch of a model trained on them: ambiguous third, AUM
    hypothesis
        (E', M, C) of one trained on their hypotheses: easy, hard
    cross
        (M, C) logits of models that did not train on the pair: consensus pruning above the ``threshold``
    generated
        Corpus of K pairs that a generator wrote: Z-Aug, Par-Z, Seq-Z, whose filter takes the seed
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
CANDIDATES = 3  # for each pair of the budget: a third of them, as an ambiguous third, is the budget
LEAST = 24  # pairs of a budget below which nothing is compared


@dataclass(frozen=True)
class Arm:
    """One intervention: its name in tables, the form of its training set (see the module), and its inputs.

    Attributes
    ----------
    source
        key of ``Pool.additions``; chooses: key of ``Pool.choices`` is the arm's name
    needs
        what has to be computed before, in the words of the module
    people
        whether people wrote or judged what is added: each pair then counts as one human label. Where the addition's
        table has a boolean column `BY_PEOPLE`, that says it pair by pair instead (originals of DISCO's revisions)
    """

    name: str
    form: str
    source: str = ""
    needs: str = ""
    people: bool = False


ARMS = (
    Arm("base", "base"),
    Arm("random more", "more"),
    Arm("z-filter", "chosen", needs="features"),
    Arm("Z-Aug", "mixed", GENERATED, "generated"),
    Arm("Par-Z", "mixed", GENERATED, "generated"),
    Arm("Seq-Z", "mixed", GENERATED, "generated"),
    Arm("G* added", "added", GENERATED),  # to those three what "random more" is to the arms that choose candidates
    Arm("product of experts", "objective"),
    Arm("consensus pruning", "chosen", needs="cross scores"),
    Arm("WANLI added", "added", "WANLI", people=True),
    Arm("WANLI swapped in", "swapped", "WANLI", people=True),
    Arm("our WANLI added", "added", "our WANLI"),
    Arm("our WANLI swapped in", "swapped", "our WANLI"),
    Arm("DISCO added", "added", "DISCO"),
    Arm("our DISCO added", "added", "our DISCO"),
    Arm("Human-CAD added", "added", "Human-CAD", people=True),
    Arm("ambiguous third", "chosen", needs="dynamics"),
    Arm("AUM", "chosen", needs="dynamics"),
    Arm("easy", "chosen", needs="levels"),
    Arm("hard", "chosen", needs="levels"),
)
BY_NAME = {arm.name: arm for arm in ARMS}


class TrainingSet(NamedTuple):
    """What is trained on: `corpus` of exactly as many rows as the budget, of which `distinct` pairs differ.

    Attributes
    ----------
    objective
        `CLASSIFY`, `PRODUCT` or `PRODUCT_TWIN`
    added
        rows that do not come from the candidates, before any repeats
    labels
        labels by people that were needed to make it: of its own pairs, or of all candidates where it chose
    """

    corpus: Corpus
    distinct: int
    objective: str = CLASSIFY
    added: int = 0
    labels: int = 0


@dataclass(frozen=True, eq=False)
class Pool:
    """What the arms of one training are made from.

    Attributes
    ----------
    candidates
        M pairs of the base corpus, no pair twice, none that stands in an addition: `candidates_of`
    additions
        source -> Corpus of the candidates' classes
    choices
        name of an arm -> its Selection of the candidates (M,); of a mixed arm, of the candidates and the additions of
        its source after them (M + K,)
    absent
        name of an arm, source or need -> why it is not there
    """

    candidates: Corpus
    additions: Mapping[str, Corpus] = field(default_factory=dict)
    choices: Mapping[str, Selection] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------- sizes


def budget_of(corpus: Corpus) -> int:
    """The largest budget for which a corpus has `CANDIDATES` candidates a pair. Repeated pairs count once.

    Raises
    ------
    CorpusError
        With the number of pairs that it would take, where that is below `LEAST`.
    """
    pairs = len(without_copies(corpus))
    if pairs // CANDIDATES < LEAST:
        raise CorpusError(
            f"{corpus.name}/{corpus.split}: {pairs:,} different pairs are too few to compare training sets on: "
            f"{CANDIDATES * LEAST:,} are needed at the very least."
        )
    return pairs // CANDIDATES


def candidates_of(corpus: Corpus, additions: Iterable[Corpus], *, size: int | None, seed: int = 0) -> Corpus:
    """``size`` random pairs of a corpus, or all where there are fewer (None: all): no pair twice, and none that stands
    in an addition, whatever its label there."""
    once = corpus[~corpus.table.duplicated(SIDES).to_numpy()]
    for each in additions:
        once = once[~overlap(once, each)["pairs"].to_numpy()]
    return sample(once, min(size or len(once), len(once)), seed=seed)


# ---------------------------------------------------------------- training sets

Sets = dict[tuple[str, str], TrainingSet]


def training_sets(
    pool: Pool, *, budget: int, share: float = 0.25, arms: Sequence[str | Arm] | None = None, seed: int = 0
) -> tuple[Sets, dict[str, str]]:
    """The training sets of a comparison by (arm, `ARM` or `TWIN`), and the arms that cannot be made, name -> reason.

    Parameters
    ----------
    budget
        rows of every training set; share: of them, those that are added or swapped in, between 0 and 1
    arms
        names in `BY_NAME`, or arms of one's own, in the order that is wanted; None: all of `ARMS`

    Raises
    ------
    CorpusError
        Where the candidates are fewer than twice the budget less the share (the base and its twin), or a name is not an
        arm's.
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
        missing = set(pool.candidates.labels.tolist()) - set(both[0].corpus.labels.tolist())
        if missing:  # a model could not learn the label
            names = ", ".join(pool.candidates.classes[label] for label in sorted(missing))
            absent[arm.name] = f"of {len(both[0].corpus):,} pairs that it keeps, none is {names}"
            continue
        for which, each in zip((ARM, TWIN), both, strict=True):
            # as many rows as asked for: all of its pairs equally often, or once more by the seed's draw
            corpus = each.corpus
            corpus = Corpus(corpus.table[list(COLUMNS)], corpus.name, corpus.split, corpus.classes)
            whole, left = divmod(budget, len(corpus))
            filled = concat([corpus] * whole + [sample(corpus, left, seed=seed)], name=corpus.name)
            made[arm.name, which] = each._replace(corpus=filled)
    return made, absent


def why_absent(arm: Arm, pool: Pool, extra: int) -> str:
    """Why the pool does not allow an arm that adds ``extra`` pairs, or "" where it does."""
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
    """What an arm and its twin train on, before any of the pairs repeat."""
    candidates = pool.candidates
    first = drawn(candidates, budget - extra, seed=seed)
    start, rest = candidates[first], candidates[~first]

    def plain(corpus: Corpus) -> TrainingSet:
        return TrainingSet(corpus, len(corpus), labels=len(corpus))

    if arm.form == "base":
        return plain(start), plain(_like(rest, start, seed))
    if arm.form in ("more", "objective"):
        more = plain(sample(candidates, min(budget, len(candidates)), seed=seed))
        if arm.form == "more":
            return more, plain(start)
        return more._replace(objective=PRODUCT), more._replace(objective=PRODUCT_TWIN)
    if arm.form == "chosen":
        kept = _first_kept(candidates, pool.choices[arm.name].keep, budget, seed)
        return plain(kept)._replace(labels=len(candidates)), plain(_like(candidates, kept, seed))

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
        other = start if of_base.all() else _like(candidates, start, seed)
        # the filter looks at the label of every candidate, even where it keeps them all
        made = joined(start, piece)._replace(labels=len(candidates) + human(piece))
        return made, joined(other, _like(source, piece, seed))
    piece = sample(source, extra, seed=seed)
    others = _like(rest, piece, seed)
    if arm.form == "added":
        return joined(start, piece), plain(concat([start, others], name=start.name))
    swapped = TrainingSet(swap_in(start, piece, seed=seed), len(start), added=extra, labels=len(start) - extra)
    twin = TrainingSet(swap_in(start, others, seed=seed), len(start), labels=len(start))
    return swapped._replace(labels=swapped.labels + human(piece)), twin


def _first_kept(corpus: Corpus, keep: NDArray[np.bool_], size: int, seed: int) -> Corpus:
    """Random pairs among those that are kept, at most so many. They are drawn in the order of `_like`, so that a twin
    has the same pairs but for those that the arm dropped: less differs by chance."""
    order = np.random.default_rng(seed).permutation(len(corpus))
    return corpus[np.sort(order[keep[order]][:size])]


def _like(corpus: Corpus, part: Corpus, seed: int) -> Corpus:
    """As many random pairs of each label as ``part`` has; where a label has too few, of other labels."""
    found = of_labels(corpus, np.bincount(part.labels, minlength=len(corpus.classes)), seed=seed)
    if len(found) == len(part):
        return found
    others = corpus[~np.isin(corpus.uid, found.uid)]
    return concat([found, sample(others, len(part) - len(found), seed=seed)], name=corpus.name)
