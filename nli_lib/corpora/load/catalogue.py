"""Catalogue: each corpus's name, the official files of its splits, its place on the hub, and its licence."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from nli_lib.corpora.load import adapters
from nli_lib.corpora.load.adapters import Adapter

# Commits of the hub's dataset repositories. "main" marks a set whose commit could not be confirmed when this table was
# written: the commit that was then read is recorded in the corpus's `source`.
REVISIONS = {
    "stanfordnlp/snli": "cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
    "nyu-mll/multi_nli": "da70db2af9d09693783c3320c4249840212ee221",
    "facebook/anli": "8e4813d81f46d313dac7892e1c28076917cfcdf9",
    "alisawuffles/WANLI": "61c95318fd71c55b6ba355d76253254615f387ec",
    "nyu-mll/glue": "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
    "tasksource/hans": "main",
    "pietrolesci/nli_fever": "main",
}


@dataclass(frozen=True)
class Split:
    """One split: its official file names (any one will do, the first found is read), samples of it, and its size.

    files    relative to the corpus's folder; a trailing ".gz" is understood too
    samples  files known to hold a part of the split, read only where no official file is there
    hub      the split's name on the hub, None where the hub has none
    rows     rows of the official release, with those that have no gold label; None where no release states it
    parts    splits that this one joins
    """

    files: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    hub: str | None = None
    rows: int | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """One corpus: how its files are read and where they may lie.

    folders  names under which the corpus's folder is known; the first is the one messages ask for
    hub      repository id on the hub, None where no faithful copy is known
    config   the repository's configuration
    quoted   how a tsv file's double quotes are read, see `nli_lib.corpora.load.reading.read`
    options  arguments of `nli_lib.corpora.load.sources.load` that only this corpus's adapter understands
    """

    title: str
    adapt: Adapter
    splits: dict[str, Split]
    licence: str
    folders: tuple[str, ...]
    hub: str | None = None
    config: str | None = None
    quoted: bool = False
    options: tuple[str, ...] = ()


def _snli() -> dict[str, Split]:
    name = "snli_1.0_{}.jsonl"
    return {
        "train": Split((name.format("train"),), (name.format("train_sample"),), "train", 550_152),
        "validation": Split((name.format("dev"),), hub="validation", rows=10_000),
        "test": Split((name.format("test"),), hub="test", rows=10_000),
        "test_hard": Split((name.format("test_hard"),), rows=3_261),
    }


def _mnli() -> dict[str, Split]:
    name = "multinli_1.0_{}.jsonl"
    return {
        "train": Split((name.format("train"),), (name.format("train_sample"),), "train", 392_702),
        "validation_matched": Split((name.format("dev_matched"),), hub="validation_matched", rows=10_000),
        "validation_mismatched": Split((name.format("dev_mismatched"),), hub="validation_mismatched", rows=10_000),
    }


def _anli() -> dict[str, Split]:
    rows = {"train": (16_946, 45_460, 100_459), "dev": (1_000, 1_000, 1_200), "test": (1_000, 1_000, 1_200)}
    splits = {
        f"{part}_r{i}": Split((f"R{i}/{part}.jsonl",), hub=f"{part}_r{i}", rows=count)
        for part, counts in rows.items()
        for i, count in enumerate(counts, start=1)
    }
    for part, counts in rows.items():
        splits[part] = Split(rows=sum(counts), parts=tuple(f"{part}_r{i}" for i in (1, 2, 3)))
    return splits


def _fever() -> dict[str, Split]:
    return {
        "train": Split(("train_fitems.jsonl",), hub="train", rows=208_346),
        # The three-way dev file as distributed hides its labels, so the two-way file goes before it.
        "validation": Split(
            ("dev_fitems.label.recovered.jsonl", "fever_val.jsonl", "dev_fitems.jsonl"), hub="dev", rows=19_998
        ),
        "test": Split(("test_fitems.jsonl",), hub="test", rows=19_998),
    }


def _cad() -> dict[str, Split]:
    originals = {"train": 1_666, "validation": 200, "test": 400}
    folders = {"original": 1, "revised_premise": 2, "revised_hypothesis": 2, "revised_combined": 4, "all_combined": 5}
    files = {"train": "train", "validation": "dev", "test": "test"}
    return {
        f"{folder}/{part}": Split((f"{folder}/{files[part]}.tsv",), rows=each * count)
        for folder, each in folders.items()
        for part, count in originals.items()
    }


def _glue(train: int, validation: int) -> dict[str, Split]:
    return {
        "train": Split(("train.tsv",), hub="train", rows=train),
        "validation": Split(("dev.tsv",), hub="validation", rows=validation),
    }


def _disco() -> dict[str, Split]:
    rows = {"e2n": 5_698, "n2c": 3_476}
    directions = ("c2e", "c2n", "e2c", "e2n", "n2c", "n2e")
    splits = {name: Split((f"{name}.jsonl", f"augment/{name}.jsonl"), rows=rows.get(name)) for name in directions}
    return {**splits, "all": Split(("disco.jsonl",))}


def _stress() -> dict[str, Split]:
    """The stress test as Naik et al. distribute it: kind/part, the parts as those of MultiNLI dev."""
    sizes = {"matched": 9_815, "mismatched": 9_832}
    names = {
        "word_overlap": "Word_Overlap/multinli_0.9_taut2_{}.jsonl",
        "negation": "Negation/multinli_0.9_negation_{}.jsonl",
        "length_mismatch": "Length_Mismatch/multinli_0.9_length_mismatch_{}.jsonl",
        "spelling_swap": "Spelling_Error/multinli_0.9_dev_gram_swap_{}.jsonl",
        "spelling_keyboard": "Spelling_Error/multinli_0.9_dev_gram_keyboard_{}.jsonl",
        "spelling_content": "Spelling_Error/multinli_0.9_dev_gram_contentword_swap_perturbed_{}.jsonl",
        "spelling_function": "Spelling_Error/multinli_0.9_dev_gram_functionword_swap_perturbed_{}.jsonl",
        "antonym": "Antonym/multinli_0.9_antonym_{}.jsonl",
    }
    rows = {"antonym": {"matched": 1_561, "mismatched": 1_734}, "spelling_content": {"matched": 8_243}}
    rows.update(dict.fromkeys(("word_overlap", "negation", "length_mismatch"), sizes))
    splits = {
        f"{kind}/{part}": Split((name.format(part),), rows=rows.get(kind, {}).get(part))
        for kind, name in names.items()
        for part in sizes
    }
    # the copy in EQUATE is the same set with blanks around its punctuation
    numerical = ("Numerical_Reasoning/multinli_0.9_quant_hard.jsonl", "equate_StressTest_quantitative.csv")
    return {**splits, "numerical": Split(numerical, rows=7_596)}


_BY_SA, _BY_NC, _GLUE_TERMS = "CC BY-SA 4.0", "CC BY-NC 4.0", "GLUE terms of each task; QNLI CC BY-SA 4.0"
_SICK = {
    "train": Split(("SICK_train.txt", "SICK.txt"), rows=4_500),
    "validation": Split(("SICK_trial.txt", "SICK.txt"), rows=500),
    "test": Split(("SICK_test_annotated.txt", "SICK.txt"), rows=4_927),
}
_WANLI = {
    "train": Split(("train.jsonl",), ("train_15k_sample.jsonl", "train_sample.jsonl"), "train", 102_885),
    "test": Split(("test.jsonl",), hub="test", rows=5_000),
}
_HANS = {
    "train": Split(("heuristics_train_set.txt", "heuristics_train_set.jsonl"), hub="train", rows=30_000),
    "validation": Split(
        ("heuristics_evaluation_set.txt", "heuristics_evaluation_set.jsonl"), hub="validation", rows=30_000
    ),
}
_CHAOS = {
    "snli": Split(("chaosNLI_snli.jsonl",), rows=1_514),
    "mnli_m": Split(("chaosNLI_mnli_m.jsonl",), rows=1_599),
}

SOURCES: dict[str, Source] = {
    "snli": Source("SNLI", adapters.snli, _snli(), _BY_SA, ("snli", "snli_1.0"), "stanfordnlp/snli"),
    "mnli": Source(
        "MultiNLI",
        adapters.snli,
        _mnli(),
        "OANC, CC BY 3.0, CC BY-SA 3.0 by genre",
        ("mnli", "multinli_1.0", "multinli"),
        "nyu-mll/multi_nli",
    ),
    "anli": Source("ANLI", adapters.anli, _anli(), _BY_NC, ("anli", "anli_v1.0", "anli_v1.1"), "facebook/anli"),
    "wanli": Source("WANLI", adapters.wanli, _WANLI, "CC BY 4.0", ("wanli",), "alisawuffles/WANLI"),
    "hans": Source("HANS", adapters.hans, _HANS, "MIT", ("hans",), "tasksource/hans"),
    "fever": Source(
        "FEVER-NLI",
        adapters.fever,
        _fever(),
        "CC BY-SA 3.0",
        ("fever", "nli_fever"),
        "pietrolesci/nli_fever",
        options=("orientation",),
    ),
    "sick": Source("SICK", adapters.sick, _SICK, "CC BY-NC-SA 3.0", ("sick", "SICK")),
    "cad": Source(
        "Human-CAD", adapters.cad, _cad(), "Apache-2.0; sentences from SNLI", ("cad/NLI", "cad", "NLI"), quoted=True
    ),
    "breaking_nli": Source(
        "Breaking NLI",
        adapters.snli,
        {"test": Split(("dataset.jsonl",), rows=8_193)},
        _BY_SA,
        ("breaking_nli", "data"),
    ),
    "med": Source("MED", adapters.med, {"test": Split(("MED.tsv",), rows=5_382)}, _BY_SA, ("med", "MED")),
    "qnli": Source(
        "QNLI", adapters.qnli, _glue(104_743, 5_463), _GLUE_TERMS, ("glue/QNLI", "QNLI", "qnli"), "nyu-mll/glue", "qnli"
    ),
    "rte": Source(
        "RTE", adapters.rte, _glue(2_490, 277), _GLUE_TERMS, ("glue/RTE", "RTE", "rte"), "nyu-mll/glue", "rte"
    ),
    "wnli": Source(
        "WNLI", adapters.wnli, _glue(635, 71), _GLUE_TERMS, ("glue/WNLI", "WNLI", "wnli"), "nyu-mll/glue", "wnli"
    ),
    "chaosnli": Source("ChaosNLI", adapters.chaosnli, _CHAOS, _BY_NC, ("chaosnli", "chaosNLI_v1.0")),
    "stress": Source(
        "NLI stress test",
        adapters.snli,
        _stress(),
        "none stated; sentences from MultiNLI",
        ("stress", "StressTests", "Stress_Tests", "Stress-Tests"),
    ),
    "disco": Source("DISCO", adapters.disco, _disco(), "MIT; sentences from SNLI", ("disco", "data")),
}


def manifest() -> pd.DataFrame:
    """One row per corpus and split: files wanted, hub id, revision, rows of the official release, licence."""
    rows = [
        {
            "corpus": name,
            "split": split_name,
            "files": " | ".join(f"{source.folders[0]}/{file}" for file in split.files) or " + ".join(split.parts),
            "hub": source.hub if split.hub or split.parts else None,
            "revision": REVISIONS[source.hub] if source.hub and (split.hub or split.parts) else None,
            "rows": split.rows,
            "licence": source.licence,
        }
        for name, source in SOURCES.items()
        for split_name, split in source.splits.items()
    ]
    return pd.DataFrame(rows).astype({"rows": "Int64"})
