"""The API of the loop: it answers as the present fault demands, and logs each call."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLOW_S = 5.0
LONGEST_BODY_S = 20.0
BOMB = gzip.compress(b'{"name": "' + b"0" * (200 << 20), 9)
"""200 MB, as 200 kB."""
GARBAGE = (
    b"NaN",
    b"",
    b"<html></html>",
    b'{"name": 1}',
    b'{"name": NaN}',
    b'{"name": "x"',
    b"[]",
    b"\xff\xfe",
    b"null",
)
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket that closes with RST."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: ApiStub

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Print nothing."""

    def do_GET(self) -> None:
        """Return the owner of a plate, or what the fault has in its place."""
        plate = self.path.rpartition("/")[2]
        self.server.calls.append(plate)
        self.server.repeated[plate] += plate in self.server.answered
        with suppress(OSError):  # a worker that was killed, or does not wait
            self.server.respond(self, plate)

    def answer(self, plate: str) -> None:
        """Answer as the API does without a fault."""
        time.sleep(0.05)
        self.body(json.dumps({"name": f"owner of {plate}"}).encode())
        self.server.answered.add(plate)

    def body(self, content: bytes, status: int = 200, **headers: str) -> None:
        """Send a response."""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)


class ApiStub(ThreadingHTTPServer):
    """The server. `respond` is the behaviour of now."""

    request_queue_size = 512
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.respond: Callable[[Handler, str], None] = Handler.answer
        self.calls: list[str] = []
        """The plate of each call."""
        self.answered: set[str] = set()
        """The plates of which an answer was sent."""
        self.repeated: Counter[str] = Counter()
        """The calls of a plate that had been answered."""
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: the fault closes connections."""

    @contextmanager
    def answers(self, respond: Callable[[Handler, str], None]) -> Iterator[None]:
        """Behave so for a while."""
        self.respond = respond
        try:
            yield
        finally:
            self.respond = Handler.answer

    @contextmanager
    def hangs(self) -> Iterator[None]:
        """Answer nothing until the fault ends."""
        is_over = threading.Event()

        def hang(handler: Handler, plate: str) -> None:
            is_over.wait()
            handler.answer(plate)

        with self.answers(hang):
            try:
                yield
            finally:
                is_over.set()


def is_slow(handler: Handler, plate: str) -> None:
    """Answer after five seconds."""
    time.sleep(SLOW_S)
    handler.answer(plate)


def closes(handler: Handler, _: str) -> None:
    """Close each connection without a word, as a proxy without its upstream."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    handler.connection.close()


def resets_in_body(handler: Handler, _: str) -> None:
    """Reset the connection in the middle of the body."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"name": "half of')
    closes(handler, _)


def fails(handler: Handler, plate: str) -> None:
    """Answer 500, 502, 503 and 504."""
    handler.body(b"no", (500, 502, 503, 504)[hash(plate) % 4])


def limits_rate(handler: Handler, _: str) -> None:
    """Answer 429, every other time with Retry-After."""
    headers = {"Retry_After": "1"} if len(handler.server.calls) % 2 else {}
    handler.body(b"slow down", 429, **headers)


def garbles(handler: Handler, _: str) -> None:
    """Answer 200 with a body that is no owner."""
    handler.body(GARBAGE[len(handler.server.calls) % len(GARBAGE)])


def has_no_end(handler: Handler, _: str) -> None:
    """Send a body without an end, or a small one that is large when it is unpacked, in turns."""
    if len(handler.server.calls) % 2:
        handler.body(BOMB, Content_Encoding="gzip")
        return
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    until = time.monotonic() + LONGEST_BODY_S
    while time.monotonic() < until:
        handler.wfile.write(b" " * 65536)


def redirects_inwards(handler: Handler, _: str) -> None:
    """Redirect to an address that is not public."""
    handler.body(b"", 302, Location="http://169.254.169.254/latest/meta-data")
