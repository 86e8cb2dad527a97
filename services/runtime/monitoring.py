"""What /healthz, /readyz and /metrics answer, and these endpoints from a thread of their own."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector
from typing_extensions import override

from services.runtime.errors import PortTakenError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.registry import Collector

SILENT_S = 10
"""The time after which a silent connection is closed."""


class Monitored(Protocol):
    """A process, or a part of one, whose health is monitored."""

    def unhealthy(self) -> str | None:
        """Return why the process must be restarted; None if it is healthy."""
        ...

    def unready(self) -> str | None:
        """Return why it does not work now; None if it does."""
        ...


class MonitoredProcess(Monitored, Protocol):
    """A process behind the three endpoints."""

    def text(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        ...


def health_answer(problem: str | None) -> tuple[HTTPStatus, bytes]:
    """Return the status and the JSON of /healthz, or of /readyz: 503 with the problem if there is one."""
    if problem is None:
        return HTTPStatus.OK, b'{"ok": true}'
    return HTTPStatus.SERVICE_UNAVAILABLE, json.dumps({"ok": False, "why": problem}).encode()


def process_registry(*metrics: Collector) -> CollectorRegistry:
    """Return a registry of these metrics, and of those of the process."""
    registry = CollectorRegistry()
    for collector in metrics:
        registry.register(collector)
    ProcessCollector(registry=registry)
    return registry


@contextmanager
def serving(process: MonitoredProcess, host: str, port: int | None) -> Iterator[int | None]:
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


def _handler(process: MonitoredProcess) -> type[BaseHTTPRequestHandler]:
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
                self._answer_health(process.unhealthy())
            elif self.path == "/readyz":
                self._answer_health(process.unready())
            elif self.path == "/metrics":
                self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, process.text())
            else:
                self.send_error(HTTPStatus.NOT_FOUND)

        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Log no line for each scrape."""

        def _answer_health(self, problem: str | None) -> None:
            status, body = health_answer(problem)
            self._answer(status, "application/json", body)

        def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
