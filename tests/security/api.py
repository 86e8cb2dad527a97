"""A server of the APIs that the application calls. It repeats secrets where an API may do so."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator

REPEATS, FORBIDDEN = "REPEATS", "FORBIDDEN"
"""The plates whose owner has the secret as its name, and of whose owner the API refuses to speak."""


class Registry(ThreadingHTTPServer):
    """Gives the owner of a plate, and takes alerts."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.authorizations: set[str] = set()
        self.alerts: list[bytes] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Registry
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # the name is the standard library's
        secret = self.headers.get("Authorization", "")
        self.server.authorizations.add(secret)
        if self.path.endswith(FORBIDDEN):
            self._answer(403, f"no access with {secret}")
        else:
            self._answer(200, {"name": secret if self.path.endswith(REPEATS) else f"owner of {self.path[8:]}"})

    def do_POST(self) -> None:  # the name is the standard library's
        self.server.alerts.append(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(200, {})

    def _answer(self, status: int, body: object) -> None:
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def registry() -> Iterator[Registry]:
    """Serve in a thread."""
    server = Registry()
    thread = threading.Thread(target=server.serve_forever, name="registry")
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
