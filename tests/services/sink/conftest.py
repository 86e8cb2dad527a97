"""Servers that the tests of sinks share."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.services.sink.servers import PostgresqlServer, RedisServer, folder_for_servers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Give a Redis that runs; a test that kills it starts it again."""
    if why := RedisServer.missing():
        pytest.skip(why)
    server = RedisServer(folder_for_servers())
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.folder)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Give a PostgreSQL that runs; a test that kills it starts it again."""
    if why := PostgresqlServer.missing():
        pytest.skip(why)
    server = PostgresqlServer(folder_for_servers())
    server.initialise()
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.folder)
