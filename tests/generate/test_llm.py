"""A language model behind a server that misbehaves. Run alone: pytest tests/generate/test_llm.py"""

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1] / "drill"))
from server import serving

from nli_lib.generate import llm
from nli_lib.generate.journal import Journal
from nli_lib.generate.llm import Budget, LanguageModelError, Request, Sampling, ask, estimate, in_turn

SECRET = "sk-very-secret-0123456789"
WORDS = {  # what the server does with a prompt that begins so; it answers all others
    **{"busy": "429 with a second", "two": "two choices", "broken": "500 once", "empty": "empty text"},
    **{"late": "late once", "long": "200 kB", "cut": "cut once"},
    **{"control": "control characters", "page": "echo as page"},
    **{"uncounted": "usage missing", "half": "truncated JSON", "other": "another model"},
    **{"pair": "400 with half a pair", "ruined": "error page", "forbidden": "401"},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The client's own pauses between two tries, made short; what a server asks for is not touched."""
    monkeypatch.setattr(llm, "PAUSE", 0.01)
    monkeypatch.setattr(llm, "LONGEST_PAUSE", 0.02)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "journal.jsonl") as opened:
        yield opened


@pytest.fixture
def started(monkeypatch):
    """A server that the settings point to."""

    @contextmanager
    def start(mode=WORDS, **options):
        with serving(mode, **options) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
            yield server

    return start


def requests_of(*prompts, **fields):
    return [Request(model="tiny", prompt=prompt, **fields) for prompt in prompts]


def numbered(word, count):
    return requests_of(*(f"{word} {number}" for number in range(count)))


def texts(answers):
    return [each.text for each in answers]


def test_a_key_is_the_same_everywhere_and_depends_on_everything():
    request = Request(model="m", prompt="p", sampling=Sampling(top_p=0.5, stop=("\n\n",)))
    assert request.key == "d20d53a0e3d16ba91278"
    changes = {"model": "n"}, {"prompt": "q"}, {"draw": 1}, {"suffix": "s"}, {"sampling": Sampling()}
    assert len({request.model_copy(update=each).key for each in changes} | {request.key}) == 6


def test_every_request_ends_answered_or_failed_with_its_reason(started, journal):
    words = ["fine", *list(WORDS)[:-1]]
    with started() as server:
        began = time.monotonic()
        answers = dict(zip(words, ask(requests_of(*words), journal, timeout=1.0, tries=3), strict=True))
        assert time.monotonic() - began >= 1  # Retry-After
    written = {word: answer.text for word, answer in answers.items() if answer.text is not None}
    again = dict.fromkeys(("busy", "broken", "cut", "late", "other", "uncounted"), "fine")
    assert written == again | {"fine": " after fine", "empty": "", "control": "\x00\x1b[31m\u2028 ? end"}
    reasons = {word: answer.reason for word, answer in answers.items() if answer.text is None}
    said = {"two": "2 texts", "long": "200,000 characters", "page": "no completion but '<p>Bearer ***"}
    said |= {"half": "no completion", "pair": "400 Bad Request: half a pair: ?", "ruined": "502 Bad Gateway: <html>"}
    assert reasons.keys() == said.keys()
    assert {word: reason for word, reason in reasons.items() if said[word] not in reason} == {}
    assert answers["other"].served == "another" and answers["fine"].served == "tiny"
    counted = {word: (answers[word].prompt_tokens, answers[word].estimated) for word in ("fine", "two", "uncounted")}
    assert counted == {"fine": (100, False), "two": (100, False), "uncounted": (3, True)}
    assert max(server.good.values()) == 1 and server.asked["ruined"] == 3
    assert list(Journal(journal.path).answers.values()) == list(journal.answers.values())


def test_what_the_journal_has_needs_no_server(started, journal, monkeypatch):
    wanted = requests_of("fine a", "two", "fine b", "fine a")
    with started() as server:
        first = ask(wanted, journal)
        assert texts(first) == [" after fine a", None, " after fine b", " after fine a"]
        assert ask(wanted, journal) != first  # what had failed was asked again
        assert server.asked == {"fine a": 1, "fine b": 1, "two": 2}
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask(wanted[::2], Journal(journal.path)) == first[::2]


@pytest.mark.parametrize("mode", ["chat only", "chat only, 405", "chat only, 501"])
def test_a_chat_where_there_are_no_completions(started, journal, mode):
    with started(mode):
        assert [(each.api, each.text) for each in ask(numbered("fine", 2), journal)] == [("chat", "fine")] * 2


def test_as_many_prompts_in_turn_as_are_answered_at_once():
    draws = {"a": 3, "b": 1, "c": 2}
    asked = [Request(model="m", prompt=prompt, draw=draw) for prompt, count in draws.items() for draw in range(count)]
    sent = [f"{each.prompt}{each.draw}" for each in in_turn(asked, 2)]
    assert sent == ["a0", "b0", "a1", "a2", "c0", "c1"] and in_turn(asked, 1) == asked and in_turn([], 4) == []


def test_the_answers_come_in_the_order_of_the_requests_whatever_was_sent_first(started, journal):
    wanted = [Request(model="tiny", prompt=f"fine {name}", draw=draw) for name in "ab" for draw in range(3)]
    with started():
        answers = ask(wanted, journal, at_once=2)
    assert [each.key for each in answers] == [each.key for each in wanted]
    assert texts(answers) == [f" after fine {name}" for name in "aaabbb"]


def test_no_more_at_once_than_asked_for(started, journal):
    with started(delay=0.1) as server:
        ask(numbered("fine", 10), journal, at_once=3)
    assert 1 < server.most <= 3  # a busy machine may not get to three


