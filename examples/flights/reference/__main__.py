"""Serves the reference APIs: `python -m examples.flights.reference`. SIGINT and SIGTERM end it."""

import sys

import uvloop
from aiohttp import web
from pydantic import ValidationError

from examples.flights import tables
from examples.flights.errors import FlightsError
from examples.flights.reference.server import application
from examples.flights.reference.settings import ReferenceSettings

BACKLOG = 4096
"""Workers that start on a full topic connect all at once, and what overflows here waits for seconds."""


def main() -> None:
    """Serve until told to stop; or exit with 1 after a line that says what to do."""
    try:
        settings = ReferenceSettings()
        for table in (tables.airlines, tables.airports, tables.planes, tables.weather):
            table()
    except ValidationError as error:
        sys.exit(f"stateloop reference: {_refused(error)}")
    except FlightsError as error:
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


def _refused(error: ValidationError) -> str:
    """The settings that are wrong, as they are named in the environment."""
    return "; ".join(f"STATELOOP_REFERENCE_{str(wrong['loc'][0]).upper()}: {wrong['msg']}" for wrong in error.errors())


if __name__ == "__main__":
    main()
