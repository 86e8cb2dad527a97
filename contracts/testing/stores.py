"""The test kit of stores: what `stateloop.sinks.SinkStore` promises, on a real store.

Each check uses targets of its own, so one server serves all. `check_store` runs all checks.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from contracts.records.state_record import SOURCE_BYTES
from contracts.sinks import (
    Deletion,
    Move,
    PositionConflictError,
    Row,
    RowBatch,
    RowsRefusedError,
    Step,
    StoreUnavailableError,
    Target,
    Windows,
)
from contracts.testing.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from contracts.sinks import SinkStore

T = TypeVar("T")

START = 1_767_225_600_000_001
"""The start of a window, in microseconds since 1970."""
DAY = 24 * 3600 * 1_000_000
KEYS = ("a", "é", "k@1:2", "x" * 500)
ROUNDS = 60
LARGEST_SOURCE = (1 << 8 * SOURCE_BYTES) - 1
EXPIRY_S = 10.0
"""The maximum time in which a store removes an expired row by itself."""
POLL_S = 0.05


class StoredRow(NamedTuple):
    """A row as the store has it; the value is parsed JSON."""

    key: str
    window_start: int
    epoch: int
    version: int
    source: int
    value: Any


class StoreHarness(Protocol):
    """A store under test."""

    def store(self, target: Target) -> SinkStore:
        """Return a store of the target that is not open. Several of one target share its rows and positions."""
        ...

    async def rows(self, target: Target) -> Collection[StoredRow]:
        """Return all rows of the target."""
        ...

    async def empty(self, target: Target) -> None:
        """Remove all rows of the target at once, as an operator does: drop its table, flush its database."""
        ...


async def check_store(harness: StoreHarness, *, refused: bytes | None = None, seed: int = 0) -> None:
    """Check a store. Raises AssertionError. `refused` is JSON that the store can never write, if there is any."""
    for windows in Windows:
        await check_newest_row(harness, windows, seed)
        await check_steps(harness, windows, seed)
        await check_conflict(harness, windows)
        await check_reopening(harness, windows)
        await check_emptying(harness, windows)
        await check_expiry(harness, windows)
        if refused is not None:
            await check_refusal(harness, windows, refused)


async def check_newest_row(harness: StoreHarness, windows: Windows, seed: int = 0) -> None:
    """Two writers, in any order and with repetitions, leave the newest row of each row key."""
    random, target = Random(seed), _target(windows)  # noqa: S311
    written: list[Row] = []
    for _ in range(ROUNDS):
        batches = ([_row(random) for _ in range(random.randint(1, 5))] for _ in range(2))
        repeated = random.sample(written, min(len(written), 3))
        async with _Writer(harness, target, 0) as first, _Writer(harness, target, 1) as second:
            for writer, rows in zip(random.sample((first, second), 2), batches, strict=True):
                await writer.write(rows)
                written += rows
            await random.choice((first, second)).write(repeated)
    newest: dict[Any, Row] = {}
    for row in sorted(written, key=lambda row: row.order):
        newest[row.row_key(windows)] = row
    await _expect(harness, target, newest.values(), "two writers")


async def check_steps(harness: StoreHarness, windows: Windows, seed: int = 0) -> None:
    """Deletions and rows have the effect that they have in memory, step by step."""
    random, target = Random(seed), _target(windows)  # noqa: S311
    reference = MemoryStore(target)
    async with _Writer(harness, target) as writer:
        for _ in range(ROUNDS):
            steps = tuple(_step(random, windows) for _ in range(random.randint(1, 3)))
            batch = RowBatch(steps, writer.move())
            changed, expected = await writer.store.write(batch), await reference.write(batch)
            _require_equal(f"changes by {steps}", changed, expected)
            await _expect(harness, target, reference.state.rows.values(), f"after {steps}")


async def check_conflict(harness: StoreHarness, windows: Windows) -> None:
    """A batch that expects another position changes nothing, and the error has the present one."""
    target, random = _target(windows), Random(0)  # noqa: S311
    rows = tuple(_row(random) for _ in range(2))
    async with _Writer(harness, target) as writer:
        stored = {0: 7, 1: 9}
        await writer.store.write(RowBatch((), {partition: Move(0, at) for partition, at in stored.items()}))
        for moves in ({0: Move(0, 10)}, {0: Move(7, 8), 1: Move(8, 10)}, {2: Move(1, 2), 0: Move(7, 8)}):
            try:
                await writer.store.write(RowBatch((Step((), rows[:1]),), moves))
            except PositionConflictError as error:
                present = {partition: stored.get(partition, 0) for partition in moves}
                _require_equal("positions of the error", dict(error.positions), present)
            else:
                raise AssertionError(f"moved {moves} from other positions")
        await _expect_positions(writer.store, stored)
        await _expect(harness, target, (), "a conflict")
        await writer.store.write(RowBatch((Step((), rows[:1]),), {0: Move(7, 7), 1: Move(9, 3)}))  # may go back
        await _expect_positions(writer.store, {0: 7, 1: 3})
        await _expect(harness, target, rows[:1], "no conflict")


async def check_reopening(harness: StoreHarness, windows: Windows) -> None:
    """Rows and positions are there for another client, a repeated `open` changes nothing, targets are separate."""
    target, random = _target(windows), Random(0)  # noqa: S311
    row = _row(random)
    async with _Writer(harness, target) as writer:
        await writer.write([row])
        await writer.store.open()
        await _expect_positions(writer.store, {0: 1})
    async with _Writer(harness, target) as writer:
        await _expect_positions(writer.store, {0: 1})
        await _expect(harness, target, [row], "opened again")
    other_topic = Target(target.name, "another topic", windows)
    async with _Writer(harness, other_topic) as writer:
        await _expect_positions(writer.store, {})
    async with _Writer(harness, _target(windows)) as writer:
        await _expect_positions(writer.store, {})


async def check_emptying(harness: StoreHarness, windows: Windows) -> None:
    """An emptied target has no positions, for clients that are open too, and takes the records again."""
    target, row = _target(windows), _row(Random(0))  # noqa: S311
    async with _Writer(harness, target) as writer, _Writer(harness, target) as reader:
        await writer.write([row])
        await harness.empty(target)
        _require_equal("positions, emptied", await _answered(reader.store, reader.store.positions), {})
        try:
            await _answered(writer.store, lambda: writer.write([row]))
        except PositionConflictError as error:
            _require_equal("positions of the error, emptied", dict(error.positions), {0: 0})
        else:
            raise AssertionError("an emptied target was moved from its former position")
        writer.position = 0
        await writer.write([row])
        await _expect(harness, target, [row], "filled again")


async def check_expiry(harness: StoreHarness, windows: Windows) -> None:
    """Rows go when they expire; a newer row of the key has its own expiry."""
    target, random, now = _target(windows), Random(0), time.time_ns() // 1000  # noqa: S311
    expired, kept, permanent = (_row(random, key=key) for key in "gkl")
    extended = _row(random, key="r")._replace(version=1)
    soon = now + 100_000
    rows = [expired._replace(expires_at=soon), kept._replace(expires_at=now + DAY), permanent]
    renewal = extended._replace(version=2, expires_at=None)
    async with _Writer(harness, target) as writer:
        await writer.write([*rows, extended._replace(expires_at=soon)])
        await writer.write([renewal])
        deadline = time.monotonic() + EXPIRY_S
        while any(row.key == expired.key for row in await harness.rows(target)):
            if time.monotonic() > deadline:
                raise AssertionError("an expired row is still there")
            await asyncio.sleep(POLL_S)
            await writer.store.remove_expired(time.time_ns() // 1000)
        _require_equal("rows removed twice", await writer.store.remove_expired(soon), 0)
        await _expect(harness, target, [*rows[1:], renewal], "expired")


async def check_refusal(harness: StoreHarness, windows: Windows, refused: bytes) -> None:
    """The error has the rows that cannot be written, and nothing is written with them; the others can be."""
    target, random = _target(windows), Random(0)  # noqa: S311
    rows = [_row(random, key=f"key {number}") for number in range(9)]
    wrong = {2, 3, 8}
    batch = [row._replace(value=refused) if number in wrong else row for number, row in enumerate(rows)]
    async with _Writer(harness, target) as writer:
        try:
            await writer.write(batch)
        except RowsRefusedError as error:
            refused_rows = {(refusal.row.key, bool(refusal.reason)) for refusal in error.refused}
            _require_equal("refused rows", refused_rows, {(rows[number].key, True) for number in wrong})
        else:
            raise AssertionError("wrote what can never be written")
        await _expect(harness, target, (), "a refusal")
        await writer.write([row for number, row in enumerate(rows) if number not in wrong])
        await _expect(harness, target, [row for number, row in enumerate(rows) if number not in wrong], "the rest")


class _Writer:
    """An open store, with the position of one partition."""

    def __init__(self, harness: StoreHarness, target: Target, partition: int = 0) -> None:
        self.store = harness.store(target)
        self.position = 0
        self._partition = partition

    async def __aenter__(self) -> Self:
        await self.store.open()
        self.position = (await self.store.positions()).get(self._partition, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()

    def move(self) -> dict[int, Move]:
        """Move the position by one."""
        self.position += 1
        return {self._partition: Move(self.position - 1, self.position)}

    async def write(self, rows: Sequence[Row]) -> None:
        """Write rows in steps of one row, in this order. The position stays where an error leaves it."""
        moves = self.move()
        try:
            await self.store.write(RowBatch(tuple(Step((), (row,)) for row in rows), moves))
        except (PositionConflictError, RowsRefusedError, StoreUnavailableError):
            self.position -= 1
            raise


def _target(windows: Windows) -> Target:
    return Target(f"check-{uuid.uuid4().hex[:12]}", "topic.of-checks", windows)


def _row(random: Random, key: str | None = None) -> Row:
    """Return a row whose value follows from its order, as with every record of one version."""
    window, epoch, version = START + random.randint(-1, 1), random.randint(0, 1), random.randint(-1, 9)
    source = random.choice((0, 1, LARGEST_SOURCE))
    key = random.choice(KEYS) if key is None else key
    value = json.dumps({"key": key, "order": [window, epoch, version, source], "text": 'é"\\\n'}).encode()
    return Row(key, window, epoch, version, START, value, None, 0, 0, source)


def _step(random: Random, windows: Windows) -> Step:
    keys = random.sample(KEYS, random.randint(0, 2))
    deletions = [Deletion(key, _row(random).window_start) for key in keys]
    if windows is Windows.NEWEST and random.random() < 0.3:  # noqa: PLR2004
        deletions = [Deletion(key, None) for key in keys]
    rows = {row.row_key(windows): row for row in (_row(random) for _ in range(random.randint(0, 4)))}
    return Step(tuple(deletions), tuple(rows.values()))


async def _answered(store: SinkStore, operation: Callable[[], Awaitable[T]]) -> T:
    """Return the answer of the store, which may have to be opened again, as a sink does."""
    try:
        return await operation()
    except StoreUnavailableError:
        await store.open()
        return await operation()


async def _expect(harness: StoreHarness, target: Target, rows: Iterable[Row], when: str) -> None:
    stored = sorted(await harness.rows(target))
    expected = sorted(StoredRow(row.key, *row.order, json.loads(row.value)) for row in rows)
    _require_equal(f"rows, {when}", stored, expected)


async def _expect_positions(store: SinkStore, expected: Mapping[int, int]) -> None:
    """Compare the positions. One at 0 may be stored or not."""
    positions = {partition: at for partition, at in (await store.positions()).items() if at}
    _require_equal("positions", positions, dict(expected))


def _require_equal(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise AssertionError(f"{what}: {actual}, not {expected}")
