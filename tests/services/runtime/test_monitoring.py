from __future__ import annotations

import json
import socket
import struct
from datetime import timedelta
from threading import Event
from threading import enumerate as threads

import pytest

from services.runtime.errors import PortTakenError
from services.runtime.monitoring import serving
from services.tools.broker.readiness import wait_until
from spark_app.run.metrics import MARGIN, JobMetrics
from tests.clock import Clock
from tests.deadline import DEADLINE_S
from tests.queried import ask

HOST = "127.0.0.1"


def test_the_endpoints_answer_until_they_end() -> None:
    clock = Clock()
    figures = JobMetrics()
    query = figures.query("flights", timedelta(0), timedelta(0), clock, lambda: 0.0)
    with serving(figures, HOST, 0) as port:
        assert port is not None
        assert ask(port, "/healthz") == (200, '{"ok": true}')
        assert ask(port, "/readyz") == (503, '{"ok": false, "why": "the query of flights does not run yet"}')
        query.running()
        assert ask(port, "/readyz")[0] == 200
        assert 'stateloop_job_batches_total{application="flights"} 0.0' in ask(port, "/metrics")[1]
        assert ask(port, "/elsewhere")[0] == 404
        clock.now = MARGIN.total_seconds() + 1
        status, body = ask(port, "/healthz")
        assert status == 503
        assert json.loads(body)["why"].startswith("flights: no batch was committed for 61 s")
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/healthz")


def test_a_taken_port_is_reported_and_no_port_takes_none() -> None:
    figures = JobMetrics()
    with (
        serving(figures, HOST, 0) as port,
        pytest.raises(
            PortTakenError, match=r"^/healthz and /metrics cannot be served at 127.*: set STATELOOP_HTTP_PORT"
        ),
        serving(figures, HOST, port),
    ):
        pass
    with serving(figures, HOST, None) as none:
        assert none is None


class SlowMetrics(JobMetrics):
    """Metrics whose text is ready when the client has disconnected."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.disconnected = Event(), Event()

    def text(self) -> bytes:
        self.asked.set()
        assert self.disconnected.wait(DEADLINE_S)
        return bytes(10_000_000)


def test_a_client_that_disconnects_leaves_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    metrics = SlowMetrics()
    with serving(metrics, HOST, 0) as port:
        with socket.create_connection((HOST, port or 0)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset at the close
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert metrics.asked.wait(DEADLINE_S)
        metrics.disconnected.set()
        wait_until(
            lambda: not any("process_request_thread" in thread.name for thread in threads()),
            "the answer ends",
            DEADLINE_S,
        )
    assert not capfd.readouterr().err
