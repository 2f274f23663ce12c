"""Notebooks, book and recorded tables that an installed library brings along, copied into the project's home.

In a clone they lie where they are, and nothing happens. `setup.py` puts them into the wheel.
"""

import shutil
from importlib import metadata
from pathlib import Path

from nli_lib import paths
from nli_lib.errors import UserError
from nli_lib.store import atomic

FOLDER = Path(__file__).resolve().parents[1] / "carried"
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
    """Copy into `paths.HOME` what the installed library carries, where it has not been. What is there is never
    overwritten: of another version, it is a `CarriedError`."""
    if not FOLDER.is_dir():
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


def _mark(stamp: Path, text: str) -> None:
    with atomic(stamp) as draft:
        draft.write_text(text + "\n", encoding="utf-8")
