"""What the job answers by HTTP: /healthz, /readyz and /metrics, from a thread of the driver."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from typing_extensions import override

from spark_app.errors import PortTakenError
from spark_app.figures import JobMetrics

SILENT_S = 10
"""How long a connection may say nothing."""


@contextmanager
def serving(figures: JobMetrics, host: str, port: int | None) -> Iterator[int | None]:
    """Answer on this port, or on a free one for 0, and give which it is; None for None. Raises PortTakenError."""
    if port is None:
        yield None
        return
    try:
        server = ThreadingHTTPServer((host, port), _handler(figures))
    except OSError as error:
        raise PortTakenError(host, port, error.strerror or str(error)) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="endpoints", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(figures: JobMetrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Three paths, and 404 for every other."""

        timeout = SILENT_S

        def do_GET(self) -> None:  # the library's name
            if self.path == "/healthz":
                self._judge(figures.unhealthy())
            elif self.path == "/readyz":
                self._judge(figures.unready())
            elif self.path == "/metrics":
                self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, figures.text())
            else:
                self.send_error(HTTPStatus.NOT_FOUND)

        @override
        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads a line for each scrape."""

        def _judge(self, why: str | None) -> None:
            status = HTTPStatus.OK if why is None else HTTPStatus.SERVICE_UNAVAILABLE
            verdict = {"ok": True} if why is None else {"ok": False, "why": why}
            self._answer(status, "application/json", json.dumps(verdict).encode())

        def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
