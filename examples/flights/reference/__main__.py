"""Serves the reference APIs: `python -m examples.flights.reference`. SIGINT and SIGTERM end it."""

import sys

import uvloop
from aiohttp import web

from contracts.errors import StateloopError
from contracts.settings import read
from examples.flights import tables
from examples.flights.reference.server import application
from examples.flights.reference.settings import ReferenceSettings

BACKLOG = 4096
"""Workers that start on a full topic connect all at once, and what overflows here waits for seconds."""


def main() -> None:
    """Serve until SIGTERM; or exit with 1 after one line with the remedy."""
    try:
        settings = read(ReferenceSettings)
        for table in (tables.airlines, tables.airports, tables.planes, tables.weather):
            table()
    except StateloopError as error:
        sys.exit(f"stateloop reference: {error}")
    print(f"stateloop reference: {settings.model_dump_json()}", file=sys.stderr, flush=True)
    try:
        web.run_app(
            application(settings),
            host=settings.host,
            port=settings.port,
            backlog=BACKLOG,
            loop=uvloop.new_event_loop(),
            print=None,
            access_log=None,
        )
    except OSError as error:
        sys.exit(f"stateloop reference: {error.strerror}: free the port, or set STATELOOP_REFERENCE_PORT to another")


if __name__ == "__main__":
    main()
