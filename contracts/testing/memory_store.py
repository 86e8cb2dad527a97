"""A store in memory: the reference for what a store does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from contracts.sinks import PositionConflictError, SinkStore, Windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.sinks import Deletion, Row, RowBatch, Step, Target
    from contracts.sinks.store import RowKey


class StoredState:
    """The content of one target. It outlives its stores, as the data of a server outlives connections."""

    def __init__(self) -> None:
        self.rows: dict[RowKey, Row] = {}
        self.positions: dict[int, int] = {}


class MemoryStore(SinkStore):
    """A store whose target is in memory."""

    def __init__(self, target: Target, state: StoredState | None = None) -> None:
        self._windows = target.windows
        self.state = state or StoredState()

    @override
    async def open(self) -> None:
        pass

    @override
    async def positions(self) -> Mapping[int, int]:
        return dict(self.state.positions)

    @override
    async def write(self, batch: RowBatch) -> int:
        present = {partition: self.state.positions.get(partition, 0) for partition in batch.moves}
        if any(present[partition] != move.expected for partition, move in batch.moves.items()):
            raise PositionConflictError(present)
        changed = sum(self._apply(step) for step in batch.steps)
        self.state.positions.update({partition: move.position for partition, move in batch.moves.items()})
        return changed

    @override
    async def remove_expired(self, now: int) -> int:
        expired = [key for key, row in self.state.rows.items() if row.expires_at is not None and row.expires_at <= now]
        for key in expired:
            del self.state.rows[key]
        return len(expired)

    @override
    async def close(self) -> None:
        pass

    def _apply(self, step: Step) -> int:
        return sum(map(self._remove, step.deletions)) + sum(map(self._put, step.rows))

    def _remove(self, deletion: Deletion) -> bool:
        window = deletion.window_start
        key = deletion.key, window if self._windows is Windows.ALL and window is not None else 0
        row = self.state.rows.get(key)
        if row is None or window not in {None, row.window_start}:
            return False
        del self.state.rows[key]
        return True

    def _put(self, row: Row) -> bool:
        key = row.row_key(self._windows)
        stored = self.state.rows.get(key)
        if stored is not None and stored.order >= row.order:
            return False
        self.state.rows[key] = row
        return True
