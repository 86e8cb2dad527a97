"""Receives the alerts of the example: `python -m examples.weather.reference`. SIGINT and SIGTERM end it.

It acts on each event once: a repetition has the same key. GET /alerts returns what has come.
"""

import sys
from collections import Counter, deque

from aiohttp import web
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.errors import StateloopError
from contracts.settings import read
from contracts.wire.alerts import AlertEvent

LAST = 100
"""How many events it returns."""


class ReceiverSettings(BaseSettings):
    """Where the server listens."""

    model_config = SettingsConfigDict(env_prefix="STATELOOP_REFERENCE_", frozen=True)

    host: str = "127.0.0.1"
    port: int = Field(default=8081, ge=0, le=65535)


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
        last = [one.model_dump(mode="json", exclude_none=True) for one in self._last]
        return web.json_response({**self._counts, "last": last})


async def _healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def application() -> web.Application:
    """The server as an aiohttp application."""
    app, receiver = web.Application(), Receiver()
    app.router.add_post("/alerts", receiver.receive)
    app.router.add_get("/alerts", receiver.show)
    app.router.add_get("/healthz", _healthz)
    return app


def main() -> None:
    """Serve until SIGTERM; or exit with 1 after one line with the remedy."""
    try:
        settings = read(ReceiverSettings)
        print(f"stateloop reference: {settings.model_dump_json()}", file=sys.stderr, flush=True)
        web.run_app(application(), host=settings.host, port=settings.port, print=None, access_log=None)
    except StateloopError as error:
        sys.exit(f"stateloop reference: {error}")
    except OSError as error:
        sys.exit(f"stateloop reference: {error.strerror}: free the port, or set STATELOOP_REFERENCE_PORT to another")


if __name__ == "__main__":
    main()
