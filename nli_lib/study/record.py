"""The record of a notebook's run: what ran, with what, how it ended, and whether it still stands for the code at hand.

One JSON file a notebook, `data/results/<study>/<notebook>.json`, beside its tables. The notebook itself writes it
(`nli_lib.study.standing`), the runner that watches it (`execute`, `runner`), and `standing.confirm`. "finished" is
never taken from papermill, which marks a notebook whose kernel died as completed::

    notebook, study, state, reason, started, ended, seconds, device, seeds, pid, token, environment, parameters
    cells, definitions, defaults      the code that decides the numbers, see `standing.code_of`
    uses                              what of the library was used through `study`, a key of `standing.USES` each
    dial, recipes                     keys of the dial and recipes that were read, with their values
    corpora                           every corpus and suite that was read: digest, rows, rows left out, source
    corpus_file                       digest of a user's own file
    inputs, outputs                   digests of the tables of other notebooks that were read, of those written
    exports                           digests of the tables in `paths.EXPORTS` that were written or read
    journals                          answers of a language model: how many, by whom, their digest, that of the prompt
    gathered                          part -> the notebooks whose tables were gathered
    declared                          digests of the files of the book that were read
    confirmed                         see `standing.confirm`
"""

import contextlib
import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from datetime import datetime
from numbers import Number
from pathlib import Path

import psutil

from nli_lib import paths
from nli_lib.errors import UserError
from nli_lib.store import atomic, reading, write_json
from nli_lib.study.dial import is_own_file, own_path, read_scale

# End states. "closing" is a notebook that reached its last line and waits for the runner's word.
FINISHED, RUNNING, CLOSING, INTERRUPTED, NEVER = "finished", "running", "closing", "interrupted", "never run"
INCOMPLETE = "incomplete"  # to its last line, but with something missing

# what a run reads, writes and rests on: fields of a record that are filled while it runs
KINDS = ("corpora", "inputs", "gathered", "declared", "outputs", "exports", "journals")
KINDS += ("dial", "turned", "recipes", "uses")
# of a record's fields, as far as others compute with them; a run that was cut short lacks the last of them
TYPES = {"state": str, "reason": str, "ended": str, "seconds": Number, "seeds": list}
TYPES |= dict.fromkeys((*KINDS, "parameters", "environment", "definitions"), dict)

# what the runner tells a kernel by its environment
TOKEN = "NLI_RUN_TOKEN"  # which run it belongs to
RUN_PID = "NLI_RUN_PID"  # the runner's process, which outlives the kernel

CLOCKS = 60  # seconds by which the record's clock and that of the processes may differ
NEUTRAL = {"DATA_DIR"}  # parameters that change no number: where the corpora lie


class StudyError(UserError, RuntimeError):
    """The study cannot do what was asked; the message says why and what to do."""


def study_name(scale: str, corpus: str | None, turned: Mapping[str, object] | None = None) -> str:
    """The folder a run's tables live in: the scale's name on its own corpus, else "<scale>-<corpus>"; where knobs
    of a notebook are turned, with "+<knob>=<value>" for each of them.

    A file's name is followed by four digits that stand for its place, so that two files of one name are two studies.
    """
    if corpus in (None, read_scale(scale).corpus):
        return scale + _as_turned(turned)
    words = [scale, re.sub(r"[^A-Za-z0-9_]+", "-", Path(corpus).name.split(".")[0])]
    if is_own_file(corpus):
        words.append(digest_bytes(str(Path(corpus).expanduser().resolve()).encode())[:4])
    return "-".join(words) + _as_turned(turned)


def _as_turned(turned: Mapping[str, object] | None) -> str:
    said = "".join(
        f"+{name.lower()}={re.sub(r'[^A-Za-z0-9_.]+', '-', str(value)).strip('-')}"
        for name, value in sorted((turned or {}).items())
    )
    return said if len(said) <= 80 else f"{said[:60]}+{digest_bytes(said.encode())[:8]}"


def record_path(notebook: str, study: str) -> Path:
    return paths.RESULTS / study / f"{notebook}.json"


