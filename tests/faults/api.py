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

CALL_S, SLOW_S, LONGEST_BODY_S = 0.05, 5.0, 20.0
BOMB = gzip.compress(b'{"name": "' + b"0" * (200 << 20), 9)
"""200 MB, as 200 kB."""
GARBAGE = (b"NaN", b"", b"<html></html>", b'{"name": 1}', b'{"name": NaN}', b'{"name": "x"', b"[]", b"\xff\xfe")
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket that closes with RST."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: ApiStub

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        plate = self.path.rpartition("/")[2]
        self.server.calls += 1
        self.server.repeated[plate] += plate in self.server.answered
        with suppress(OSError):  # a worker that was killed, or does not wait
            self.server.respond(self, plate)

    def answer(self, plate: str, after_s: float = CALL_S) -> None:
        """Answer as the API does without a fault."""
        time.sleep(after_s)
        self.send(200, json.dumps({"name": f"owner of {plate}"}).encode())
        self.server.answered.add(plate)

    def send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        fields = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in fields.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.connection.close()


class ApiStub(ThreadingHTTPServer):
    """The server. `respond` is the behaviour of now."""

    request_queue_size = 512
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.respond: Callable[[Handler, str], None] = Handler.answer
        self.calls = 0
        self.answered: set[str] = set()
        """The plates of which an answer was sent."""
        self.repeated: Counter[str] = Counter()
        """The calls of a plate that had been answered."""
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a fault closes connections."""

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
        with self.answers(lambda handler, plate: handler.answer(plate) if is_over.wait() else None):
            try:
                yield
            finally:
                is_over.set()


def is_slow(handler: Handler, plate: str) -> None:
    handler.answer(plate, SLOW_S)


def closes(handler: Handler, _: str) -> None:
    handler.reset()


def resets_in_body(handler: Handler, _: str) -> None:
    handler.send(200, b'{"name": "half of', Content_Length="1000")
    handler.reset()


def fails(handler: Handler, _: str) -> None:
    handler.send((500, 502, 503, 504)[handler.server.calls % 4], b"no")


def limits_rate(handler: Handler, _: str) -> None:
    """Answer 429, every other time with Retry-After."""
    handler.send(429, b"slow down", **({"Retry_After": "1"} if handler.server.calls % 2 else {}))


def garbles(handler: Handler, _: str) -> None:
    """Answer 200 with a body that is no owner."""
    handler.send(200, GARBAGE[handler.server.calls % len(GARBAGE)])


def has_no_end(handler: Handler, _: str) -> None:
    """Send a body without an end, or a small one that is large when it is unpacked, in turns."""
    if handler.server.calls % 2:
        handler.send(200, BOMB, Content_Encoding="gzip")
        return
    handler.send(200, b"", Content_Length="", Connection="close")
    until = time.monotonic() + LONGEST_BODY_S
    while time.monotonic() < until:
        handler.wfile.write(b" " * 65536)


def redirects_inwards(handler: Handler, _: str) -> None:
    handler.send(302, b"", Location="http://169.254.169.254/latest/meta-data")
