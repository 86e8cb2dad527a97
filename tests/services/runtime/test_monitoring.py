from __future__ import annotations

import json
from datetime import timedelta

import pytest

from services.runtime.errors import PortTakenError
from services.runtime.monitoring import serving
from spark_app.figures import MARGIN, JobMetrics
from tests.clock import Clock
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
        pytest.raises(PortTakenError, match="STATELOOP_HTTP_PORT"),
        serving(figures, HOST, port),
    ):
        pass
    with serving(figures, HOST, None) as none:
        assert none is None
