"""Notebooks, book and recorded tables that the library brings along, in the home that NLI_HOME names.

An installed library copies them there; `setup.py` puts them into the wheel. A clone links to its own, so that they are
read from the clone, and what is written takes the place of a link.
"""

import shutil
from importlib import metadata
from pathlib import Path

from nli_lib import paths
from nli_lib.errors import UserError
from nli_lib.store import atomic

FOLDER = Path(__file__).resolve().parents[1] / "carried"
CLONE = Path(__file__).resolve().parents[2]
MADE = {"__pycache__", "_build", "chapters", "notebooks", "plotly.min.js"}  # by runs, in the folder of the book
STAMP = "nli-study.version"  # in the notebooks' folder: the version that they came with


class CarriedError(UserError, RuntimeError):
    """The notebooks in a home are those of another version; the message says what to do."""


def version() -> str:
    """The version of the installed library; of one that is not installed, but on the path, "not installed"."""
    try:
        return metadata.version("nli-quality-study")
    except metadata.PackageNotFoundError:
        return "not installed"


def unpack() -> None:
    """Copy into `paths.HOME` what the installed library carries, or link to what the clone holds, where it has not been
    done. What is there is never overwritten: copied from another version, it is a `CarriedError`."""
    if not FOLDER.is_dir():
        _link()
        return
    own, stamp = version(), paths.NOTEBOOKS / STAMP
    if stamp.is_file():
        there, _, unfinished = stamp.read_text(encoding="utf-8").strip().partition(" ")
        if there != own:
            raise CarriedError(
                f"{paths.NOTEBOOKS} and {paths.BOOK} are those of version {there}, installed is {own}: move both "
                "folders away, or set NLI_HOME to a new folder."
            )
        if not unfinished:
            return
    elif paths.NOTEBOOKS.exists() or paths.BOOK.exists():
        return  # a clone named by NLI_HOME, or somebody's own
    _mark(stamp, f"{own} unfinished")  # so that a copy that was interrupted is finished
    print(f"notebooks, book and recorded tables of version {own} are copied into {paths.HOME}", flush=True)
    for source in sorted(path for path in FOLDER.rglob("*") if path.is_file()):
        target = paths.HOME / source.relative_to(FOLDER)
        if not target.exists():
            with atomic(target) as draft:
                shutil.copyfile(source, draft)
    _mark(stamp, own)


def _link() -> None:
    """Link from a home that is not the clone itself to notebooks, book, pins and, once, the recorded tables."""
    linked = paths.NOTEBOOKS.is_symlink()
    if paths.HOME.resolve() == CLONE or (not linked and (paths.NOTEBOOKS.exists() or paths.BOOK.exists())):
        return  # or another clone, or somebody's own
    folders = [CLONE / "book", *([] if linked else sorted(CLONE.glob("data/results/small*")))]
    files = [path.relative_to(CLONE) for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    for name in [Path("constraints.txt"), *(name for name in files if not MADE & set(name.parts)), Path("notebooks")]:
        target = paths.HOME / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)  # a link to a clone that has moved
            target.symlink_to(CLONE / name)
    if not linked:
        print(f"notebooks, book and recorded tables are read from {CLONE}; results go below {paths.HOME}", flush=True)


def _mark(stamp: Path, text: str) -> None:
    with atomic(stamp) as draft:
        draft.write_text(text + "\n", encoding="utf-8")
