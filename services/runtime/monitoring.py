"""HTTP endpoints of a process, from a thread of its own: /healthz, /readyz and /metrics."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

from prometheus_client import CONTENT_TYPE_LATEST
from typing_extensions import override

from services.runtime.errors import PortTakenError

if TYPE_CHECKING:
    from collections.abc import Iterator

SILENT_S = 10
"""The time after which a silent connection is closed."""


class Monitored(Protocol):
    """The state of a process, read from the thread of the endpoints."""

    def unhealthy(self) -> str | None:
        """Return why the process must be restarted; None if it is healthy."""
        ...

    def unready(self) -> str | None:
        """Return why the process does no work yet; None if it works."""
        ...

    def text(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        ...


@contextmanager
def serving(process: Monitored, host: str, port: int | None) -> Iterator[int | None]:
    """Answer on this port, or on a free one for 0, and yield the port; None for None. Raises PortTakenError."""
    if port is None:
        yield None
        return
    try:
        server = ThreadingHTTPServer((host, port), _handler(process))
    except OSError as error:
        failure, problem = "/healthz and /metrics cannot be served", error.strerror or str(error)
        raise PortTakenError(failure, host, port, problem) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="monitoring", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(process: Monitored) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Three paths, and 404 for every other."""

        timeout = SILENT_S

        @override
        def handle(self) -> None:
            """Answer; a client that disconnects before the end is no error."""
            with suppress(ConnectionError):
                super().handle()

        def do_GET(self) -> None:  # the library's name
            if self.path == "/healthz":
                self._report(process.unhealthy())
            elif self.path == "/readyz":
                self._report(process.unready())
            elif self.path == "/metrics":
                self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, process.text())
            else:
                self.send_error(HTTPStatus.NOT_FOUND)

        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Log no line for each scrape."""

        def _report(self, why: str | None) -> None:
            status = HTTPStatus.OK if why is None else HTTPStatus.SERVICE_UNAVAILABLE
            body = {"ok": True} if why is None else {"ok": False, "why": why}
            self._answer(status, "application/json", json.dumps(body).encode())

        def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
