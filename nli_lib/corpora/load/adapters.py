"""Adapters: one function for each source, from its own columns to the library's; labels stay names.

Every function takes the `Raw` rows of one file (official format or hub table) and the split, and returns `Records`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.labels import LABELS, SUPPORTED_OR_REFUTED, TWO_WAY, canonical
from nli_lib.corpora.load.reading import Raw
from nli_lib.corpora.load.rows import Records

Adapter = Callable[[Raw, str], Records]
ORIENTATIONS = ("evidence", "hub")


def pick(raw: Raw, fields: dict[str, Sequence[str]], extras: Sequence[str] = (), advice: str = "") -> pd.DataFrame:
    """The columns of a source under the library's names.

    fields  the library's name -> the source's names for it, the first present one is taken; all but "uid" must be there
    extras  columns kept under their own names where they exist
    advice  what to do about a missing column, for the message
    """
    table, picked = raw.table, {}
    for ours, theirs in fields.items():
        found = next((name for name in theirs if name in table.columns), None)
        if found is not None:
            picked[ours] = table[found]
        elif ours != "uid":
            wanted = " or ".join(map(repr, theirs))
            present = ", ".join(map(repr, table.columns))
            raise CorpusError(f"{raw.where}: column {wanted} is missing; found {present}.{advice}")
    picked.update({name: table[name] for name in extras if name in table.columns and name not in picked})
    return pd.DataFrame(picked)


def snli(raw: Raw, split: str) -> Records:
    """SNLI, MultiNLI, Breaking NLI: sentence1, sentence2, gold_label ("-" without a majority); other names on the hub.

    uid is the pairID, by which SNLI rows are found in ChaosNLI. The parse columns are left out.
    """
    fields = {"uid": ("pairID",), "premise": ("sentence1", "premise"), "hypothesis": ("sentence2", "hypothesis")}
    kept = ("pairID", "captionID", "promptID", "genre", "category", "annotator_labels", "index", "rowID", "tokenised")
    return Records(pick(raw, {**fields, "label": ("gold_label", "label")}, (*kept, "sources")))


def anli(raw: Raw, split: str) -> Records:
    """ANLI: context is the premise, labels are e, n, c; the column `round` (1, 2 or 3) comes from the split's name."""
    fields = {"uid": ("uid",), "premise": ("context", "premise"), "hypothesis": ("hypothesis",), "label": ("label",)}
    table = pick(raw, fields, ("reason", "model_label", "genre", "tag", "emturk"))
    return Records(table.assign(round=int(split[-1])))


def wanli(raw: Raw, split: str) -> Records:
    """WANLI: gold is a name; pairID is the row number of the seed in MultiNLI train, not a MultiNLI pairID.

    The seed's uid is therefore not known (no origin_uid). GPT-3 Curie wrote the pairs; where genre is
    "generated_revised", a worker changed the text.
    """
    fields = {"uid": ("id",), "premise": ("premise",), "hypothesis": ("hypothesis",), "label": ("gold",)}
    table = pick(raw, fields, ("id", "genre", "pairID"))
    revised = table["genre"] == "generated_revised" if "genre" in table else False
    return Records(table.assign(origin_corpus="mnli", maker=np.where(revised, "gpt-3-curie, worker", "gpt-3-curie")))


def hans(raw: Raw, split: str) -> Records:
    """HANS: entailment or non-entailment, with heuristic, subcase and template."""
    fields = {"uid": ("pairID",), "premise": ("sentence1", "premise"), "hypothesis": ("sentence2", "hypothesis")}
    table = pick(raw, {**fields, "label": ("gold_label", "label")}, ("pairID", "heuristic", "subcase", "template"))
    return Records(table, TWO_WAY)


