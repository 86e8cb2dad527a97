"""Plans the changes of a store by records. Pure functions; times are in microseconds since 1970."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.records.state_record import MICROSECOND, StateRecordDecoder, UndecodableRecordError
from contracts.sinks import Deletion, Row, Step, Windows

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from contracts.model.named_state import NamedState
    from contracts.records.record import Record
    from contracts.sinks.store import RowKey

LAST_US = 253_402_300_800_000_000
"""The end of the year 9999: the latest time that stores and ISO 8601 can express."""


class RefusedRecord(NamedTuple):
    """A record that cannot be written, the reason, and its key if it is known."""

    record: Record
    reason: str
    key: str | None = None


class WritePlan(NamedTuple):
    """The effect of some records, and those without any."""

    steps: tuple[Step, ...]
    refused: tuple[RefusedRecord, ...]
    superseded: int
    """The number of records of which another one has a newer row."""
    expired: int
    """The number of records whose rows have expired."""


class Planner:
    """Plans the batches of one state. Rows expire `retention` after their window is closed for good."""

    def __init__(self, state: NamedState, windows: Windows, retention: timedelta) -> None:
        self._decoder = StateRecordDecoder(state)
        self._windows = windows
        self._kept_for: int | None = None
        if state.lifetime is not None and state.window_start is not None and state.expires_by_clock:
            self._kept_for = (state.lifetime + state.grace + retention) // MICROSECOND

    @property
    def can_expire(self) -> bool:
        """Whether rows expire."""
        return self._kept_for is not None

    def plan(self, records: Iterable[Record], now: int) -> WritePlan:
        """Return the plan of records, which are in the order of each partition."""
        steps, refused, expired = _Steps(self._windows), [], 0
        for record in records:
            try:
                change = self._deletion(record) if record.value is None else self._row(record, record.value)
            except UndecodableRecordError as error:
                refused.append(RefusedRecord(record, error.reason))
                continue
            if isinstance(change, Row):
                if change.expires_at is not None and change.expires_at <= now:
                    expired += 1
                else:
                    steps.add_row(change)
            elif change is not None:
                steps.add_deletion(change)
        return WritePlan(steps.finish(), tuple(refused), steps.superseded, expired)

    def _row(self, record: Record, value: bytes) -> Row:
        decoded = self._decoder.value(record.key, value, record.offset, record.timestamp_ms)
        if max(decoded.window_start, decoded.event_time) >= LAST_US:
            raise UndecodableRecordError("one of its times is after the year 9999")
        expires_at = self._expiry(decoded.window_start)
        return Row(*decoded[:5], value, expires_at, record.partition, record.offset, decoded.source)

    def _deletion(self, record: Record) -> Deletion | None:
        decoded = self._decoder.tombstone(record.key)
        return None if decoded is None else Deletion(*decoded)

    def _expiry(self, window_start: int) -> int | None:
        """Return when the row expires; None for never."""
        if self._kept_for is None:
            return None
        expires_at = window_start + self._kept_for
        return expires_at if expires_at < LAST_US else None


class _Steps:
    """Collects rows and deletions in as few steps as their order allows."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._steps: list[Step] = []
        self._deletions: dict[Deletion, None] = {}
        self._rows: dict[RowKey, Row] = {}
        self.superseded = 0

    def add_row(self, row: Row) -> None:
        key = row.row_key(self._windows)
        present = self._rows.get(key)
        if present is not None:
            self.superseded += 1
        if present is None or row.order > present.order:
            self._rows[key] = row

    def add_deletion(self, deletion: Deletion) -> None:
        window = deletion.window_start if self._windows is Windows.ALL else 0
        if (deletion.key, window) in self._rows:  # it follows that row
            self._close()
        self._deletions[deletion] = None

    def finish(self) -> tuple[Step, ...]:
        self._close()
        return tuple(self._steps)

    def _close(self) -> None:
        if self._rows or self._deletions:
            self._steps.append(Step(tuple(self._deletions), tuple(self._rows.values())))
            self._deletions, self._rows = {}, {}
