"""`nli-study audit` on files of growing size: seconds, seconds of the processor, and peak memory, as a table and drawn.

    NLI_DATA=... python benchmarks/audit.py                                   # 10,000, 100,000 and 550,000 pairs
    NLI_DATA=... python benchmarks/audit.py --sizes 5000000 --draw cost.png   # five million: four minutes, 8 GB

Each audit is a process of its own on a csv file of the pairs of `benchmarks/z_filter.py`: real ones, repeated, with
words replaced and coined so that features keep growing. The file is made beforehand and is not part of the cost. Peak
memory is that of the process (getrusage), the reading of the file included. The aim is half a million pairs in 8 GB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv
from z_filter import real_pairs, repeated

from nli_lib.corpora.corpus import LABELS
from nli_lib.plots import drawing

AIM = 550_000, 8.0  # pairs, GB


def write(path: Path, size: int, pairs: tuple) -> None:
    """A csv file of `size` pairs."""
    premises, hypotheses, gold, _ = pairs
    texts = [repeated(side, size, 0.1, 0.05, seed) for seed, side in enumerate((premises, hypotheses))]
    labels = pa.array(np.array(LABELS, object)[np.resize(gold, size)], pa.string())
    table = pa.table({"premise": texts[0], "hypothesis": texts[1], "label": labels})
    csv.write_csv(table, path)


def audit(path: Path, home: Path) -> tuple[float, float, float]:
    """Seconds, seconds of the processor, and peak memory in GB of one audit in a process of its own."""
    environment = {**os.environ, "NLI_HOME": str(home)}
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "nli_tools", "audit", str(path)], env=environment)
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"the audit of {path.name} ended with code {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6


def draw(costs: np.ndarray, path: str) -> None:
    """costs (sizes, 4): pairs, seconds, seconds of the processor, peak memory in GB."""
    pairs = costs[:, 0]
    with drawing(1, 2) as (figure, (seconds, memory)):
        seconds.loglog(pairs, costs[:, 1], "o-", label="on the clock")
        seconds.loglog(pairs, costs[:, 2], "s-", label="of the processor")
        seconds.set(xlabel="pairs", ylabel="seconds")
        seconds.legend()
        memory.loglog(pairs, costs[:, 3], "o-", label="peak")
        memory.plot(*AIM, "D", mfc="white", mec="#222222", label=f"the aim: {AIM[0]:,} in {AIM[1]:.0f} GB")
        memory.set(xlabel="pairs", ylabel="memory (GB)")
        memory.legend(loc="upper left")
        figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 550_000], help="pairs")
    parser.add_argument("--draw", help="picture to write")
    parser.add_argument("--table", help="csv file of the costs; what it holds of other sizes is kept and drawn too")
    given = parser.parse_args()
    pairs, costs = real_pairs(), {}
    if given.table and Path(given.table).is_file():
        costs = {int(row[0]): tuple(row[1:]) for row in np.loadtxt(given.table, delimiter=",", skiprows=1, ndmin=2)}
    print(f"{'pairs':>10} {'seconds':>9} {'processor':>10} {'peak GB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for size in sorted(given.sizes):
            path = Path(folder) / f"pairs{size}.csv"
            write(path, size, pairs)
            costs[size] = audit(path, Path(folder) / "home")
            path.unlink()
            print("{:10,d} {:9.1f} {:10.1f} {:8.2f}".format(size, *costs[size]), flush=True)
    rows = np.array([(size, *cost) for size, cost in sorted(costs.items())])
    if given.table:
        np.savetxt(given.table, rows, delimiter=",", fmt="%.6g", header="pairs,seconds,processor,peak GB", comments="")
    if given.draw:
        draw(rows, given.draw)


if __name__ == "__main__":
    main()
