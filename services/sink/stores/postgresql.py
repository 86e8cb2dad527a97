"""PostgreSQL as the store of a sink: a table for each target, and one with the positions of all targets of the schema.

One transaction writes a batch. It moves the positions first, which locks them: a sink that has lost its partitions
meanwhile waits, and then changes nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import orjson
from psycopg import AsyncConnection, DataError, Error, IntegrityError, ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import ProgramLimitExceeded, StatementTooComplex
from typing_extensions import override

from contracts.records.state_record import EPOCH
from contracts.sinks import (
    PositionConflictError,
    RefusedRow,
    RowsRefusedError,
    SinkStore,
    StoreMismatchError,
    StoreUnavailableError,
)
from services.sink.stores import postgresql_queries as queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contracts.sinks import Deletion, Move, Row, RowBatch, Step, Target

LONGEST_NAME = 63
"""In bytes: PostgreSQL cuts longer names."""
MAX_REMOVED = 10_000
"""The number of expired rows that one transaction removes."""
REFUSALS = (DataError, IntegrityError, ProgramLimitExceeded, StatementTooComplex)
"""The errors of PostgreSQL that a row itself causes: no retry writes it."""
CLIENT_ENCODING = "UTF8"
"""The client's encoding. By default it is the database's; with SQL_ASCII the client returns bytes instead of text."""
NUL = "\0"
"""The character that no text of PostgreSQL contains."""


class PostgresqlStore(SinkStore):
    """A table of PostgreSQL as the store of one target."""

    def __init__(self, url: str, target: Target) -> None:
        _check_url(url)
        if len(target.name.encode()) > LONGEST_NAME:
            problem = f"has a name of more than {LONGEST_NAME} bytes"
            raise StoreMismatchError(f"table {target.name!r}", problem, "shorten STATELOOP_SINK_PREFIX")
        self._url = url
        self._target = target.name
        self._topic = target.topic
        self._queries = queries.TableQueries(target)
        self._open_connection: AsyncConnection | None = None

    @override
    async def open(self) -> None:
        await self.close()
        with _translated_errors():
            connection = await AsyncConnection.connect(
                self._url, autocommit=True, application_name="stateloop-sink", client_encoding=CLIENT_ENCODING
            )
            self._open_connection = connection
            await connection.execute(queries.SESSION)
            async with connection.transaction():
                await connection.execute(queries.LOCK_SCHEMA)
                if not await _exists(connection, queries.POSITIONS_TABLE):
                    await connection.execute(queries.CREATE_POSITIONS)
                await self._prepare_table(connection)

    @override
    async def positions(self) -> Mapping[int, int]:
        with _translated_errors():
            if not await _exists(self._connection, self._queries.name):
                raise StoreUnavailableError("its table was dropped")  # `open` creates it, without positions
            stored = await self._connection.execute(queries.POSITIONS, (self._target, self._topic))
            return {int(partition): int(position) for partition, position in await stored.fetchall()}

    @override
    async def write(self, batch: RowBatch) -> int:
        with _translated_errors():
            while True:
                try:
                    async with self._connection.transaction():
                        await self._move(batch.moves)
                        return sum([await self._remove(s.deletions) + await self._write(s.rows) for s in batch.steps])
                except _NotMovedError:
                    await self._check_positions(batch.moves)
                except REFUSALS as error:
                    refused = await self._refused(batch.steps) or await self._refused(batch.steps, error)
                    if not refused:
                        raise StoreUnavailableError(_reason(error)) from error
                    raise RowsRefusedError(refused) from error

    @override
    async def remove_expired(self, now: int) -> int:
        """Remove at most MAX_REMOVED expired rows; return how many."""
        with _translated_errors():
            removed = await self._connection.execute(self._queries.remove_expired, (_time(now), MAX_REMOVED))
            return removed.rowcount

    @override
    async def close(self) -> None:
        if self._open_connection is not None:
            await self._open_connection.close()
            self._open_connection = None

    @property
    def _connection(self) -> AsyncConnection:
        if self._open_connection is None:
            raise StoreUnavailableError("it is not open")
        return self._open_connection

    async def _prepare_table(self, connection: AsyncConnection) -> None:
        """Create the table, without positions, or check the one that exists."""
        name = self._queries.name
        if not await _exists(connection, name):
            for statement in self._queries.create:
                await connection.execute(statement)
            await connection.execute(queries.FORGET_POSITIONS, (self._target,))
            return
        rows = await (await connection.execute(queries.TABLE_COLUMNS, (name,))).fetchall()
        kinds = {str(column): str(kind) for column, kind in rows}
        if wrong := [f"{column} {kind}" for column, kind in queries.COLUMNS.items() if kinds.get(column) != kind]:
            self._raise_mismatch(f"has not the columns {', '.join(wrong)}")
        identity = self._queries.identity
        is_unique = await (await connection.execute(queries.IS_UNIQUE, (name, identity))).fetchone()
        if is_unique != (True,):
            self._raise_mismatch(f"has no unique index on ({', '.join(identity)})")

    def _raise_mismatch(self, problem: str) -> None:
        remedy = "drop or rename it, or write another STATELOOP_SINK_PREFIX or STATELOOP_SINK_WINDOWS"
        raise StoreMismatchError(f"table {self._target!r}", problem, remedy)

    async def _move(self, moves: Mapping[int, Move]) -> None:
        """Move the positions. Raises _NotMovedError if one is not as expected, or not there."""
        expected, reached = [move.expected for move in moves.values()], [move.position for move in moves.values()]
        parameters = (list(moves), expected, reached, self._target, self._topic)
        done = await self._connection.execute(queries.MOVE_POSITIONS, parameters)
        if done.rowcount < len(moves):
            raise _NotMovedError

    async def _check_positions(self, moves: Mapping[int, Move]) -> None:
        """Add the positions that are not there, at 0. Raises PositionConflictError."""
        present = await self.positions()
        missing = [partition for partition in moves if partition not in present]
        await self._connection.execute(queries.ADD_POSITIONS, (self._target, self._topic, missing))
        if any(present.get(partition, 0) != move.expected for partition, move in moves.items()):
            raise PositionConflictError({partition: present.get(partition, 0) for partition in moves})

    async def _remove(self, deletions: Sequence[Deletion]) -> int:
        possible = [(row.key, _time(row.window_start)) for row in deletions if NUL not in row.key]
        if not possible:
            return 0
        return (await self._connection.execute(self._queries.remove, _columns(possible))).rowcount

    async def _write(self, rows: Sequence[Row]) -> int:
        if not rows:
            return 0
        document = orjson.dumps([_document(row) for row in _ordered(rows)]).decode()
        return (await self._connection.execute(self._queries.write, (document,))).rowcount

    async def _refused(self, steps: Sequence[Step], at_commit: Error | None = None) -> list[RefusedRow]:
        """Find the rows that cannot be written, after the others of the batch; all of it is rolled back.

        The constraint of an error at the end of a transaction is checked with each row. Others are not: the batch may
        fulfil them at its end only, as when it deletes a row and writes it again.
        """
        refused: list[RefusedRow] = []
        async with self._connection.transaction(force_rollback=True):
            if at_commit is not None:
                diagnosis = at_commit.diag
                await self._connection.execute(queries.check_at_once(diagnosis.schema_name, diagnosis.constraint_name))
            for step in steps:
                await self._remove(step.deletions)
                refused += await self._write_accepted(_ordered(step.rows))
        return refused

    async def _write_accepted(self, rows: Sequence[Row]) -> list[RefusedRow]:
        """Write the rows that the store accepts, by halves; return the others."""
        try:
            async with self._connection.transaction():
                await self._write(rows)
        except REFUSALS as error:
            if len(rows) == 1:
                return [RefusedRow(rows[0], _reason(error))]
            middle = len(rows) // 2
            return await self._write_accepted(rows[:middle]) + await self._write_accepted(rows[middle:])
        return []


async def require_answer(url: str) -> None:
    """Return when the server answers, and accepts the login. Raises StoreUnavailableError, StoreMismatchError."""
    _check_url(url)
    with _translated_errors():
        async with await AsyncConnection.connect(url, application_name="stateloop-sink") as connection:
            await connection.execute("SELECT 1")


def _check_url(url: str) -> None:
    try:
        conninfo_to_dict(url)
    except ProgrammingError:  # its text may have a part of the password
        wanted = "write postgresql://user:password@host:port/database"
        raise StoreMismatchError("STATELOOP_SINK_URL", "is not a URL of PostgreSQL", wanted) from None


class _NotMovedError(Exception):
    """A position is not as expected, or not there."""


async def _exists(connection: AsyncConnection, table: str) -> bool:
    exists = await (await connection.execute(queries.TABLE_EXISTS, (table,))).fetchone()
    return exists == (True,)


def _ordered(rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows in the order in which all sinks lock them."""
    return sorted(rows, key=lambda row: (row.key, row.window_start))


def _document(row: Row) -> dict[str, object]:
    """Return a row as JSON: one text for all rows costs a quarter of the CPU of an array for each column."""
    return {
        "key": row.key,
        "window_start": _time(row.window_start),
        "epoch": row.epoch,
        "version": row.version,
        "source": row.source,
        "event_time": _time(row.event_time),
        "value": orjson.Fragment(row.value),
        "expires_at": _time(row.expires_at),
    }


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _time(time: int | None) -> datetime | None:
    return None if time is None else EPOCH + timedelta(microseconds=time)


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except (Error, OSError) as error:
        raise StoreUnavailableError(_reason(error)) from error


def _reason(error: Exception) -> str:
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first_line}"
