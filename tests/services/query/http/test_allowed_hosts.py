"""The host names under which an instance without tokens answers, on both paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from contracts.metrics import query as metrics
from services.query.http.allowed_hosts import AllowedHosts
from services.query.settings import QuerySettings
from tests.services.query.http.instance import answering
from tests.services.query.in_memory import ScratchStore, a_state, dependencies_of

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "https://console.example:8443"
OURS = [
    "localhost", "LOCALHOST", "localhost:8090", "127.0.0.1", "127.0.0.1:1", "127.8.9.1", "[::1]", "[::1]:8090",
    "console.example", "console.example:8443", "query.internal:8090",
]  # fmt: skip
OTHERS = [
    "evil.example", "evil.example:8090", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
    "0.0.0.0",  # noqa: S104  # it is refused
    "[::2]", "", "localhost@evil.example", "evil.example@localhost", "localhost/x", "localhost#", "local host",
    "evil.example\\@localhost", "console.example.evil.example", "[::1",
]  # fmt: skip


def settings(**values: Any) -> QuerySettings:
    return QuerySettings(application="a:b", **values)


@pytest.mark.parametrize("host", OURS)
def test_names_of_this_machine_and_of_the_settings_are_allowed(host: str) -> None:
    hosts = AllowedHosts(settings(url="http://query.internal:8090", origins=(PAGE,)))
    assert hosts.allow(host, None)
    assert hosts.allow("localhost", f"https://{host}")


@pytest.mark.parametrize("host", OTHERS)
def test_other_names_are_not_allowed(host: str) -> None:
    hosts = AllowedHosts(settings(url="http://query.internal:8090", origins=(PAGE,)))
    assert not hosts.allow(host, None)
    assert not hosts.allow(host, "http://localhost")
    assert not hosts.allow("localhost", f"https://{host}")


@pytest.mark.parametrize("origin", ["null", "", "localhost", "file://", "chrome-extension://localhost"])
def test_an_origin_that_is_no_web_page_is_not_allowed(origin: str) -> None:
    assert not AllowedHosts(settings()).allow("localhost", origin)


def test_a_request_without_host_is_allowed() -> None:
    assert AllowedHosts(settings()).allow(None, None)


@pytest.mark.parametrize("host", [*OURS, *OTHERS])
def test_with_tokens_any_name_is_allowed(host: str, tmp_path: Path) -> None:
    assert AllowedHosts(settings(tokens=tmp_path)).allow(host, "https://evil.example")


@pytest.mark.parametrize("hot", [True, False])
@pytest.mark.parametrize(
    "path",
    ["/v1/states/flights/UA1", "/v1/states/flights/UA1?fields=a", "/v1/states/flights", "batch", "/v1/states",
     "/v1/watch", "/", "/healthz", "/metrics", "/openapi.json", "/nowhere"],
)  # fmt: skip
async def test_requests_to_another_name_are_rejected(hot: bool, path: str) -> None:  # noqa: FBT001  # a parameter
    dependencies = dependencies_of(a_state())
    store = dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    store.put("UA1")
    method, body = ("POST", json.dumps({"keys": ["UA1"]}).encode()) if path == "batch" else ("GET", b"")
    path = "/v1/states/flights:batchGet" if path == "batch" else path
    async with answering(dependencies, hot=hot) as instance:
        usual = await instance.ask(path, method, body=body)
        assert usual.status != 403
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            response = await instance.ask(path, method, headers, body)
            assert (response.status, response.kind) == (403, "other_host")
            assert "STATELOOP_ORIGINS" in response.json["detail"]
        assert dependencies.counts.get(metrics.REFUSED, "host") == 2


@pytest.mark.parametrize("hot", [True, False])
async def test_each_of_several_host_headers_is_checked(hot: bool) -> None:  # noqa: FBT001  # a parameter
    lines = "GET /v1/states/flights/UA1 HTTP/1.1", "Host: localhost", "Host: evil.example", "", ""
    async with answering(dependencies_of(a_state()), hot=hot) as instance, instance.connected() as connection:
        connection.send("\r\n".join(lines).encode())
        assert (await connection.response()).status in (400, 403)


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_each_of_several_headers_is_checked(name: str) -> None:
    good, bad = ("localhost", "evil.example") if name == "Host" else ("http://localhost", "https://evil.example")
    for values, is_allowed in ((good,), True), ((good, bad), False), ((bad, good), False):
        request = make_mocked_request("GET", "/", CIMultiDict((name, value) for value in values))
        assert AllowedHosts(settings()).allow_request(request) is is_allowed
