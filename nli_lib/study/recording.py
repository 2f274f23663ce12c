"""The record that a running notebook keeps of itself; `nli_lib.study.manifest` says what stands in it."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.load import sources
from nli_lib.errors import UserError
from nli_lib.store import device, environment, now
from nli_lib.study import digests
from nli_lib.study import manifest as records

KINDS = ("corpora", "inputs", "gathered", "declared", "outputs", "exports", "journals", "dial", "recipes", "uses")


class StudyError(UserError, RuntimeError):
    """A notebook asked for something that is not there; the message says what to run."""


class Recording:
    """What one run of a notebook reads, writes and rests on. It is stored when the run begins and when it ends, and
    never where nothing but parts is made (`stored` False).

    Raises `StudyError` when the notebook is being run elsewhere.
    """

    def __init__(self, notebook: str, study: str, parameters: Mapping[str, object], *, stored: bool = True):
        old, pid = records.read(notebook, study), int(os.environ.get(records.RUN_PID) or os.getpid())
        if stored and records.end_state(old)[0] == records.RUNNING and old["pid"] != pid:
            raise StudyError(
                f"process {old['pid']} has been running this notebook since {old['started']}. Wait for it, stop it, or "
                f"delete {records.record_path(notebook, study)}"
            )
        self.clock, self.path = time.monotonic(), paths.NOTEBOOKS / f"{notebook}.ipynb"
        self.record = {
            "notebook": notebook,
            "study": study,
            "state": records.RUNNING,
            "token": os.environ.get(records.TOKEN),
            "pid": pid,
            "started": now(),
            # where the corpora lie on this machine is nobody else's business
            "parameters": {name: value for name, value in parameters.items() if name not in records.NEUTRAL},
            "corpus_file": records.corpus_file(parameters["CORPUS"], parameters["DATA_DIR"]),
            "environment": environment(),
            **digests.code_of(self.path),
            **{kind: {} for kind in KINDS},
        }
        if stored:
            records.write(self.record)
        sources.OBSERVERS[:] = [self.corpus]

    def note(self, kind: str, name: str, value: object) -> None:
        """Write that something was read or written, by kind ("dial", "recipes", "gathered", ...) and name."""
        self.record[kind][name] = value

    def file(self, kind: str, path: Path) -> None:
        """Note a table by its digest: kind "inputs" or "outputs"."""
        self.note(kind, path.relative_to(paths.RESULTS).as_posix(), records.digest_file(path))

    def corpus(self, corpus: Corpus) -> None:
        """Note a corpus: digest, rows, rows left out, source. What is loaded is noted by itself."""
        entry = {"digest": corpus.digest[:16], "rows": len(corpus), "source": corpus.source}
        entry["skipped"] = {reason: int(count) for reason, count in corpus.skipped.items()}
        title = f"{corpus.name} {corpus.split}"
        if self.record["corpora"].get(title, entry) != entry:  # another sample of the same split
            title += f", {len(corpus):,} rows, {entry['digest'][:4]}"
        self.note("corpora", title, entry)

    def rests_on(self, use: str) -> None:
        """Note that what is recorded depends on a part of the library: a key of `digests.USES`."""
        if use not in self.record["uses"]:
            self.record["uses"][use] = digests.USES[use]
            # all at once: a name can stand in several modules, and its digest is that of all that are reached
            self.record["definitions"] = digests.code_of(self.path, self.record["uses"])["definitions"]

    def finish(self, seeds: Sequence[int]) -> None:
        """Note when and how the run ended. Under the runner the last word is the runner's: it counts the cells."""
        reason = records.unanswered(self.record)
        ended = records.INCOMPLETE if reason else records.FINISHED
        self.record |= {
            "state": records.CLOSING if self.record["token"] else ended,
            "reason": reason,
            "ended": now(),
            "seconds": round(time.monotonic() - self.clock, 1),
            "device": device(),
            "seeds": list(seeds),
        }
        records.write(self.record)
