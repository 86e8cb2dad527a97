"""POST of a rule that is not saved: what changes in the alerts if it is, by the states of all instances."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple

import orjson
from pydantic import Field, TypeAdapter

from contracts.alerts.rule_test import RuleTest
from contracts.api.admin import RULE_TEST, RuleTestParameters
from contracts.api.reads import PageParameters
from contracts.model.alerts import AlertRule
from contracts.records.tables import parse_row
from contracts.types.key import LARGEST_KEY
from contracts.wire import Snapshot
from contracts.wire.alert_record import AlertRecord
from services.query.http.cursor import decode_cursor, encode_cursor, invalid_cursor
from services.query.http.responses import json_response
from services.query.http.routes import route
from services.query.http.table_routes import rejected_row, writable_table
from services.query.lookup.problems import Problem, ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from aiohttp import web

    from services.query.dependencies import Dependencies
    from services.query.http.page_routes import PageRoutes
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.http.table_routes import DeclaredTable
    from services.query.lookup.state_reader import StateReader, StateReaders
    from services.query.store import Position

SLICE = 50
"""How many states are evaluated at once, in a few milliseconds of a thread. Other requests wait for the interpreter."""
WITHIN_S = 0.5
"""After it, the request is answered with a cursor. Other tests wait for it."""
OPEN = "status:open"


class RuleTestPosition(NamedTuple):
    """The position of a test. Source 0 are the states with the rule's prefix; the others are the alerts in order."""

    source: Annotated[int, Field(ge=0)]
    after: Annotated[str, Field(max_length=4096)] | None


CURSOR = TypeAdapter(RuleTestPosition)


class RuleTestRoutes:
    """Tests rules, one request after the other. The conditions run in a thread."""

    def __init__(
        self,
        dependencies: Dependencies,
        readers: StateReaders,
        pages: PageRoutes,
        tables: Mapping[str, DeclaredTable],
    ) -> None:
        self._dependencies = dependencies
        self._readers = readers
        self._pages = pages
        self._tables = tables
        self._lock = asyncio.Lock()

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(RULE_TEST, self.post)]

    async def post(self, request: HttpRequest) -> HttpResponse:
        """Test the rule in the body. Raises ProblemError (400, 403 unless its sender may save it and read the keys)."""
        declared, key, sender = writable_table(self._tables, request), request.key, request.sender
        query, rule = request.parse(RuleTestParameters), _parse_rule(declared, key, request.body)
        states = self._readers.get(declared.application, sender, rule.prefix)
        for alerts in declared.alerts:
            sender.check(alerts.name, rule.prefix)
        milliseconds = self._dependencies.now()
        now = None if declared.is_replay else datetime.fromtimestamp(milliseconds / 1000, UTC)
        place = RuleTestPosition(0, None) if query.cursor is None else decode_cursor(CURSOR, query.cursor)
        tests = [RuleTest(alerts, key, rule, now) for alerts in declared.alerts]
        sources = [self._readers.get(alert.name, sender) for alert in declared.alerts]
        run = RuleTestRun(self._pages, request, rule, tests, states, sources)
        if not run.has_source(place.source):
            raise invalid_cursor()
        async with self._lock:
            until = self._dependencies.clock() + WITHIN_S
            left = await run.advance(place, min(SLICE, query.limit))
            while left is not None and run.read < query.limit and self._dependencies.clock() < until:
                await asyncio.sleep(run.evaluated_s)
                left = await run.advance(left, min(SLICE, query.limit - run.read))
        request.charge(run.read)
        cursor = None if left is None else encode_cursor(tuple(left))
        results = [_result(test) for test in tests]
        return json_response({"table": declared.table.name, "key": key, "results": results, "cursor": cursor})


