"""A server that speaks OpenAI's API and misbehaves in one of `MODES`, and counts what it is paid.

    with serving("two choices") as server:
        ...                                  # http://127.0.0.1:{server.server_port}/v1
    server.said, server.unsaid               # tokens that it has reported, and requests that it bills without a word

    with serving({"busy": "429 once"}) as server:
        ...                                  # the first word of a prompt decides; other words are answered

Every answer that it has written is billed with `TOKENS`, whether anybody can use it or not. `good` counts, by prompt,
the answers that could be used, and `asked` all requests.
"""

import gzip
import json
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tiny_words import cases

PROMPT, COMPLETION = 100, 40
TOKENS = PROMPT + COMPLETION
USAGE = {"prompt_tokens": PROMPT, "completion_tokens": COMPLETION, "total_tokens": TOKENS}
PAGE = "<html><head><title>Error</title></head><body><h1>Something went wrong</h1><p>{}</p></body></html>"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.chat = "chat" in self.path
        self.prompt = self.body["messages"][0]["content"] if self.chat else self.body["prompt"]
        self.login = self.headers["Authorization"] or ""
        with self.server.lock:
            self.server.asked[self.prompt] += 1
            self.first = self.server.asked[self.prompt] == 1
            self.server.running += 1
            self.server.most = max(self.server.most, self.server.running)
        mode = self.server.mode
        with suppress(BrokenPipeError, ConnectionResetError):  # nobody waits any more
            time.sleep(self.server.delay)
            MODES[mode if isinstance(mode, str) else mode.get(self.prompt.partition(" ")[0], "after")](self)
        with self.server.lock:
            self.server.running -= 1

    def reply(self, text="fine", *, usage=USAGE, choices=1, finish="stop", **fields):
        """The bytes of an answer."""
        part = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        made = [{"index": at, "finish_reason": finish, "logprobs": None, **part} for at in range(choices)]
        kind = "chat.completion" if self.chat else "text_completion"
        whole = {"id": "1", "object": kind, "created": 1, "model": "tiny", "choices": made, **fields}
        return json.dumps(whole | ({} if usage is None else {"usage": usage})).encode()

    def bill(self, said=True, good=False):
        """Count one answer: whether its usage can be read, and whether its text can be used."""
        with self.server.lock:
            self.server.said += TOKENS * said
            self.server.unsaid += not said
            self.server.good[self.prompt] += good

    def send(self, data, status=200, kind="application/json", phrase=None, **headers):
        self.send_response(status, phrase)
        length = {"Content-Type": kind, "Content-Length": str(len(data))}
        for name, value in (length | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def fine(self, text="fine", **fields):
        self.bill(good=True)
        self.send(self.reply(text, **fields))

    def useless(self, data, *, said=True, **options):
        """An answer that was written, and that nobody can use."""
        self.bill(said)
        self.send(data, **options)

    def refuse(self, status, message, code=None, param=None, **headers):
        self.send(json.dumps({"error": {"message": message, "code": code, "param": param}}).encode(), status, **headers)

    def once(self, status, **headers):
        """A refusal first, then an answer."""
        self.refuse(status, "not now", **headers) if self.first else self.fine()

    def without(self, name, message, **fields):
        """A refusal of one parameter, and an answer without it."""
        self.refuse(400, message, **fields) if self.body.get(name) is not None else self.fine()

    def uncounted(self, usage):
        self.bill(said=False, good=True)
        self.send(self.reply(usage=usage))

    def slowly(self, data):
        """One byte at a time, for ever."""
        self.bill(said=False)
        self.close_connection = True
        while not self.server.over.wait(0.05):
            self.wfile.write(data)

    def part(self, data):
        """The beginning of an answer, and no more."""
        self.bill(said=False)
        self.close_connection = True
        self.wfile.write(data)

    def endless(self):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
        self.part(head)
        while not self.server.over.is_set():
            self.wfile.write(b" " * 1_000_000)

    def stopped(self):
        if "stop" in self.body:
            self.refuse(400, "Unsupported parameter: 'stop' is not supported with this model.", param="stop")
        else:
            self.fine("kept\n\nlost")

    def disordered(self):
        time.sleep(random.Random(self.prompt).random() / 20)
        self.fine(f"after {self.prompt}")

    def chat_only(self, status=404):
        self.fine() if self.chat else self.refuse(status, "This is a chat model: use v1/chat/completions.")

    def after(self):
        """The text that is known for the prompt and its suffix, or one that names the prompt."""
        self.fine(self.server.texts.get((self.prompt, self.body.get("suffix")), f" after {self.prompt}"))


def _begun(length=100_000):
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


MODES = {
    "ok": Handler.fine,
    "after": Handler.after,
    "control characters": lambda self: self.fine("\x00\x1b[31m\u2028 \ud800 end"),
    "chat only": Handler.chat_only,
    "two choices": lambda self: self.useless(self.reply(choices=2)),
    "no text, length": lambda self: self.useless(self.reply(None, finish="length")),
    "no text, filtered": lambda self: self.useless(self.reply(None, finish="content_filter")),
    "no choices": lambda self: self.useless(self.reply(choices=0)),
    "choices no list": lambda self: self.useless(json.dumps({"choices": {"0": "x"}, "usage": USAGE}).encode()),
    "text no string": lambda self: self.useless(self.reply(["fine"])),
    "usage absurd": lambda self: self.uncounted({"prompt_tokens": 10**30, "completion_tokens": 10**30}),
    "truncated JSON": lambda self: self.useless(self.reply()[:60], said=False),
    "no UTF-8": lambda self: self.useless(self.reply("fine XX").replace(b"XX", b"\xff\xfe")),
    "200 kB": lambda self: self.useless(self.reply("x" * 200_000)),
    "10 MB": lambda self: self.useless(self.reply("x" * 10_000_000)),
    "endless": Handler.endless,
    "echo as page": lambda self: self.useless(f"<p>{self.login}</p>".encode(), said=False, kind="text/html"),
    "echo as text": lambda self: self.fine(f"You said {self.login}."),
    "echo as model": lambda self: self.fine(model=f"tiny {self.login}"),
    "echo as finish": lambda self: self.fine(finish=self.login),
    "echo in headers": lambda self: self.send(b"oops", 500, phrase=self.login, X_Login=self.login),
    "echo cut by us": lambda self: self.send((" " * 50 + "x" * 270 + self.login).encode(), 400, kind="text/plain"),
    "echo cut by it": lambda self: self.send(f"You said {self.login[:-9]}".encode(), 400, kind="text/plain"),
    "error page": lambda self: self.send(PAGE.format(self.login).encode(), 502, kind="text/html"),
    "429 with a date": lambda self: self.once(429, Retry_After=formatdate(time.time() + 1, usegmt=True)),
    "429 for some": lambda self: (
        self.refuse(429, f"slow down, {self.login}")
        if int(self.prompt.strip("Prompt .")) % 2
        else self.fine(f"You said {self.login}.", model=f"tiny {self.login}")
    ),
    "cut before": lambda self: self.part(b""),
    "cut within": lambda self: self.part(_begun() + b'{"choices": ['),
    "cut once": lambda self: self.part(_begun() + b"{") if self.first else self.fine(),
    "drip": lambda self: (self.wfile.write(_begun()), self.slowly(b" ")),
    "drip of headers": lambda self: (self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: "), self.slowly(b"x")),
    "late once": lambda self: self.slowly(b"") if self.first else self.fine(),
    "silence": lambda self: self.slowly(b""),
    "400 stop": Handler.stopped,
    "400 with half a pair": lambda self: self.refuse(400, "half a pair: \ud800"),
    "401": lambda self: self.refuse(401, f"Incorrect key: {self.login}"),
    "redirect": lambda self: self.send(b"", 307, Location=f"http://localhost:{self.server.server_port}{self.path}"),
    "wrong content type": lambda self: (self.bill(good=True), self.send(self.reply(), kind="text/html")),
    "empty body": lambda self: self.useless(b"", said=False),
    "nested JSON": lambda self: self.useless(b"[" * 500_000, said=False),
    "number of 5000 digits": lambda self: self.useless(b'{"choices": ' + b"9" * 5000 + b"}", said=False),
    "gzip bomb": lambda self: self.useless(self.server.bomb, said=False, Content_Encoding="gzip"),
    "no gzip": lambda self: self.useless(b"plain", said=False, Content_Encoding="gzip"),
    "out of order": Handler.disordered,
}


def _calls(method, *given):
    return lambda self: getattr(self, method)(*given[:-1], **given[-1])


MODES |= {name: _calls(*call) for name, call in cases("modes").items()}


@contextmanager
def serving(mode, *, delay=0.0, texts=()):
    """The server in one mode, or with a mode for some words, on a free port of this machine.

    It waits `delay` seconds before each answer; `most` is how many requests it ever had at a time.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.mode, server.lock, server.over, server.daemon_threads = mode, threading.Lock(), threading.Event(), True
    server.asked, server.good, server.said, server.unsaid = Counter(), Counter(), 0, 0
    server.delay, server.texts, server.running, server.most = delay, dict(texts), 0, 0
    server.bomb = gzip.compress(b" " * 50_000_000, 1) if mode == "gzip bomb" else b""
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
