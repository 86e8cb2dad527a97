"""The endpoints as a monitor sees them: real HTTP, and Prometheus' own parser."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from contracts.metrics import worker as names
from contracts.metrics.counts import Counts
from services.enrichment.endpoints import Endpoints
from services.enrichment.errors import PortTakenError
from services.enrichment.health import HealthStatus
from tests.queried import ANSWER_S, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

WITHIN = timedelta(seconds=60)
WELL = HealthStatus(0.1, 0.1, 5, is_member=True, is_stopping=False)


class MonitoredWorker:
    """A worker with a given health."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.status = WELL

    def health(self) -> HealthStatus:
        return self.status

    def measure(self) -> None:
        self.counts.set(names.WAITING, 42)


class Served:
    """Endpoints in a thread with a loop of its own."""

    def __init__(self) -> None:
        self.counts = Counts(names.CATALOGUE)
        self.watched = MonitoredWorker(self.counts)
        self.loop = asyncio.new_event_loop()
        self.port = 0

    def ask(self, path: str, within_s: float = ANSWER_S) -> tuple[int, str]:
        return ask(self.port, path, within_s)

    @contextmanager
    def serving(self) -> Iterator[Served]:
        serving = Endpoints(self.watched, self.counts, WITHIN).serving("127.0.0.1", 0)
        thread = threading.Thread(target=self.loop.run_forever)
        thread.start()
        try:
            self.port = asyncio.run_coroutine_threadsafe(serving.__aenter__(), self.loop).result(ANSWER_S)
            yield self
            asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), self.loop).result(ANSWER_S)
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            thread.join(ANSWER_S)
            self.loop.close()


@pytest.fixture
def served() -> Iterator[Served]:
    with Served().serving() as running:
        yield running


def test_healthz_says_why_a_restart_is_called_for(served: Served) -> None:
    assert served.ask("/healthz") == (200, '{"ok": true}')
    served.watched.status = HealthStatus(0.1, 61, 5, is_member=True, is_stopping=False)
    status, body = served.ask("/healthz")
    assert status == 503
    assert json.loads(body) == {"ok": False, "why": "nothing moved for 61 s, with 5 snapshots and requests to do"}


def test_readyz_says_whether_it_works_now(served: Served) -> None:
    assert served.ask("/readyz")[0] == 200
    served.watched.status = HealthStatus(0.1, 0.1, 0, is_member=False, is_stopping=False)
    assert served.ask("/readyz")[0] == 503
    assert served.ask("/healthz")[0] == 200, "a worker that waits for the group needs no restart"


def test_a_hung_loop_does_not_answer(served: Served) -> None:
    hang = threading.Event()
    served.loop.call_soon_threadsafe(hang.wait, ANSWER_S)
    with pytest.raises(TimeoutError):
        served.ask("/healthz", within_s=0.2)
    hang.set()
    assert served.ask("/healthz")[0] == 200


def test_a_scrape_gives_the_whole_catalogue_with_its_values(served: Served) -> None:
    counts = served.counts
    counts.add(names.CALLS, "registry", "owner", "result", by=3)
    counts.add(names.CALLS, 'an "odd"\nname', "owner", "absence")
    counts.set(names.BREAKER, 2, "registry")
    for seconds in (0.004, 0.2, 100.0):
        counts.observe(names.CALL_SECONDS, seconds, "registry")
    status, text = served.ask("/metrics")
    assert status == 200
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {one.family: (one.kind, one.help) for one in names.CATALOGUE}.items() <= {
        name: (family.type, family.documentation) for name, family in families.items()
    }.items()
    samples = {(s.name, *s.labels.values()): s.value for family in families.values() for s in family.samples}
    assert samples["stateloop_worker_calls_total", "registry", "owner", "result"] == 3
    assert samples["stateloop_worker_calls_total", 'an "odd"\nname', "owner", "absence"] == 1
    assert samples["stateloop_worker_breaker", "registry"] == 2
    assert samples["stateloop_worker_waiting",] == 42, "gauges are measured when they are asked for"
    assert samples["stateloop_worker_outdated_total",] == 0, "what was never counted is 0"
    assert samples["stateloop_worker_call_seconds_bucket", "registry", "0.005"] == 1
    assert samples["stateloop_worker_call_seconds_bucket", "registry", "0.25"] == 2
    assert samples["stateloop_worker_call_seconds_bucket", "registry", "+Inf"] == 3
    assert samples["stateloop_worker_call_seconds_count", "registry"] == 3
    assert samples["stateloop_worker_call_seconds_sum", "registry"] == pytest.approx(100.204)


def test_the_process_is_measured_too(served: Served) -> None:
    assert "process_cpu_seconds_total" in served.ask("/metrics")[1]


async def test_a_used_port_is_reported(served: Served) -> None:
    endpoints = Endpoints(served.watched, served.counts, WITHIN)
    with pytest.raises(PortTakenError, match="STATELOOP_HTTP_PORT"):
        async with endpoints.serving("127.0.0.1", served.port):
            pass
