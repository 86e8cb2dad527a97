"""The OpenAPI document: the committed copy is current, and every response matches it."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi import checks

from contracts import Suite, Table
from contracts.api import ENDPOINTS
from contracts.api.watch import WATCH_KEY, WATCH_MANY
from contracts.model.named_state import QueryOptions
from contracts.wire.announcement import AnnouncedPart, AnnouncedState, Announcement
from examples.flights.application import app
from services.query.console.loops import Loops
from services.query.console.routes import Console
from services.query.http.instance_routes import InstanceRoutes
from services.query.http.server import GUARDED
from services.query.http.table_routes import DeclaredTable, TableRoutes
from services.query.http.watch_routes import WatchRoutes
from services.query.openapi import document, written
from tests.deadline import DEADLINE_S
from tests.services.query.console.observations import a_dead_letter, at_work
from tests.services.query.http.instance import Instance
from tests.services.query.http.test_tables import Limit, MemoryTables
from tests.services.query.in_memory import ScratchStore, a_state, dependencies_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from services.query.http.server import Routes

COMMITTED = Path(__file__).parents[4] / "docs" / "reference" / "openapi.json"
EXAMPLES = settings().max_examples // 4
"""Examples per operation, the same in each run."""
SCHEMA = schemathesis.openapi.from_dict(document())
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]


def an_instance() -> Instance:
    """Return an instance with all parts of the service."""
    flights = a_state(lifetime=timedelta(hours=1), query=QueryOptions(history=2, indexes=("state.status",)))
    dependencies = dependencies_of(flights, rate=0, max_wait=0.01)
    others: list[Routes] = [console(), tables(), instances(), WatchRoutes(dependencies)]
    return Instance(dependencies, hot=True, others=others)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """Serve an instance in its own thread."""
    instance = an_instance()
    store = instance.dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    store.put("old", window_start=1)
    for number in range(20):
        store.put(str(number), version=number)
    loop = asyncio.new_event_loop()
    serving = instance.server.serving()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        port = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(DEADLINE_S)
        yield f"http://127.0.0.1:{port}"
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(DEADLINE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_S)
        loop.close()


def tables() -> TableRoutes:
    """Return a table whose rows are in memory."""
    return TableRoutes({"limits": DeclaredTable(Table("limits", Limit), "limits.topic", "limited")}, MemoryTables())


def instances() -> InstanceRoutes:
    """Return the list of one instance, which owns a partition."""
    part = AnnouncedPart(partition=0, assigned=True, held=True, position=7)
    states = {"flights": AnnouncedState(watermark=1, parts=(part,))}
    facts: dict[str, Any] = {"instance": "one", "store": "s", "url": "http://one:1", "run": 1, "number": 1}
    announcement = Announcement(**facts, ts=datetime.now(UTC), states=states)
    return InstanceRoutes(lambda: [announcement], {"flights": a_state()})


def console() -> Console:
    """Return a console with two observations and a dead letter."""
    loops = Loops(Suite(app), 2.0)
    for at in (0, 2):
        loops.record(at_work(at))
    loops.all()[0].dead_letters.record(a_dead_letter(1))
    return Console(loops)


def test_the_committed_document_is_current() -> None:
    stale = "stale: run `python -m services.query.openapi docs/reference/openapi.json`"
    assert COMMITTED.read_text(encoding="utf-8") == written(), stale


def test_each_path_has_a_success_response_and_a_401_if_guarded() -> None:
    document: dict[str, Any] = json.loads(written())
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["responses"].keys() & {"200", "101"}
            assert path.startswith(GUARDED) == ("401" in operation["responses"])


def test_every_endpoint_has_a_handler_and_every_handler_an_endpoint() -> None:
    """Without a handler an endpoint answers 404, which most of them may."""
    router = an_instance().server._application.router  # noqa: SLF001
    handled = {(route.method, route.resource.canonical) for route in router.routes() if route.resource is not None}
    endpoints = {(one.method.upper(), one.path) for one in (*ENDPOINTS, WATCH_KEY, WATCH_MANY)}
    files = {("GET", path) for path in ("/", "/console/{file}", "/openapi.json")}
    assert {one for one in handled if one[0] != "HEAD"} == endpoints | files


@SCHEMA.exclude(path_regex="/watch$").parametrize()  # streams do not end
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_every_response_matches_the_document(case: schemathesis.Case[Any], base: str) -> None:
    if case.path_parameters and "name" in case.path_parameters and len(str(case.path_parameters["name"])) % 2:
        case.path_parameters["name"] = "flights"  # half of the requests name the existing state
    response = case.call(base_url=base)
    case.validate_response(response, checks=CHECKS)
    assert response.status_code != 500
    assert b"Traceback" not in response.content
