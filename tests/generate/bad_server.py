"""A server that speaks OpenAI's API badly: what it does follows from the first word of the prompt."""

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def reply(text="x", *, api="completions", model="tiny", choices=1, usage=True):
    part = {"message": {"role": "assistant", "content": text}} if api == "chat" else {"text": text}
    made = [{"index": at, "finish_reason": "stop", "logprobs": None, **part} for at in range(choices)]
    named = {"id": "1", "created": 0, "model": model, "choices": made}
    named["object"] = "chat.completion" if api == "chat" else "text_completion"
    counted = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return json.dumps({**named, **({"usage": counted} if usage else {})})


ODD = {  # what is answered, each time, instead of the fine text
    "empty": {"text": ""},
    "two": {"choices": 2},
    "none": {"choices": 0},
    "other": {"model": "another"},
    "long": {"text": "x" * 1_000_000},
    "control": {"text": "\x00\x1b[31m\u2028 \ud800 end"},
    "uncounted": {"usage": False},
}
PAGES = {"html": "<html>Welcome</html>", "nonsense": '{"choices": ['}
REFUSED = {  # a body, a status and headers, and whether the second try is answered
    "busy": ('{"error": {"message": "slow down"}}', 429, {"Retry-After": "1"}, True),
    "broken": ("oops", 500, {}, True),
    "ruined": ("always, {key}", 500, {}, False),
    "halved": ('{"error": {"message": "half a pair: \\ud800"}}', 400, {}, False),
    "forbidden": ('{"error": {"message": "bad key"}}', 401, {}, False),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, status=200, headers=()):
        data = body.encode("utf-8", "surrogatepass")
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(data)),
            "Content-Type": "application/json",
            **dict(headers),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api, server = "chat" if "chat" in self.path else "completions", self.server
        if api not in server.apis:
            self.send('{"error": {"message": "no such place"}}', server.absent)
            return
        prompt = body["messages"][0]["content"] if api == "chat" else body["prompt"]
        with server.lock:
            server.asked[prompt] += 1
            server.running += 1
            server.most = max(server.most, server.running)
            first = server.asked[prompt] == 1
        try:
            self.act(prompt.split()[0] if prompt.strip() else "", prompt, body.get("suffix"), api, first)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has stopped waiting
        finally:
            with server.lock:
                server.running -= 1

    def act(self, word, prompt, suffix, api, first):
        if word in REFUSED and (first or not REFUSED[word][3]):
            text, status, headers, _ = REFUSED[word]
            self.send(text.replace("{key}", self.headers["Authorization"]), status, headers)
        elif word == "cut" and first:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nContent-Type: application/json\r\n\r\n{")
            self.close_connection = True
        elif word == "slow" and first:
            time.sleep(1.6)  # longer than the client waits
        else:
            time.sleep(self.server.delay)
            with self.server.lock:
                self.server.answered[prompt] += 1
            fine = {"text": self.server.texts.get((prompt, suffix), f" after {prompt}")}
            self.send(PAGES.get(word) or reply(api=api, **ODD.get(word, fine)))


@contextmanager
def serving(*apis, delay=0.0, absent=404, texts=()):
    """The server on a free port; `asked` and `answered` count by prompt, `most` is how many it ever had at a time.

    texts  what it answers to a (prompt, suffix)
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.apis, server.delay, server.absent = apis or ("completions", "chat"), delay, absent
    server.texts, server.lock, server.running, server.most = dict(texts), threading.Lock(), 0, 0
    server.asked, server.answered = Counter(), Counter()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
