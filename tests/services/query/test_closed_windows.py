"""The service closes windows by the progress that the job records in Kafka."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from contracts.wire import Snapshot
from contracts.wire.partition import partition
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.admin import KafkaAdmin
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.query.hourly import GRACE, HOUR, app
from tests.services.query.running import PARTITIONS, Fleet

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka
CAR = "/v1/states/cars/a"


def test_a_window_is_open_until_the_job_has_passed_it(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    fleet = Fleet(broker.bootstrap, topics_prefix, tmp_path)
    fleet.environment["STATELOOP_APPLICATION"] = "tests.services.query.hourly:app"
    now = datetime.now(UTC)
    start = now.replace(minute=0, second=0, microsecond=0) - 3 * HOUR

    def of(version: int, *seen: tuple[int, int]) -> Snapshot:
        return Snapshot(device_id="a", first_seen=start, version=version, as_of=start, state={"seen": seen})

    def facts() -> tuple[Any, Any, Any]:
        coverage = fleet.ask(f"{CAR}/coverage").body
        return fleet.ask(CAR).body["is_open"], coverage["final_until"], coverage["intervals"][0]["to"]

    home, over = partition(b"a", PARTITIONS), start + HOUR + GRACE + app.skew
    job = JobProgress(KafkaAdmin({"bootstrap.servers": broker.bootstrap}, "progress"), fleet.topics.snapshots)
    fleet.publish(of(1, (0, 10)))
    with fleet.running():
        fleet.until(f"{CAR}?min_version=1&wait=20", 200)
        assert facts()[:2] == (True, "1970-01-01T00:00:00.000Z"), "the clock has passed it"
        job.record(over, 1, {one: 2 if one == home else 0 for one in range(PARTITIONS)})
        wait_until(lambda: len(job.read(range(PARTITIONS)) or ()) == PARTITIONS, "the progress", DEADLINE_S)
        assert fleet.ask(f"{CAR}?min_version=2&wait=3").status == 503, "meanwhile it looks at the progress"
        assert facts()[:2] == (True, "1970-01-01T00:00:00.000Z"), "a snapshot before the offset is unread"
        fleet.publish(of(2, (0, 60)))
        wait_until(lambda: facts()[0] is False, "closed", DEADLINE_S)
        assert facts() == (False, _iso(start + HOUR), _iso(start + HOUR))
    with fleet.running():
        wait_until(lambda: fleet.ask(CAR).body["is_open"] is False, "also after a restart", DEADLINE_S)
    job.close()


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
