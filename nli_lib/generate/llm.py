"""Ask a language model, of any server that speaks OpenAI's API, and keep every answer in a journal.

    requests = [Request(model="smollm2", prompt=prompt, sampling=Sampling(top_p=0.5), draw=draw) for draw in range(5)]
    with Journal(path) as journal:
        answers = ask(requests, journal)

The server is OPENAI_BASE_URL, the key OPENAI_API_KEY; both come from the environment and the key appears nowhere else.
What the journal has is not asked for again: with a complete journal neither server nor key is needed.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from tqdm import tqdm

from nli_lib.errors import UserError
from nli_lib.generate.journal import Answer, Journal

if TYPE_CHECKING:
    from openai import OpenAI

APIS = ("completions", "chat")
LONGEST = 100_000  # characters of an answer; more is a fault of the server
CHARACTERS = 4  # of English a token, for the estimate before the first request
ABSENT, REFUSED = {404, 405, 501}, {401, 403}  # states of an answer: no such place, no entry
GIVEN_UP = 20  # failures in a row after which the server counts as gone


class LanguageModelError(UserError, RuntimeError):
    """No server, no key, no package, or the budget is spent; the message says what to do."""


class Sampling(BaseModel):
    """How a continuation is drawn. The defaults are those of the API."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float = Field(1.0, ge=0, le=2)
    top_p: float = Field(1.0, gt=0, le=1)
    max_tokens: int = Field(120, ge=1)
    stop: tuple[str, ...] = ()
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


class Request(BaseModel):
    """One continuation of one prompt. Several of the same prompt differ by the number of the draw."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    prompt: str
    suffix: str | None = Field(None, description="text that is to follow, for servers that insert")
    sampling: Sampling = Sampling()
    draw: int = Field(0, ge=0)

    @property
    def key(self) -> str:
        """Digest of all of it: the same request has the same key on every machine."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:20]

    def body(self, api: str) -> dict[str, object]:
        """What is sent, in one of `APIS`. A chat has no suffix. Each draw has a seed of its own, from the key."""
        prompt = {"messages": [{"role": "user", "content": self.prompt}]} if api == "chat" else {"prompt": self.prompt}
        suffix = {"suffix": self.suffix} if self.suffix is not None and api == "completions" else {}
        sampling = self.sampling.model_dump(mode="json")
        sampling["stop"] = sampling["stop"] or None
        return {"model": self.model, **prompt, **suffix, **sampling, "n": 1, "seed": int(self.key[:7], 16)}


class Budget(NamedTuple):
    """What a journal may come to: tokens of prompts and answers together, or money at a price for a million of each."""

    tokens: float = float("inf")
    money: float = float("inf")
    price: tuple[float, float] = (0.0, 0.0)

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """In the currency of the price."""
        return (prompt_tokens * self.price[0] + completion_tokens * self.price[1]) / 1e6

    def spent(self, prompt_tokens: int, completion_tokens: int) -> bool:
        cost = self.cost(prompt_tokens, completion_tokens)
        return prompt_tokens + completion_tokens >= self.tokens or cost >= self.money


UNLIMITED = Budget()


def estimate(requests: Iterable[Request], budget: Budget = UNLIMITED) -> str:
    """What requests will use at most, in words; four characters of the prompt count as a token."""
    sizes = [(len(each.prompt) / CHARACTERS, each.sampling.max_tokens) for each in requests]
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
    """The answer to each request, in their order; a failed one has its reason.

    journal  open for writing, where an answer is missing
    at_once  requests that the server has at a time, of different prompts: see `in_turn`
    timeout  seconds for one answer; tries: how often a request is sent before it has failed. Between two tries the
             client waits longer and longer, or as long as the server says (Retry-After)

    Where the server has no completions, everything is asked as a chat, and the answers say so. Raises
    `LanguageModelError` where nobody answers, a key is needed, or the budget is spent; what was answered is kept, and
    the same call goes on from there.
    """
    missing = {each.key: each for each in requests if not journal.answered(each.key)}
    missing = in_turn(missing.values(), at_once)
    if missing:
        print(estimate(missing, budget))
        client, used = _client(timeout, tries), journal.totals()
        if budget.spent(used["prompt_tokens"], used["completion_tokens"]):
            raise _out_of_budget(used, len(missing))
        api, first = _probe(client, missing[0])
        journal.add(first)
        if missing[1:]:
            _ask_all(client, api, missing[1:], journal, budget, at_once)
    return [journal.answers[each.key] for each in requests]


