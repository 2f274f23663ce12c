"""Ask a language model, of any server that speaks OpenAI's API, and keep every answer in a journal.

    requests = [Request(model="smollm2", prompt=prompt, sampling=Sampling(top_p=0.5), draw=draw) for draw in range(5)]
    with Journal(path) as journal:
        answers = ask(requests, journal)

The server is OPENAI_BASE_URL, the key OPENAI_API_KEY; both come from the environment and the key appears nowhere else.
What the journal has is not asked for again: with a complete journal neither server nor key is needed.
"""

import asyncio
import hashlib
import random
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile, zip_longest
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from tqdm import tqdm

from nli_lib.generate.endpoint import FEW, REFUSALS, LanguageModelError, Outcome, Server
from nli_lib.generate.journal import ADDRESS, Answer, Journal
from nli_lib.generate.reply import UNUSABLE, tokens_of

GIVEN_UP = 20  # failures in a row after which a server that has answered before counts as gone
PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds before a second try, and at most, where the server does not say
PAID_FOR = 2  # answers to one request that cannot be used, after which it is not asked again


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
    """What requests will use at most, in words; four bytes of the prompt count as a token."""
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
    """The answer to each request, in their order; a failed one has its reason.

    journal  open for writing, where an answer is missing
    budget   what the journal may come to, with all that was paid for and cannot be used
    at_once  requests that the server has at a time, of different prompts: see `in_turn`. Until the first answer, one
    timeout  seconds for one answer, to its last byte; tries: how often a request is sent before it has failed. Between
             two tries the client waits longer and longer, or as the server says (Retry-After, ten minutes at most)

    Where the server has no completions, everything is asked as a chat, and the answers say so, as they say which
    parameters it does not take. Raises `LanguageModelError` where nobody answers, a key is needed, the budget is spent,
    or answers that cannot be used are all that comes; what was answered is kept, and the same call goes on from there.
    It asks again for what has failed, but not a third time for an answer that was paid for twice and cannot be used.
    """
    keys = list(dict.fromkeys(each.key for each in requests))
    lines = journal.attempts(keys)
    failures = Counter(line.key for line in lines if line.text is None)
    useless = Counter(line.key for line in lines if line.reason.startswith(UNUSABLE))
    missing = {each.key: each for each in requests if not journal.answered(each.key) and useless[each.key] < PAID_FOR}
    if missing:
        # those that have not failed yet come first: what stood in the way once shall not stand there again
        waiting = sorted(in_turn(missing.values(), at_once), key=lambda each: failures[each.key])
        print(estimate(waiting, budget))
        before = sum(1 for _ in takewhile(lambda line: line.text is None and line.paid, reversed(lines)))
        call = _Call(Server(timeout), waiting, journal, budget, tries, min(before, FEW - 1))
        with ThreadPoolExecutor(1) as pool:  # a thread of its own: a notebook's has a loop, which is running
            done = pool.submit(asyncio.run, call.all(at_once))
            try:
                done.result()
            except BaseException as error:
                call.over = call.over or error  # what is under way is waited for and kept
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
    """Say what was paid in vain, and what was guessed."""
    if lost := [line for line in lines if line.text is None and line.paid]:
        tokens = sum(line.paid for line in lost)
        print(f"{len(lost):,} requests cost {tokens:,} tokens and brought no text; the last: {lost[-1].reason}")
    if guessed := sum(line.estimated for line in lines):
        print(f"{guessed:,} answers came without a count of tokens that makes sense: theirs are estimated.")


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


class _Call:
    """Requests under way. `over` is the error that ends it, `spare` whether it may be left unsaid where every request
    has an answer or a reason."""

    def __init__(
        self, server: Server, waiting: Sequence[Request], journal: Journal, budget: Budget, tries: int, in_a_row: int
    ):
        self.server, self.waiting, self.journal, self.budget = server, deque(waiting), journal, budget
        self.tries, self.in_a_row, self.reason = tries, in_a_row, ""
        self.answered, self.over, self.spare = 0, None, False
        self.progress = _Progress(len(waiting), budget)

    async def all(self, at_once: int) -> None:
        """Ask everything: one at a time until the first answer, then `at_once`; once it is over, nothing new."""
        first = asyncio.Event()
        with self.progress:
            async with self.server.client:
                await asyncio.gather(*(self._work(first, place == 0) for place in range(at_once)))
        if not self.over and not self.answered:
            self.over, self.spare = LanguageModelError(f"no request was answered, the last one: {self.reason}."), True

    async def _work(self, first: asyncio.Event, leads: bool) -> None:
        if not leads:
            await first.wait()
        try:
            while self.waiting and self._goes_on():
                await self._one(self.waiting.popleft())
                if self.answered:
                    first.set()
        except BaseException as error:  # the others shall finish what they have under way
            self.over = self.over or error
        first.set()

    def _goes_on(self) -> bool:
        used = self.journal.prompt_tokens, self.journal.completion_tokens
        if not self.over and self.budget.spent(*used):
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
        """Write a line; where it is one failure too many in a row, the call is over."""
        answer, repeated = outcome.answer, outcome.answer.reason == self.reason
        self.journal.add(answer)
        if last:
            self.progress.add(answer, self.budget.cost(self.journal.prompt_tokens, self.journal.completion_tokens))
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


class _Progress(tqdm):
    """Answers, tokens a second and, where there is a price, money."""

    def __init__(self, total: int, budget: Budget):
        super().__init__(total=total, unit="answer", mininterval=1, disable=total == 1)
        self.tokens, self.priced, self.clock = 0, any(budget.price), time.monotonic()

    def add(self, answer: Answer, cost: float) -> None:
        self.tokens += answer.completion_tokens
        speed = f"{self.tokens / max(time.monotonic() - self.clock, 1e-9):,.0f} tokens/s"
        self.set_postfix_str(speed + (f", {cost:,.2f} spent" if self.priced else ""), refresh=False)
        self.update()
