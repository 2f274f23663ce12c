"""The journal of a language model: every answer, kept on disk the moment it comes.

One line of JSON an answer. Lines are only ever appended, and an answer counts when it is on disk, so that nothing is
asked or paid for twice. A study can be replayed from its journal, without any server.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from nli_lib.errors import UserError
from nli_lib.generate.appended import Appended, Line


class JournalError(UserError, RuntimeError):
    """A journal cannot be read, or is being written elsewhere; the message names the file and the line."""


class Answer(Line):
    """What became of one request: a text, or the reason why there is none."""

    key: str = Field(description="of the request, see `nli_lib.generate.llm.Request`")
    text: str | None = Field(description="what the model wrote; None where the request failed")
    reason: str = Field("", description="why there is no text")
    finish: str = Field("", description='why the text ends: "stop" or "length"')
    api: Literal["completions", "chat"] = Field(description="the form in which the server was asked")
    served: str = Field("", description="the model, as the server names it")
    prompt_tokens: int = 0
    completion_tokens: int = 0
    started: str = Field(description="when it was asked, UTC")
    seconds: float


class Journal(Appended[Answer]):
    """The answers in a file, by the key of their request: `journal.answers`.

        with Journal(path) as journal:
            journal.add(answer)

    Of several answers to one key the last one counts: a request that failed is asked again.
    """

    line, error, cure = Answer, JournalError, "Delete the line: its request is asked again."

    def _clear(self) -> None:
        self.answers: dict[str, Answer] = {}

    def _take(self, line: Answer) -> None:
        self.answers[line.key] = line

    def answered(self, key: str) -> bool:
        """Whether a request has its text."""
        return key in self.answers and self.answers[key].text is not None

    def complete(self, keys: Iterable[str]) -> bool:
        """Whether all these requests have their texts."""
        return all(map(self.answered, keys))

    def summary(self, keys: Iterable[str]) -> dict[str, object]:
        """What a record says of the answers to some requests: answered, failed, the models that served, a digest."""
        used = [self.answers[key] for key in sorted(set(keys) & self.answers.keys())]
        texts = [(answer.key, answer.text) for answer in used]
        return {
            "answered": sum(text is not None for _, text in texts),
            "failed": sum(text is None for _, text in texts),
            "served": sorted({answer.served for answer in used if answer.served}),
            "digest": hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16],
        }

    def totals(self) -> dict[str, float]:
        """Requests answered and failed, and the tokens and seconds of all that are in the journal's last word."""
        texts = [answer.text is not None for answer in self.answers.values()]
        sums = {
            name: sum(getattr(answer, name) for answer in self.answers.values())
            for name in ("prompt_tokens", "completion_tokens", "seconds")
        }
        return {"answered": sum(texts), "failed": len(texts) - sum(texts), **sums}
