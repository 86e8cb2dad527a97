"""PUT and DELETE of a row of a reference table, for principals that may write it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from aiohttp import web

from contracts.records.tables import encode_row
from services.query.http.parameters import key_of_request
from services.query.http.request_context import principal
from services.query.http.responses import json_response
from services.query.lookup.problems import Problem, ProblemError
from services.runtime.errors import RowNotWrittenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contracts import Suite, Table

PATH = "/v1/tables/{name}/{key:[^/]+}"


class TableStore(Protocol):
    """Where rows are written. Its methods block, and raise RowNotWrittenError."""

    def version(self, topic: str, key: str) -> int | None:
        """Return the version of a row; None if there is none."""
        ...

    def write(self, topic: str, key: str, value: bytes | None, author: str) -> int:
        """Write a row, or remove it with None, and return its version."""
        ...


class TableRoutes:
    """Writes rows, one after the other. `tables` has each table by name, with its topic."""

    def __init__(self, tables: Mapping[str, tuple[Table, str]], store: TableStore) -> None:
        self._tables = tables
        self._store = store
        self._lock = asyncio.Lock()

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        return [web.put(PATH, self.put), web.delete(PATH, self.delete)]

    async def put(self, request: web.Request) -> web.Response:
        """Write the row in the body. Raises ProblemError (400 for one that the table does not take, 412)."""
        table, topic = self._table(request)
        key, author, body = key_of_request(request), principal(request).name, await request.read()
        try:
            value = encode_row(table, key, body, author)
        except ValueError as error:
            raise ProblemError(Problem("bad_request", f"{table.name} does not take this row: {error}")) from None
        return await self._write(request, topic, value)

    async def delete(self, request: web.Request) -> web.Response:
        """Remove the row. Raises ProblemError (412)."""
        _, topic = self._table(request)
        return await self._write(request, topic, None)

    def _table(self, request: web.Request) -> tuple[Table, str]:
        """The table in the path, with its topic. Raises ProblemError (403, 404)."""
        name = request.match_info["name"]
        principal(request).check_write(name, key_of_request(request))
        if name not in self._tables:
            known = ", ".join(sorted(self._tables)) or "none"
            raise ProblemError(Problem("unknown_state", f"There is no table {name!r}; tables: {known}"))
        return self._tables[name]

    async def _write(self, request: web.Request, topic: str, value: bytes | None) -> web.Response:
        key, sender, expected = key_of_request(request), principal(request), request.headers.get("If-Match")
        try:
            async with self._lock:
                if expected is not None:
                    _check(expected, await asyncio.to_thread(self._store.version, topic, key))
                version = await asyncio.to_thread(self._store.write, topic, key, value, sender.name)
        except RowNotWrittenError as error:
            raise ProblemError(Problem("not_written", str(error))) from error
        answer = {"table": request.match_info["name"], "key": key, "version": version}
        return json_response(answer).response()


def tables_of(suite: Suite) -> dict[str, tuple[Table, str]]:
    """The tables of all applications by name, each with its topic."""
    return {table.name: (table, one.topics.table(table)) for one in suite.applications for table in one.tables}


def _check(expected: str, version: int | None) -> None:
    """Compare the ETags of If-Match with the version of a row. Raises ProblemError (412)."""
    tags = {tag.strip().strip('"') for tag in expected.split(",")}
    if version is None or not tags & {"*", str(version)}:
        present = "there is no row" if version is None else f"the version is {version}"
        raise ProblemError(Problem("changed", f"If-Match is {expected}, and {present}: read it again"))
