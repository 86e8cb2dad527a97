"""Serves the API of an example. SIGINT and SIGTERM end it."""

import sys
from collections.abc import Callable
from typing import TypeVar

import uvloop
from aiohttp import web
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from stateloop import StateloopError
from stateloop.settings import read

BACKLOG = 4096
"""Workers that start on a full topic connect all at once, and what overflows here waits for seconds."""


class ServerSettings(BaseSettings):
    """The address of the server."""

    model_config = SettingsConfigDict(env_prefix="STATELOOP_REFERENCE_", frozen=True)

    host: str = "127.0.0.1"
    port: int = Field(default=8081, ge=0, le=65535)


S = TypeVar("S", bound=ServerSettings)


def serve(settings_type: type[S], application: Callable[[S], web.Application]) -> None:
    """Serve until SIGTERM; or exit with 1 after one line with the remedy."""
    try:
        settings = read(settings_type)
        served = application(settings)
    except StateloopError as error:
        sys.exit(f"stateloop reference: {error}")
    print(f"stateloop reference: {settings.model_dump_json()}", file=sys.stderr, flush=True)  # noqa: T201  # a command prints
    try:
        web.run_app(
            served,
            host=settings.host,
            port=settings.port,
            backlog=BACKLOG,
            loop=uvloop.new_event_loop(),
            print=None,
            access_log=None,
        )
    except OSError as error:
        sys.exit(f"stateloop reference: {error.strerror}: free the port, or set STATELOOP_REFERENCE_PORT to another")


async def healthz(_: web.Request) -> web.Response:
    """Answer the health check of the launcher and of compose."""
    return web.json_response({"status": "ok"})
