"""The client of the query service: `async with Client(url) as states`, then `await states.get(state, key)`."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from pydantic import BaseModel
from typing_extensions import TypeVar as TypeVarWithDefault

from contracts.api.admin import RULE_TEST, STATES, RuleTestAnswer
from contracts.api.reads import KEY, PAGE, VERSIONS, PageParameters
from contracts.api.windows import COVERAGE, WINDOW_PAGE, WINDOWS, CoverageAnswer
from services.client.addresses import Addresses
from services.client.answers import NeverSeen, Value, reader
from services.client.batch import BatchRead
from services.client.coverage import KeyCoverage
from services.client.errors import AttemptFailedError, StaleReadError
from services.client.high_water_marks import HighWaterMarks
from services.client.pages import Page, page, states
from services.client.read_options import ReadOptions, parameter
from services.client.request_sender import ATTEMPT_S, ClientRequest, RequestSender
from services.client.responses import answer, never_seen, parsed
from services.client.rule_test import RuleTestResult
from services.client.transport import ClientTransport
from services.client.watch import NEWEST, PATIENCE_S, Watch, WatchFilter, Window

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from contracts.api.endpoint import Endpoint
    from services.client.answers import Answer, Found, Update
    from services.client.pages import StateInfo
    from services.client.transport import InstanceResponse
    from services.client.watch import Mark

T = TypeVar("T")
M = TypeVarWithDefault("M", bound="BaseModel | Value", default=Value)
"""The model of the values; without one they are JSON objects."""
DEADLINE_S = 10.0
MAX_KEYS = 100_000
CONNECTIONS = 100
PAGE_SIZE: int = PageParameters.model_fields["limit"].default
"""The size of a page without a limit."""


class Client:
    """Reads and watches named states. `url` is the URL of any instance, or several URLs.

    All attempts of one request take `deadline` seconds at most. For the most recent `remember` keys, no version is
    returned that is older than one returned before. Without `discover` only the given addresses are used, as behind a
    proxy. `connections` is the size of the pool for reads; each watch, and each read with `wait`, has one more.
    """

    def __init__(  # noqa: PLR0913  # independent options with defaults
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        deadline: float = DEADLINE_S,
        remember: int = MAX_KEYS,
        discover: bool = True,
        connections: int = CONNECTIONS,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        self._deadline_s = deadline
        self._transport = ClientTransport(token, connections)
        self._addresses = Addresses(urls, self._transport, time.monotonic, discover=discover)
        self._sender = RequestSender(self._transport, self._addresses, time.monotonic, asyncio.sleep)
        self._high_water_marks = HighWaterMarks(remember)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._addresses.close()
        await self._transport.__aexit__()

    async def get(
        self, state: str, key: str, *, model: type[M] | None = None, **options: Unpack[ReadOptions]
    ) -> Answer[M]:
        """Return Found, NeverSeen, NoWindow or Expired. Raises NoAnswerError, RejectedError and other ClientErrors."""
        read = reader(state, key, model)

        def take(reply: InstanceResponse) -> Answer[Any]:
            got = answer(reply, state, key, read)
            if "as_of" not in options and not self._high_water_marks.admits(got, by_window="at" in options):
                raise AttemptFailedError(f"{reply.url} gave an earlier version than was shown", kind=StaleReadError)
            return got

        wait_s = options.get("wait", 0.0)
        deadline_s = options.get("deadline", max(self._deadline_s, wait_s + ATTEMPT_S))
        query = {name: parameter(value) for name, value in options.items() if name != "deadline"}
        call = ClientRequest(f"{state}/{key}", KEY.target(query, name=state, key=key), deadline_s, wait_s)
        return await self._sender.send(call, take)

    async def get_many(  # noqa: PLR0913  # as the service's own request
        self,
        state: str,
        keys: Sequence[str],
        *,
        model: type[M] | None = None,
        fields: Sequence[str] = (),
        at: datetime | None = None,
        deadline: float | None = None,
    ) -> list[Answer[M]]:
        """Return the results of many keys, in their order, within the deadline; `at` as in ReadOptions."""
        batch = BatchRead(state, keys, fields, model, at, self._high_water_marks)
        return await batch.run(self._sender, self._deadline_s if deadline is None else deadline)

    async def page(  # noqa: PLR0913  # as the service's own query
        self,
        state: str,
        *,
        prefix: str = "",
        where: Mapping[str, str] | None = None,
        silent_for: timedelta | None = None,
        after: str | None = None,
        limit: int | None = None,
        deadline: float | None = None,
    ) -> Page[Value]:
        """Return the next keys with this prefix and these values of indexed fields, in key order.

        With `silent_for`, only those whose last record is older: the ones silent longest first.
        """
        query = {"prefix": prefix, "silent_for": silent_for, "after": after, "limit": limit, "where": where}
        return await self._send(PAGE, query, lambda reply: page(reply, state, after="after"), deadline, name=state)

    async def items(
        self,
        state: str,
        *,
        prefix: str = "",
        where: Mapping[str, str] | None = None,
        silent_for: timedelta | None = None,
    ) -> AsyncIterator[Found[Value]]:
        """Yield the items of all pages."""

        async def next_page(after: str | None, _: int | None) -> Page[Value]:
            return await self.page(state, prefix=prefix, where=where, silent_for=silent_for, after=after)

        async for item in _following(next_page, None):
            yield item

    async def keys(
        self,
        state: str,
        *,
        prefix: str = "",
        where: Mapping[str, str] | None = None,
        silent_for: timedelta | None = None,
    ) -> AsyncIterator[str]:
        """Yield the keys of all pages."""
        async for item in self.items(state, prefix=prefix, where=where, silent_for=silent_for):
            yield item.key

    async def windows(  # noqa: PLR0913  # as the service's own query
        self,
        state: str,
        key: str,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        newest_first: bool = False,
        fields: Sequence[str] = (),
        limit: int | None = None,
    ) -> AsyncIterator[Found[Value]]:
        """Yield the windows of a key that start at `start` or later, and before `end`: all of them, or the first few.

        An open window may still change; of a key without windows there are none.
        """
        query: dict[str, object] = {
            "from": start,
            "to": end,
            "order": "desc" if newest_first else None,
            "fields": fields,
        }

        async def next_page(cursor: str | None, size: int | None) -> Page[Value]:
            rest = {"cursor": cursor, "limit": size}
            return await self._send(
                WINDOWS, query | rest, lambda reply: page(reply, state, "windows"), name=state, key=key
            )

        async for item in _following(next_page, limit):
            yield item

    async def coverage(  # noqa: PLR0913  # as the service's own query
        self,
        state: str,
        key: str,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        field: str | None = None,
        deadline: float | None = None,
    ) -> KeyCoverage | NeverSeen:
        """Return where a key of a windowed state has data, gaps, and time that has not passed, from `start` to `end`.

        By default the range has all windows of the key that are remembered. `field` is the path of a Coverage field,
        where the state has several. The deadline applies to each request: a long range is read in parts.
        """

        def read(reply: InstanceResponse) -> CoverageAnswer | NeverSeen:
            return never_seen(reply, state, key) or parsed(reply, f"{state}/{key}", CoverageAnswer)

        coverage: KeyCoverage | None = None
        while True:
            query = {"from": start, "to": end, "field": field}
            part = await self._send(COVERAGE, query, read, deadline, name=state, key=key)
            if isinstance(part, NeverSeen):
                return part
            coverage = coverage.joined(KeyCoverage.of(part)) if coverage else KeyCoverage.of(part)
            if part.next is None:
                return coverage
            start = part.next

    async def window_items(  # noqa: PLR0913  # as the service's own query
        self,
        state: str,
        at: datetime | None = None,
        *,
        prefix: str = "",
        where: Mapping[str, str] | None = None,
        order_by: str | None = None,
        fields: Sequence[str] = (),
        limit: int | None = None,
    ) -> AsyncIterator[Found[Value]]:
        """Yield the keys of the window that contains a time, by default the present: all of them, or the first few.

        `order_by` is the path of an indexed number; with `-` before it, the key with the largest number comes first.
        """
        time = "now" if at is None else at.isoformat()
        query: dict[str, object] = {"prefix": prefix, "order_by": order_by, "fields": fields}

        async def next_page(cursor: str | None, size: int | None) -> Page[Value]:
            rest = {"cursor": cursor, "limit": size, "where": where}
            return await self._send(WINDOW_PAGE, query | rest, lambda reply: page(reply, state), name=state, time=time)

        async for item in _following(next_page, limit):
            yield item

    async def versions(
        self, state: str, key: str, *, at: datetime | None = None, deadline: float | None = None
    ) -> list[Found[Value]]:
        """Return the stored versions of the key's newest window, or of that at a time, the earliest first."""

        def read(reply: InstanceResponse) -> Page[Value]:
            return page(reply, f"{state}/{key}", "versions")

        return [*(await self._send(VERSIONS, {"at": at}, read, deadline, name=state, key=key)).items]

    @overload
    def watch(
        self,
        state: str,
        key: str,
        *,
        model: type[M] | None = None,
        window: Window = NEWEST,
        marks: Literal[False] = False,
        patience: float = PATIENCE_S,
    ) -> AsyncGenerator[Update[M], None]: ...

    @overload
    def watch(
        self,
        state: str,
        key: str,
        *,
        model: type[M] | None = None,
        window: Window = NEWEST,
        marks: Literal[True],
        patience: float = PATIENCE_S,
    ) -> AsyncGenerator[Update[M] | Mark, None]: ...

    def watch(  # noqa: PLR0913  # independent options with defaults
        self,
        state: str,
        key: str,
        *,
        model: type[M] | None = None,
        window: Window = NEWEST,
        marks: bool = False,
        patience: float = PATIENCE_S,
    ) -> AsyncGenerator[Any, None]:
        """Yield the present value of the key, and then its changes; of changes in quick succession, the last one.

        `window` is, for a windowed state, "newest" (the key's newest window, and then those that follow), "all", or a
        time in one window. The watch reconnects when a stream breaks, and raises NoAnswerError after `patience` seconds
        without a message. With `marks` it also yields how far it is behind, a few times a minute.
        """
        filters = [WatchFilter(state, key, window=window)]
        watch = Watch(filters, self._transport, self._high_water_marks, model=model, marks=marks)
        return watch.updates(self._sender, f"{state}/{key}", patience)

    def watch_many(
        self, *filters: WatchFilter, marks: bool = False, patience: float = PATIENCE_S
    ) -> AsyncGenerator[Update[Value] | Mark, None]:
        """Watch many keys, prefixes and filters over one connection."""
        watch = Watch(filters, self._transport, self._high_water_marks, marks=marks)
        return watch.updates(self._sender, ", ".join(sorted({interest.state for interest in filters})), patience)

    async def states(self, *, deadline: float | None = None) -> list[StateInfo]:
        """Return the states that this client may read."""
        return await self._send(STATES, {}, states, deadline)

    async def test_rule(
        self, table: str, key: str, rule: Mapping[str, Any] | BaseModel, *, deadline: float | None = None
    ) -> list[RuleTestResult]:
        """Return what changes when a rule of alerts is saved under this key, one result for each state of alerts.

        Nothing is saved. The rule is tested against the present states; the deadline applies to each request.
        """
        row = rule.model_dump(mode="json", exclude_none=True) if isinstance(rule, BaseModel) else rule
        results: list[RuleTestResult] = []
        cursor: str | None = None
        while True:

            def read(reply: InstanceResponse) -> RuleTestAnswer:
                return parsed(reply, f"{table}/{key}", RuleTestAnswer)

            part = await self._send(RULE_TEST, {"cursor": cursor}, read, deadline, row, name=table, key=key)
            tested = [RuleTestResult.of(changes) for changes in part.results]
            results = [one.joined(other) for one, other in zip(results, tested, strict=True)] if results else tested
            cursor = part.cursor
            if cursor is None:
                return results

    async def _send(  # what an endpoint takes
        self,
        endpoint: Endpoint,
        query: Mapping[str, object],
        read: Callable[[InstanceResponse], T],
        deadline: float | None = None,
        body: Mapping[str, Any] | None = None,
        **segments: str,
    ) -> T:
        """Send a request to an endpoint, and return what `read` makes of the response."""
        target = endpoint.target({name: parameter(value) for name, value in query.items()}, **segments)
        deadline_s = self._deadline_s if deadline is None else deadline
        what = "/".join(segments.values()) or "the states"
        return await self._sender.send(ClientRequest(what, target, deadline_s, body=body), read)


async def _following(
    next_page: Callable[[str | None, int | None], Awaitable[Page[Value]]], limit: int | None
) -> AsyncIterator[Found[Value]]:
    """Yield the items of all pages, at most `limit`. A page may be empty and not the last.

    A page without a size has the size of the service, which may refuse a larger one.
    """
    left, cursor = limit, None
    while left is None or left > 0:
        got = await next_page(cursor, left if left is not None and left < PAGE_SIZE else None)
        for item in got.items[:left]:
            yield item
        left = None if left is None else left - len(got.items)
        cursor = got.after
        if cursor is None:
            return
