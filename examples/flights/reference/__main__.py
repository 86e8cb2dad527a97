"""Serves the reference APIs: `python -m examples.flights.reference`. SIGINT and SIGTERM end it."""

from aiohttp import web

from examples.flights import tables
from examples.flights.reference.server import application
from examples.flights.reference.settings import ReferenceSettings
from examples.serving import serve


def loaded(settings: ReferenceSettings) -> web.Application:
    """Read the tables before the first request. Raises StateloopError."""
    for table in (tables.airlines, tables.airports, tables.planes, tables.weather):
        table()
    return application(settings)


if __name__ == "__main__":
    serve(ReferenceSettings, loaded)
