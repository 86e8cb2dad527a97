"""The endpoints as a monitor sees them: real HTTP, and Prometheus' own parser."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from contracts.metrics import worker as names
from contracts.metrics.counts import Counts, LabelledCounts
from services.runtime.monitoring import serving
from services.runtime.worker.health import HealthStatus
from services.runtime.worker.monitoring import Monitoring
from tests.queried import ANSWER_S, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

WITHIN = timedelta(seconds=60)
PATIENCE_S = 0.2
WELL = HealthStatus(0.1, 0.1, 5, is_member=True, is_stopping=False)


class FakeWorker:
    """A worker with a given health."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.status = WELL

    def unhealthy(self) -> str | None:
        return self.status.unhealthy(WITHIN)

    def unready(self) -> str | None:
        return self.status.unready()

    def measure(self) -> None:
        self.counts.set(names.WAITING, 42)


class Served:
    """A worker with its loop in a thread, and its endpoints."""

    def __init__(self) -> None:
        self.counts = Counts(names.CATALOGUE)
        self.watched = FakeWorker(self.counts)
        self.loop = asyncio.new_event_loop()
        self.port = 0

    def ask(self, path: str, within_s: float = ANSWER_S) -> tuple[int, str]:
        return ask(self.port, path, within_s)


@pytest.fixture
def served() -> Iterator[Served]:
    running = Served()
    thread = threading.Thread(target=running.loop.run_forever)
    thread.start()
    metrics = LabelledCounts([({"application": "fleet"}, running.counts)])
    monitored = Monitoring({"fleet": running.watched}, metrics, running.loop, PATIENCE_S)
    try:
        with serving(monitored, "127.0.0.1", 0) as port:
            running.port = port or 0
            yield running
    finally:
        running.loop.call_soon_threadsafe(running.loop.stop)
        thread.join(ANSWER_S)
        running.loop.close()


def test_healthz_reports_why_a_restart_is_needed(served: Served) -> None:
    assert served.ask("/healthz") == (200, '{"ok": true}')
    served.watched.status = HealthStatus(0.1, 61, 5, is_member=True, is_stopping=False)
    status, body = served.ask("/healthz")
    assert status == 503
    why = "fleet: nothing moved for 61 s, with 5 records and requests to do"
    assert json.loads(body) == {"ok": False, "why": why}


def test_readyz_reports_whether_it_works_now(served: Served) -> None:
    assert served.ask("/readyz")[0] == 200
    served.watched.status = HealthStatus(0.1, 0.1, 0, is_member=False, is_stopping=False)
    assert served.ask("/readyz")[0] == 503
    assert served.ask("/healthz")[0] == 200, "a worker that waits for the group needs no restart"


def test_a_worker_without_its_topics_is_unhealthy(served: Served) -> None:
    served.watched.status = replace(WELL, blocked_by="the topics are gone")
    status, body = served.ask("/healthz")
    assert (status, json.loads(body)["why"]) == (503, "fleet: the topics are gone")


def test_a_worker_whose_loop_hangs_is_unhealthy_and_still_gives_its_metrics(served: Served) -> None:
    hang = threading.Event()
    served.loop.call_soon_threadsafe(hang.wait, ANSWER_S)
    served.counts.add(names.SNAPSHOTS)
    for path in ("/healthz", "/readyz"):
        status, body = served.ask(path)
        assert (status, json.loads(body)["why"]) == (503, "the event loop did not respond for 0.2 s")
    status, body = served.ask("/metrics")
    assert (status, 'stateloop_worker_snapshots_total{application="fleet"} 1' in body) == (200, True)
    hang.set()
    served.loop.call_soon_threadsafe(hang.clear)
    assert until_healthy(served)


def until_healthy(served: Served) -> bool:
    return any(served.ask("/healthz")[0] == 200 for _ in range(100))


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
    every = [sample for family in families.values() for sample in family.samples if sample.name.startswith("stateloop")]
    assert {sample.labels.pop("application") for sample in every} == {"fleet"}
    samples = {(s.name, *s.labels.values()): s.value for s in every}
    assert samples["stateloop_worker_calls_total", "registry", "owner", "result"] == 3
    assert samples["stateloop_worker_calls_total", 'an "odd"\nname', "owner", "absence"] == 1
    assert samples["stateloop_worker_breaker", "registry"] == 2
    assert samples["stateloop_worker_waiting",] == 42, "gauges are measured when they are scraped"
    assert samples["stateloop_worker_outdated_total",] == 0, "what was never counted is 0"
    assert samples["stateloop_worker_call_seconds_bucket", "registry", "0.005"] == 1
    assert samples["stateloop_worker_call_seconds_bucket", "registry", "0.25"] == 2
    assert samples["stateloop_worker_call_seconds_bucket", "registry", "+Inf"] == 3
    assert samples["stateloop_worker_call_seconds_count", "registry"] == 3
    assert samples["stateloop_worker_call_seconds_sum", "registry"] == pytest.approx(100.204)


def test_the_process_is_measured_too(served: Served) -> None:
    assert "process_cpu_seconds_total" in served.ask("/metrics")[1]


async def test_a_process_with_several_workers_names_each() -> None:
    counts = {name: Counts(names.CATALOGUE) for name in ("fleet", "trips")}
    fakes = {name: FakeWorker(one) for name, one in counts.items()}
    metrics = LabelledCounts([({"application": name}, one) for name, one in counts.items()])
    counts["fleet"].add(names.CALLS, "registry", "owner", "result", by=3)
    counts["trips"].add(names.CALLS, "registry", "owner", "result", by=4)
    fakes["trips"].status = HealthStatus(61, 61, 5, is_member=False, is_stopping=False)
    monitored = Monitoring(fakes, metrics, asyncio.get_running_loop())
    assert await asyncio.to_thread(monitored.unhealthy) == "trips: the consumer was not polled for 61 s"
    assert await asyncio.to_thread(monitored.unready) == "trips: the consumer group has not taken it in yet"
    text = (await asyncio.to_thread(monitored.text)).decode()
    families = [family for family in text_string_to_metric_families(text) if family.name == "stateloop_worker_calls"]
    assert [(s.labels["application"], s.value) for family in families for s in family.samples] == [
        ("fleet", 3),
        ("trips", 4),
    ]
