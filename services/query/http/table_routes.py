"""GET of the reference tables; PUT and DELETE of a row, for principals that may write it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

from contracts.api.admin import DELETE_ROW, PUT_ROW, TABLES
from contracts.records.tables import RowRejectedError, check_row_key, encode_row
from services.query.http.responses import json_response
from services.query.http.routes import route
from services.query.lookup.problems import RETRY_AFTER_S, Problem, ProblemError
from services.runtime.errors import RowNotWrittenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from aiohttp import web

    from contracts import Alerts, Suite, Table
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.authentication import Principal

ABSENT = "*"
"""If-None-Match: only if there is no row."""


class DeclaredTable(NamedTuple):
    """A table with its topic, the application that declares it, and the alerts whose rules are its rows.

    In a replay, pending alerts open by the times of the snapshots.
    """

    table: Table
    topic: str
    application: str
    alerts: tuple[Alerts, ...] = ()
    is_replay: bool = False


class TableStore(Protocol):
    """Writes rows. Its methods block, and raise RowNotWrittenError."""

    def version(self, topic: str, key: str) -> int | None:
        """Return the version of a row; None if there is none."""
        ...

    def write(self, topic: str, key: str, value: bytes | None, author: str) -> int:
        """Write a row, or remove it with None, and return its version."""
        ...


class TableRoutes:
    """Lists tables, and writes rows, one after the other. `tables` has each table by name."""

    def __init__(self, tables: Mapping[str, DeclaredTable], store: TableStore) -> None:
        self._tables = tables
        self._store = store
        self._lock = asyncio.Lock()

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [route(TABLES, self.list), route(PUT_ROW, self.put), route(DELETE_ROW, self.delete)]

    async def list(self, request: HttpRequest) -> HttpResponse:
        """The tables that the sender reads."""
        sender = request.sender
        readable = [table for table in self._tables.values() if sender.reads(table.table.name)]
        readable.sort(key=lambda one: not one.alerts)
        return json_response({"tables": [_facts(one, sender) for one in readable]})

    async def put(self, request: HttpRequest) -> HttpResponse:
        """Write the row in the body. Raises ProblemError (400 for one that the table does not take, 412)."""
        table, topic, *_ = writable_table(self._tables, request)
        try:
            value = encode_row(table, request.key, request.body, request.sender.name)
        except ValueError as error:
            raise rejected_row(table, error) from None
        return await self._write(request, topic, value)

    async def delete(self, request: HttpRequest) -> HttpResponse:
        """Remove the row. Raises ProblemError (400 for a key that no row may have, 412)."""
        table, topic, *_ = writable_table(self._tables, request)
        try:
            check_row_key(request.key)
        except ValueError as error:
            raise rejected_row(table, error) from None
        return await self._write(request, topic, None)

    async def _write(self, request: HttpRequest, topic: str, value: bytes | None) -> HttpResponse:
        key = request.key
        try:
            async with self._lock:
                if {"If-Match", "If-None-Match"} & request.headers.keys():
                    _check(request.headers, await asyncio.to_thread(self._store.version, topic, key))
                version = await asyncio.to_thread(self._store.write, topic, key, value, request.sender.name)
        except RowNotWrittenError as error:
            raise ProblemError(Problem("not_written", str(error), retry_after=RETRY_AFTER_S)) from error
        return json_response({"table": request.name, "key": key, "version": version})


def tables_of(suite: Suite) -> dict[str, DeclaredTable]:
    """The tables of all applications by name."""
    return {
        table.name: DeclaredTable(
            table,
            application.topics.table(table),
            application.name,
            tuple(alerts for alerts in application.alerts if alerts.rules.name == table.name),
            application.topics.replay,
        )
        for application in suite.applications
        for table in application.tables
    }


def writable_table(tables: Mapping[str, DeclaredTable], request: HttpRequest) -> DeclaredTable:
    """The table in the path, whose row in the path the sender may write. Raises ProblemError (403, 404)."""
    name = request.name
    request.sender.check_write(name, request.key)
    if name not in tables:
        known = ", ".join(sorted(tables)) or "none"
        raise ProblemError(Problem("unknown_state", f"There is no table {name!r}; tables: {known}"))
    return tables[name]


def rejected_row(table: Table, error: ValueError) -> ProblemError:
    """The problem of a row that the table does not take; `fields` has what is wrong with each field."""
    facts: dict[str, Any] = {}
    if isinstance(error, RowRejectedError):
        facts["fields"] = [{"field": problem.field, "detail": problem.detail} for problem in error.problems]
    return ProblemError(Problem("bad_request", f"{table.name} does not take this row: {error}", facts))


def _facts(one: DeclaredTable, sender: Principal) -> dict[str, Any]:
    return {
        "name": one.table.name,
        "topic": one.topic,
        "application": one.application,
        "alerts": [alerts.name for alerts in one.alerts],
        "writes": sender.writes_table(one.table.name),
        "prefixes": sender.keys,
        "schema": one.table.model.model_json_schema(),
    }


def _check(headers: Mapping[str, str], version: int | None) -> None:
    """Compare If-Match and If-None-Match with the version of a row. Raises ProblemError (400, 412)."""
    expected, excluded = headers.get("If-Match"), headers.get("If-None-Match")
    if excluded not in (None, ABSENT):
        raise ProblemError(Problem("bad_request", "If-None-Match: write *, or leave it out"))
    present = "there is no row" if version is None else f"the version is {version}"
    facts = {"version": version}
    if expected is not None:
        tags = {tag.strip().strip('"') for tag in expected.split(",")}
        if version is None or not tags & {"*", str(version)}:
            raise ProblemError(Problem("changed", f"If-Match is {expected}, and {present}: read it again", facts))
    if excluded is not None and version is not None:
        raise ProblemError(Problem("changed", f"If-None-Match is *, and {present}: read it", facts))
