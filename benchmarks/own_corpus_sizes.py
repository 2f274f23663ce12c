"""`nli-study audit` on files that are large in one way: wall time, processor time and peak memory, and how it ended.

    python benchmarks/own_corpus_sizes.py                    # 500,000 pairs, 20,000 columns, one field of 100 MB
    python benchmarks/own_corpus_sizes.py --pairs 2000000

Each audit is a process of its own, whose peak memory (getrusage) holds the reading of the file. The pairs are made of a
template; real ones, whose features keep growing, are measured by benchmarks/audit.py. Needs no data.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nli_lib.corpora.corpus import LABELS

HEADER = "premise,hypothesis,label"


def pairs(count: int, seed: int = 0) -> Iterator[str]:
    """Lines of a csv file: three pairs of every premise, of 2,000 people, things and places."""
    rng = np.random.default_rng(seed)
    for at, (who, what, where, other) in enumerate(rng.integers(0, 2_000, (count // 3 + 1, 4)).tolist()):
        premise = f"Person{who} carries thing{what} through place{where} on day {at}."
        yield f"{premise},Person{who} is in place{where}.,entailment"
        yield f"{premise},Person{who} bought thing{what} from person{other}.,neutral"
        yield f"{premise},Nobody carries thing{what} in place{other}.,contradiction"


def files(folder: Path, count: int | None) -> Iterator[tuple[str, Path]]:
    """What is large, and the file, one after another."""
    path = folder / "mine.csv"
    for size in (500_000,) if count is None else (count,):
        path.write_text("\n".join([HEADER, *pairs(size)]))
        yield f"{size:,} pairs", path
    if count is None:
        row = [*pairs(300)]
        path.write_text(
            "\n".join(
                [f"{HEADER},{','.join(f'c{at}' for at in range(20_000))}", *(f"{line}{',x' * 20_000}" for line in row)]
            )
        )
        yield "20,000 columns of 300 pairs", path
        path.write_text("\n".join([HEADER, *row, f"{'word ' * 20_000_000},A person is here.,{LABELS[0]}"]))
        yield "300 pairs and a field of 100 MB", path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, help="only this many pairs")
    count = parser.parse_args().pairs
    print(f"{'file':34} {'seconds':>8} {'of the processor':>17} {'GB':>6}  ended")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NLI_HOME": folder}
        for what, path in files(Path(folder), count):
            command, said = [sys.executable, "-m", "nli_tools", "audit", str(path)], Path(folder) / "said"
            started = time.perf_counter()
            with said.open("w") as out:
                process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
                _, status, used = os.wait4(process.pid, 0)
            seconds, code = time.perf_counter() - started, os.waitstatus_to_exitcode(status)
            end = f"{code}" if code == 0 else f"{code}: {said.read_text().splitlines()[-1]}"
            taken = used.ru_utime + used.ru_stime
            print(f"{what:34} {seconds:8.0f} {taken:17.0f} {used.ru_maxrss / 1e6:6.1f}  {end}", flush=True)


if __name__ == "__main__":
    main()
