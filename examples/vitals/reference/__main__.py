"""Serves the heart rate of a waveform: `python -m examples.vitals.reference`. SIGINT and SIGTERM end it."""

import sys

from aiohttp import web
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.errors import StateloopError
from contracts.settings import read
from examples.vitals.rates import heart_rate


class HeartRateSettings(BaseSettings):
    """Where the server listens."""

    model_config = SettingsConfigDict(env_prefix="STATELOOP_REFERENCE_", frozen=True)

    host: str = "127.0.0.1"
    port: int = Field(default=8081, ge=0, le=65535)


async def _heart_rate(request: web.Request) -> web.Response:
    try:
        rate, samples = float(request.query["rate"]), [int(one) for one in request.query["samples"].split("_")]
    except (KeyError, ValueError):
        return web.json_response({"error": "write ?rate=100&samples=512_518"}, status=400)
    bpm = heart_rate(samples, rate)
    if bpm is None:
        return web.json_response({"error": "no heart rate"}, status=404)
    return web.json_response({"bpm": bpm})


async def _healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def application() -> web.Application:
    """The server as an aiohttp application."""
    app = web.Application()
    app.router.add_get("/heart_rate", _heart_rate)
    app.router.add_get("/healthz", _healthz)
    return app


def main() -> None:
    """Serve until SIGTERM; or exit with 1 after one line with the remedy."""
    try:
        settings = read(HeartRateSettings)
        print(f"stateloop reference: {settings.model_dump_json()}", file=sys.stderr, flush=True)
        web.run_app(application(), host=settings.host, port=settings.port, print=None, access_log=None)
    except StateloopError as error:
        sys.exit(f"stateloop reference: {error}")
    except OSError as error:
        sys.exit(f"stateloop reference: {error.strerror}: free the port, or set STATELOOP_REFERENCE_PORT to another")


if __name__ == "__main__":
    main()