def test_the_budget_stops_in_good_order_and_a_larger_one_goes_on(started, journal):
    wanted = numbered("fine", 20)
    with started() as server:
        with pytest.raises(LanguageModelError, match="the budget is spent: the journal holds .* were not asked"):
            ask(wanted, journal, budget=Budget(tokens=700), at_once=2)
        assert 700 <= journal.prompt_tokens + journal.completion_tokens <= 700 + 2 * 140
        with pytest.raises(LanguageModelError, match="budget"):
            ask(wanted, journal, budget=Budget(money=1e-6, price=(1, 1)))
        assert sum(server.asked.values()) == len(journal.answers)
        assert all(texts(ask(wanted, journal, budget=Budget(tokens=10_000)))) and max(server.asked.values()) == 1


def test_a_server_that_has_gone_is_not_asked_a_thousand_times(started, journal):
    with started() as server:
        with pytest.raises(LanguageModelError, match="20 requests in a row failed, the last one with 502 Bad"):
            ask(requests_of("fine") + numbered("ruined", 1000), journal, tries=1)
        assert len(server.asked) <= 20 + 8 + 1


def test_what_failed_is_asked_last_and_stands_in_nobodys_way(started, journal):
    wanted = numbered("ruined", 8) + numbered("fine", 3)
    with started():
        with pytest.raises(LanguageModelError, match="5 requests in a row failed"):
            ask(wanted, journal, tries=1, at_once=1)
        answers = ask(wanted, journal, tries=1, at_once=1)
    assert [text is None for text in texts(answers)] == [True] * 8 + [False] * 3


def test_the_estimate_says_what_it_will_use():
    wanted = requests_of("x" * 400, "y" * 400)
    assert estimate(wanted) == "2 requests, about 200 tokens of prompts, at most 240 of answers"
    assert estimate(wanted, Budget(price=(1000, 1000))).endswith("at most 0.44")
    assert estimate([]).startswith("0 requests")


def run_until_killed(path, wanted):
    tqdm.set_lock(threading.RLock())  # a fork shares its parent's lock, which a kill would leave locked for ever
    with Path(os.devnull).open("w") as sys.stdout, Journal(path) as journal:
        sys.stderr = sys.stdout
        ask(wanted, journal, at_once=4)


def test_killed_at_any_moment_nothing_is_asked_twice(started, tmp_path):
    path, wanted = tmp_path / "killed.jsonl", numbered("fine", 120)
    moments, fork = random.Random(0), multiprocessing.get_context("fork")
    with started(delay=0.005) as server:
        for _ in range(6):
            process = fork.Process(target=run_until_killed, args=(path, wanted))
            process.start()
            process.join(0.05 + 0.2 * moments.random())
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
            process.join()
            kept = set(Journal(path).answers)
            before = {each.prompt: server.asked[each.prompt] for each in wanted if each.key in kept}
        with Journal(path) as journal:
            assert texts(ask(wanted, journal)) == [f" after {each.prompt}" for each in wanted]
        assert len(journal.answers) == 120 and journal.complete(each.key for each in wanted)
        assert all(server.asked[prompt] == count for prompt, count in before.items())  # never after an answer was kept
        assert sum(server.good.values()) <= 120 + 6 * 4  # at most what was under way at a kill


# ---------------------------------------------------------------- settings

HERE = "http://127.0.0.1:1/v1"
NO_ADDRESS = ["localhost:8000/v1", "me:pass-word-9@host:8000/v1", "http://", "http://host:port/v1", "ftp://host/v1"]
NO_ADDRESS += ["http://me:pass-word/9@host/v1", "http://me:12/pass-word-9@host/v1", "http://me:pass[word-9@host/v1"]
NO_ADDRESS += ["http://me:pass-word#9@host/v1", "http://me:pass-word?9@host/v1", "http://[::1/v1", "http://ho st/v1"]
NO_ADDRESS += ["http://ho\nst/v1", "http://host:99999/v1", "http://host/v1?version=2"]
BAD_KEYS = ["sk-one two", "sk-one\ntwo", "sk-\u2013dash", "sk-\u00e9"]
SETTINGS = [  # address, key, another setting, what is said
    *((address, SECRET, None, "OPENAI_BASE_URL is no address") for address in NO_ADDRESS),
    *((HERE, key, None, "OPENAI_API_KEY holds a blank") for key in BAD_KEYS),
    *(("https://127.0.0.1:1/v1", SECRET, at, "cannot be used|no answer") for at in ("SSL_CERT_FILE", "HTTPS_PROXY")),
    (HERE, None, None, f"no answer from {HERE}"),
    *((None, key, None, "set OPENAI_BASE_URL") for key in (None, "a key for something else"))]  # fmt: skip


@pytest.mark.parametrize(("address", "key", "other", "said"), SETTINGS)
def test_a_setting_that_cannot_be_meant_is_one_sentence(journal, monkeypatch, capsys, address, key, other, said):
    for name, value in {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": key, other: "not there"}.items():
        if name and value:
            monkeypatch.setenv(name, value)
        elif name:
            monkeypatch.delenv(name, raising=False)
    with pytest.raises(LanguageModelError, match=said) as no:
        ask(requests_of("fine"), journal, tries=1)
    told = str(no.value) + "".join(capsys.readouterr())
    assert "word" not in told.replace("password", "") and "sk-" not in told


def test_line_ends_around_the_settings_do_not_matter(journal, monkeypatch):
    with serving({}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f" http://me:a%2Fb@127.0.0.1:{server.server_port}/v1/\n")
        monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\r\n")
        assert texts(ask(requests_of("fine"), journal)) == [" after fine"]


def test_without_the_package_one_line_says_what_to_install(journal, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("OPENAI_BASE_URL", HERE)
    with pytest.raises(LanguageModelError, match="package openai is missing: pip install"):
        ask(requests_of("fine"), journal)
