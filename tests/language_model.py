"""A language model's server of our own: real HTTP, replies as a test wants them, and everything it was sent."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LanguageModelServer(ThreadingHTTPServer):
    """Answers requests of the chat completions interface; `reply` makes a text, a status or a whole body of one."""

    daemon_threads = True

    def __init__(self, reply: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.seen: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: LanguageModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append({"path": self.path, "body": body, "authorization": self.headers.get("Authorization")})
        made = self.server.reply(body)
        if isinstance(made, str):
            message = {"role": "assistant", "content": made}
            made = 200, {"choices": [{"message": message}], "usage": {"total_tokens": 7}}, {}
        status, content, headers = made
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            if headers.get("X-Slow"):
                for byte in raw:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(0.2)
            self.wfile.write(raw)
        except OSError:
            return

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""
