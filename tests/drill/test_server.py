"""A language model's server that misbehaves in every way we know: pytest tests/drill/test_server.py

For each of its modes, with a price and a budget: the run ends in its time with its reason in a sentence; the journal
holds what the server was paid; nothing usable is asked for twice; the key and the password are in no file and no line.
"""

import base64
import json
import logging
import sys
import time
import traceback
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import table
from server import MODES, serving
from tiny import run_cells, write_notebook

from nli_lib.generate import llm
from nli_lib.generate.journal import Journal
from nli_lib.generate.llm import FEW, UNUSABLE, Budget, LanguageModelError, Request, Sampling, ask
from nli_lib.generate.pairs import cost_table
from nli_lib.study import cli, runner, standing

pytestmark = pytest.mark.slow

KEY, PASSWORD = "sk-drill-0123456789abcdefghijklmnop", "pass-word-of-the-proxy"
BUDGET = Budget(tokens=100_000, money=10.0, price=(2.0, 8.0))
SECONDS = 30  # that two calls may take
SAMPLING = Sampling(max_tokens=50, stop=("\n\n",))
WANTED = [Request(model="tiny", prompt=f"Prompt {number}.", sampling=SAMPLING) for number in range(24)]

USELESS = ["two choices", "no text, length", "no text, filtered", "no choices", "choices no list", "text no string"]
USELESS += ["truncated JSON", "no UTF-8", "200 kB", "10 MB", "endless", "echo as page", "empty body", "nested JSON"]
USELESS += ["number of 5000 digits", "gzip bomb"]
# what the run ends with; in all other modes every request is answered
SHORT = ("drip", "drip of headers", "silence")  # modes that are waited for
IN_A_ROW = {
    "echo in headers": "500 Internal Server Error: oops", "error page": "502 Bad Gateway: <html>",
    "429 always": "429 Too Many Requests: slow down", "503 always": "503 Service Unavailable: overloaded",
    **dict.fromkeys(("cut before", "cut within", "no gzip"), "the answer did not come whole"),
    **dict.fromkeys(SHORT, "no whole answer within 0.8 s"), "echo cut by us": "400 Bad Request: xxx",
    "echo cut by it": "400 Bad Request: You said", "400 with half a pair": "400 Bad Request: half a pair: ?",
    "400 unspecific": "400 Bad Request: bad request",
}  # fmt: skip
ENDS = {
    **dict.fromkeys(USELESS, "answers in a row were paid for and cannot be used, the last one with unusable answer: "),
    **{
        mode: f"{2 if said.startswith('400') else 5} requests in a row failed, the last one with {said}"
        for mode, said in IN_A_ROW.items()
    },
    "429 for a week": "asks us to wait 604,800 s (slow down): call again then",
    "401": "wants a key that it knows: set OPENAI_API_KEY",
    "402": "says that the account has no money or quota left: payment required",
    "quota": "says that the account has no money or quota left: You exceeded your current quota",
    "404 model": "has no model 'tiny'|has neither completions nor chat for the model 'tiny': The model does not exist",
    "redirect": "sends us to another address: set OPENAI_BASE_URL to that one",
}
ECHOES = [mode for mode in MODES if mode.startswith("echo") or mode in ("error page", "401")]


@pytest.fixture(scope="module")
def rows():
    whats = ("ends in time, with its reason", "money", "once", "secrets")
    return {what: table.row(f"server: {what}") for what in whats}


def once(path, timeout):
    """One call as a chapter makes it, with the files that it leaves; what it said at its end."""
    with Journal(path) as journal:
        keys = [each.key for each in WANTED]
        try:
            answers, said = ask(WANTED, journal, budget=BUDGET, at_once=4, timeout=timeout, tries=2), ""
            assert [each.key for each in answers] == keys
        except LanguageModelError as error:
            traceback.print_exception(error)  # which must not hold the secrets either
            said = str(error)
        lines = journal.attempts(keys)
        if lines:
            cost_table(lines, BUDGET).to_csv(path.with_suffix(".csv"))
        path.with_suffix(".json").write_text(json.dumps(journal.summary(keys)))
        return said, lines


def secrets_in(text):
    """Parts of the secrets that are in a text; the first third of one is nothing that anybody could use."""
    basic = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    parts = {each[at : at + 12] for each in (KEY, PASSWORD, basic) for at in range(len(each) - 11)}
    return sorted(part for part in parts if part in text)


CASES = [(mode, "") for mode in MODES if mode not in ("429 for some", "late once")]
CASES += [(mode, f"me:{PASSWORD}@") for mode in ECHOES]


