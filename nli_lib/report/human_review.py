"""What a review by people amounts to: what its rules keep, how far it can be repeated, and what was revised.

Annotations are tables as `nli_lib.generate.review` takes them, two or more of an item, or only one: WANLI's
released sample has one annotation of each pair. What its second annotator did is not known, so the rules are asked
twice, for two plain cases of a second annotator (`SECONDS`). Neither is a bound: a second one may discard what the
first has kept.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nli_lib.agreement import kappa
from nli_lib.corpora import people
from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.review import DISCARDED, SIDES, aggregate, as_table, revisions, simulated_annotations
from nli_lib.measure.counterfactual import is_slight, pronouns_changed, word_change
from nli_lib.stats import Estimate, share, wilson

SIMULATED = 4  # annotators, two pairs of them
GIVEN = "as annotated"
SECONDS = ("a second one assents and revises nothing", "a second one does the same")
ORDERS = 20  # seeds, in which each of the two annotations of an item comes first at least once, but for 2 in a million


def annotated(corpus: Corpus, data_dir: str | None = None) -> tuple[str, pd.DataFrame]:
    """(the name of the source, annotations of pairs of ``corpus``): WANLI's workers, or `SIMULATED` simulated ones.

    Simulated annotators read the planted corpus alone. Without WANLI's file, and for any other corpus, the table is
    empty.
    """
    if corpus.name == "planted":
        return corpus.name, simulated_annotations(corpus, SIMULATED)
    if corpus.name == "wanli" and people.find(data_dir):
        return people.NAME, people.annotations(data_dir)
    return people.NAME, as_table([])


def with_second(annotations: pd.DataFrame, how: str) -> pd.DataFrame:
    """The first annotation of each item with a second one that nobody made, as one of `SECONDS` says.

    The first assents: it gives the same label and leaves the texts as generated. The second does the same.
    """
    first = annotations.drop_duplicates("item")
    left = {f"revised_{side}": first[side] for side in SIDES} | {"discarded": False}
    other = first.assign(**left if how == SECONDS[0] else {})
    return pd.concat([first, other.assign(annotator="nobody")], ignore_index=True)


def rules_table(annotations: pd.DataFrame) -> pd.DataFrame:
    """How often each rule of the aggregation applies: second (`GIVEN`, and each of `SECONDS`), rule, items, revised.

    revised  of those items, the ones that are kept with a revised text
    """
    rows, given = [], _twice(annotations)
    cases = {GIVEN: given} | {how: with_second(annotations, how) for how in SECONDS}
    for second, both in cases.items():
        if len(both):
            kept = aggregate(both)
            kept["revised"] = kept["genre"] == "generated_revised"
            counts = kept.groupby("rule")["revised"].agg(["size", "sum"])
            rows += [(second, rule, int(n), int(revised)) for rule, n, revised in counts.itertuples()]
    return pd.DataFrame(rows, columns=["second", "rule", "items", "revised"])


def kept_shares(rules: pd.DataFrame) -> pd.DataFrame:
    """Shares for each second annotator of `rules_table`: columns second, what, value, low, high, n.

    what: "kept", of all items those that nobody discarded; "revised", of the kept ones those with a revised text.
    """
    rows = []
    for second, part in rules.groupby("second", sort=False):
        kept = part[part["rule"] != DISCARDED]
        counts = {"kept": (kept["items"].sum(), part["items"].sum())}
        counts["revised"] = kept["revised"].sum(), kept["items"].sum()
        rows += [(second, what, *wilson(n, of)[:4]) for what, (n, of) in counts.items() if of]
    return pd.DataFrame(rows, columns=["second", "what", "value", "low", "high", "n"])


def repeated(annotations: pd.DataFrame, *, seed: int = 0) -> dict[str, Estimate]:
    """How far another pair of annotators comes to the same: shares of the items that four or more have annotated.

    "kept or discarded": both pairs of annotators keep the item, or both discard it; "label": of the items that both
    keep, those with the same label. The pairs of annotators are drawn with ``seed``.
    """
    mixed = annotations.iloc[np.random.default_rng(seed).permutation(len(annotations))]
    turn, size = mixed.groupby("item").cumcount(), mixed.groupby("item")["item"].transform("size")
    one, other = (mixed[(size >= 4) & (turn // 2 == half)] for half in (0, 1))
    if one.empty:
        return {"kept or discarded": _share([]), "label": _share([])}
    first, second = (aggregate(half, seed=seed)["label"] for half in (one, other))
    both = first.notna() & second.notna()
    same = {"kept or discarded": first.notna() == second.notna(), "label": (first == second)[both]}
    return {what: _share(flags) for what, flags in same.items()}


def revision_table(annotations: pd.DataFrame) -> pd.DataFrame:
    """Every revised text: item, side, words (the change of their number), slight, pronouns (whether changed)."""
    changed = revisions(annotations)
    changed["words"] = word_change(changed["before"], changed["after"])
    changed["slight"] = is_slight(changed["words"])
    changed["pronouns"] = pronouns_changed(changed["before"], changed["after"])
    return changed[["item", "side", "words", "slight", "pronouns"]]


def against_release(annotations: pd.DataFrame, corpus: Corpus) -> pd.DataFrame:
    """The first annotation of each item that was released, beside what was released.

    item
    possible   whether the rules, with a second annotator who left what was released, give what was released
    untouched  whether both the annotator and the released pair left the texts as generated
    same       whether the released label is the annotator's
    """
    released = corpus.table.set_index("uid")[[*SIDES, "label"]]
    first = annotations.drop_duplicates("item")
    first = first[first["item"].isin(released.index)].sort_values("item", ignore_index=True)
    there = released.loc[first["item"]].reset_index(drop=True)
    there["label"] = np.array(corpus.classes, dtype=object)[there["label"]]
    left = {f"revised_{side}": there[side] for side in SIDES} | {"discarded": False, "annotator": "the release"}
    both = pd.concat([first, first.assign(label=there["label"], **left)], ignore_index=True)
    possible = np.zeros(len(first), dtype=bool)
    for seed in range(ORDERS if len(first) else 0):
        made = aggregate(both, seed=seed)
        possible |= (made[[*SIDES, "label"]].to_numpy() == there[[*SIDES, "label"]].to_numpy()).all(axis=1)
    as_made = [(first[side] == first[f"revised_{side}"]) & (first[side] == there[side]) for side in SIDES]
    untouched = np.logical_and(*as_made) & ~first["discarded"]
    same = first["label"] == there["label"]
    return pd.DataFrame({"item": first["item"], "possible": possible, "untouched": untouched, "same": same})


def declared(annotations: pd.DataFrame, released: pd.DataFrame) -> Mapping[str, Estimate]:
    """The declared statistics, claim by claim; NaN with n = 0 where no annotation can tell.

    annotations as given, released as `against_release` makes it.
    """
    changed = revision_table(annotations)
    sides = {side: changed[changed["side"] == side] for side in SIDES}
    kept = annotations[~annotations["discarded"]]
    revised = np.logical_or(*(kept[side] != kept[f"revised_{side}"] for side in SIDES))
    return {
        "wanli-sec2.4-agreement": kappa(_twice(annotations)),
        "wanli-sec2.4-discarded": _share(annotations["discarded"]),
        "wanli-sec2.4-revised-more-than-kept": _share(revised),
        "wanli-sec2.4-label-is-the-released-one": _share(released.loc[released["untouched"], "same"]),
        "wanli-appd.3-premises-change-slightly": _share(sides["premise"]["slight"]),
        "wanli-appd.3-hypotheses-change-slightly": _share(sides["hypothesis"]["slight"]),
        "wanli-appd.3-premise-pronouns": _share(sides["premise"]["pronouns"]),
        "wanli-appd.3-hypothesis-pronouns": _share(sides["hypothesis"]["pronouns"]),
    }


def _twice(annotations: pd.DataFrame) -> pd.DataFrame:
    """The annotations of items that have two or more."""
    return annotations[annotations.groupby("item")["item"].transform("size") >= 2]


def _share(flags: object) -> Estimate:
    """`share`, and NaN of nothing."""
    flags = np.asarray(flags, dtype=bool)
    return share(flags) if len(flags) else Estimate(float("nan"), float("nan"), float("nan"), 0)
