"""The planted corpus: pairs from a small grammar, with artifacts, label noise and ambiguity put in and recorded.

It is the specimen, not the evidence. Whatever claims to find artifacts, mislabelled or ambiguous examples can be asked
here whether it finds them, against columns that hold the truth.
"""

import re
from collections import Counter
from itertools import zip_longest

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import COLUMNS, Corpus, CorpusError
from nli_lib.corpora.labels import LABELS, C, E, N
from nli_lib.corpora.planted.grammar import AMBIGUOUS, PATTERNS
from nli_lib.corpora.planted.lexicon import WORDS, draw

SPLITS = ("train", "validation", "test", "challenge")
# For each label, the words and the phrase that may give it away; see words.yaml.
ARTIFACT_WORDS = {LABELS.index(label): tuple(words) for label, words in WORDS["artifact_words"].items()}
GIVEAWAYS = {LABELS.index(label): phrase for label, phrase in WORDS["giveaways"].items()}
TRUTH = ("true_label", "family", "planted", "flipped", "ambiguous", "artifact_word")
STRENGTHS = {"flips": 0.06, "ambiguous": 0.08, "artifact": 0.3, "overlap": 0.3, "length": 0.25, "giveaway": 0.05}
STRAY_WORD = 0.1  # share of hypotheses with an artifact word of a label drawn at random, so that no word is a sure sign
STRAY_TAIL = 0.15  # share of hypotheses with a long tail for no reason
SYNONYMS = 0.5  # share of hypotheses that say things in other words
EXTRA_SENTENCE = 0.4  # share of premises with a second sentence that has nothing to do with the hypothesis
SPECIFIC_SHARE = 0.75  # of the flipped labels: entailment given to a hypothesis more specific than its premise
ATTEMPTS = 20

Mask = NDArray[np.bool_]
Column = NDArray[np.object_]


def make(n: int, seed: int = 0, *, split: str = "train", against: bool = False, **strengths: float) -> Corpus:
    """A corpus of n pairs with balanced labels; equal arguments give equal corpora.

    flips      share of pairs whose label is not the true one; three in four are true neutrals labelled entailment whose
               hypothesis is more specific than the premise (what the consensus cleaning paper found in SNLI)
    ambiguous  share of pairs for which two labels can be defended; the label is drawn between the two
    artifact   share of hypotheses with a word that goes with their label (`ARTIFACT_WORDS`), besides `STRAY_WORD`
    overlap    share of pairs where entailed hypotheses repeat the premise's words and others avoid them
    length     share of pairs where neutral hypotheses get a long tail and entailed ones none
    giveaway   share of hypotheses with a phrase that no other label has (`GIVEAWAYS`)
    against    the same artifacts attached to a wrong label instead, as in the challenge split

    A strength that is not given is that of `STRENGTHS`.

    Artifacts follow the label that is given, since annotators write towards it; they leave the truth untouched.
    Columns beside the corpus's own (`TRUTH`): true_label (for an ambiguous pair, its label), family (of the pattern),
    planted (the artifacts that were forced, of word, overlap, length and giveaway, joined by ";"), flipped, ambiguous,
    artifact_word (the word in the hypothesis, forced or stray, or "").
    With every strength at 0 the hypothesis alone tells nothing about the label (see patterns.yaml).
    """
    _check(n, split, strengths)
    strengths = STRENGTHS | strengths
    rng = np.random.default_rng([seed, SPLITS.index(split), 0x9A1])
    plan = _plan(n, strengths["flips"], strengths["ambiguous"], rng)
    towards = (plan["label"] + against * rng.integers(1, 3, size=n)) % len(LABELS)
    plan |= _artifacts(towards, strengths, rng)
    premise, hypothesis, family = _distinct_pairs(plan, rng)
    plan |= {"premise": premise, "hypothesis": hypothesis, "family": family, "corpus": "planted", "split": split}
    plan["uid"] = f"planted-{split}-{seed}-" + pd.Series(np.arange(n)).astype(str).str.zfill(6)
    table = pd.DataFrame(plan, columns=[*COLUMNS, *TRUTH])
    return Corpus(table, "planted", split, source=f"planted grammar, seed {seed}")


