"""The ledgers of a run: what it has left, to be judged."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contracts.wire import decode_snapshot
from tests.simulation.script import time_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from services.runtime.job_progress import Published
    from tests.simulation.api import Call, Delivery
    from tests.simulation.growth import Grown
    from tests.simulation.kafka.log import PartitionLog
    from tests.simulation.query import Commit
    from tests.simulation.sink import StoreServer


@dataclass(frozen=True)
class Ledgers:
    """What a run has left: the records of all topics, the calls that the APIs logged, and how the parts ended."""

    records: dict[str, Sequence[Record]]
    """By topic, those of a partition in their order."""
    calls: Sequence[Call]
    committed: dict[float, dict[str, dict[int, int]]]
    """The offsets of all consumer groups at each quiet time, by group and partition."""
    errors: Sequence[str]
    """The errors with which processes ended, and of tasks that nobody awaited."""
    commit: Commit
    """The last commit of the job."""
    store: StoreServer
    """The server of the sinks' store."""
    progress: dict[int, Published]
    """The progress of the job some time before the end."""
    redrives: int
    """The number of redrives that have begun."""
    deliveries: list[Delivery]
    former_jobs: int
    """The number of jobs of former checkpoints that run."""
    growths: Sequence[Grown]
    refused_savepoints: Sequence[str]
    """The reasons for which savepoints were not restored."""
    logs: dict[str, Sequence[PartitionLog]]
    """The partitions of all topics, with what is left of their records."""


def before(at: float, records: Sequence[Record]) -> list[Record]:
    """Return the records that were written before a time."""
    return [record for record in records if record.timestamp < time_at(at)]


def decoded(snapshots: Sequence[Record]) -> Iterator[tuple[datetime, Snapshot]]:
    """Yield the snapshots that are some, and when they were written."""
    for record in snapshots:
        with suppress(ValueError):  # somebody has written it
            yield record.timestamp, decode_snapshot(record.value or b"")


def by_window(snapshots: Sequence[tuple[datetime, Snapshot]], at: float) -> dict[tuple[str, datetime], list[Snapshot]]:
    """Return the snapshots that were written before a time, by window."""
    found: dict[tuple[str, datetime], list[Snapshot]] = defaultdict(list)
    for written_at, snapshot in snapshots:
        if written_at < time_at(at):
            found[snapshot.window].append(snapshot)
    return found
