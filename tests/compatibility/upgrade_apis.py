"""The APIs of `upgrade.py`: the owners of plates, and the receiver of alerts. They record each call."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

Outage = tuple[float, float]
"""The last commit of the enrichment workers before they were killed or could not commit, and the end of
that time, in seconds since 1970."""


@dataclass
class Call:
    """A call. `began` and `ended` in seconds since 1970; `ended` is infinite while it is in flight."""

    name: str
    began: float
    ended: float = float("inf")


class Apis(BaseHTTPRequestHandler):
    """Answers each call after a second, so that some are in flight when a worker is killed."""

    protocol_version = "HTTP/1.1"
    calls: ClassVar[list[Call]] = []
    deliveries: ClassVar[list[Call]] = []

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Print nothing."""

    def do_GET(self) -> None:
        """Return the owner of a plate."""
        plate = self.path.rpartition("/")[2]
        self._answer(self.calls, plate, {"name": f"owner of {plate}"})

    def do_POST(self) -> None:
        """Accept an event of an alert. Its name is `<session>/<rule>/… opened` or closed."""
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(self.deliveries, f"{event['id']} {event['event']}", {})

    def _answer(self, calls: list[Call], name: str, body: dict[str, str]) -> None:
        call = Call(name, time.time())
        calls.append(call)
        time.sleep(1)
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        call.ended = time.time()
        with suppress(OSError):  # a worker that was killed
            self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """Accepts the connections of a worker that starts with a backlog: a call that waits for one delays commits."""

    request_queue_size = 256
    daemon_threads = True


def serve() -> str:
    """Serve the APIs in a thread, and return their URL."""
    server = Server(("127.0.0.1", 0), Apis)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def repeated(calls: list[Call]) -> list[Call]:
    """Return the first calls of those that were made again."""
    first: dict[str, Call] = {}
    return [first[call.name] for call in calls if first.setdefault(call.name, call) is not call]


def is_uncommitted(call: Call, outages: list[Outage]) -> bool:
    """Return whether it was in flight, or not yet committed, in an outage."""
    return any(call.began <= end and start <= call.ended for start, end in outages)