def make_split(split: str, n: int = 2_000, seed: int = 0, **strengths: float) -> Corpus:
    """One split: train and validation have flips and ambiguous pairs, test and challenge true labels only.

    The artifacts of train, validation and test are the same; those of challenge point to a wrong label.
    """
    clean = {"flips": 0.0, "ambiguous": 0.0} if split in ("test", "challenge") else {}
    return make(n, seed, split=split, against=split == "challenge", **(clean | strengths))


def check_truth(corpus: Corpus) -> None:
    """Raise `CorpusError` where other pairs were joined to a planted corpus: what is missing there would be cast."""
    missing = corpus.table[[name for name in TRUTH if name in corpus.table]].isna()
    if missing.any(axis=None):
        row = int(missing.any(axis=1).argmax())
        field = missing.columns[missing.iloc[row]][0]
        raise CorpusError(
            f"corpus {corpus.name}/{corpus.split}: row {row} has no {field}: nothing was planted in it. Ask for the "
            "truth of the planted pairs alone."
        )


def planted_truths(corpus: Corpus) -> dict[str, Mask]:
    """What was planted in the pairs of a planted corpus, by name, each (N,). Raises what `check_truth` raises."""
    check_truth(corpus)
    columns = corpus.table
    return {
        "flipped label": columns["flipped"].to_numpy(dtype=bool),
        "ambiguous pair": columns["ambiguous"].to_numpy(dtype=bool),
        "giveaway word or phrase": columns["planted"].str.contains("word|giveaway").to_numpy(dtype=bool),
        "copied words": columns["planted"].str.contains("overlap").to_numpy(dtype=bool) & (corpus.labels == E),
    }


def planted_ngrams(label: int) -> set[str]:
    """Names of the features (`measure.features.features`) that the planted words and the phrase of a label make."""
    phrases = [phrase.split() for phrase in (*ARTIFACT_WORDS[label], GIVEAWAYS[label])]
    grams = [" ".join(words[at : at + n]) for words in phrases for n in (1, 2) for at in range(len(words) - n + 1)]
    return {f"{gram}@hypothesis" for gram in grams}


def planted_words(names: ArrayLike) -> pd.DataFrame:
    """Where the planted words stand among feature names: label and column, one row for each word that occurs."""
    place = {name: at for at, name in enumerate(np.asarray(names))}
    rows = [(label, place.get(f"{word}@hypothesis")) for label, words in ARTIFACT_WORDS.items() for word in words]
    return pd.DataFrame(rows, columns=["label", "column"]).dropna().astype(int)


def _check(n: int, split: str, shares: dict[str, float]) -> None:
    if split not in SPLITS:
        raise CorpusError(f"planted has no split {split!r}: choose from {', '.join(SPLITS)}")
    if n < 1:
        raise CorpusError(f"planted: n={n} pairs asked for, at least 1 is needed")
    for name, share in shares.items():
        if name not in STRENGTHS:
            raise CorpusError(f"planted: there is no strength {name!r}: choose from {', '.join(STRENGTHS)}")
        most = {"flips": 0.3, "ambiguous": 0.4}.get(name, 1.0)  # above these one label runs out of ordinary pairs
        if not 0 <= share <= most:
            raise CorpusError(f"planted: {name}={share} is not a share between 0 and {most}")