def in_turn(requests: Iterable[Request], at_once: int) -> list[Request]:
    """The requests with `at_once` prompts in turn: each is asked again when the others have been.

    A server that answers so many at a time and keeps what it has read can then go on from there, and reads a prompt
    once for all of its draws.
    """
    draws = {}
    for each in requests:
        draws.setdefault(each.prompt, []).append(each)
    prompts = list(draws.values())
    blocks = [prompts[start : start + at_once] for start in range(0, len(prompts), at_once)]
    return [each for block in blocks for turn in zip_longest(*block) for each in turn if each is not None]


def _ask_all(
    client: "OpenAI", api: str, waiting: Sequence[Request], journal: Journal, budget: Budget, at_once: int
) -> None:
    """Ask everything, `at_once` at a time; answers that are under way when it has to stop are waited for and kept."""
    used, progress, running = journal.totals(), _Progress(len(waiting), budget), set()
    prompt_tokens, completion_tokens, failures = used["prompt_tokens"], used["completion_tokens"], 0

    def keep(done: Iterable[Future]) -> None:
        nonlocal prompt_tokens, completion_tokens, failures
        for answer in (future.result() for future in done):
            journal.add(answer)
            failures = 0 if answer.text is not None else failures + 1
            prompt_tokens += answer.prompt_tokens
            completion_tokens += answer.completion_tokens
            progress.add(answer, budget.cost(prompt_tokens, completion_tokens))

    with ThreadPoolExecutor(at_once) as pool, progress:
        try:
            for request in waiting:
                if budget.spent(prompt_tokens, completion_tokens) or failures >= GIVEN_UP:
                    break
                running.add(pool.submit(_answer, client, api, request))
                if len(running) >= at_once:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    keep(done)
        finally:
            keep(running)
    if rest := len(waiting) - progress.count:
        raise _gone(journal, rest) if failures >= GIVEN_UP else _out_of_budget(journal.totals(), rest)


class _Progress(tqdm):
    """Answers, tokens a second and, where there is a price, money."""

    def __init__(self, total: int, budget: Budget):
        super().__init__(total=total, unit="answer", mininterval=1)
        self.count, self.tokens, self.priced, self.clock = 0, 0, any(budget.price), time.monotonic()

    def add(self, answer: Answer, cost: float) -> None:
        self.count += 1
        self.tokens += answer.completion_tokens
        speed = f"{self.tokens / max(time.monotonic() - self.clock, 1e-9):,.0f} tokens/s"
        self.set_postfix_str(speed + (f", {cost:,.2f} spent" if self.priced else ""), refresh=False)
        self.update()


