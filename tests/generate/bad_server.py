"""A server that speaks OpenAI's API badly: what it does follows from the first word of the prompt."""

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def reply(text, *, api="completions", model="tiny", choices=1, usage=True):
    part = {"message": {"role": "assistant", "content": text}} if api == "chat" else {"text": text}
    made = [{"index": at, "finish_reason": "stop", "logprobs": None, **part} for at in range(choices)]
    named = {"id": "1", "created": 0, "model": model, "choices": made}
    named["object"] = "chat.completion" if api == "chat" else "text_completion"
    counted = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return json.dumps({**named, **({"usage": counted} if usage else {})})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, status=200, kind="application/json", **headers):
        data = body.encode("utf-8", "surrogatepass")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api = "chat" if "chat" in self.path else "completions"
        if api not in self.server.apis:
            self.send('{"error": {"message": "no such place"}}', self.server.absent)
            return
        prompt = body["messages"][0]["content"] if api == "chat" else body["prompt"]
        with self.server.lock:
            self.server.asked[prompt] += 1
            self.server.running += 1
            self.server.most = max(self.server.most, self.server.running)
            first = self.server.asked[prompt] == 1
        try:
            getattr(self, prompt.split()[0], self.fine)(prompt, api, first)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has stopped waiting
        finally:
            with self.server.lock:
                self.server.running -= 1

    def answer(self, prompt, body, **options):
        with self.server.lock:
            self.server.answered[prompt] += 1
        self.send(body, **options)

    def fine(self, prompt, api, _):
        time.sleep(self.server.delay)
        self.answer(prompt, reply(f" after {prompt}", api=api))

    def busy(self, prompt, api, first):
        if first:
            self.send('{"error": {"message": "slow down"}}', 429, Retry_After="1")
        else:
            self.fine(prompt, api, first)

    def broken(self, prompt, api, first):
        if first:
            self.send("oops", 500, kind="text/plain")
        else:
            self.fine(prompt, api, first)

    def ruined(self, prompt, api, first):
        self.send(f"always, {self.headers['Authorization']}", 500, kind="text/plain")

    def cut(self, prompt, api, first):
        if first:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nContent-Type: application/json\r\n\r\n{")
            self.close_connection = True
        else:
            self.fine(prompt, api, first)

    def slow(self, prompt, api, first):
        if first:
            time.sleep(1.6)  # longer than the client waits
        else:
            self.fine(prompt, api, first)

    def empty(self, prompt, api, _):
        self.answer(prompt, reply("", api=api))

    def two(self, prompt, api, _):
        self.answer(prompt, reply("x", api=api, choices=2))

    def none(self, prompt, api, _):
        self.answer(prompt, reply("x", api=api, choices=0))

    def other(self, prompt, api, _):
        self.answer(prompt, reply("x", api=api, model="another"))

    def long(self, prompt, api, _):
        self.answer(prompt, reply("x" * 1_000_000, api=api))

    def html(self, prompt, api, _):
        self.answer(prompt, "<html>Welcome</html>", kind="text/html")

    def nonsense(self, prompt, api, _):
        self.answer(prompt, '{"choices": [', kind="application/json")

    def control(self, prompt, api, _):
        self.answer(prompt, reply("\x00\x1b[31m\u2028 \ud800 end", api=api))

    def halved(self, prompt, api, _):
        self.send('{"error": {"message": "half a pair: \\ud800"}}', 400)

    def uncounted(self, prompt, api, _):
        self.answer(prompt, reply("x", api=api, usage=False))

    def forbidden(self, prompt, api, _):
        self.send('{"error": {"message": "bad key"}}', 401)


@contextmanager
def serving(*apis, delay=0.0, absent=404):
    """The server on a free port; `asked` and `answered` count by prompt, `most` is how many it ever had at a time."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.apis, server.delay, server.lock = apis or ("completions", "chat"), delay, threading.Lock()
    server.absent = absent
    server.asked, server.answered, server.running, server.most = Counter(), Counter(), 0, 0
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