def _plan(n: int, flips: float, ambiguous: float, rng: np.random.Generator) -> dict[str, NDArray]:
    """What each pair is to be, before any word is chosen: label, true label, and why they differ."""
    label = rng.permutation(np.arange(n) % len(LABELS))
    # Neutral has a part in both kinds of ambiguity (E or N, N or C): at twice the share, each draw between two is fair.
    blur_rate = ambiguous * np.where(label == N, 1.5, 0.75)
    blurred = rng.random(n) < blur_rate
    entailed = label == E
    flip_rate = flips * np.where(entailed, 3 * SPECIFIC_SHARE, 1.5 * (1 - SPECIFIC_SHARE))
    flipped = ~blurred & (rng.random(n) < flip_rate / (1 - blur_rate))
    other = (label + rng.integers(1, 3, size=n)) % len(LABELS)
    true_label = np.where(flipped, np.where(entailed, N, other), label)
    plan = {"label": label, "true_label": true_label, "flipped": flipped, "ambiguous": blurred}
    return plan | {"specific": flipped & entailed}


def _artifacts(towards: NDArray, strengths: dict[str, float], rng: np.random.Generator) -> dict[str, NDArray]:
    """Which artifacts fire on each pair, for the label they point to."""
    n = len(towards)
    fires = {name: rng.random(n) < strengths[name] for name in ("artifact", "overlap", "length", "giveaway")}
    fires["length"] &= towards != C
    word_of = np.where(fires["artifact"], towards, rng.integers(len(LABELS), size=n))
    words = np.array(list(ARTIFACT_WORDS.values()), dtype=object)  # (C, 5)
    word = words[word_of, rng.integers(words.shape[1], size=n)]
    word[~fires["artifact"] & (rng.random(n) >= STRAY_WORD)] = ""
    tail = np.where(fires["length"], towards == N, rng.random(n) < STRAY_TAIL)
    other_words = np.where(fires["overlap"], towards != E, rng.random(n) < SYNONYMS)
    phrases = np.array(list(GIVEAWAYS.values()), dtype=object)  # (C,)
    tails = np.array(WORDS["tails"], dtype=object)
    fired = pd.DataFrame(fires).rename(columns={"artifact": "word"})
    return {
        "artifact_word": word,
        "word_first": rng.integers(2, size=n).astype(bool),
        "tail": np.where(tail, tails[rng.integers(len(tails), size=n)], ""),
        "phrase": np.where(fires["giveaway"], phrases[towards], ""),
        "other_words": other_words,
        "planted": (fired @ (fired.columns + ";")).str.rstrip(";").to_numpy(dtype=object),
    }


def _distinct_pairs(plan: dict[str, NDArray], rng: np.random.Generator) -> tuple[Column, Column, Column]:
    """Premise, hypothesis and family of each planned pair; pairs that came out twice are drawn again."""
    n = len(plan["label"])
    texts = np.full((n, 3), "", dtype=object)
    todo = np.arange(n)
    for _ in range(ATTEMPTS):
        rows = {name: values[todo] for name, values in plan.items()}
        texts[todo] = np.column_stack(_pairs(rows, rng))
        todo = np.flatnonzero(pd.DataFrame(texts[:, :2]).duplicated())
        if not len(todo):
            return texts[:, 0], texts[:, 1], texts[:, 2]
    raise CorpusError(f"planted: {len(todo)} of n={n} pairs still repeat others after {ATTEMPTS} draws: ask for fewer")