def _out_of_budget(used: Mapping[str, float], rest: int) -> LanguageModelError:
    tokens = used["prompt_tokens"] + used["completion_tokens"]
    return LanguageModelError(
        f"the budget is spent: the journal holds {tokens:,} tokens. {rest:,} requests were not asked; raise the budget "
        "and call again."
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")  # short answers: how many overlap decides their cost


def _gone(journal: Journal, rest: int) -> LanguageModelError:
    last = next(each.reason for each in reversed(journal.answers.values()) if each.text is None)
    return LanguageModelError(
        f"{GIVEN_UP} requests in a row failed, the last one with {last}. {rest:,} were not asked; call again when the "
        "server is well."
    )


def _client(timeout: float, tries: int) -> "OpenAI":
    try:
        from openai import OpenAI
    except ImportError:
        raise LanguageModelError("the package openai is missing: pip install 'nli-quality-study[study]'") from None
    if not os.environ.get("OPENAI_BASE_URL"):  # a key alone sends no text anywhere
        raise LanguageModelError(
            "no language model: set OPENAI_BASE_URL to a server that speaks OpenAI's API; theirs is "
            "https://api.openai.com/v1 and wants OPENAI_API_KEY."
        )
    # a server on this machine needs no key, and the client refuses to have none
    key = os.environ.get("OPENAI_API_KEY") or "none"
    return OpenAI(api_key=key, timeout=timeout, max_retries=tries - 1)


def _probe(client: "OpenAI", request: Request) -> tuple[str, Answer]:
    """The form that the server takes, completions if it can, and its first answer."""
    import openai

    for api in APIS:
        try:
            return api, _sent(client, api, request)
        except openai.APIStatusError as error:
            if error.status_code in REFUSED:
                raise LanguageModelError(f"{_place(client)} wants a key that it knows: set OPENAI_API_KEY.") from None
            if error.status_code not in ABSENT:
                return api, _failed(request, api, error, _now(), 0.0)
            unknown = error
        except openai.APIConnectionError as error:
            raise LanguageModelError(
                f"no answer from {_place(client)} ({type(error).__name__}): start the server, or set OPENAI_BASE_URL."
            ) from None
        except (openai.OpenAIError, ValueError) as error:
            return api, _failed(request, api, error, _now(), 0.0)
    raise LanguageModelError(
        f"{_place(client)} has neither completions nor chat for the model {request.model!r}: {_plain(unknown)}"
    ) from None


def _answer(client: "OpenAI", api: str, request: Request) -> Answer:
    import openai

    started, clock = _now(), time.monotonic()
    try:
        return _sent(client, api, request)
    except (openai.OpenAIError, ValueError) as error:  # ValueError: what came is not what the API promises
        return _failed(request, api, error, started, time.monotonic() - clock)


def _sent(client: "OpenAI", api: str, request: Request) -> Answer:
    """Send one request and check what comes back. Raises `ValueError` where it is no answer."""
    started, clock = _now(), time.monotonic()
    create = client.chat.completions.create if api == "chat" else client.completions.create
    reply = create(**request.body(api))
    return checked(reply, request, api, started, round(time.monotonic() - clock, 3))


def checked(reply: object, request: Request, api: str, started: str, seconds: float) -> Answer:
    """The answer in what a server sent. Raises `ValueError` where it is none."""
    choices = getattr(reply, "choices", None)
    if not isinstance(choices, list):
        raise ValueError(f"the server sent no completion but {str(reply)[:60]!r}")
    if len(choices) != 1:
        raise ValueError(f"the server sent {len(choices)} texts where one was asked for")
    holder, name = (getattr(choices[0], "message", None), "content") if api == "chat" else (choices[0], "text")
    text = getattr(holder, name, None)
    if not isinstance(text, str):
        raise ValueError("the server sent a choice without a text")
    if len(text) > LONGEST:
        raise ValueError(f"the server sent {len(text):,} characters for at most {request.sampling.max_tokens} tokens")
    return Answer(
        key=request.key,
        text=text,
        finish=str(choices[0].finish_reason or ""),
        api=api,
        served=str(reply.model or ""),
        prompt_tokens=getattr(reply.usage, "prompt_tokens", None) or 0,
        completion_tokens=getattr(reply.usage, "completion_tokens", None) or 0,
        started=started,
        seconds=seconds,
    )


def _failed(request: Request, api: str, error: Exception, started: str, seconds: float) -> Answer:
    whole = {"key": request.key, "api": api, "started": started, "seconds": round(seconds, 3)}
    return Answer(text=None, reason=_plain(error), **whole)


def _plain(error: Exception) -> str:
    """An error on one short line, without the key, which some servers repeat."""
    said = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")
    key = os.environ.get("OPENAI_API_KEY")
    return (said.replace(key, "***") if key else said)[:300]


def _place(client: "OpenAI") -> str:
    """The server's address without what may be a secret in it."""
    return re.sub(r"//[^/@]*@", "//", str(client.base_url)).split("?")[0]
