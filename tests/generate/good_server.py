"""A server that fills the gaps of planted problems well: it looks up what the grammar would put there.

The answer to a prompt is given by a table; what is not in it gets a word that fits nowhere.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UNKNOWN = "xyzzy"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        text = self.server.answers.get((body["prompt"], body.get("suffix")), UNKNOWN)
        choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "text": text}
        counted = {"prompt_tokens": len(body["prompt"]) // 4, "completion_tokens": 3, "total_tokens": 10}
        named = {"id": "1", "created": 0, "model": "good", "object": "text_completion"}
        data = json.dumps({**named, "choices": [choice], "usage": counted}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(answers: Mapping[tuple[str, str | None], str]) -> Iterator[ThreadingHTTPServer]:
    """The server on a free port, with an answer for each (prompt, suffix); `asked` holds what was sent."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answers, server.asked = dict(answers), []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