def read(notebook: str, study: str) -> dict:
    """The stored record, or {"state": "never run"}; one that cannot be read says so in its state's reason."""
    path = record_path(notebook, study)
    unread = {"notebook": notebook, "study": study}
    try:
        record = {**unread, **json.loads(path.read_text(encoding="utf-8"))}
        if wrong := [name for name, kind in TYPES.items() if name in record and not isinstance(record[name], kind)]:
            raise TypeError(f"{wrong[0]} is {record[wrong[0]]!r}, not {TYPES[wrong[0]].__name__}")
        return record
    except FileNotFoundError:
        return {**unread, "state": NEVER}
    except (OSError, ValueError, TypeError) as error:
        return {**unread, "state": "unreadable", "reason": f"{path}: {error}; delete it and run the notebook again"}


def write(record: Mapping) -> None:
    write_json(record_path(record["notebook"], record["study"]), record)


def end_state(record: Mapping) -> tuple[str, str]:
    """(state, reason) as it is now: a run still marked running whose process is gone was interrupted."""
    state, reason = record.get("state", NEVER), record.get("reason", "")
    if state in (RUNNING, CLOSING) and not _alive(record.get("pid"), record.get("started")):
        return INTERRUPTED, f"its process {record.get('pid')} is gone, nothing said why"
    return state, reason


def unanswered(record: Mapping) -> str:
    """Why a run that came to its last line is not finished: requests to a language model failed; "" where none did."""
    failed = [entry for entry in record.get("journals", {}).values() if entry.get("failed")]
    return " ".join(
        f"{entry['failed']:,} of {entry['failed'] + entry['answered']:,} requests to the language model failed, most "
        f"with {entry.get('reason') or 'no reason'}. The same command asks for them again."
        for entry in failed
    )


def _alive(pid: object, started: object) -> bool:
    """Whether the process of a run is still there. One that began after the run has its number by chance, as after the
    restart of a container; one that was killed can keep its number as long as nobody asks how it ended."""
    if not isinstance(pid, int) or not psutil.pid_exists(pid):
        return False
    with contextlib.suppress(psutil.Error, TypeError, ValueError):  # just gone or not ours to ask; no such time
        process = psutil.Process(pid)
        there = process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        return there and process.create_time() <= datetime.fromisoformat(started).timestamp() + CLOCKS
    return True


def cells(notebook: Path) -> list[dict]:
    """The cells of a notebook's file, the source of each as one text, its tags as a set. nbformat takes a second to be
    imported.

    Raises
    ------
    StoreError
        For a file that is no notebook.
    """
    with reading(notebook, "take the marks of a merge out of it, or fetch it again"):
        found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        texts = [{**cell, "source": "".join(cell["source"])} for cell in found]
        return [{**cell, "tags": set(cell["metadata"].get("tags", []))} for cell in texts]


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all, and only where its text is another: what was made from it then stands."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with atomic(path) as draft:
            draft.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- digests


def digest_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def digest_file(path: Path) -> str | None:
    """Digest of a file's bytes; None where there is no such file."""
    return digest_bytes(path.read_bytes()) if path.is_file() else None


def notebooks_with(part: str, study: str) -> list[str]:
    """Names of the notebooks that have recorded a table `part` in this study, sorted."""
    folder = paths.RESULTS / study
    return sorted({path.name.split(".")[0] for path in folder.glob(f"*.{part}.*") if path.name[0] != "."})


def corpus_file(corpus: str | None, data_dir: str | None = None) -> str | None:
    """Digest of a user's own corpus file; None for the published corpora, which do not change."""
    path = own_path(corpus, data_dir) if corpus else None
    return digest_file(path) if path else None


def command(notebook: str, scale: str, corpus: str | None, **more: str | None) -> str:
    """The shell command that runs a notebook of a study; ``more`` options by name, those that are None left out."""
    given = {"scale": scale, "corpus": corpus, **more}
    words = [word for name, value in given.items() if value for word in (f"--{name.replace('_', '-')}", value)]
    return shlex.join(["nli-study", "run", notebook, *words])


def recorded(record: Mapping) -> str:
    """When and with what a finished record was made, in words."""
    seeds = f"seeds {', '.join(map(str, record['seeds']))}; " if record.get("seeds") else ""
    where = re.sub(r"\b1 cores\b", "1 core", record.get("device", ""))  # as it was written into records
    return (
        f"Recorded {record.get('ended', '')[:10]} in {record.get('seconds', 0):,.0f} s on {where}; "
        f"{seeds}revision {record.get('environment', {}).get('revision', 'unknown')}"
    )
