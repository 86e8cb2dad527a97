"""The answers of an API that are kept or under way: calls alike are made once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cachetools import LRUCache

from contracts import AbsentError
from contracts.errors import CallError
from contracts.metrics import worker as metrics
from contracts.types.echo import MismatchError
from services.enrichment.calls.statuses import MisfitError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable
    from datetime import timedelta

    from contracts import Cache
    from contracts.metrics.counts import Counts

T = TypeVar("T")
ENTRY_BYTES = 500
"""What an entry takes beside the answer itself, or so."""


class Answer(NamedTuple):
    """What an API said: a body, or the reason why there is none."""

    body: bytes | None
    reason: str = ""

    def given(self) -> bytes:
        """The body. Raises AbsentError."""
        if self.body is None:
            raise AbsentError(self.reason)
        return self.body


class Answers:
    """Keeps the answers of one API for their times, and shares those that are being asked for."""

    def __init__(self, api: str, policy: Cache | None, clock: Callable[[], float], counts: Counts) -> None:
        self._api = api
        self._counts = counts
        self._clock = clock
        self._policy = policy
        self._kept: LRUCache[Hashable, _Kept] = LRUCache(policy.size if policy else 0, getsizeof=_size)
        self._under_way: dict[Hashable, list[asyncio.Future[Answer | CallError | None]]] = {}

    def get(
        self,
        key: Hashable,
        younger_than: timedelta | None,
        ask: Callable[[], Awaitable[tuple[bytes, T]]],
        read: Callable[[bytes], T],
    ) -> Awaitable[T]:
        """The answer that goes by this key: a kept one, that of a call alike under way, or what `ask` gives.

        `ask` gives an answer as it came and as it was read; others read it anew, for each may do with it what it likes.
        Where that raises MisfitError or MismatchError, because it did fit another model, they ask too.
        """
        if key in self._under_way or self._find(key, younger_than) is not None:
            return self._shared(key, younger_than, ask, read)
        self._counts.add(metrics.CACHE, self._api, "miss")
        return self._lead(key, ask)  # most calls do, and have no coroutine besides

    async def _shared(
        self,
        key: Hashable,
        younger_than: timedelta | None,
        ask: Callable[[], Awaitable[tuple[bytes, T]]],
        read: Callable[[bytes], T],
    ) -> T:
        if (told := await self._told(key, younger_than)) is None:
            self._counts.add(metrics.CACHE, self._api, "miss")
            return await self._lead(key, ask)
        try:
            if isinstance(told, CallError):
                raise told
            return read(told.given())
        except (MisfitError, MismatchError):
            return (await ask())[1]

    async def _told(self, key: Hashable, younger_than: timedelta | None) -> Answer | CallError | None:
        """What is kept, or what those are told who ask already; None where nobody does any more."""
        while True:
            if (kept := self._find(key, younger_than)) is not None:
                self._counts.add(metrics.CACHE, self._api, "hit")
                return kept
            if (followers := self._under_way.get(key)) is None:
                return None
            shared: asyncio.Future[Answer | CallError | None] = asyncio.get_running_loop().create_future()
            followers.append(shared)
            if (answer := await shared) is not None:
                self._counts.add(metrics.CACHE, self._api, "shared")
                return answer

    async def _lead(self, key: Hashable, ask: Callable[[], Awaitable[tuple[bytes, T]]]) -> T:
        """Ask, and tell those who want to know the same. Nobody's call ends because another's was given up."""
        followers = self._under_way[key] = []
        told: Answer | CallError | None = None
        try:
            body, result = await ask()
            told = Answer(body)
        except AbsentError as absent:
            told = Answer(None, str(absent))
            raise
        except CallError as failure:
            told = failure
            raise
        finally:
            del self._under_way[key]
            if isinstance(told, Answer):
                self._keep(key, told)
            for follower in followers:
                if not follower.done():
                    follower.set_result(told)
            del told  # a failure holds this frame, which would hold the failure
        return result

    def _find(self, key: Hashable, younger_than: timedelta | None) -> Answer | None:
        """What is kept and still good. What is not stays until its room is needed: to look for that costs more."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        now = self._clock()
        fresh = younger_than is None or now - kept.at <= younger_than.total_seconds()
        return kept.answer if fresh and now < kept.until else None

    def _keep(self, key: Hashable, answer: Answer) -> None:
        if self._policy is None:
            return
        now, good = self._clock(), self._policy.absences if answer.body is None else self._policy.results
        size = ENTRY_BYTES + len(str(key)) + len(answer.body or b"")
        if good and size <= self._kept.maxsize:
            self._kept[key] = _Kept(answer, now, now + good.total_seconds(), size)


class _Kept(NamedTuple):
    answer: Answer
    at: float
    until: float
    size: int
    """Its key, which an API's path may make long, its body and what an entry takes, in bytes."""


def _size(kept: _Kept) -> int:
    return kept.size
