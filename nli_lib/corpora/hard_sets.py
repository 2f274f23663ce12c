"""Sets that the papers on debiasing test on and the catalogue does not know: MultiNLI's hard parts, and the adversarial
benchmark of Liu et al. (2020).

They are read as they are distributed: the first as parallel line files, the second from the hub or from JSON lines.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.labels import CONTRADICTION_OR_NOT, LABELS, TWO_WAY
from nli_lib.corpora.load import hub, reading, sources
from nli_lib.corpora.load.rows import Rows, build
from nli_lib.corpora.suites import without_folder

FOLDERS = {"matched": "MNLIMatchedHardWithHardTest", "mismatched": "MNLIMismatchedHardWithHardTest"}
LINES = {"premise": "s1.test", "hypothesis": "s2.test", "label": "labels.test"}
# Title of a part -> repository on the hub, split, classes, rows. IS-SD holds HANS's sentences. Labels come by
# name: LI-TS counts contradiction as 1, IS-SD entailment.
BENCHMARK = {
    "PI-CD": ("robust_nli", "PI_CD", LABELS, 3_261),
    "PI-SP": ("robust_nli", "PI_SP", LABELS, 371),
    "IS-SD": ("robust_nli_is_sd", "IS_SD", TWO_WAY, 30_000),
    "IS-CS": ("robust_nli", "IS_CS", LABELS, 656),
    "LI-LI": ("robust_nli", "LI_LI", LABELS, 9_927),
    "LI-TS": ("robust_nli_li_ts", "LI_TS", CONTRADICTION_OR_NOT, 9_832),
    "ST-LM": ("robust_nli", "ST_LM", LABELS, 9_832),
    "ST-NE": ("robust_nli", "ST_NE", LABELS, 9_832),
    "ST-SE": ("robust_nli", "ST_SE", LABELS, 31_211),
    "ST-WO": ("robust_nli", "ST_WO", LABELS, 9_832),
}
OWNER, FIELDS = "pietrolesci", {"premise": "premise", "hypothesis": "hypothesis", "label": "label"}
Found = tuple[dict[str, Corpus], dict[str, str]]


def mnli_hard(part: str, data_dir: str | Path | None = None) -> Corpus:
    """The pairs of MultiNLI's development set, "matched" or "mismatched", that a hypothesis-only model gets wrong.

    Read from the line files s1.test, s2.test and labels.test in ``mnli_hard/`` of the data folder, as Karimi Mahabadi
    et al. (2020) distribute them: 4,573 and 4,530 pairs, with blanks around the punctuation. The uid is the line.
    Raises `CorpusError` where a file is missing, is not UTF-8, or has another number of lines than the others.
    """
    if part not in FOLDERS:
        raise CorpusError(f"part={part!r} is not one of {', '.join(FOLDERS)}.")
    folder, name = sources.data_folder(data_dir), f"mnli_hard/{FOLDERS[part]}"
    columns = {}
    for column, file in LINES.items():
        path = folder / name / file if folder else None
        if path is None or not path.is_file():
            raise CorpusError(f"mnli_hard {part}: {sources.lacking(folder)} {name}/{file}.")
        try:
            columns[column] = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise CorpusError(f"{name}/{file}: byte {error.start} is not UTF-8.") from None
    lengths = {LINES[column]: len(lines) for column, lines in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{file} {count:,}" for file, count in lengths.items())
        raise CorpusError(f"{name}: the files have different numbers of lines ({said}).")
    rows = Rows.of(columns, np.arange(len(columns["label"])), name)
    return build(rows, name="mnli_hard", split=part, source=name)


def mnli_hards(data_dir: str | Path | None = None, limit: int | None = None) -> Found:
    """`mnli_hard` of both parts under the titles of their whole sets, and the reason where one is not at hand.

    ``limit``: of each, a seeded sample.
    """
    found, missing = {}, {}
    for part in FOLDERS:
        title = f"MultiNLI {part}, hard part"
        try:
            found[title] = _sample(mnli_hard(part, data_dir), limit)
        except CorpusError as error:
            missing[title] = str(error)
    return found, missing


def adversarial(
    data_dir: str | Path | None = None, limit: int | None = None, titles: Iterable[str] = tuple(BENCHMARK)
) -> Found:
    """The parts of the adversarial benchmark that are at hand, by title, and those that are not, title -> reason.

    Read from ``robust_nli/<split>.jsonl`` in the data folder, else from the hub, whose copy may change and counts only
    with the rows that the part has. ``limit``: of each, a seeded sample.
    Source: Liu et al. (2020); the paper on debiased generation, Table 5. `report.debiased.benchmark_mean` sums it up.
    """
    folder, found, missing = sources.data_folder(data_dir), {}, {}
    for title in titles:
        repository, split, classes, count = BENCHMARK[title]
        path = folder / "robust_nli" / f"{split}.jsonl" if folder else None
        try:
            if path is not None and path.is_file():
                raw, where = reading.read(path), f"robust_nli/{path.name}"
            else:
                raw, where = hub.read_hub(f"{OWNER}/{repository}", None, split, "main")
                if len(raw.table) != count:
                    raise CorpusError(f"{where}: {len(raw.table):,} rows, but {title} has {count:,}: not the same set")
            picked = raw.pick(FIELDS)
            rows = Rows(picked.table, picked.row, picked.where, picked.skipped, classes)
            corpus = build(rows, name=repository, split=split, source=where)
        except CorpusError as error:
            where = f"{sources.lacking(folder)} robust_nli/{split}.jsonl ({count:,} pairs). Then: {error}"
            missing[title] = without_folder(error if path and path.is_file() else CorpusError(where), data_dir)
            continue
        found[title] = _sample(corpus, limit)
    return found, missing


def _sample(corpus: Corpus, limit: int | None) -> Corpus:
    if limit is None or limit >= len(corpus):
        return corpus
    chosen = np.sort(np.random.default_rng(0).choice(len(corpus), limit, replace=False))
    return replace(corpus[chosen], source=f"{corpus.source}, {limit:,} of {len(corpus):,} examples, seed 0")
