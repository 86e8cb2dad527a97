"""Redis as the store of a sink: a hash for each row, and one with the positions.

The hash `<target>:<key>` has the fields `value`, JSON as on the topic, and `order`. With `Windows.ALL` the key is the
`window_key`. The hash `@positions:<target>` has the position of each partition, and which windows have rows. One script
writes a batch: Redis runs it alone, and logs its effects together, so rows and positions survive or are lost together,
also on a replica.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from typing_extensions import override

from contracts.records.state_record import EPOCH
from contracts.sinks import (
    PositionConflictError,
    RefusedRow,
    Row,
    RowsRefusedError,
    SinkStore,
    StoreMismatchError,
    StoreUnavailableError,
    Windows,
)
from contracts.wire.window_key import window_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from contracts.sinks import Deletion, RowBatch, Target

T = TypeVar("T")

SCRIPT = Path(__file__).with_name("redis_write.lua").read_text(encoding="utf-8")
CONNECT_TIMEOUT_S = 5
OFFSET = 1 << 63
"""Added to a number, which may be negative, so that its digits sort like the number."""
US_PER_MS = 1000
WINDOWS_FIELD = "@windows/0"
"""The field beside the positions: 1 if each window has a row. It reads as the position of a topic that cannot exist."""
WRONG_TYPE = "its key is in use, and is no hash"


class RedisStore(SinkStore):
    """Hashes of Redis as the store of one target."""

    def __init__(self, url: str, target: Target) -> None:
        self._redis = _client(url)
        self._script = self._redis.register_script(SCRIPT)
        self._name = target.name
        self._topic = target.topic
        self._has_all_windows = target.windows is Windows.ALL
        self._positions_key = f"@positions:{target.name}"

    @override
    async def open(self) -> None:
        await self._redis.connection_pool.disconnect()
        await _answered(self._redis.hsetnx(self._positions_key, WINDOWS_FIELD, str(int(self._has_all_windows))))
        if await _answered(self._redis.hget(self._positions_key, WINDOWS_FIELD)) != b"%d" % self._has_all_windows:
            remedy = f"delete them and {self._positions_key}, or write another STATELOOP_SINK_PREFIX"
            raise StoreMismatchError(f"keys {self._name}:*", "have rows of another STATELOOP_SINK_WINDOWS", remedy)

    @override
    async def positions(self) -> Mapping[int, int]:
        stored = await _answered(self._redis.hgetall(self._positions_key))
        parts = ((*field.decode().rpartition("/"), int(position)) for field, position in stored.items())
        return {int(partition): position for topic, _, partition, position in parts if topic == self._topic}

    @override
    async def write(self, batch: RowBatch) -> int:
        keys, arguments = [self._positions_key], [str(len(batch.moves)).encode()]
        for partition, move in batch.moves.items():
            arguments += [f"{self._topic}/{partition}".encode(), b"%d" % move.expected, b"%d" % move.position]
        changes: list[Row | Deletion] = []
        for step in batch.steps:
            for deletion in step.deletions:
                arguments += _deletion_arguments(deletion)
            for row in step.rows:
                arguments += _row_arguments(row)
            changes += [*step.deletions, *step.rows]
        keys += [self._key(change.key, change.window_start) for change in changes]
        status, *numbers = await _answered(self._script(keys, arguments))
        if status == b"conflict":
            raise PositionConflictError(dict(zip(batch.moves, map(int, numbers), strict=True)))
        if status == b"refused":
            rows = [changes[index] for index in numbers]
            raise RowsRefusedError([RefusedRow(row, WRONG_TYPE) for row in rows if isinstance(row, Row)])
        return int(numbers[0])

    @override
    async def remove_expired(self, now: int) -> int:
        """Return 0: Redis removes expired rows itself."""
        return 0

    @override
    async def close(self) -> None:
        await self._redis.aclose()

    def _key(self, key: str, window_start: int | None) -> str:
        if not self._has_all_windows:
            return f"{self._name}:{key}"
        start = EPOCH + timedelta(microseconds=window_start or 0)
        return f"{self._name}:{window_key(key, start).decode()}"


async def require_answer(url: str) -> None:
    """Return when the server answers, and accepts the login. Raises StoreUnavailableError, StoreMismatchError."""
    client = _client(url)
    try:
        await _answered(client.ping())
    finally:
        await client.aclose()


def _client(url: str) -> Redis:
    retry: Retry = Retry(NoBackoff(), 0)  # the sink repeats
    try:
        client: Redis = Redis.from_url(url, socket_connect_timeout=CONNECT_TIMEOUT_S, retry=retry)
    except ValueError:  # its text may have a part of the password
        raise StoreMismatchError("STATELOOP_SINK_URL", "is not a URL of Redis", "write redis://host:port") from None
    return client


def _row_arguments(row: Row) -> list[bytes]:
    order = b"".join(map(_digits, row.order))
    expiry = b"" if row.expires_at is None else b"%d" % -(-row.expires_at // US_PER_MS)
    return [b"write", order, row.value, expiry]


def _deletion_arguments(deletion: Deletion) -> list[bytes]:
    return [b"remove", b"" if deletion.window_start is None else _digits(deletion.window_start), b"", b""]


def _digits(number: int) -> bytes:
    """Return a number as text of a fixed width that sorts like the number."""
    return b"%020d" % (number + OFFSET)


async def _answered(answer: Awaitable[Any] | Any) -> Any:
    try:
        return await answer
    except (RedisError, OSError) as error:
        raise StoreUnavailableError(f"{type(error).__name__}: {error}") from error
