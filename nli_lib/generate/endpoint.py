"""A server that speaks OpenAI's API: where it is, one attempt at a request, and the parameters that it does not take.

Requests are sent by the package openai. What it has not is here: an attempt has a deadline as a whole and its answer a
largest size; a redirect is not followed, for it would take the texts elsewhere; and no attempt is repeated before it is
in the journal.
"""

import asyncio
import base64
import contextlib
import logging
import math
import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from nli_lib.errors import UserError
from nli_lib.generate.journal import ADDRESS, KEY, Answer, masked, on_one_line
from nli_lib.generate.reply import UNUSABLE, answer_of, counted, paid, parsed

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from nli_lib.generate import llm

APIS = ("completions", "chat")
BYTES = 2**24  # of one answer, unpacked
UNREACHED = "no connection"
FEW = 5  # failures in a row that end a call in which nothing was answered, or whose answers cannot be used
REFUSALS = 2  # equal ones, for what a request asks
PATIENCE = 600.0  # seconds that a server may ask us to wait; who asks for more is asked again another day
ABSENT, MALFORMED = {404, 405, 501}, {400, 422}  # no such place, a parameter
BUSY = {408, 409, 425, 429}  # that pass, as do those from 500
NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
PLAIN = (None, 0.0, 1.0)  # values of parameters that change nothing, so that they can be left out
UNSUPPORTED = re.compile(
    r"unsupported|not support|unknown|unrecogni|unexpected|not permitted|deprecated", re.IGNORECASE
)
LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
OPTIONAL = ("seed", "stop", "presence_penalty", "frequency_penalty", "temperature", "top_p", "n")


class LanguageModelError(UserError, RuntimeError):
    """No server, no key, no package, or the budget is spent; the message says what to do, and no secret."""

    def __init__(self, message: str):
        super().__init__(masked(message))


class Outcome(NamedTuple):
    """What came of one attempt. ``again`` is how long the server asks us to wait before the next one, None where there
    should be none; ``few`` how many failures of this kind in a row are enough where nothing was answered yet."""

    answer: Answer
    again: float | None = None
    few: int = FEW


def settings() -> tuple[str, dict[str, str]]:
    """The server's address without its password, and the headers that open it, from the environment.

    Raises `LanguageModelError` where a setting cannot be meant, and does not repeat it.
    """
    address, key = (os.environ.get(name, "").strip() for name in (ADDRESS, KEY))
    if not address:  # a key alone sends no text anywhere
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
    # a server on this machine needs no key
    return plain.geturl().rstrip("/"), {
        "Authorization": f"Basic {basic}" if parts.username else f"Bearer {key or 'none'}"
    }