@pytest.mark.parametrize(("mode", "login"), CASES)
def test_every_mode(tmp_path, monkeypatch, capsys, caplog, rows, mode, login):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(llm, "PAUSE", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path, timeout = tmp_path / "journal.jsonl", 0.8 if mode in SHORT else 20.0
    started = time.monotonic()
    with serving(mode) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://{login}127.0.0.1:{server.server_port}/v1")
        said, _ = once(path, timeout)
        billed = server.said, server.unsaid
        again, lines = once(path, timeout)
    seconds = time.monotonic() - started

    ended = []
    for told in (said, again):
        fits = not told if mode not in ENDS else any(part in told for part in ENDS[mode].split("|"))
        ended += [] if fits and told.count("\n") == 0 and len(told) < 700 else [f"{mode}: said {told!r}"]
    ended += [f"{mode}: took {seconds:.1f} s"] if seconds > SECONDS else []
    rows["ends in time, with its reason"].add(ended)

    kept = {estimated: [line for line in lines if line.estimated == estimated] for estimated in (False, True)}
    money = []
    if (tokens := sum(line.paid for line in kept[False])) != server.said:
        money.append(f"{mode}: the server has reported {server.said} tokens, the journal holds {tokens}")
    if len(kept[True]) != server.unsaid or not all(line.paid for line in kept[True]):
        money.append(f"{mode}: {server.unsaid} answers were billed without a count, {len(kept[True])} are estimated")
    if mode in ENDS:  # paid for a few times, and once more at the second call
        first = billed[0] // 140 + billed[1]
        second = server.said // 140 + server.unsaid - first
        money += [f"{mode}: {first} and {second} answers were paid for"] if first > FEW or second > 1 else []
    rows["money"].add(money)

    lost = sum(count - 1 for count in server.good.values() if count > 1)
    answered = {line.key for line in lines if line.text is not None}
    complete = mode in ENDS or len(answered) == len(WANTED) == len(server.good)
    rows["once"].add([] if complete else [f"{mode}: {len(answered)} were answered"], lost=lost)

    captured = "".join(capsys.readouterr()) + caplog.text + said + again
    files = {file.name: file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*") if file.is_file()}
    places = {"what was printed": captured, **files}.items()
    leaks = [f"{mode}: {where} holds {part!r}" for where, text in places for part in secrets_in(text)]
    rows["secrets"].add(leaks)
    assert not ended + money + leaks and not lost and complete, "\n".join(ended + money + leaks)


def test_what_is_sent_otherwise_is_said_on_the_line(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    sampling = Sampling(temperature=0.8, max_tokens=50, stop=("\n\n",))
    changed = {"400 max_tokens": "max_tokens sent as max_completion_tokens", "400 seed": "seed left out"}
    changed |= {"400 stop": "stop left out", "400 with a list": "seed left out", "400 both": "top_p left out"}
    wanted = [each.model_copy(update={"sampling": sampling}) for each in WANTED[:3]]
    for mode, words in changed.items():
        with serving(mode) as server, Journal(tmp_path / mode) as journal:
            monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
            answers = ask(wanted, journal)
            assert {each.changed for each in answers} == {words}
            assert {each.text for each in answers} == {"kept" if mode == "400 stop" else "fine"}
            assert sum(server.asked.values()) == 4  # the refusal was learnt from


def test_an_answer_that_cannot_be_used_is_paid_for_twice_at_most(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving("two choices") as server, Journal(tmp_path / "journal.jsonl") as journal:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        for _ in range(4):
            with pytest.raises(LanguageModelError, match="unusable answer: the server sent 2 texts"):
                ask(WANTED[:1], journal)
        assert server.asked == {WANTED[0].prompt: 2} and journal.answers[WANTED[0].key].reason.startswith(UNUSABLE)


CHAPTER = """#| measure
from nli_lib.generate.journal import Journal
from nli_lib.generate.llm import Budget, Request, ask
from nli_lib.generate.pairs import cost_table
budget, asked = Budget(price=(2, 8)), [Request(model="tiny", prompt=f"Prompt {n}.") for n in range(8)]
keys = [each.key for each in asked]
with Journal(study.exports / "j.jsonl") as journal:
    answers = ask(asked, journal, budget=budget, at_once=2, tries=1)
study.log_journal(journal, keys, "wanli, paper")
study.save(cost_table(journal.attempts(keys), budget), "cost")
study.export(__import__("pandas").DataFrame([each.model_dump() for each in answers]), "answers")
print(answers)"""


@pytest.mark.drill
def test_a_chapter_with_failed_requests_says_so_and_asks_again_for_those(home, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path = write_notebook(home / "notebooks", "12_asks", CHAPTER, 'study.show(study.table("cost"))')
    with serving("429 for some") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        (first,) = runner.run([], runner.Request())
        assert first.state == standing.INCOMPLETE
        assert first.reason.startswith("4 of 8 requests to the language model failed, most")
        cli.status()
        assert "12_asks                  incomplete" in (said := capsys.readouterr().out) and first.reason in said
        server.mode = "echo as text"
        (second,) = runner.run([], runner.Request())
        assert (second.state, second.ran) == (standing.FINISHED, True)
        assert set(server.good.values()) == {1} and sorted(server.asked.values()) == [1] * 4 + [2] * 4
        cost = json.loads(standing.record_path("12_asks", "smoke").read_text())["journals"]["j.jsonl"]
        assert (cost["answered"], cost["failed"]) == (8, 0)
    monkeypatch.delenv("OPENAI_BASE_URL")
    run_cells(path)  # from the journal alone
    assert standing.end_state(standing.read("12_asks", "smoke"))[0] == standing.FINISHED
    texts = [file.read_bytes().decode("latin-1") for file in home.rglob("*") if file.is_file()]
    assert not secrets_in("\0".join([*texts, *capsys.readouterr(), said]))
