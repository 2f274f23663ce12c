"""What the client costs: our requests through the journal against the same requests sent bare, and a replay.

    python benchmarks/overgeneration.py [--requests 96] [--at-once 4]

The packaged language model is served on this machine, or OPENAI_BASE_URL names another server. Both ways send requests
of the same kind with the same number at a time, in turns, each prompt once, so that no cache decides. Printed: the
share of the server's own throughput, in tokens a second, and how much faster the journal answers than the server.
"""

import argparse
import json
import os
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nli_lib.generate.journal import Journal
from nli_lib.generate.llm import MODEL, Request, Sampling, ask, serve

SAMPLING = Sampling(top_p=0.5, max_tokens=60)
ROUNDS = 3


def requests_of(count: int, start: int) -> list[Request]:
    prompts = (
        f"{number}. A person with {number} dogs walks along street {number}.\nImplication:"
        for number in range(start, start + count)
    )
    return [Request(model=MODEL, prompt=prompt, sampling=SAMPLING) for prompt in prompts]


def bare(request: Request) -> int:
    """Tokens of one answer, with nothing between us and the server."""
    body = json.dumps(request.body("completions")).encode()
    url = f"{os.environ['OPENAI_BASE_URL']}/completions"
    sent = urllib.request.Request(
        url, body, {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY')}"}
    )
    with urllib.request.urlopen(sent) as reply:
        return json.load(reply)["usage"]["completion_tokens"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=96, help="in each round and way")
    parser.add_argument("--at-once", type=int, default=4)
    given = parser.parse_args()
    speed, at_once = {"bare": [], "ours": []}, given.at_once
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder, "server.log"), slots=at_once):
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(bare, requests_of(at_once, 900_000)))  # the server warms up
            for number in range(ROUNDS):
                start = 100_000 + 2 * number * given.requests  # as many digits for both ways
                wanted = requests_of(given.requests, start)
                clock = time.perf_counter()
                tokens = sum(pool.map(bare, wanted))
                speed["bare"].append(tokens / (time.perf_counter() - clock))
                path = Path(folder, f"{number}.jsonl")
                wanted = requests_of(given.requests, start + given.requests)
                clock = time.perf_counter()
                with Journal(path) as journal:
                    answers = ask(wanted, journal, at_once=at_once)
                first = time.perf_counter() - clock
                speed["ours"].append(sum(answer.completion_tokens for answer in answers) / first)
        clock = time.perf_counter()
        assert ask(wanted, Journal(path)) == answers
        replay = time.perf_counter() - clock
    for way, found in speed.items():
        print(f"{way}: {', '.join(f'{each:,.0f}' for each in found)} tokens/s in {ROUNDS} rounds")
    shares = [ours / theirs for ours, theirs in zip(speed["ours"], speed["bare"], strict=True)]
    print(f"share of the server's own throughput: {', '.join(f'{share:.2f}' for share in shares)} (aim .95)")
    print(f"replay of {given.requests} answers: {replay * 1000:.1f} ms, {first / replay:,.0f} times faster (aim 100)")


if __name__ == "__main__":
    main()
