"""Machines that send events, through two releases of their application, and what must be published of them."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import orjson

from contracts.wire import DeadLetter, Snapshot, decode_snapshot
from tests.e2e.consumer import print_snapshots
from tests.e2e.loop import PAD, PARTITIONS, Loop
from tests.e2e.reader import Reader
from tests.forked import Forked
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

    Window = tuple[str, datetime]
    Place = tuple[datetime, int, int]
    """Start of the window, epoch and version: the order of a device's snapshots."""

Release = Literal["before", "after", "renamed"]


def application(release: Release) -> str:
    """Return the path of the application."""
    return f"tests.e2e.upgrade:app_{release}"


class Fleet(Loop):
    """The loop, what was sent to it, and whether its snapshots show all of that."""

    def __init__(
        self,
        spark: SparkSession,
        broker: EmbeddedBroker,
        prefix: str,
        folder: Path,
        partitions: int = PARTITIONS,
    ) -> None:
        super().__init__(broker, prefix, folder, application("before"), partitions)
        self.spark = spark
        self._reader = Reader(self.bootstrap, f"{prefix}snapshots")
        self.events: Counter[Window] = Counter()
        self.plates: dict[Window, str] = {}

    @contextmanager
    def job(self, release: Release, name: str | None = None, **settings: str) -> Iterator[HostedJob]:
        """Run a job, with a checkpoint of its own or the checkpoint of this name."""
        folder = self.folder / (name or release)
        folder.mkdir(exist_ok=True)
        named = {f"STATELOOP_{name.upper()}": value for name, value in settings.items()}
        environment = self.environment | {"STATELOOP_CATCH_UP": "true"} | named
        job = HostedJob(self.spark, self.bootstrap, folder, application(release), environment).start()
        try:
            yield job
        finally:
            job.stop()

    def event(self, device: str, first_seen: datetime, plate: str | None = None) -> None:
        """Send an event."""
        window = device, first_seen
        self.events[window] += 1
        if plate is not None:
            self.plates[window] = plate
        own = {"event_id": str(self.events[window]), "ts": first_seen, "plate": plate}
        self.send("events", device, orjson.dumps({"device_id": device, "first_seen": first_seen, **own}))

    def snapshots(self) -> list[Snapshot]:
        """All snapshots that the topic holds."""
        return [decode_snapshot(message.value() or b"") for message in self.records("snapshots")]

    def newest(self) -> dict[Window, Snapshot]:
        """Of these, the newest of each window."""
        return {snapshot.window: snapshot for snapshot in sorted(self.snapshots(), key=lambda snapshot: snapshot.order)}

    def is_complete(self, release: Release, job: HostedJob, windows: Iterable[Window] | None = None) -> bool:
        """Return whether all windows, or these, show all events and an answer for each enrichment; the job must run."""
        assert not job.ended(), job.log.read_text(encoding="utf-8")[-3000:]
        self._reader.read()
        newest, epoch = self._reader.latest, job.epoch()
        return all(
            (snapshot := newest.get(window)) is not None
            and snapshot.epoch == epoch
            and snapshot.version >= self.events[window]
            and snapshot.state == self.state(window, release)
            and len(snapshot.enrichments) == (2 if window in self.plates else 0)
            for window in windows or self.events
        )

    def state(self, window: Window, release: Release) -> dict[str, Any]:
        """The state of a window, as this release declares it."""
        plate = {"plate": self.plates[window]} if window in self.plates else {}
        if release == "renamed":  # it counts the plates
            return {"events": 1, "registration": plate["plate"]} if plate else {"events": 0}
        seen = window[1].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return plate | ({"events": self.events[window], "seen": seen} if release == "after" else {})

    def has_no_lag(self) -> bool:
        """Return whether the worker has finished all snapshots."""
        return self.lag("services.enrichment", "snapshots") == 0

    def compacted_windows(self) -> dict[Window, Snapshot]:
        """Have the snapshots compacted to one of each window, which is the newest."""
        newest = self.newest()
        self.compact("snapshots")
        self.compacted("snapshots", len(newest))
        assert self.newest() == newest
        return newest

    def refusals(self) -> set[tuple[str, int, int, int | None]]:
        """Origin and epoch of the job's dead letters, each of which is written once."""
        letters = [DeadLetter.model_validate_json(message.value() or b"") for message in self.records("dead_letters")]
        letters = [letter for letter in letters if letter.enrichment is None]
        origins = [(letter.topic, letter.partition, letter.offset, letter.epoch) for letter in letters]
        assert len(origins) == len(set(origins))
        return set(origins)


@contextmanager
def following(loop: Loop, group: str) -> Iterator[Callable[[], dict[str, list[Place]]]]:
    """Run the consumer of docs/how-to/topics.md; gives the place of each snapshot that it yielded, by device."""
    path = loop.folder / group
    arguments = loop.bootstrap, f"{loop.prefix}{group}", f"{loop.prefix}snapshots"
    process = Forked(os.environ, path, print_snapshots, *arguments)

    def end_offsets() -> dict[str, list[Place]]:
        places: dict[str, list[Place]] = {}
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n") and (snapshot := decode_snapshot(line)).device_id != PAD.decode():
                places.setdefault(snapshot.device_id, []).append((snapshot.first_seen, *snapshot.order))
        return places

    try:
        yield end_offsets
    finally:
        process.kill()
        process.wait(PATIENCE_S)
