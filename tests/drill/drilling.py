"""Pieces of work of the project in processes of their own, to be killed, starved and doubled, and what they leave.

process = begin("fit", home)         # in a group of its own, forked from a warm server
end(process)                         # its exit code
results_of(home) == results_of(other)
"""

import contextlib
import functools
import hashlib
import importlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from tiny import wait_until, write_notebook
from tiny_words import WORDS, make_corpus

import nli_lib
from nli_lib import paths
from nli_lib.errors import UserError
from nli_lib.store import DRAFT, RunSpec, atomic, write_array

ROOT = Path(__file__).resolve().parents[2]
SHARED = "DRILL_SHARED"  # names the folder of models and corpora, whose paths are part of what a run is
SEAMS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["drilling", "warm"])
TRAINS = """#| measure
from nli_lib.learn.fit import fit
from nli_lib.learn.predict import predict
corpus = study.corpus(limit=90)
runs = [fit(study.spec("wanli", seed=seed, model={encoder!r}, epochs=6, limit=90), corpus) for seed in range(3)]
"""
SAVES = """#| measure
import pandas as pd
study.save(pd.DataFrame({"said": [predict(run, corpus)[:, 0].sum() for run in runs]}), "answers")"""
READS = """#| measure
study.save(study.table("answers", notebook="1_trains").describe(), "scores")"""
SHOWS = 'study.say("They say {n:.3f}.", n=study.table("answers")["said"].iloc[0])'


# ---------------------------------------------------------------- what is worked on


def shared() -> Path:
    return Path(os.environ[SHARED])


def prepare() -> None:
    """Two models with random weights and a corpus in two files, which all homes use."""
    from tiny_models import make_language_model, write_encoder

    signs, names = ("surely", "perhaps", "never"), [f"n{at}" for at in range(40)]
    labels = ("entailment", "neutral", "contradiction")
    write_encoder(shared() / "encoder", [*WORDS, *signs, *names])
    make_language_model(shared() / "language-model")
    for file, start, n in (("mine.csv", 0, 150), ("held.csv", 1_000, 90)):
        draw = random.Random(start)
        rows = []
        for at in range(start, start + n):
            words = f"it {signs[at % 3]} {draw.choice(names)}"
            rows.append((f"dog {names[at // 2 % 40]} {names[at // 80 % 40]} runs", words, labels[at % 3]))
        pd.DataFrame(rows, columns=["premise", "hypothesis", "label"]).to_csv(shared() / file, index=False)
    for path in shared().glob("*/*.safetensors"):
        path.chmod(0o644)  # another user reads them as well


def furnish(home: Path) -> Path:
    """An empty project: two chapters, one that trains and one that reads its table, and a small book."""
    for name in ("notebooks", "book", "data"):
        (home / name).mkdir(parents=True)
    write_notebook(home / "notebooks", "1_trains", TRAINS.format(encoder=str(shared() / "encoder")), SAVES, SHOWS)
    write_notebook(home / "notebooks", "2_reads", READS)
    (home / "notebooks" / "order.yaml").write_text("1_trains: []\n2_reads: [1_trains]\n")
    for name in ("_config.yml", "references.bib", "_ext", "_static"):
        copy = shutil.copytree if (ROOT / "book" / name).is_dir() else shutil.copy
        copy(ROOT / "book" / name, home / "book" / name)
    (home / "book" / "index.md").write_text("# A small book\n")
    chapters = "\n".join(f"  - file: chapters/{name}" for name in ("1_trains", "2_reads", "status"))
    parts = f"parts:\n- caption: All\n  chapters:\n{chapters}\n"
    (home / "book" / "_toc.yml").write_text(f"format: jb-book\nroot: index\n{parts}")
    return home


def _spec(**changes: object):
    settings = {"corpus": "tiny", "model": str(shared() / "encoder"), "epochs": 4, "batch_size": 8, "max_length": 32}
    return RunSpec(**{**settings, "learning_rate": 1e-3, "precision": "fp32", **changes})


def fit() -> None:
    from nli_lib.learn.fit import fit
    from nli_lib.learn.predict import predict

    predict(fit(_spec(), make_corpus(60)), make_corpus(20, seed=1))


def cross() -> None:
    from nli_lib.learn.predict import cross_score
    from nli_lib.select.selection import folds

    corpus = make_corpus(60)
    logits = cross_score(_spec(epochs=2), corpus, folds(corpus.labels, count=3, seed=0))
    write_array(paths.RUNS / "cross.npy", logits)


