"""Reads of all kinds through the real client, several at once, and what each of them says of keys and windows."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from services.client.answers import Found
from services.client.errors import ClientError, NotArrivedError, RejectedError, StaleReadError
from services.query.store.buckets import milliseconds
from tests.simulation.instances.job import HISTORY, PLATE
from tests.simulation.instances.reads import FOUND_BY, WAIT_S, KeyState, WrongAnswerError, answered, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
    from random import Random

    from contracts.model.named_state import NamedState
    from services.client import Client
    from services.client.answers import Answer
    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.reader import Answers

    Items = Sequence[Found[Any]]
    Work = Callable[[str], Coroutine[Any, Any, Iterable[KeyState]]]

AT_ONCE = 2
"""How many requests it sends at a time."""
PAUSES_S = (0.1, 1.0, 2.0)
CLIENT, LISTS = "client", "lists of the client"
"""The sources of answers: reads of a key, of which none is older than the one returned before it, and all others."""
SHARE_WITH_FIELDS = 0.3


class ClientReader:
    """Reads keys, windows and versions until it is cancelled. From `quiet_at` on, none of its reads may fail."""

    def __init__(  # noqa: PLR0913, PLR0917  # the facts of a run
        self, client: Client, state: NamedState, keys: Sequence[str], answers: Answers, random: Random, quiet_at: float
    ) -> None:
        self._client = client
        self._state = state.name
        self._keys = keys
        self._answers = answers
        self._random = random
        self._quiet_at = quiet_at
        self._newest: dict[str, Found[Any]] = {}
        self._size_ms = 0 if state.window is None else milliseconds(state.window)
        self._every_ms = self._size_ms if state.every is None else milliseconds(state.every)
        one, many = [self._get, self._get, self._get_version], [self._get_many, self._items, self._versions]
        of_windows = [self._get_at, self._get_many_at, self._windows, self._windows, self._window_items]
        self._kinds: list[Work] = [*one, *many, *(of_windows if self._size_ms else ())]

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(0.01, self._random.choice(PAUSES_S)))
            read = self._random.choice(self._kinds)
            sent = self._answers.sent()
            try:
                states = [*await read(self._random.choice(self._keys))]
            except (RejectedError, NotArrivedError):  # the version is not kept, or is removed
                continue
            except StaleReadError:
                if sent.at >= self._quiet_at and not self._size_ms:  # the newest window may be an older one again
                    raise
            except ClientError:
                if sent.at >= self._quiet_at:
                    raise
            else:
                self._answers.add(CLIENT if read == self._get else LISTS, sent, states)

    # Keys

    async def _get(self, key: str) -> Iterable[KeyState]:
        return [self._noted(await self._client.get(self._state, key, fields=self._fields()))]

    async def _get_version(self, key: str) -> Iterable[KeyState]:
        """Read the version that it has, or that one or a later one."""
        if (newest := self._newest.get(key)) is None:
            return []
        if self._random.random() < 0.5:
            found = await self._client.get(self._state, key, min_version=newest.tag, wait=WAIT_S)
            if isinstance(found, Found) and found.order < newest.order:
                raise WrongAnswerError(f"{found} is older than {newest.tag}")
            return [self._noted(found)]
        found = await self._client.get(self._state, key, as_of=newest.tag)
        if isinstance(found, Found) and found.order != newest.order:
            raise WrongAnswerError(f"{found} is not {newest.tag}")
        return []

    async def _get_many(self, _: str) -> Iterable[KeyState]:
        keys = self._random.sample(self._keys, self._random.randint(1, len(self._keys)))
        found = await self._client.get_many(self._state, keys, fields=self._fields())
        return map(answered, found)

    async def _items(self, _: str) -> Iterable[KeyState]:
        wanted, prefix = self._random.choice([None, FOUND_BY]), self._random.choice(["", "k", self._keys[-1]])
        where = None if wanted is None else {PLATE: wanted}
        items = self._by_key([item async for item in self._client.items(self._state, prefix=prefix, where=where)])
        return [listed(key, items.get(key), wanted) for key in self._keys if key.startswith(prefix)]

    async def _versions(self, key: str) -> Iterable[KeyState]:
        found = await self._client.versions(self._state, key)
        _require_order([item.order for item in found])
        if not 0 < len(found) <= HISTORY or len({item.window_start for item in found}) != 1:
            raise WrongAnswerError(f"{found} are not the versions of one window")
        return [[*map(answered, found)][-1]]

    def _noted(self, found: Answer[Any]) -> KeyState:
        """Remember the newest answer of a key."""
        if isinstance(found, Found):
            self._newest[found.key] = found
        else:
            self._newest.pop(found.key, None)
        return answered(found)

    def _by_key(self, items: Items) -> dict[str, Found[Any]]:
        _require_order([item.key for item in items])
        return {item.key: item for item in items}

    def _fields(self) -> Sequence[str]:
        return [PLATE] if self._random.random() < SHARE_WITH_FIELDS else ()

    # Windows

    async def _get_at(self, key: str) -> Iterable[KeyState]:
        time = self._time(key)
        found = await self._client.get(self._state, key, at=_datetime(time), fields=self._fields())
        return self._windows_at(time, found)

    async def _get_many_at(self, key: str) -> Iterable[KeyState]:
        time = self._time(key)
        found = await self._client.get_many(self._state, self._keys, at=_datetime(time))
        return [state for answer in found for state in self._windows_at(time, answer)]

    def _windows_at(self, time: int, found: Answer[Any]) -> Iterator[KeyState]:
        """Yield the window that is answered, and the later ones with the time, which the key does not have."""
        state = answered(found)._replace(is_open=None)
        order = state.order or state.expired
        if order is not None and not self._contains(order[0], time):
            raise WrongAnswerError(f"{found} does not contain {time}")
        for start in self._answers.starts(found.key):
            if order is not None and start == order[0]:
                yield state._replace(window=start)
            elif self._contains(start, time) and (order is None or start > order[0]):
                yield KeyState(found.key, None, window=start)

    async def _windows(self, key: str) -> Iterable[KeyState]:
        """Read the windows of a range, in either order, all of them or the first few."""
        random, is_descending = self._random, self._random.random() < 0.5
        limit = random.choice([None, None, 1, 2])
        first, end = (random.choice([None, None, self._time(key)]) for _ in range(2))
        items = [
            item
            async for item in self._client.windows(
                self._state,
                key,
                start=None if first is None else _datetime(first),
                end=None if end is None else _datetime(end),
                newest_first=is_descending,
                limit=limit,
            )
        ]
        found = {item.order[0]: item for item in items}
        starts = [item.order[0] for item in (reversed(items) if is_descending else items)]
        _require_order(starts)
        if len(items) == limit:  # the others are not read
            first, end = (starts[0], end) if is_descending else (first, starts[-1] + 1)
        known = [start for start in self._answers.starts(key) if _is_within(start, first, end)]
        if not {*known} >= {*starts}:
            raise WrongAnswerError(f"{items} are not of {known}")
        return [listed(key, found.get(start), window=start) for start in known]

    async def _window_items(self, key: str) -> Iterable[KeyState]:
        """Read the keys of the window that began last before a time."""
        time, wanted = self._time(key), self._random.choice([None, FOUND_BY])
        where = None if wanted is None else {PLATE: wanted}
        found = [item async for item in self._client.window_items(self._state, _datetime(time), where=where)]
        start, items = time // self._every_ms * self._every_ms, self._by_key(found)
        if any(item.order[0] != start for item in found):
            raise WrongAnswerError(f"{found} are not of the window of {time}")
        return [listed(key, items.get(key), wanted, window=start) for key in self._keys]

    def _contains(self, start: int, time: int) -> bool:
        return start <= time < start + self._size_ms

    def _time(self, key: str) -> int:
        """Return a time in one of the key's windows, at times the first or the last one before the next window."""
        starts, random, last = self._answers.starts(key) or [0], self._random, self._every_ms - 1
        return random.choice(starts[-4:]) + random.choice([0, last, random.randint(0, last)])


def _is_within(start: int, first: int | None, end: int | None) -> bool:
    return (first is None or first <= start) and (end is None or start < end)


def _require_order(found: Sequence[str] | Sequence[int] | Sequence[EntryOrder]) -> None:
    """Raise WrongAnswerError unless each is greater than the one before."""
    if any(after <= before for before, after in pairwise(found)):  # type: ignore[operator]  # of one type
        raise WrongAnswerError(f"{found} are not in order")


def _datetime(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)
