"""The test kit of stores: the reference passes, and a store that breaks a promise does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

import pytest
from typing_extensions import override

from contracts.sinks import RowBatch, Windows
from contracts.testing.memory_store import MemoryStore, StoredState
from contracts.testing.stores import (
    StoredRow,
    check_conflict,
    check_emptying,
    check_expiry,
    check_newest_row,
    check_reopening,
    check_steps,
    check_store,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from contracts.sinks import Row, Target
    from contracts.testing.stores import StoreHarness

    Check = Callable[[StoreHarness, Windows], Awaitable[None]]


class InMemory:
    """A harness of stores in memory, of any class."""

    def __init__(self, kind: type[MemoryStore] = MemoryStore) -> None:
        self._kind = kind
        self._states: dict[Target, StoredState] = {}
        self._rows: dict[str, dict[tuple[str, int], Row]] = {}

    def store(self, target: Target) -> MemoryStore:
        state = self._states.setdefault(target, StoredState())
        state.rows = self._rows.setdefault(target.name, state.rows)
        return self._kind(target, state)

    async def rows(self, target: Target) -> list[StoredRow]:
        return [StoredRow(row.key, *row.order, json.loads(row.value)) for row in self._states[target].rows.values()]

    async def empty(self, target: Target) -> None:
        self._states[target].rows.clear()
        self._states[target].positions.clear()


async def test_the_reference_passes() -> None:
    await check_store(InMemory())


class LastWins(MemoryStore):
    """Replaces a newer row."""

    @override
    def _put(self, row: Row) -> bool:
        self.state.rows[row.row_key(self._windows)] = row
        return True


class Unfenced(MemoryStore):
    """Moves from any position."""

    @override
    async def write(self, batch: RowBatch) -> int:
        moves = {
            partition: move._replace(expected=self.state.positions.get(partition, 0))
            for partition, move in batch.moves.items()
        }
        return await super().write(RowBatch(batch.steps, moves))


class Forgetful(MemoryStore):
    """Loses its positions when it is opened again."""

    @override
    async def open(self) -> None:
        self.state.positions.clear()


class PositionsApart(MemoryStore):
    """Keeps its positions where its rows are not: what removes the rows does not remove them."""

    kept: ClassVar[dict[int, int]]

    @override
    async def positions(self) -> Mapping[int, int]:
        return dict(self.kept)

    @override
    async def write(self, batch: RowBatch) -> int:
        self.state.positions.update(self.kept)
        changed = await super().write(batch)
        self.kept.update(self.state.positions)
        return changed


class RemovesFirst(MemoryStore):
    """Applies the deletions of all steps before all rows."""

    @override
    async def write(self, batch: RowBatch) -> int:
        ordered = [step._replace(rows=()) for step in batch.steps] + [
            step._replace(deletions=()) for step in batch.steps
        ]
        return await super().write(RowBatch(tuple(ordered), batch.moves))


class Everlasting(MemoryStore):
    """Removes no expired row."""

    @override
    async def remove_expired(self, now: int) -> int:
        return 0


@pytest.mark.parametrize("windows", list(Windows))
@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (LastWins, check_newest_row),
        (Unfenced, check_conflict),
        (Forgetful, check_reopening),
        (PositionsApart, check_emptying),
        (RemovesFirst, check_steps),
        (Everlasting, check_expiry),
    ],
)
async def test_a_store_that_breaks_a_promise_is_found(
    kind: type[MemoryStore], check: Check, windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contracts.testing.stores.EXPIRY_S", 0.2)
    monkeypatch.setattr(PositionsApart, "kept", {}, raising=False)
    with pytest.raises(AssertionError):
        await check(InMemory(kind), windows)
