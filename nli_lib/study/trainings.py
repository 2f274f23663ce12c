"""The trainings of chapter 61 as a table, one row each, and those of a seed that another machine has done.

    table = trained(plan, tests)                    # every seed: taken over where it is recorded, trained where not
    right = right_of(table, tests)                  # as `report.budgets` reads it
    record(plan, 0)                                 # what `python -m nli_lib.study.trainings small 0` does

Machines that share a folder share its runs. Those that do not can do a seed each, or some arms of it: `record` leaves
their rows in `data/results/<study>/61_equal_budgets.seed-<n>.parquet`, some fifty kilobytes without any text, and the
chapter takes them over. It trains an arm anew where its corpora, its settings or the code that chooses its pairs are
others now; a source that another arm adds does not count, nor, as with the runs of the store, the training loop's code.

Columns of the table
    seed, arm, which (`ARM` or `TWIN`), reason (why an arm could not be made; the rest is then missing)
    rows, updates, different, added, labels    as in `select.arms.TrainingSet`
    one column a class                         rows of that label
    corpora                                    names of the corpora in the set, joined by ";"
    training seconds, scoring seconds          of the training, and of the models that score the candidates for it
    device                                     what it was trained on
    right: <title>                             which pairs of a test set it gets right, one bit a pair
    key                                        what the row rests on, as a digest
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from filelock import FileLock
from numpy.typing import NDArray

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.select.arms import ARM, BY_NAME, TrainingSet
from nli_lib.store import atomic, reading
from nli_lib.study import manifest as records
from nli_lib.study.budgets import NOTEBOOK, Plan
from nli_lib.study.digests import dependences

DECIDE = ("budget", "share", "candidates", "epochs", "folds", "beta", "gamma")  # keys of the dial, for every seed
RIGHT = "right: "


class SeedError(UserError, ValueError):
    """No such seed; the message names those that there are."""


def trained(plan: Plan, tests: Mapping[str, Corpus], arms: Sequence[str] | None = None) -> pd.DataFrame:
    """The trainings of every seed and of some arms, by default of all of the plan."""
    return pd.concat([of_seed(plan, seed, tests, arms) for seed in plan.seeds_of("base")], ignore_index=True)


def record(plan: Plan, seed: int, arms: Sequence[str] | None = None) -> Path:
    """Train what is missing of a seed's arms, by default of all, and leave their rows for another machine, with those
    that it has recorded before; the file that was written.

    Raises `SeedError` for a seed or an arm that the plan has not.
    """
    if seed not in plan.seeds_of("base"):
        raise SeedError(f"chapter 61 has the seeds 0 to {len(plan.seeds_of('base')) - 1}, and not {seed}")
    if unknown := [arm for arm in arms or () if arm not in plan.arms_of(seed)]:
        raise SeedError(f"seed {seed} has no arm {unknown[0]!r}, but {', '.join(plan.arms_of(seed))}")
    made, path = of_seed(plan, seed, plan.tested, arms), file_of(plan, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")), atomic(path) as draft:  # another process may record other arms
        before = recorded(plan, seed, plan.tested)
        others = before[~before["arm"].isin(made["arm"])]
        both = pd.concat([each for each in (others, made) if len(each)], ignore_index=True)
        both.to_parquet(draft, index=False, compression="zstd")
    return path


def recorded(plan: Plan, seed: int, tests: Mapping[str, Corpus]) -> pd.DataFrame:
    """The rows that `record` left of a seed; no row where there are none, or where they rest on something else."""
    path = file_of(plan, seed)
    if not path.is_file():
        return pd.DataFrame(columns=["arm"])
    with reading(path, "delete it to train this seed again"):
        table = pd.read_parquet(path)
        fits = table["key"] == table["arm"].map(keys_of(plan, seed, tests))
    void = f", {(~fits).sum()} rest on other data, settings or code" if not fits.all() else ""
    print(f"seed {seed}, {path.name}: {fits.sum()} rows are taken over{void}", flush=True)
    return table[fits].reset_index(drop=True)


def file_of(plan: Plan, seed: int) -> Path:
    return paths.RESULTS / plan.study / f"{NOTEBOOK}.seed-{seed}.parquet"


def keys_of(plan: Plan, seed: int, tests: Mapping[str, Corpus]) -> dict[str, str]:
    """Arm -> digest of what decides its trainings with a seed: dial, recipe, candidates, what it adds, test sets, and
    the code that chooses."""
    candidates, additions = plan.candidates(seed), plan.additions(seed)
    common = [
        {name: getattr(plan.dial, name) for name in DECIDE} | {"threshold": plan.threshold},
        plan.spec_of(candidates, seed).model_dump(),
        [(title, each.digest) for title, each in {"candidates": candidates, **tests}.items()],
        dependences(["nli_lib.select.arms"]),
    ]
    sources = {arm: BY_NAME[arm].source for arm in plan.arms_of(seed)}
    added = {arm: additions[each].digest if each in additions else "" for arm, each in sources.items()}
    return {arm: records.digest_bytes(repr([*common, added[arm]]).encode()) for arm in sources}


def of_seed(plan: Plan, seed: int, tests: Mapping[str, Corpus], arms: Sequence[str] | None = None) -> pd.DataFrame:
    """The rows of one seed, in the order of the arms: recorded ones are taken over, the others trained."""
    wanted, before = plan.arms_of(seed, arms), recorded(plan, seed, tests)
    left = [arm for arm in wanted if arm not in set(before["arm"])]
    sets, absent = plan.sets(seed, left) if left else ({}, {})
    rows = [{"arm": arm, "which": "", "reason": reason} for arm, reason in absent.items()]
    rows += [{**each, "reason": ""} for each in _rows(plan, seed, sets, tests)]
    keys = keys_of(plan, seed, tests)
    new = pd.DataFrame([{**row, "seed": seed, "key": keys[row["arm"]]} for row in rows])
    table = pd.concat([each for each in (before, new) if len(each)], ignore_index=True)
    order = table["arm"].map({arm: at for at, arm in enumerate(wanted)})
    table = table[order.notna()].iloc[order.dropna().argsort(kind="stable")]
    return table.reset_index(drop=True).assign(seed=seed)  # a whole number, whatever the recorded rows lack


def _rows(
    plan: Plan, seed: int, sets: Mapping[tuple[str, str], TrainingSet], tests: Mapping[str, Corpus]
) -> Iterator[dict[str, object]]:
    for (arm, which), made in sets.items():
        run, right = plan.tested_run(made, seed, tests)
        about = run.store.read_json("about.json")
        yield {
            "arm": arm,
            "which": which,
            "rows": len(made.corpus),
            "updates": plan.updates(made),
            "different": made.distinct,
            "added": made.added,
            "labels": made.labels,
            **made.corpus.counts,
            "corpora": ";".join(sorted(set(made.corpus.table["corpus"]))),
            "training seconds": float(about["seconds"]),
            "scoring seconds": plan.scoring_seconds(seed, arm),
            "device": about["device"],
            **{RIGHT + title: np.packbits(each).tobytes() for title, each in right.items()},
        }


# ---------------------------------------------------------------- what is read off the table


def right_of(table: pd.DataFrame, tests: Mapping[str, Corpus]) -> dict[tuple[str, str], dict[str, NDArray[np.bool_]]]:
    """(arm, which) -> title of a test set -> (S, N) bool, as `report.budgets` reads it. An arm that could not be made
    with every seed has the trainings with which it was."""
    return {
        key: {title: np.stack([_unpacked(bits, len(test)) for bits in part[RIGHT + title]])
              for title, test in tests.items()}
        for key, part in table[table["reason"] == ""].groupby(["arm", "which"], sort=False)
    }  # fmt: skip


def _unpacked(bits: bytes, count: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(bool)


def costs(table: pd.DataFrame, written: Mapping[str, tuple[float, float]]) -> pd.DataFrame:
    """What an arm costs, mean over its trainings.

    written  source -> tokens and seconds that a language model took for each pair of it (`Plan.written_for`)
    Columns: arm, machine seconds (its training, the models that score its candidates, the writing of what it adds),
    tokens (of a language model), human labels.
    """
    arms = table[(table["reason"] == "") & (table["which"] == ARM)]
    each = np.array([written.get(BY_NAME[arm].source, (0.0, 0.0)) for arm in arms["arm"]]).reshape(-1, 2)
    tokens, seconds = (each * arms[["added"]].to_numpy()).T
    found = arms[["arm"]].assign(
        **{"machine seconds": arms["training seconds"] + arms["scoring seconds"] + seconds},
        tokens=tokens,
        **{"human labels": arms["labels"]},
    )
    return found.groupby("arm", sort=False).mean().reset_index()


def main(
    scale: Annotated[str, typer.Argument(help="smoke, small or full")],
    seed: Annotated[int, typer.Argument(help="the seed to train, from 0 on")],
    corpus: Annotated[str | None, typer.Option(help="another corpus, by name or path")] = None,
    data_dir: Annotated[str | None, typer.Option(help="folder of corpora")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="one of the arms; may be repeated. Default: all")] = None,
) -> None:
    """Trainings of chapter 61 with one seed, recorded for the machine that runs the chapter."""
    try:
        print(record(Plan.from_scale(scale, corpus, data_dir), seed, arm))
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    typer.run(main)
