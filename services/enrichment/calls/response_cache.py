"""Caches the responses of an API, and lets concurrent calls of the same key share one request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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
"""The approximate memory of an entry without its response."""


class CachedResponse(NamedTuple):
    """A body, or the reason of its absence."""

    body: bytes | None
    reason: str = ""

    def require_body(self) -> bytes:
        """Return the body. Raises AbsentError."""
        if self.body is None:
            raise AbsentError(self.reason)
        return self.body


class ResponseCache:
    """The cache of one API. It stores responses for the declared times, and shares calls in flight."""

    def __init__(self, api: str, policy: Cache | None, clock: Callable[[], float], counts: Counts) -> None:
        self._api = api
        self._counts = counts
        self._clock = clock
        self._policy = policy
        self._entries: LRUCache[Hashable, _Entry] = LRUCache(policy.size if policy else 0, getsizeof=_size)
        self._in_flight: dict[Hashable, _InFlight] = {}

    def get(
        self,
        key: Hashable,
        model: type[Any],
        younger_than: timedelta | None,
        fetch: Callable[[], Awaitable[tuple[bytes, T]]],
        read: Callable[[bytes], T],
    ) -> Awaitable[T]:
        """Return the response of a key: a cached one, that of a call in flight, or the one that `fetch` returns.

        `fetch` returns a body and its `model`. Followers read the body again, because each may change its model. Where
        that raises MisfitError or MismatchError, because they expect another model, they fetch it themselves. They
        also do where the response does not fit the other model of the call in flight.
        """
        if key in self._in_flight or self._find(key, younger_than) is not None:
            return self._shared(key, model, younger_than, fetch, read)
        self._counts.add(metrics.CACHE, self._api, "miss")
        return self._fetch(key, model, fetch)  # most calls do, and need no further coroutine

    async def _shared(
        self,
        key: Hashable,
        model: type[Any],
        younger_than: timedelta | None,
        fetch: Callable[[], Awaitable[tuple[bytes, T]]],
        read: Callable[[bytes], T],
    ) -> T:
        if (response := await self._cached_or_shared(key, model, younger_than)) is None:
            self._counts.add(metrics.CACHE, self._api, "miss")
            return await self._fetch(key, model, fetch)
        try:
            if isinstance(response, CallError):
                raise response
            return read(response.require_body())
        except (MisfitError, MismatchError):
            return (await fetch())[1]

    async def _cached_or_shared(
        self, key: Hashable, model: type[Any], younger_than: timedelta | None
    ) -> CachedResponse | CallError | None:
        """A cached response, or the result of the call in flight; None if there is neither.

        The failure of a response that does not fit another model is no result.
        """
        while True:
            if (entry := self._find(key, younger_than)) is not None:
                self._counts.add(metrics.CACHE, self._api, "hit")
                return entry
            if (call := self._in_flight.get(key)) is None:
                return None
            shared: asyncio.Future[CachedResponse | CallError | None] = asyncio.get_running_loop().create_future()
            call.followers.append(shared)
            answer = await shared
            if answer is not None and (call.model is model or not _is_misfit(answer)):
                self._counts.add(metrics.CACHE, self._api, "shared")
                return answer

    async def _fetch(self, key: Hashable, model: type[Any], fetch: Callable[[], Awaitable[tuple[bytes, T]]]) -> T:
        """Fetch a response, and share it with the followers. A cancelled call does not cancel its followers."""
        followers: list[asyncio.Future[CachedResponse | CallError | None]] = []
        self._in_flight[key] = _InFlight(model, followers)
        response: CachedResponse | CallError | None = None
        try:
            body, result = await fetch()
            response = CachedResponse(body)
        except AbsentError as absent:
            response = CachedResponse(None, str(absent))
            raise
        except CallError as failure:
            response = failure
            raise
        finally:
            del self._in_flight[key]
            if isinstance(response, CachedResponse):
                self._keep(key, response)
            for follower in followers:
                if not follower.done():
                    follower.set_result(response)
            del response  # a failure references this frame, which would reference the failure
        return result

    def _find(self, key: Hashable, younger_than: timedelta | None) -> CachedResponse | None:
        """A cached response that is still fresh. Others stay until their room is needed: a search would cost more."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        now = self._clock()
        fresh = younger_than is None or now - entry.at <= younger_than.total_seconds()
        return entry.answer if fresh and now < entry.until else None

    def _keep(self, key: Hashable, answer: CachedResponse) -> None:
        if self._policy is None:
            return
        now, good = self._clock(), self._policy.absences if answer.body is None else self._policy.results
        size = ENTRY_BYTES + len(str(key)) + len(answer.body or b"")
        if good and size <= self._entries.maxsize:
            self._entries[key] = _Entry(answer, now, now + good.total_seconds(), size)


class _InFlight(NamedTuple):
    model: type[Any]
    followers: list[asyncio.Future[CachedResponse | CallError | None]]


def _is_misfit(response: CachedResponse | CallError) -> bool:
    """Return whether the last attempt of a call got a response that does not fit the model."""
    return isinstance(response, CallError) and isinstance(response.__cause__, MisfitError | MismatchError)


class _Entry(NamedTuple):
    answer: CachedResponse
    at: float
    until: float
    size: int
    """The size of the key, the body and the entry itself, in bytes."""


def _size(entry: _Entry) -> int:
    return entry.size