def generator() -> None:
    from nli_lib.learn.generator import Generate, train
    from nli_lib.study.parts import draw

    corpus, objective = make_corpus(24), Generate(0.5)
    model = str(shared() / "language-model")
    run = train(_spec(model=model, objective=objective.name, epochs=3, max_length=64, record="last"), corpus, objective)
    samples = draw(run, corpus, 60, at_once=15)
    with atomic(paths.RUNS / "samples.csv") as draft:
        samples.to_csv(draft, index=False)


def parts() -> None:
    """Three parts of a chapter, each of which rests on a training."""
    from nli_lib.learn.fit import fit
    from nli_lib.study.parts import Part, decided, gather

    corpus, specs = make_corpus(60), {f"training {seed}": _spec(seed=seed, epochs=2) for seed in range(3)}

    def make(spec: object) -> pd.DataFrame:
        return pd.DataFrame(fit(spec, corpus).logits[-1], columns=["0", "1", "2"])

    made = {name: functools.partial(make, spec) for name, spec in specs.items()}
    gather({name: Part("1_trains", decided(spec, corpus), made[name]) for name, spec in specs.items()}, "smoke")


def journal() -> None:
    """Ask for forty answers, of which one takes a millisecond; each that is asked is written down."""
    from nli_lib.generate.journal import Answer, Journal

    with Journal(paths.RUNS / "journal.jsonl") as opened:
        for key in map(str, range(40)):
            if not opened.answered(key):
                time.sleep(0.001)
                rest = {"api": "chat", "started": "2026-01-01T00:00:00+00:00", "seconds": 0.5}
                opened.add(Answer(key=key, text=f"answer {key} " * 40, **rest))


def study(*words: str) -> None:
    """`nli-study` with these words."""
    from nli_tools import commands

    sys.argv = ["nli-study", *words]
    commands.main()


def compare() -> None:
    how = ["--seeds", "2", "--folds", "2", "--epochs", "1", "--anyway", "--encoder", str(shared() / "encoder")]
    study("compare", str(shared() / "mine.csv"), "--test", str(shared() / "held.csv"), *how)


JOBS = {
    "prepare": prepare, "a fit": fit, "a cross-scoring": cross, "a generator": generator, "parts": parts,
    "a journal": journal, "a comparison": compare, "a chapter": lambda: study("run", "1_trains"),
    "two chapters": lambda: study("run"), "a book": lambda: study("book"),
    "an audit": lambda: study("audit", str(shared() / "mine.csv"), "--test", str(shared() / "held.csv")),
}  # fmt: skip


# ---------------------------------------------------------------- processes


def begin(job: str, home: Path, **how: object):
    """The process that does a job in a home.

    seam     kills itself and its group at the so-manyth time it is about to open a file to write, move or remove one
    env      environment variables to set, and to unset (None); cwd: the folder that it works in
    user     the number of a user that is not root; largest: bytes of a file
    """
    process = SERVER.Process(target=_work, args=(job, home, os.environ[SHARED]), kwargs=how)
    process.start()
    process.said = _said(home, process.pid)
    return process


def _said(home: Path, pid: int) -> Path:
    return shared() / "said" / f"{home.name[:40]}-{pid}.txt"


def _work(job, home, shared_folder, *, seam=None, env=None, cwd=None, user=None, largest=None) -> None:
    os.setsid()
    os.environ[SHARED] = shared_folder
    said = _said(home, os.getpid())
    said.parent.mkdir(exist_ok=True)
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(out, 1), os.dup2(out, 2)
    os.chdir(cwd or home)
    for name, value in {"NLI_HOME": str(home), **(env or {})}.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    if user is not None:
        os.setgroups([]), os.setgid(user), os.setuid(user)
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    importlib.reload(nli_lib), importlib.reload(paths)
    seen = [0]

    def at_seam(event: str, args: tuple) -> None:
        if event in SEAMS and (event != "open" or (args[2] or 0) & WRITES):
            seen[0] += 1
            if seen[0] == seam:
                os.killpg(0, signal.SIGKILL)

    sys.addaudithook(at_seam)
    try:
        JOBS[job]()
    except (UserError, OSError) as error:  # as `commands.main` ends
        print(error, file=sys.stderr)
        sys.exit(2)
    finally:
        said.with_suffix(".seams").write_text(str(seen[0]))


def end(process, seconds: float = 300.0) -> int | None:
    """The exit code of a process that is waited for, or killed with its group after some seconds: -9."""
    process.join(seconds)
    if process.exitcode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return process.exitcode


