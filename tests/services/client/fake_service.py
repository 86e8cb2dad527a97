"""An HTTP server with the API of the query service, and with the faults that a test sets."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self
from unittest.mock import patch
from urllib.parse import unquote

from aiohttp import web

from contracts.wire.partition import partition
from services.client import request_sender
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    Fault = Callable[["Fake", web.Request], Awaitable[web.StreamResponse]]

PARTITIONS = 4
WINDOW_START = "2026-01-01T12:00:00Z"
EVENT_TIME = "2026-01-01T12:34:56.789Z"
SCHEMA = {
    "type": "object",
    "properties": {"device_id": {"type": "string"}, "state": {"$ref": "#/$defs/Flight"}},
    "$defs": {
        "Flight": {
            "type": "object",
            "properties": {
                "status": {"type": "string"},
                "delay": {"anyOf": [{"$ref": "#/$defs/Delay"}, {"type": "null"}]},
                "gate": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
        },
        "Delay": {"type": "object", "properties": {"minutes": {"type": "integer"}}},
    },
}
"""The schema of the records that `entry` makes."""


def entry(
    key: str,
    version: int,
    window_start: str | None = WINDOW_START,
    state: str = "flights",
    epoch: int = 0,
    **fields: Any,
) -> dict[str, Any]:
    """Return the body of a response, without the instance and its role."""
    return {
        "state": state,
        "key": key,
        "epoch": epoch,
        "version": version,
        "window_start": window_start,
        "event_time": EVENT_TIME,
        "age_ms": 1234,
        "source": {"topic": "snapshots", "partition": partition(key.encode(), PARTITIONS), "offset": version},
        "lag": {"records": 3},
        "value": {"device_id": key, "state": {"status": "landed"} | fields},
    }


def at_offset(body: dict[str, Any], offset: int) -> dict[str, Any]:
    """Return the body of a response with the offset of another record than that of its version."""
    return {**body, "source": {**body["source"], "offset": offset}}


def problem(kind: str, status: int, **facts: Any) -> dict[str, Any]:
    return {"type": kind, "title": kind, "status": status, "detail": f"it is {kind}", **facts}


class Fake:
    """One instance. It responds from `entries`, after `faults`, of which each request to a state takes one."""

    def __init__(self, name: str = "q1") -> None:
        self.name = name
        self.url = ""
        self.entries: dict[tuple[str, str], dict[str, Any]] = {}
        self.windows: list[dict[str, Any]] = []
        """The entries of a windowed state, of all keys and windows."""
        self.faults: deque[Fault] = deque()
        self.always: Fault | None = None
        self.requests: list[str] = []
        self.tokens: set[str | None] = set()
        self.batches: list[list[str]] = []
        self.discoveries = 0
        self.instances: Mapping[str, Any] | None = None
        self._runner: web.AppRunner | None = None

    def put(self, *entries: dict[str, Any]) -> None:
        for one in entries:
            self.entries[one["state"], one["key"]] = one

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Respond to a request below /v1/states."""
        self.requests.append(request.raw_path)
        self.tokens.add(request.headers.get("Authorization"))
        fault = self.faults.popleft() if self.faults else self.always
        if fault is not None:
            return await fault(self, request)
        return await self.correct_response(request)

    async def correct_response(self, request: web.Request) -> web.StreamResponse:
        match [unquote(part) for part in request.raw_path.partition("?")[0].split("/")[3:]]:
            case []:
                return web.json_response({"states": [described("flights"), described("cities")]})
            case [name] if name.endswith(":batchGet"):
                return await self._batch(request, name.removesuffix(":batchGet"))
            case [state]:
                return self._page(request, state)
            case [state, *path] if "windows" in path:
                return self._windows(request, state, path)
            case [state, key, "versions"]:
                return web.json_response({"versions": self._versions(state, key)})
            case [state, key]:
                body = self.entry_of(state, key)
                return web.json_response(body, status=body.get("status", 200))
        raise AssertionError(request.path)

    def entry_of(self, state: str, key: str) -> dict[str, Any]:
        found = self.entries.get((state, key))
        if found is None:
            return problem("never_seen", 404, state=state, key=key)
        return found if "status" in found else {**found, "role": "owner", "instance": self.name}

    async def discovered(self, _: web.Request) -> web.StreamResponse:
        self.discoveries += 1
        return web.Response(status=404) if self.instances is None else web.json_response(self.instances)

    async def _batch(self, request: web.Request, state: str) -> web.StreamResponse:
        keys = (await request.json())["keys"]
        self.batches.append(keys)
        return web.json_response({"answers": [self.entry_of(state, key) for key in keys]})

    def _page(self, request: web.Request, state: str) -> web.StreamResponse:
        prefix, after = request.query.get("prefix", ""), request.query.get("after", "")
        limit = int(request.query.get("limit", "2"))
        keys = sorted(key for of, key in self.entries if of == state and key.startswith(prefix) and key > after)
        more = keys[limit - 1] if len(keys) > limit else None
        return web.json_response({"items": [self.entry_of(state, key) for key in keys[:limit]], "after": more})

    def _windows(self, request: web.Request, state: str, path: list[str]) -> web.StreamResponse:
        """Respond with the windows of a key, or the keys of a window: pages of two, the second of them empty."""
        name = "windows" if path[-1] == "windows" else "items"
        keys = path[:1] if name == "windows" else [window["key"] for window in self.windows]
        entries = [window for window in self.windows if window["state"] == state and window["key"] in keys]
        begin, _, was_empty = request.query.get("cursor", "0").partition("-")
        at = int(begin)
        if at and not was_empty:
            return web.json_response({name: [], "cursor": f"{at}-empty"})
        size = min(2, int(request.query.get("limit", "2")))
        items = [{**one, "role": "owner", "instance": self.name} for one in entries[at : at + size]]
        more = str(at + size) if at + size < len(entries) else None
        return web.json_response({name: items, "cursor": more})

    def _versions(self, state: str, key: str) -> list[dict[str, Any]]:
        last = self.entry_of(state, key)
        return [{**last, "version": version} for version in range(1, last["version"] + 1)]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        server = web.Application()
        server.router.add_get("/v1/instances", self.discovered)
        server.router.add_routes(self.routes())
        server.router.add_route("*", "/v1/states", self.answer)
        server.router.add_route("*", "/v1/states/{rest:.*}", self.answer)
        self._runner = web.AppRunner(server, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        try:
            yield self
        finally:
            await self.stop()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes that are added to those of reads."""
        return []

    async def stop(self) -> None:
        """Stop the server."""
        if self._runner:
            await self._runner.cleanup()


def described(name: str) -> dict[str, Any]:
    partitions = [{"partition": one, "role": "owner", "lag": {"records": 0}} for one in range(PARTITIONS)]
    return {"name": name, "partitions": partitions, "keys": 7, "lag": {"records": 2}, "schema": SCHEMA}


def cluster(*fakes: Fake) -> None:
    """List all fakes in the directory of each."""
    for fake in fakes:
        fake.instances = {"instances": [{"instance": one.name, "url": one.url} for one in fakes]}


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition that another task fulfils."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.005)
    assert condition(), what


def problem_response(kind: str, status: int, **headers: str) -> Fault:
    async def stream(_: Fake, __: web.Request) -> web.StreamResponse:
        return web.json_response(problem(kind, status), status=status, headers=headers)

    return stream


async def hanging(_: Fake, __: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def late(fake: Fake, request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(0.3)
    return await fake.correct_response(request)


async def resetting(_: Fake, request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"state": ')
    if request.transport is not None:
        request.transport.abort()
    return response


def body_response(body: bytes, status: int = 200) -> Fault:
    async def respond(_: Fake, __: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status)

    return respond


def older_version(version: int) -> Fault:
    """Respond with this version, as an instance that is behind does."""

    async def answer(fake: Fake, request: web.Request) -> web.StreamResponse:
        key = unquote(request.rel_url.raw_path).removeprefix("/v1/states/flights/")
        return web.json_response({**fake.entry_of("flights", key), "version": version})

    return answer


@contextmanager
def shortest_attempt(seconds: float) -> Iterator[None]:
    """Let the client begin no attempt with less time before its deadline; with infinity, it repeats nothing.

    Otherwise the speed of the machine decides whether the last attempt gets a response, and so which error is raised.
    """
    with patch.object(request_sender, "MIN_ATTEMPT_S", seconds):
        yield
