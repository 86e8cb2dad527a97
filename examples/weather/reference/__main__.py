"""Receives the alerts of the example: `python -m examples.weather.reference`. SIGINT and SIGTERM end it.

It acts on each event once: a repetition has the same key. GET /alerts returns what has come.
"""

from collections import Counter, deque

from aiohttp import web
from pydantic import ValidationError

from examples.serving import ServerSettings, healthz, serve
from stateloop import AlertEvent

LAST = 100
"""The number of events that it returns."""


class Receiver:
    """The events that have come, by their keys."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._counts: Counter[str] = Counter(opened=0, closed=0, repeated=0)
        self._last: deque[AlertEvent] = deque(maxlen=LAST)

    async def receive(self, request: web.Request) -> web.Response:
        """Accept an event."""
        try:
            key, event = request.headers["Idempotency-Key"], AlertEvent.model_validate_json(await request.read())
        except (KeyError, ValidationError):
            return web.json_response({"error": "no event of an alert, or without Idempotency-Key"}, status=400)
        if key in self._seen:
            self._counts["repeated"] += 1
        else:
            self._seen.add(key)
            self._counts[event.event] += 1
            self._last.appendleft(event)
            print(f"{event.as_of:%Y-%m-%d %H:%M} {event.event} {event.device_id} {event.rule}", flush=True)
        return web.Response(status=204)

    async def show(self, _: web.Request) -> web.Response:
        """Return the counts, and the last events, newest first."""
        last = [event.model_dump(mode="json", exclude_none=True) for event in self._last]
        return web.json_response({**self._counts, "last": last})


def application(_: ServerSettings) -> web.Application:
    """The server as an aiohttp application."""
    app, receiver = web.Application(), Receiver()
    app.router.add_post("/alerts", receiver.receive)
    app.router.add_get("/alerts", receiver.show)
    app.router.add_get("/healthz", healthz)
    return app


if __name__ == "__main__":
    serve(ServerSettings, application)