def faults_of(process, seconds: float = 300.0) -> list[str]:
    """What is wrong with the end of a process, in its last words; nothing where it ended well."""
    code = end(process, seconds)
    return [f"ended with {code}: {process.said.read_text()[-1500:]}"] if code else []


def wait_for_kernels(home: Path) -> None:
    """Until no process of a home is left: a kernel has a group of its own, and ends a second after its runner."""
    mark = f"NLI_HOME={home}\0".encode()

    def lives(path: Path) -> bool:
        with contextlib.suppress(OSError):
            return mark in path.read_bytes()
        return False

    wait_until(lambda: not any(map(lives, Path("/proc").glob("[0-9]*/environ"))))


# ---------------------------------------------------------------- what they leave


TIMES = {"seconds", "tokens_per_second"}
TABLES = (".npy", ".safetensors", ".csv", ".parquet", ".html")
LISTS = ("compare.json", "audit.json", "spec.json", "checksums.json", "journal.jsonl")


def results_of(home: Path) -> dict[str, str]:
    """Every array, model, table, list and page below a home, by digest, without the times at which they were made; and
    whatever was left behind by a draft."""
    found = {}
    for path in sorted(each for part in ("data", "book") for each in (home / part).rglob("*") if each.is_file()):
        name = str(path.relative_to(home))
        if path.name in KNOWN or path.name.endswith("lock"):
            continue
        if any(part.startswith(".") and part not in KNOWN for part in path.relative_to(home).parts):
            found[name] = "left behind"
        elif path.name == "log.jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = str([{key: row[key] for key in row.keys() - TIMES} for row in rows])
        elif path.parent.suffix == ".parts":  # which say when they were made
            found[name] = pd.read_parquet(path).to_csv()
        elif path.suffix in TABLES or path.name in LISTS:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


KNOWN = {DRAFT, ".doctrees", ".buildinfo", ".nojekyll"}


def difference(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """What differs between the results of two homes."""
    return [
        f"{name}: {found.get(name, 'absent')[:60]}, and {expected.get(name, 'absent')[:60]} expected"
        for name in sorted(found.keys() | expected.keys())
        if found.get(name) != expected.get(name)
    ][:5]


def finished_of(home: Path) -> set[tuple]:
    """All that is done and must be found as it is at the end: epochs, predictions, samples, answers, chapters."""
    done, runs = set(), home / "data" / "runs"
    for path in runs.glob("*/log.jsonl"):
        rows = path.read_text().splitlines()
        done |= {(str(path), row) for row in rows[: np.load(path.with_name("done.npy")).sum()]}
    kept = [path for pattern in ("*/predictions/*.npy", "*/samples/*.parquet") for path in runs.glob(pattern)]
    kept += (home / "data" / "results").glob("*/*.parts/[!.]*.parquet")
    done |= {(str(path), path.stat().st_mtime_ns) for path in kept}
    for path in runs.glob("journal.jsonl"):
        data = path.read_bytes()
        done |= {(str(path), line) for line in data[: data.rfind(b"\n") + 1].splitlines()}
    for path in (home / "data" / "results").glob("*/[!.]*.json"):
        record = json.loads(path.read_text())
        done |= {(str(path), record["token"])} if record["state"] == "finished" else set()
    return done


class Ended(NamedTuple):
    """How a job ends that nothing disturbs."""

    results: dict[str, str]
    seconds: float
    seams: int


class Whole:
    """The undisturbed ends of jobs, each made once, in a home of its own."""

    def __init__(self, folder: Path):
        self.folder, self.known = folder, {}

    def __call__(self, job: str) -> Ended:
        if job not in self.known:
            home = self.home(f"whole {job}", job)
            clock, process = time.monotonic(), begin(job, home)
            code = end(process)
            seconds, told = time.monotonic() - clock, process.said.read_text()
            assert code == 0, told
            seams = int(process.said.with_suffix(".seams").read_text())
            print(f"{job}: {seconds:.1f} s, {seams} seams", flush=True)
            self.known[job] = Ended(results_of(home), seconds, seams)
        return self.known[job]

    def home(self, name: str | Path, job: str) -> Path:
        """A home in which everything stands that a job needs: a book needs the tables of chapters."""
        home = furnish(self.folder / name)
        if job == "a book":
            self("two chapters")
            results = Path("data", "results")
            shutil.copytree(self.folder / "whole two chapters" / results, home / results)
        return home