class RuleTestRun:
    """Reads states and alerts for the tests of one request.

    `read` is the number of states and alerts so far, and `evaluated_s` how long the last slice took.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # what it joins together
        self,
        pages: PageRoutes,
        request: HttpRequest,
        rule: AlertRule,
        tests: Sequence[RuleTest],
        states: StateReader,
        alerts: Sequence[StateReader],
    ) -> None:
        self.read = 0
        self.evaluated_s = 0.0
        self._pages = pages
        self._request = request
        self._rule = rule
        self._tests = tests
        self._states = states
        self._alerts = alerts

    async def advance(self, place: RuleTestPosition, limit: int) -> RuleTestPosition | None:
        """Evaluate the next slice, and return the place after it; None at the end. Raises ProblemError."""
        if place.source == 0:
            after = await self._add_states(place.after, limit)
        else:
            after = await self._add_others(place.source - 1, place.after, limit)
        if after is not None:
            return RuleTestPosition(place.source, after)
        return RuleTestPosition(place.source + 1, None) if self.has_source(place.source + 1) else None

    def has_source(self, source: int) -> bool:
        """The rule also closes alerts of keys without its prefix. A sender that does not read all keys omits them."""
        reads_all = self._request.sender.reads_all(self._states.state.name)
        return source == 0 or (source <= len(self._alerts) and self._rule.prefix != "" and reads_all)

    async def _add_states(self, after: str | None, limit: int) -> str | None:
        query = PageParameters(prefix=self._rule.prefix, after=after, limit=limit)
        page = await self._pages.read(self._request, self._states, query)
        last = _key_of(page.after)
        former = [await self._open_alerts(alert, after, last) for alert in self._alerts]
        began = time.perf_counter()
        await asyncio.to_thread(self._evaluate, page.items, former)
        self.evaluated_s = time.perf_counter() - began
        self.read += len(page.items)
        return last

    async def _open_alerts(self, reader: StateReader, after: str | None, last: str | None) -> dict[str, bytes]:
        """The records with open alerts of keys after one, up to the last."""
        found: dict[str, bytes] = {}
        while True:
            query = PageParameters(prefix=self._rule.prefix, after=after, limit=SLICE, where=_where_open(reader))
            page = await self._pages.read(self._request, reader, query)
            found |= {key: text for (_, key), text in page.items if last is None or key <= last}
            after = _key_of(page.after)
            if after is None or (last is not None and after >= last):
                return found

    def _evaluate(self, states: Sequence[tuple[Position, bytes]], former: Sequence[Mapping[str, bytes]]) -> None:
        for (_, key), text in states:
            if not self._rule.applies_to(key) and not any(key in one for one in former):
                continue
            snapshot = Snapshot.model_validate(orjson.loads(text)["value"])
            for test, records in zip(self._tests, former, strict=True):
                test.add(snapshot, _record(records[key]) if key in records else None)

    async def _add_others(self, number: int, after: str | None, limit: int) -> str | None:
        """Add the open alerts of keys without the prefix."""
        reader, test = self._alerts[number], self._tests[number]
        query = PageParameters(after=after, limit=limit, where=_where_open(reader))
        page = await self._pages.read(self._request, reader, query)
        for (_, key), text in page.items:
            if not key.startswith(self._rule.prefix):
                test.add_other(_record(text))
        self.read += len(page.items)
        return _key_of(page.after)


def _parse_rule(declared: DeclaredTable, key: str, body: bytes) -> AlertRule:
    """The rule in the body. Raises ProblemError (400)."""
    if not declared.alerts:
        detail = f"{declared.table.name} has no rules of alerts: only those can be tested"
        raise ProblemError(Problem("bad_request", detail))
    try:
        rule = parse_row(declared.table, key, body)
    except ValueError as error:
        raise rejected_row(declared.table, error) from None
    assert isinstance(rule, AlertRule)  # noqa: S101  # the declaration has checked the model
    if len(rule.prefix.encode()) > LARGEST_KEY:
        detail = f"keys: no key begins with this text, because keys have at most {LARGEST_KEY} bytes"
        raise ProblemError(Problem("bad_request", detail))
    return rule


def _where_open(reader: StateReader) -> tuple[str, ...]:
    return (OPEN,) if "status" in reader.state.query.indexes else ()


def _key_of(position: Position | None) -> str | None:
    return None if position is None else position.key


def _record(text: bytes) -> AlertRecord:
    return AlertRecord.model_validate(orjson.loads(text)["value"])


def _result(test: RuleTest) -> dict[str, Any]:
    return {
        "alerts": test.alerts.name,
        "evaluated": test.evaluated,
        "open": test.open,
        "pending": test.pending,
        "opening": {"count": test.opening_count, "keys": test.opening},
        "closing": {"count": test.closing_count, "keys": test.closing},
        "failed": test.failed,
        "failure": test.failure,
    }
