"""Judges where records are after partitions were added, and what the members of a group have read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from contracts.wire.window_key import parse_window_key
from tests.simulation.kafka.partitioner import partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from contracts import Application
    from contracts.records.record import Record
    from tests.simulation.kafka.log import Entry, PartitionLog
    from tests.simulation.recorded import Ledgers


def layout_problems(ledgers: Ledgers, application: Application) -> Iterator[str]:
    """Return what is wrong with the topics to which partitions were added."""
    if any(grown.ended is None for grown in ledgers.growths):
        yield "the growth of the topics has not ended"
    if not ledgers.growths:
        return
    topics = application.topics
    for topic in (topics.snapshots, *(topics.derived(name) for name in application.derived_names)):
        yield from _misplaced(topic, ledgers.logs[topic])
        yield from _lost(topic, ledgers.logs[topic], ledgers.records[topic])
    for topic in sorted(one.name for one in application.catalogue() if one.grows):
        if len(ledgers.logs[topic]) != len(ledgers.logs[topics.snapshots]):
            yield f"{topic} has {len(ledgers.logs[topic])} partitions"


def unread_problems(reader: str, positions: Mapping[int, int], logs: Sequence[PartitionLog]) -> Iterator[str]:
    """Return that a reader is not at the ends of the logs, which may be markers of transactions."""
    for number, log in enumerate(logs):
        left = visible(log)
        at, last = positions.get(number, 0), left[-1].offset + 1 if left else 0
        if not last <= at <= log.end:
            yield f"{reader} at {at} of the snapshots in partition {number}, which end at {last}"


def _misplaced(topic: str, logs: Sequence[PartitionLog]) -> Iterator[str]:
    """Each record is in the partition of its key: no reader looks into another one."""
    for number, log in enumerate(logs):
        for entry in visible(log):
            key = _placed_by(entry)
            if key is not None and partition_of(key, len(logs)) != number:
                yield f"{topic} {number} {entry.offset} is not in the partition of {key!r}"


def _lost(topic: str, logs: Sequence[PartitionLog], written: Sequence[Record]) -> Iterator[str]:
    """The topic ends with the newest record of each key."""
    left = {entry.key: _content(entry) for log in logs for entry in visible(log) if entry.value is not None}
    for key, record in {record.key: record for record in written if _placed_by(record) is not None}.items():
        if record.value is not None and left.get(key) != (content := _content(record)):
            yield f"{topic} has {left.get(key)} for {key!r} at its end, and {content} is the newest"


def visible(log: PartitionLog) -> Sequence[Entry]:
    """Return the records that a partition has still."""
    entries, _ = log.read(log.start, log.end)
    return entries


def _placed_by(entry: Entry | Record) -> bytes | None:
    """Return the key that decides the partition; None for what no reader reads."""
    try:
        if entry.value is None:
            return parse_window_key(entry.key or b"")[0].encode()
        values = orjson.loads(entry.value)
        return (values.get("key") or values["device_id"]).encode()  # type: ignore[no-any-return]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _content(entry: Entry | Record) -> dict[str, Any]:
    """Return what a copy has in common with its record, also its version if that is the offset of the record."""
    values = orjson.loads(entry.value or b"")
    own = {"copied_from", "offset", "changed"}
    content = {name: found for name, found in values.items() if name not in own}
    return content | ({"is": values.get("copied_from", entry.offset)} if "layout" in values else {})
