"""Behaviour that all responses share, over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientSession, web
from prometheus_client.parser import text_string_to_metric_families

from contracts.metrics import query as names
from services.query.http.monitoring import MonitoringRoutes
from services.query.http.request_context import principal
from services.query.http.request_guard import RequestGuard
from services.query.http.server import HttpServer
from services.query.lookup.authentication import Authenticator
from services.runtime.errors import PortTakenError
from tests.services.query.http.instance import Watched
from tests.services.query.in_memory import a_state, dependencies_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from services.query.dependencies import Dependencies

SECRET = "a-secret-of-a-dashboard"  # noqa: S105  # opens nothing


class Piece:
    """Routes of a test: one responds with the principal, the others raise."""

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        return [web.get("/v1/principal", self.name), web.get("/v1/broken", self.broken), web.get("/open", self.broken)]

    async def name(self, request: web.Request) -> web.Response:
        return web.json_response({"name": principal(request).name})

    async def broken(self, _: web.Request) -> web.Response:
        raise RuntimeError("a secret detail")


class Served:
    """A server with these routes, and a client of it."""

    def __init__(self, dependencies: Dependencies, tokens: Path | None = None) -> None:
        self.dependencies = dependencies
        self.watched = Watched(dependencies.counts)
        gate = RequestGuard(dependencies, Authenticator(tokens))
        self.server = HttpServer(dependencies, gate, [MonitoringRoutes(self.watched), Piece()])
        self.base = ""

    async def ask(self, path: str, method: str = "GET", token: str = "") -> tuple[int, dict[str, str], bytes]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            ClientSession(self.base) as session,
            session.request(method, path, headers=headers) as response,
        ):
            return response.status, dict(response.headers), await response.read()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    found = Served(dependencies_of(a_state()))
    async with found.server.serving() as port:
        found.base = f"http://127.0.0.1:{port}"
        yield found


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Served]:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"tokens": [{"name": "dashboard", "token": SECRET}]}))
    found = Served(dependencies_of(a_state(), tokens=tokens, rate=3), tokens)
    async with found.server.serving() as port:
        found.base = f"http://127.0.0.1:{port}"
        yield found


async def test_healthz_and_readyz_report_the_reason(served: Served) -> None:
    assert (await served.ask("/healthz"))[::2] == (200, b'{"ok": true}')
    served.watched.why = "the consumer was not polled"
    for path in ("/healthz", "/readyz"):
        assert (await served.ask(path))[::2] == (503, b'{"ok": false, "why": "the consumer was not polled"}')


async def test_a_scrape_returns_all_metrics_of_the_catalogue(served: Served) -> None:
    await served.ask("/v1/principal")
    text = (await served.ask("/metrics"))[2].decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {one.family: one.help for one in names.CATALOGUE}.items() <= {
        name: family.documentation for name, family in families.items()
    }.items()
    samples = {(s.name, *s.labels.values()): s.value for family in families.values() for s in family.samples}
    assert samples["stateloop_query_requests_total", "200"] == 1
    assert samples["stateloop_query_request_seconds_bucket", "+Inf"] == 1
    assert samples["stateloop_query_request_seconds_count",] == 1


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/v1/principal", "/v1/nothing", "/", "/healthz"])
async def test_only_reads_are_allowed(served: Served, path: str, method: str) -> None:
    status, headers, body = await served.ask(path, method)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"
    assert json.loads(body)["type"] == "read_only"


async def test_an_internal_error_reveals_no_details(served: Served) -> None:
    for path in ("/v1/broken", "/open"):
        status, headers, body = await served.ask(path)
        assert status == 500
        assert headers["Content-Type"] == "application/problem+json"
        assert b"secret" not in body
    assert json.loads((await served.ask("/v1/nothing"))[2])["type"] == "unknown_path"


async def test_every_response_has_security_headers(served: Served) -> None:
    for path in ("/healthz", "/v1/principal", "/v1/broken", "/nothing", "/metrics"):
        headers = (await served.ask(path))[1]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "Server" not in headers


async def test_states_require_a_token_and_health_checks_do_not(guarded: Served) -> None:
    status, headers, body = await guarded.ask("/v1/principal")
    assert (status, headers["WWW-Authenticate"], json.loads(body)["type"]) == (401, "Bearer", "no_token")
    assert (await guarded.ask("/v1/principal", token=SECRET + "x"))[0] == 401
    assert (await guarded.ask("/v1/principal", token=SECRET))[::2] == (200, b'{"name": "dashboard"}')
    assert (await guarded.ask("/healthz"))[0] == 200
    assert guarded.dependencies.counts.get(names.REFUSED, "token") == 2


async def test_requests_beyond_the_rate_get_retry_after(guarded: Served) -> None:
    answers = [await guarded.ask("/v1/principal", token=SECRET) for _ in range(8)]
    refused = [headers for status, headers, _ in answers if status == 429]
    assert refused
    assert {one["Retry-After"] for one in refused} == {"1"}
    assert guarded.dependencies.counts.get(names.REFUSED, "rate") == len(refused)


async def test_a_taken_port_is_reported(served: Served) -> None:
    taken = int(served.base.rpartition(":")[2])
    other = Served(dependencies_of(a_state(), http_port=taken))
    with pytest.raises(PortTakenError, match=r"^The service cannot listen at 127.*: set STATELOOP_HTTP_PORT"):
        async with other.server.serving():
            pass


async def test_a_server_stops_listening_when_its_block_raises() -> None:
    port = 0
    with pytest.raises(RuntimeError, match="a part failed"):
        async with Served(dependencies_of(a_state())).server.serving() as port:
            raise RuntimeError("a part failed")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
