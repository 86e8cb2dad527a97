"""The API of one windowed state, `departures`, over windows in memory, as docs/reference/query-api.md has it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "departures"
HOUR = timedelta(hours=1)
BEGIN = datetime(2013, 5, 1, 6, tzinfo=UTC)
STATE = {
    "name": NAME,
    "topic": "departures_snapshots",
    "keys": 0,
    "lag": {"records": 0},
    "partitions": [{"partition": 0, "role": "owner", "lag": {"records": 0}}],
    "misplaced": 0,
    "lifetime_s": 3600.0,
    "window_s": 3600.0,
    "every_s": 3600.0,
    "remember_s": 86400.0,
    "history": 1,
    "indexes": ["state.flights", "state.late"],
    "schema": {},
}


def iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(flights: int, late: int = 0, worst: int | None = None) -> dict[str, Any]:
    """Return the counts of one window."""
    return {"flights": flights, "cancelled": 0, "late": late, "mean_delay": round(3.5 + late, 2), "worst_delay": worst}


class WindowedState:
    """Windows of keys by their start. `open_from` is the start of the first open window."""

    def __init__(self) -> None:
        self.windows: dict[str, dict[datetime, dict[str, Any]]] = {}
        self.open_from = datetime.max.replace(tzinfo=UTC)
        self.now = datetime.now(UTC)
        """The time of day, far from the windows of a replay."""
        self._changed = asyncio.Event()

    def put(self, key: str, hour: int, state: dict[str, Any], version: int = 1) -> None:
        """Store a snapshot of a window."""
        start = BEGIN + hour * HOUR
        value = {"device_id": key, "epoch": 0, "version": version, "state": state, "enrichments": {}}
        self.windows.setdefault(key, {})[start] = value
        self._changed.set()
        self._changed = asyncio.Event()

    def open_since(self, hour: int) -> None:
        """Open the windows from this hour on, and close those before."""
        self.open_from = BEGIN + hour * HOUR

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """See Routes."""
        base = f"/v1/states/{NAME}"
        return [
            web.get("/v1/states", self.states),
            web.get(base, self.newest_of_all),
            web.get(f"{base}/windows/{{time}}", self.keys),
            web.get(f"{base}/{{key}}/windows", self.windows_of),
            web.get(f"{base}/{{key}}/versions", self.versions),
            web.get(f"{base}/{{key}}/watch", self.watch),
        ]

    async def states(self, _: web.Request) -> web.Response:
        return reply({"states": [STATE | {"keys": sum(map(len, self.windows.values()))}]})

    async def newest_of_all(self, _: web.Request) -> web.Response:
        return reply({"items": [self.answer(key, max(found)) for key, found in sorted(self.windows.items())]})

    async def keys(self, request: web.Request) -> web.Response:
        wanted, path = request.match_info["time"], request.query.get("order_by", "").removeprefix("-state.")
        time = self.now if wanted == "now" else datetime.fromisoformat(wanted)
        start = BEGIN + (time - BEGIN) // HOUR * HOUR
        found = [(key, windows[start]["state"]) for key, windows in sorted(self.windows.items()) if start in windows]
        if path:
            found = [one for one in found if one[1][path] is not None]
            found.sort(key=lambda one: -one[1][path])
        begin, limit = int(request.query.get("cursor", "0")), int(request.query["limit"])
        end = begin + min(limit, 8)  # a page may have fewer items than the limit
        items = [self.answer(key, start) for key, _ in found[begin:end]]
        first = items[0] if items else {"window_start": None, "window_end": None, "is_open": None}
        members = {name: first[name] for name in ("window_start", "window_end", "is_open")}
        return reply(members | {"items": items, "cursor": str(end) if end < len(found) else None})

    async def windows_of(self, request: web.Request) -> web.Response:
        key, end, limit = request.match_info["key"], request.query.get("to"), int(request.query["limit"])
        starts = [one for one in self.windows.get(key, {}) if not end or one < datetime.fromisoformat(end)]
        ordered = sorted(starts, reverse=request.query["order"] == "desc")
        answers = [self.answer(key, one) for one in ordered[:limit]]
        return reply({"windows": answers, "cursor": "more" if len(ordered) > limit else None})

    async def versions(self, request: web.Request) -> web.Response:
        at = datetime.fromisoformat(request.query["at"])
        return reply({"versions": [self.answer(request.match_info["key"], at)]})

    async def watch(self, request: web.Request) -> web.StreamResponse:
        key, wanted = request.match_info["key"], request.query.get("window", "newest")
        response, sent = web.StreamResponse(headers={"Content-Type": "text/event-stream"}), None
        await response.prepare(request)
        while True:
            changed = self._changed
            start = max(self.windows[key]) if wanted == "newest" else datetime.fromisoformat(wanted)
            answer = orjson.dumps(self.answer(key, start))
            if answer != sent:
                await response.write(b"event: state\ndata: " + answer + b"\n\n")
                sent = answer
            await changed.wait()

    def answer(self, key: str, start: datetime) -> dict[str, Any]:
        value = self.windows[key][start]
        return {
            "state": NAME,
            "key": key,
            "epoch": 0,
            "version": value["version"],
            "window_start": iso(start),
            "window_end": iso(start + HOUR),
            "is_open": start >= self.open_from,
            "event_time": iso(start + HOUR / 2),
            "age_ms": 12,
            "source": {"topic": "departures_snapshots", "partition": 0, "offset": value["version"]},
            "lag": {"records": 0},
            "role": "owner",
            "instance": "one",
            "value": value,
        }


def reply(members: dict[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(members), content_type="application/json")
