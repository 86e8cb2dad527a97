"""Derived records: pure functions from a snapshot to the records of other keys."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contracts.errors import AUTHOR_ERRORS, described
from contracts.records.numbers import NULL, unwritable
from contracts.records.record import Reason, Record, timestamp_ms
from contracts.types.key import LARGEST_KEY
from contracts.wire import NEVER_WRITTEN, DeadLetter, DerivedRecord
from contracts.wire.partition import partition
from contracts.wire.window_key import derived_key, window_key
from services.runtime.kafka.values import Output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic import BaseModel

    from contracts import Application, Derived
    from contracts.wire import Snapshot

log = logging.getLogger(__name__)


def derived(
    application: Application,
    declared: Iterable[Derived],
    snapshot: Snapshot,
    partition_counts: Mapping[str, int],
    tables: Mapping[str, Mapping[str, BaseModel]],
) -> Iterator[Output]:
    """Return the records that these declarations derive from a snapshot. Raises the errors of their functions.

    `tables` has the values of the reference tables by name and key. `partition_counts` has the number of each
    topic's partitions. Raises ValueError for a record that would be too large: the broker would refuse it each time.
    """
    for one in declared:
        topic = application.topics.derived(one.name)
        for key, value in _values(one, snapshot, tables, partition_counts[topic] if one.tables else None):
            if len(value) > application.largest_record:
                most = application.largest_record
                raise ValueError(f"{one.name} of {key[:100]!r} has {len(value)} bytes, and {most} are allowed")
            if not 0 < (size := len(key.encode())) <= LARGEST_KEY:
                raise ValueError(f"{one.name} has a key of {size} bytes, and 1 to {LARGEST_KEY} are allowed")
            whole = derived_key(key, snapshot.device_id, snapshot.first_seen)
            yield Output(topic, whole, value, partition(key.encode(), partition_counts[topic]))


def failed(application: Application, device_id: str, record: Record, error: BaseException) -> Output:
    """Return the dead letter of a snapshot on which a function failed. Its key is the device."""
    dead_letter = DeadLetter.of(record, Reason.NOT_DERIVED, described(error))
    return Output(application.topics.dead_letters, device_id.encode(), dead_letter.encode())


def derived_of_present(
    application: Application,
    declared: Derived,
    snapshots: Iterable[Snapshot],
    partition_counts: Mapping[str, int],
    tables: Mapping[str, Mapping[str, BaseModel]],
) -> Iterator[Output]:
    """Yield what is derived from present states. The first for which the function raises is a dead letter."""
    is_reported = False
    for snapshot in snapshots:
        try:
            found = tuple(derived(application, (declared,), snapshot, partition_counts, tables))
        except AUTHOR_ERRORS as error:
            log.exception("nothing derived from a present state")
            if not is_reported:
                yield failed(application, snapshot.device_id, _record(application, snapshot), error)
            is_reported = True
        else:
            yield from found


def _record(application: Application, snapshot: Snapshot) -> Record:
    """Return the record of a stored snapshot, without its position; and without a value that is nested too deeply."""
    topic, key = application.topics.snapshots, window_key(*snapshot.window)
    try:
        value = snapshot.encode()
    except (TypeError, ValueError):  # of orjson or pydantic: both read deeper values than they write
        value = None
    return Record(topic, NEVER_WRITTEN, NEVER_WRITTEN, timestamp_ms(snapshot.as_of), key, value)


def _values(
    one: Derived, snapshot: Snapshot, tables: Mapping[str, Mapping[str, BaseModel]], layout: int | None
) -> Iterator[tuple[str, bytes]]:
    """Return the keys of a snapshot's derived values, with the records of this layout."""
    for key, value in one.of(snapshot, tables) if one.tables else one.of(snapshot):
        record = DerivedRecord(
            key=key,
            first_seen=snapshot.first_seen,
            epoch=snapshot.epoch,
            version=snapshot.version,
            as_of=snapshot.as_of,
            device_id=snapshot.device_id,
            layout=layout,
            value=value.model_dump(mode="json", exclude_none=True),
        )
        if NULL in (encoded := record.encode()) and (problem := next(unwritable(record.value), None)):
            raise ValueError(f"{one.name} of {key[:100]!r}: {problem.field} {problem.detail}")
        yield key, encoded