def fever(raw: Raw, split: str, orientation: str = "evidence") -> Records:
    """FEVER as NLI: SUPPORTS is entailment, REFUTES contradiction, NOT ENOUGH INFO neutral.

    Three-way files hold query (the claim) and context (the evidence); the two-way file holds sentence1 (the evidence)
    and sentence2 (the claim) and has no neutral class. With orientation "evidence" the evidence is the premise and the
    claim the hypothesis.

    *Departures*: the hub's copy, and the page that describes the format, call the claim the premise. A hypothesis-only
    model then sees evidence only, which is why the difficulty paper finds no artefact in FEVER. orientation="hub"
    reproduces that.
    """
    if orientation not in ORIENTATIONS:
        raise CorpusError(f'fever: orientation="{orientation}" is not one of {", ".join(ORIENTATIONS)}.')
    two_way = "sentence1" in raw.table.columns
    evidence = ("context", "sentence1") if {"context", "sentence1"} & set(raw.table.columns) else ("hypothesis",)
    claim = ("query", "sentence2") if {"query", "sentence2"} & set(raw.table.columns) else ("premise",)
    fields = {"uid": ("cid",), "premise": evidence, "hypothesis": claim, "label": ("gold_label", "label")}
    if orientation == "hub":
        fields.update(premise=claim, hypothesis=evidence)
    table = pick(raw, fields, ("cid", "fid", "verifiable", "fever_gold_label"))
    note = "claim as premise, as on the hub" if orientation == "hub" else "evidence as premise, claim as hypothesis"
    return Records(table, SUPPORTED_OR_REFUTED, note=note) if two_way else Records(table, note=note)


def sick(raw: Raw, split: str) -> Records:
    """SICK: sentence_A is the premise; labels in upper case. SICK.txt holds all splits, told apart by SemEval_set."""
    fields = {"uid": ("pair_ID", "id"), "premise": ("sentence_A",), "hypothesis": ("sentence_B",)}
    label = ("entailment_judgment", "entailment_label", "label")
    table = pick(raw, {**fields, "label": label}, ("pair_ID", "relatedness_score"))
    if "SemEval_set" not in raw.table.columns:
        return Records(table)
    part = {"train": "TRAIN", "validation": "TRIAL", "test": "TEST"}[split]
    here = (raw.table["SemEval_set"] == part).to_numpy(dtype=bool)
    return Records(table[here].reset_index(drop=True), row=raw.row[here])


