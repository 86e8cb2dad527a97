"""Measures a service that is not ours, and Redis, so that it is the harness that is tested."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.harness.errors import JobExitedError
from bench.harness.jobs import Job
from bench.harness.plan import Plan, Site
from bench.query import servers
from bench.query.generators import Wrk
from bench.query.measures import Keys
from bench.query.servers import REDIS, Server
from bench.query.service import KeyQueries
from bench.query.store_clients import HttpStoreClient

if TYPE_CHECKING:
    from tests.services.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

KEYS = Keys("keys", 2_000, rate=200, seconds=1, subscribers=5)
PLAN = Plan((KEYS,), runs=1)
SCRIPT = Path(__file__).with_name("a_service.py")


def ignore(what: str, done: float) -> None:
    assert what
    assert done >= 0


def there(*programs: str) -> pytest.MarkDecorator:
    missing = [one for one in programs if shutil.which(one) is None]
    return pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}")


def service(monkeypatch: pytest.MonkeyPatch, spoil: str) -> Job:
    job = Job("small", (sys.executable, str(SCRIPT), "{boot}", "{port}"), {"SPOIL": spoil})
    monkeypatch.setitem(servers.SERVERS, "small", Server(job, HttpStoreClient, Wrk, ("wrk",), paced=True, pushes=True))
    return job


@pytest.fixture
def meter(broker: EmbeddedBroker, tmp_path: Path) -> KeyQueries:
    return KeyQueries(KEYS, PLAN, Site(broker.bootstrap, tmp_path, tmp_path, (broker.pid,)))


@there("wrk")
def test_an_honest_service_is_measured(meter: KeyQueries, monkeypatch: pytest.MonkeyPatch) -> None:
    result = meter.measure(service(monkeypatch, "nothing"), 1, ignore)
    assert result.right, result
    figures = result.figures
    assert figures["checked"] > 1_000
    assert 0 < figures["half_per_s"] < figures["gets_per_s"]
    assert figures["gets_per_cpu_s"] > figures["gets_per_s"]
    assert figures["batch_keys_per_s"] > 0
    assert 0 < figures["visible_p50_ms"] <= figures["visible_p99_ms"] < 1000
    assert 0 < figures["push_p50_ms"] <= figures["push_p99_ms"] < 1000
    assert figures["rebuild_s"] > 0
    assert figures["restart_s"] > 0
    assert figures["own_mb"] > 1


@there("wrk")
def test_one_that_answers_an_earlier_version_fails_its_run(meter: KeyQueries, monkeypatch: pytest.MonkeyPatch) -> None:
    result = meter.measure(service(monkeypatch, "lies"), 2, ignore)
    assert not result.right
    assert result.report
    assert result.report.wrong


def test_a_service_that_exits_is_reported(meter: KeyQueries, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job("small", (sys.executable, "-c", "pass"))
    monkeypatch.setitem(servers.SERVERS, "small", Server(job, HttpStoreClient, Wrk, (), paced=True, pushes=True))
    with pytest.raises(JobExitedError):
        meter.measure(job, 3, ignore)


@there("redis-server", "redis-benchmark")
def test_redis_is_measured_too(meter: KeyQueries) -> None:
    result = meter.measure(REDIS, 4, ignore)
    assert result.right, result
    assert result.figures["gets_per_s"] > 0
    assert "half_p99_ms" not in result.figures
    assert result.figures["disk_mb"] > 0.5
