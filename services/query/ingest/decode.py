"""Decodes a record of a state's topic into an update of its store; pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.state_record import US_PER_MS, StateRecordDecoder, UndecodableRecordError
from contracts.wire.copy_header import is_copy_for_more
from services.query.store import Entry, Update
from services.query.store.entry import make_tuple
from services.query.store.keys import encode_key

if TYPE_CHECKING:
    from contracts.model.named_state import NamedState
    from contracts.records.record import Record


class UpdateDecoder:
    """Decodes the records of a state. The store has times in milliseconds."""

    def __init__(self, state: NamedState) -> None:
        self._decoder = StateRecordDecoder(state)
        self._grows = state.layout_topic is not None
        self._partitions = state.partitions
        self._stores_windows = state.window is not None

    def decode(self, record: Record) -> Update | None:
        """Return the update; None for a record that is skipped. Raises UndecodableRecordError.

        Skipped are tombstones without a key, and copies for a number of partitions that is not in use yet.
        """
        _, partition, offset, timestamp_ms, key, value, headers = record
        if headers and self._grows and is_copy_for_more(headers, self._partitions):
            return None
        if value is None:
            return self._tombstone(key, partition, offset)
        name, start, epoch, version, time, _ = self._decoder.value(key, value, offset, timestamp_ms)
        if self._stores_windows:
            _check_stored(name)
        entry = make_tuple(Entry, (start // US_PER_MS, epoch, version, time // US_PER_MS, partition, offset, value))
        return make_tuple(Update, (name, partition, offset, entry, None))

    def _tombstone(self, key: bytes | None, partition: int, offset: int) -> Update | None:
        found = self._decoder.tombstone(key)
        if found is None:
            return None
        if self._stores_windows:
            _check_stored(found.key)
        start = None if found.window_start is None else found.window_start // US_PER_MS
        return Update(found.key, partition, offset, None, start)


def _check_stored(key: str) -> None:
    if encode_key(key) is None:
        raise UndecodableRecordError("its key has too many zero bytes")
