"""`stateloop verify` of a windowed state: every window of a key, between the topic and a query service."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.console import Console

from contracts.wire import Snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.client.settings import ClientSettings
from services.tools.cli.commands.verify import VerifyOptions
from services.tools.cli.verify import Verification
from spark_app.settings import JobSettings
from tests.e2e.loop import Loop, ask
from tests.services.tools.broker.embedded import free_port_pair
from tests.services.tools.cli.closing import closing
from tests.spark_app.running import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka

APPLICATION = "tests.services.tools.cli.closing:app"
AIRPORTS = ("EWR", "JFK", "LGA")
HOUR = timedelta(hours=1)


class World:
    """Topics of the application, which have windows of several hours."""

    def __init__(self, broker: EmbeddedBroker, prefix: str, folder: Path) -> None:
        self.loop = Loop(broker, prefix, folder, APPLICATION)
        self._prefix = prefix
        now = datetime.now(UTC)
        self.hours = [now.replace(minute=0, second=0, microsecond=0) - number * HOUR for number in range(4)]

    def publish(self, airport: str, hour: int, version: int = 2, flights: int = 1) -> None:
        """Write a snapshot of a window, as the job does."""
        own: dict[str, Any] = {"device_id": airport, "first_seen": self.hours[hour], "epoch": 7, "version": version}
        snapshot = Snapshot(**own, as_of=self.hours[hour], state={"flights": flights})
        number = partition(airport.encode(), self.loop.partitions)
        self.loop.send("snapshots", window_key(*snapshot.window), snapshot.encode(), number)

    def publish_all(self) -> None:
        """Write two versions of each window."""
        for airport in AIRPORTS:
            for hour in reversed(range(len(self.hours))):
                for version in (1, 2):
                    self.publish(airport, hour, version)

    def verify(self, port: str, patience_s: float) -> tuple[int, str]:
        """Compare with a query service: the number of differences, and the report. It starts no Spark."""
        options = VerifyOptions(patience=patience_s)
        settings = JobSettings(application=APPLICATION, kafka=self.loop.bootstrap)
        client, printed = ClientSettings(url=f"http://127.0.0.1:{port}"), io.StringIO()
        verification = Verification(cast("Any", None), closing(self._prefix), settings, client, options)
        return verification.run(Console(file=printed, width=200)), printed.getvalue()


def test_all_windows_are_compared(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("served", "other")]
    for folder in folders:
        folder.mkdir()
    served, other = (World(broker, f"{topics_prefix}{folder.name}.", folder) for folder in folders)
    port = str(free_port_pair())
    served.publish_all()
    other.publish_all()
    with served.loop.service("services.query", http_port=port, query_data=str(tmp_path / "data")):
        until(lambda: ask(port, f"closing/{AIRPORTS[-1]}"), "the states in the query service")
        count, report = served.verify(port, 60.0)
        assert count == 0, report
        windows = len(AIRPORTS) * len(served.hours)
        assert "closing: 3 keys" in report
        assert re.search(rf"topic, query service\s+{windows}\s+0\s+0\s+0\s*\n", report), report

        other.hours.insert(0, other.hours[0] + HOUR)
        other.publish("EWR", 2, version=3)  # of a window that is not the newest one
        other.publish("JFK", 0)
        other.publish("LGA", 4, version=3, flights=2)
        served.publish("LGA", 3, version=3)
        path = f"closing/LGA?at={served.hours[3]:%Y-%m-%dT%H:%M:%SZ}"
        until(lambda: (closing := ask(port, path)) and closing["version"] == 3, "the new version in the query service")
        count, report = other.verify(port, 0.0)
    rows = [re.split(r"\s{2,}", line.strip()) for line in report.splitlines() if line.startswith(AIRPORTS)]
    assert sorted((row[0], row[-1]) for row in rows) == [
        ("EWR", "the query service is older"),
        ("JFK", "the query service lacks it"),
        ("LGA", "state.flights of the same version"),
    ], report
    assert count == len(rows)
