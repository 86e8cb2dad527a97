"""Measures a service that is not ours, and Redis, so that it is the harness that is tested."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.harness.errors import JobExitedError
from bench.harness.measure import Site
from bench.query.service import KeyQueries, Keys
from bench.query.services import REDIS, STATELOOP_SERVICE, Service

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

KEYS = Keys("keys", 2_000, rate=200, seconds=1)
SCRIPT = Path(__file__).with_name("a_service.py")


def ignore(what: str) -> None:
    assert what


def there(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"without {', '.join(missing)}")


def service(spoil: str) -> Service:
    return Service("small", (sys.executable, str(SCRIPT), "{boot}", "{port}"), {"SPOIL": spoil})


@pytest.fixture
def meter(broker: EmbeddedBroker, tmp_path: Path) -> KeyQueries:
    return KEYS.meter(Site(broker.bootstrap, tmp_path, tmp_path, (broker.pid,)))


@there("wrk")
def test_an_honest_service_is_measured(meter: KeyQueries) -> None:
    figures, report = meter.measure(service("nothing"), "honest", ignore)
    assert report.right, report
    assert figures["checked"] > 1_000
    assert 0 < figures["half_per_s"] < figures["gets_per_s"]
    assert figures["gets_per_cpu_s"] > figures["gets_per_s"]
    assert figures["batch_keys_per_s"] > 0
    assert 0 < figures["visible_p50_ms"] <= figures["visible_p99_ms"]
    assert figures["rebuild_s"] > 0
    assert figures["restart_s"] > 0
    assert figures["own_mb"] > 1


@there("wrk")
def test_one_that_answers_an_earlier_version_fails_its_run(meter: KeyQueries) -> None:
    _, report = meter.measure(service("lies"), "lies", ignore)
    assert not report.right
    assert report.wrong


def test_a_service_that_exits_is_reported(meter: KeyQueries) -> None:
    with pytest.raises(JobExitedError):
        meter.measure(Service("small", (sys.executable, "-c", "pass")), "exits", ignore)


@there("wrk")
def test_pages_and_watchers_of_ours_are_measured(meter: KeyQueries) -> None:
    figures, report = meter.measure(STATELOOP_SERVICE, "ours", ignore)
    assert report.right, report
    assert figures["page_keys_per_cpu_s"] > 0
    assert figures["pushed_per_cpu_s"] > 0


@there("redis-server", "redis-benchmark")
def test_redis_is_measured_too(meter: KeyQueries) -> None:
    figures, report = meter.measure(REDIS, "redis", ignore)
    assert report.right, report
    assert figures["gets_per_s"] > 0
    assert "half_p99_ms" not in figures
    assert figures["disk_mb"] > 0.5