def cad(raw: Raw, split: str) -> Records:
    """Human-CAD: no ids. The rows of the revised folders stand in the order of their originals in original/<split>.

    revised_combined has four revisions of each original, revised_premise and revised_hypothesis two, each written by a
    worker for the label that it bears. all_combined has another order, so that its origins are not known.
    """
    fields = {"premise": ("sentence1",), "hypothesis": ("sentence2",), "label": ("gold_label",)}
    table = pick(raw, fields)
    folder, part = split.split("/")
    each = {"revised_premise": 2, "revised_hypothesis": 2, "revised_combined": 4}.get(folder)
    if each is None:
        return Records(table)
    origin = f"cad-original/{part}-" + pd.Series(raw.row // each).astype(str)
    intended = table["label"].map(canonical)
    return Records(table.assign(origin_uid=origin, origin_corpus="cad", maker="worker", intended_label=intended))


def med(raw: Raw, split: str) -> Records:
    """MED: entailment or neutral, where neutral means not entailed: a contradiction counts as not entailment too."""
    fields = {"uid": ("pairID",), "premise": ("sentence1",), "hypothesis": ("sentence2",), "label": ("gold_label",)}
    return Records(pick(raw, fields, ("pairID", "promptID", "genre")), TWO_WAY)


def qnli(raw: Raw, split: str) -> Records:
    """QNLI: the sentence is the premise and the question the hypothesis, as in WANLI and DISCO."""
    fields = {"uid": ("index", "idx"), "premise": ("sentence",), "hypothesis": ("question",), "label": ("label",)}
    return Records(pick(raw, fields), TWO_WAY)


def rte(raw: Raw, split: str) -> Records:
    """RTE: sentence1, sentence2, entailment or not_entailment."""
    fields = {"uid": ("index", "idx"), "premise": ("sentence1",), "hypothesis": ("sentence2",), "label": ("label",)}
    return Records(pick(raw, fields), TWO_WAY)


def wnli(raw: Raw, split: str) -> Records:
    """WNLI: GLUE's file writes 0 for not_entailment and 1 for entailment, the reverse of QNLI and RTE."""
    return Records(rte(raw, split).table, TWO_WAY, {"0": "not_entailment", "1": "entailment"})


def chaosnli(raw: Raw, split: str) -> Records:
    """ChaosNLI: 100 new labels for each example; label is their majority, uid the pairID of SNLI or MultiNLI.

    Extras: n_entailment, n_neutral, n_contradiction (counts of the 100 labels), entropy (bits, as in the file),
    majority, old_label (the original gold label, by name), annotator_labels (the original five) and source.
    """
    fields = {"uid": ("uid",), "label": ("majority_label",), "example": ("example",), "count": ("label_count",)}
    table = pick(raw, fields)
    inner = [example if isinstance(example, dict) else {} for example in table["example"]]
    counts = table["count"].to_numpy()
    wrong = [i for i, three in enumerate(counts) if not (isinstance(three, list) and len(three) == 3)]
    if wrong:
        row = int(raw.row[wrong[0]]) + 1
        raise CorpusError(f"{raw.where}: row {row}, field 'label_count': not three counts but {counts[wrong[0]]!r}.")
    three = np.array(counts.tolist(), dtype=np.int64).reshape(-1, 3)
    out = table[["uid", "label"]].assign(
        premise=[example.get("premise") for example in inner],
        hypothesis=[example.get("hypothesis") for example in inner],
        n_entailment=three[:, 0],
        n_neutral=three[:, 1],
        n_contradiction=three[:, 2],
        majority=[canonical(letter) for letter in table["label"]],
        source=[example.get("source") for example in inner],
    )
    kept = pick(raw, {}, ("entropy", "old_label", "old_labels")).rename(columns={"old_labels": "annotator_labels"})
    if "old_label" in kept:
        kept["old_label"] = [canonical(letter) for letter in kept["old_label"]]
    return Records(pd.concat([out, kept], axis=1))


def disco(raw: Raw, split: str) -> Records:
    """DISCO releases: the counterfactual (new_premise, new_label), written by GPT-3 for the label that it bears.

    The original is a pair of SNLI without its uid, so its text and label are kept: origin_premise (the hypothesis is
    the same), origin_label.
    """
    fields = {"uid": ("guid",), "premise": ("new_premise",), "hypothesis": ("hypothesis",), "label": ("new_label",)}
    kept = {"origin_premise": ("premise",), "origin_label": ("label",)}
    extras = ("guid", "span_prev", "gen_out", "score", "accept", "prompt", "prefix", "suffix")
    table = pick(raw, {**fields, **kept}, extras)
    intended = table["label"].map(canonical)
    return Records(table.assign(origin_corpus="snli", maker="text-davinci-002", intended_label=intended))


def own(raw: Raw, columns: dict[str, str] | None = None) -> Records:
    """A user's own file: premise, hypothesis, label (names), uid where there is one; every other column is kept.

    columns  the library's name -> the file's, for instance ``{"premise": "text_a", "label": "gold"}``; without it the
             names of the SNLI format (sentence1, sentence2, gold_label) are understood too

    A file that knows not_entailment, and neither neutral nor contradiction, has two classes.
    """
    fields = {
        "uid": ("uid",),
        "premise": ("premise", "sentence1"),
        "hypothesis": ("hypothesis", "sentence2"),
        "label": ("label", "gold_label"),
    }
    unknown = sorted(set(columns or {}) - set(fields))
    if unknown:
        raise CorpusError(f"columns={columns}: {', '.join(unknown)} is not one of {', '.join(fields)}.")
    absent = [theirs for theirs in (columns or {}).values() if theirs not in raw.table.columns]
    if absent:
        found = ", ".join(map(repr, raw.table.columns))
        named = ", ".join(map(repr, absent))
        raise CorpusError(f"{raw.where}: columns= names {named}, which is not in the file; found {found}.")
    fields.update({ours: (theirs,) for ours, theirs in (columns or {}).items()})
    taken = {next((name for name in theirs if name in raw.table.columns), None) for theirs in fields.values()}
    rest = [name for name in raw.table.columns if name not in taken]
    table = pick(raw, fields, rest, ' Rename the column, or pass columns={"premise": "its name", ...}.')
    named = {canonical(label) for label in table["label"].unique()}
    two = "not_entailment" in named and named.isdisjoint({"neutral", "contradiction"})
    return Records(table, TWO_WAY if two else LABELS)