def _pairs(rows: dict[str, NDArray], rng: np.random.Generator) -> tuple[Column, Column, Column]:
    """One draw of premise, hypothesis and family for each row of the plan."""
    n = len(rows["label"])
    family, premise_form, hypothesis_form = (np.empty(n, dtype=object) for _ in range(3))
    blurred = rows["ambiguous"]
    for mask, choose in ((~blurred, _choose_patterns), (blurred, _choose_ambiguous)):
        chosen = choose({name: values[mask] for name, values in rows.items()}, rng)
        family[mask], premise_form[mask], hypothesis_form[mask] = chosen
    slots = draw(n, rng)
    as_said = np.zeros(n, dtype=int)
    premise = _sentence(_fill(premise_form, slots, as_said))
    extra = _sentence(_fill(np.full(n, "{d} {k} {t}", dtype=object), slots, as_said))  # no pattern names {d}
    where = np.where(rng.random(n) < EXTRA_SENTENCE, rng.integers(1, 3, size=n), 0)  # none, before, after
    premise = np.where(where == 1, extra + " " + premise, np.where(where == 2, premise + " " + extra, premise))
    # the hypothesis with its phrase, tail and artifact word
    clause, word = _fill(hypothesis_form, slots, rows["other_words"].astype(int)), rows["artifact_word"]
    clause = np.where(rows["phrase"] != "", rows["phrase"] + " " + clause, clause)
    clause = np.where(rows["tail"] != "", clause + " " + rows["tail"], clause)
    dressed = np.where(rows["word_first"], word + ", " + clause, clause + ", " + word)
    return premise, _sentence(np.where(word == "", clause, dressed)), family


def _choose_patterns(rows: dict[str, NDArray], rng: np.random.Generator) -> tuple[Column, Column, Column]:
    """A family, a pattern of it (neither knows the label), then a premise that makes the true label so."""
    families, hypotheses, options = zip(*PATTERNS, strict=True)
    families, hypotheses = np.array(families, dtype=object), np.array(hypotheses, dtype=object)
    chances = 1 / pd.Series(families).map(Counter(families)).to_numpy()
    sizes = np.array([[len(side) for side in sides] for sides in options])  # (patterns, 4)
    pick = rng.choice(len(PATTERNS), len(rows["label"]), p=chances / chances.sum())
    specific = np.flatnonzero(rows["specific"])
    chances = chances * (sizes[:, 3] > 0)
    pick[specific] = rng.choice(len(PATTERNS), len(specific), p=chances / chances.sum())
    side = np.where(rows["specific"], 3, rows["true_label"])
    premises = np.array(list(zip_longest(*(side for sides in options for side in sides))), dtype=object)
    premise = premises[rng.integers(sizes[pick, side]), sizes.shape[1] * pick + side]
    return families[pick], premise, hypotheses[pick]


def _choose_ambiguous(rows: dict[str, NDArray], rng: np.random.Generator) -> tuple[Column, Column, Column]:
    """A pair of which the given label is one of the two defensible ones."""
    label = rows["label"]
    kind = np.where(label == N, rng.integers(2, size=len(label)), label // 2)  # 0: E or N, 1: N or C
    table = np.array([(each["family"], each["premise"], each["hypothesis"]) for each in AMBIGUOUS], dtype=object)
    kinds = [np.flatnonzero([side in each["labels"] for each in AMBIGUOUS]) for side in (LABELS[E], LABELS[C])]
    pick = np.where(kind == 0, rng.choice(kinds[0], len(kind)), rng.choice(kinds[1], len(kind)))
    return table[pick, 0], table[pick, 1], table[pick, 2]


def _fill(forms: Column, slots: dict[str, Column], otherwise: NDArray[np.int_]) -> Column:
    """Each form with its slots filled from the same row, 0 as said or 1 otherwise; rows of one form together."""
    out = np.empty(len(forms), dtype=object)
    codes, distinct = pd.factorize(forms)
    order = np.argsort(codes, kind="stable")
    for form, rows in zip(distinct, np.split(order, np.cumsum(np.bincount(codes))[:-1]), strict=True):
        text = np.full(len(rows), "", dtype=object)
        for literal, slot in re.findall(r"([^{]*)(?:\{([^}]*)\}|$)", form):
            text = text + literal
            if slot:
                text = text + slots[slot][otherwise[rows], rows]
        out[rows] = text
    return out


def _sentence(clauses: Column) -> Column:
    """Clauses with a capital first letter and a full stop."""
    text = pd.Series(clauses, dtype="str")
    return (text.str[:1].str.upper() + text.str[1:] + ".").to_numpy(dtype=object)