class Server:
    """The server of the environment's settings. Raises `LanguageModelError` where they, or a package, are not there.

    timeout  seconds for an attempt as a whole
    """

    def __init__(self, timeout: float):
        self.place, headers = settings()
        self.timeout, self.api, self.known = timeout, APIS[0], False
        self.changes: dict[str, dict[str, str | None]] = {}  # model -> parameter -> its other name, None: left out
        try:
            self.client = _client(self.place, headers, timeout)
        except ModuleNotFoundError as error:
            raise LanguageModelError(
                f"the package {error.name} is missing: pip install 'nli-quality-study[study]'"
            ) from None
        except (ValueError, OSError, ImportError) as error:
            raise LanguageModelError(
                f"{ADDRESS}, HTTPS_PROXY, ALL_PROXY or SSL_CERT_FILE cannot be used ({type(error).__name__}): look for "
                "a misspelt address or a file that is not there."
            ) from None

    async def attempt(self, request: "llm.Request") -> Outcome:
        """Send a request once, without the parameters that its model does not take.

        A 400 that names one is learnt from, and the request sent on; that costs nothing. Raises `LanguageModelError`
        for what no other request would be spared: the key, the account, the model, the address.
        """
        while True:
            started, clock = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
            body, changed = self._body(request), self.changes.get(request.model, {})
            words = [f"{name} sent as {other}" if other else f"{name} left out" for name, other in changed.items()]
            status, headers, data, fault = await self._send(body)
            about = {"started": started, "seconds": round(time.monotonic() - clock, 3), "changed": ", ".join(words)}
            if not fault and 200 <= status < 300:
                self.known = True
                return Outcome(answer_of(data, request, self.api, **about))
            about |= {"key": request.key, "text": None, "api": self.api}
            if fault:
                # a server that has the request may have answered it, and bills what nobody has received
                cost = paid(request, {}) if fault != UNREACHED and (status or 200) < 400 else {}
                again = None if fault.startswith(UNUSABLE) else 0.0
                return Outcome(Answer(reason=fault, **cost, **about), again, 1 if fault == UNREACHED else FEW)
            said = _message(data)
            if status in ABSENT and not self.known and self.api == APIS[0]:
                self.api = APIS[1]
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

    def _body(self, request: "llm.Request") -> dict[str, object]:
        body = request.body(self.api)
        for name, other in self.changes.get(request.model, {}).items():
            value = body.pop(name, None)
            if other:
                body[other] = value
        return body

    async def _send(self, body: dict[str, object]) -> tuple[int | None, Mapping[str, str], bytes, str]:
        """(status, headers, body, "") of what comes back, or a word on why nothing whole does."""
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

    def _end(self, status: int, said: str, request: "llm.Request") -> None:
        """Raise `LanguageModelError` where every other request would be refused as well."""
        if status == 401:
            raise LanguageModelError(f"{self.place} wants a key that it knows: set {KEY}.")
        if status == 403:
            raise LanguageModelError(f"{self.place} refuses this key, or the model {request.model!r} to it: {said}")
        if status == 402 or (status == 429 and any(word in said for word in NO_MONEY)):
            raise LanguageModelError(f"{self.place} says that the account has no money or quota left: {said}")
        if status in ABSENT and self.known:
            raise LanguageModelError(f"{self.place} has no model {request.model!r}: {said}")
        if status in ABSENT:
            raise LanguageModelError(
                f"{self.place} has neither completions nor chat for the model {request.model!r}: {said}"
            )
        if 300 <= status < 400:
            raise LanguageModelError(
                f"{self.place} sends us to another address: set {ADDRESS} to that one if you trust it."
            )

    def _adapt(self, request: "llm.Request", body: dict[str, object], data: bytes) -> bool:
        """Learn from a refusal which parameter the model does not take; False where it names none that can go.

        Of several that are named the first one goes; of two that exclude each other, the one whose value changes
        nothing. The limit of the tokens never goes: it gets its new name.
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
        """Seconds that the server asks for, as a number or a date; 0 where it asks for none that makes sense."""
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
    """No whole reply came; its arguments are the status, if one came, and why."""


def _client(place: str, headers: Mapping[str, str], timeout: float) -> "AsyncOpenAI":
    """A client whose replies have come whole within `timeout` seconds and `BYTES`; else it raises `_BrokenError`."""
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
        # a new connection for each attempt: one that the server has closed meanwhile looks like an answer cut off
        limits = httpx2.Limits(max_keepalive_connections=0)
        # who cannot be reached in half the time has received nothing, and bills nothing
        client = Whole(timeout=httpx2.Timeout(timeout, connect=timeout / 2), limits=limits)
    except httpx2.InvalidURL as error:
        raise ValueError from error
    options = {"base_url": place, "api_key": "none", "default_headers": headers, "max_retries": 0}
    return openai.AsyncOpenAI(**options, timeout=client.timeout, http_client=client)


def _message(data: bytes, longest: int = 300) -> str:
    """What an error says: the message of OpenAI's form with its code, else the beginning of the page."""
    error = parsed(data).get("error")
    if isinstance(error, dict):
        words = [error.get(name) for name in ("message", "code")]
        return on_one_line(
            " ".join(f"({word})" if at else word for at, word in enumerate(words) if isinstance(word, str)), longest
        )
    text = error if isinstance(error, str) else data[:100_000].decode("utf-8", "replace")
    return on_one_line(text, longest) or "no more than that"
