"""The worker as a process, on a real broker."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from services.runtime.worker.subscription import SESSION_MS
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.derive.working import Topics, flight

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kills_broker

PROMPTLY_S = 20
SESSION_S = SESSION_MS / 1000
UNREACHABLE = "127.0.0.1:1"


@pytest.mark.kafka
def test_a_suite_has_a_worker_for_each_application(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> None:
    topics = Topics(broker.bootstrap, topics_prefix, tmp_path)
    charters = Topics(broker.bootstrap, f"{topics_prefix}charters.", tmp_path, "jets")
    topics.publish(flight(1, 8))
    charters.publish(flight(2, 8))
    with topics.worker(STATELOOP_APPLICATION="tests.services.derive.prefixed:suite") as worker:
        assert [one["device_id"] for one in topics.derived(1)] == ["flight-1"]
        assert [one["device_id"] for one in charters.derived(1)] == ["flight-2"]
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(DEADLINE_S) == 0
    charters.delete()
    with topics.worker(STATELOOP_APPLICATION="tests.services.derive.prefixed:suite") as worker:
        assert worker.wait(DEADLINE_S) == 1, "an error of one stops all, and the process is restarted"
    assert f"{topics_prefix}charters.jets" in topics.log()


@pytest.mark.kafka
def test_missing_topic_is_reported(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> None:
    topics = Topics(broker.bootstrap, topics_prefix, tmp_path)
    topics.delete()
    with topics.worker() as worker:
        assert worker.wait(DEADLINE_S) == 1
    assert "stateloop topics" in topics.log()


@pytest.mark.kafka
def test_worker_that_was_taken_for_dead_writes_nothing_when_it_wakes(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    topics, hold = Topics(broker.bootstrap, topics_prefix, tmp_path), tmp_path / "hold"
    topics.publish(*(flight(number, 8) for number in range(20)))
    hold.touch()
    with topics.worker("frozen", PREFIXED_HOLD=str(hold)) as frozen:
        wait_until(hold.with_suffix(".reached").exists, "snapshots that were read", DEADLINE_S)
        frozen.send_signal(signal.SIGSTOP)
        topics.publish(*(flight(number, 8, version=2) for number in range(20)))
        with topics.worker("successor") as successor:
            assert len(topics.derived(40)) == 40
            hold.unlink()
            frozen.send_signal(signal.SIGCONT)
            wait_until(lambda: '"not committed"' in topics.log("frozen"), "a worker that found itself dead", DEADLINE_S)
            successor.send_signal(signal.SIGTERM)
            assert successor.wait(DEADLINE_S) == 0
        topics.publish(*(flight(number, 8, version=3) for number in range(20)))  # it is a member again, and goes on
        found = topics.derived(60)
    versions: dict[str, list[int]] = {one["device_id"]: [] for one in found}
    for one in found:
        versions[one["device_id"]].append(one["version"])
    assert set(map(tuple, versions.values())) == {(1, 2, 3)}


@pytest.mark.kafka
def test_in_an_outage_longer_than_its_session_a_worker_waits_and_another_can_be_stopped(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    topics, others = (Topics(broker.bootstrap, f"{topics_prefix}{name}", tmp_path) for name in ("", "others."))
    hold = tmp_path / "hold"
    others.publish(flight(1, 8))
    hold.touch()
    with topics.worker() as worker, others.worker("other", PREFIXED_HOLD=str(hold)) as other:
        topics.publish(flight(1, 8))
        assert len(topics.derived(1)) == 1
        topics.await_commits(1)
        wait_until(hold.with_suffix(".reached").exists, "snapshots that were read", DEADLINE_S)
        broker.kill()
        try:
            began = time.monotonic()
            hold.unlink()
            other.send_signal(signal.SIGTERM)
            assert other.wait(PROMPTLY_S) == 0
            wait_until(lambda: time.monotonic() - began > 1.2 * SESSION_S, "longer than a session", DEADLINE_S)
        finally:
            broker.start()
        topics.publish(flight(1, 8, version=2))
        assert [one["version"] for one in topics.derived(2)] == [1, 2]
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PROMPTLY_S) == 0
    with others.worker("successor"):
        assert [one["version"] for one in others.derived(1)] == [1]


def test_worker_stops_while_it_looks_for_a_broker(topics_prefix: str, tmp_path: Path) -> None:
    topics = Topics.__new__(Topics)
    topics.bootstrap, topics.prefix, topics.folder = UNREACHABLE, topics_prefix, tmp_path
    with topics.worker() as worker:
        wait_until(lambda: "stateloop derive: {" in topics.log(), "a worker that looks for its broker", DEADLINE_S)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PROMPTLY_S) == 0
