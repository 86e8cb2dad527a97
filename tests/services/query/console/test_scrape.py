"""Scrapes of targets that respond, that do not, and that respond with something else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientSession, ClientTimeout, web
from aiohttp.test_utils import TestServer, unused_port

from contracts.metrics import worker
from services.query.console import scrape as scraping
from services.query.console.samples import Samples
from services.query.console.scrape import ScrapeResult, ScrapeTarget, instances, scrape
from tests.services.query.console.exposed import exposed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TEXT = exposed({worker.LAG: {(): 42.0}})


async def metrics(_: web.Request) -> web.Response:
    return web.Response(text=TEXT)


async def never(_: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"# x\n" * 100_000)


async def redirect(_: web.Request) -> web.Response:
    raise web.HTTPFound("/good/metrics")


async def binary(_: web.Request) -> web.Response:
    return web.Response(body=b"\xff\xfe\x00")


@pytest.fixture
async def parts(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TestServer]:
    monkeypatch.setattr(scraping, "WITHIN", ClientTimeout(total=0.5))
    application = web.Application()
    for name, handler in {"good": metrics, "never": never, "redirect": redirect, "binary": binary}.items():
        application.router.add_get(f"/{name}/metrics", handler)
    application.router.add_get("/endless/metrics", endless)
    server = TestServer(application)
    async with server:
        yield server


async def get_json(*urls: str) -> tuple[ScrapeResult, ...]:
    async with ClientSession() as session:
        return await scrape(session, [ScrapeTarget("enrichment", url) for url in urls])


async def test_a_target_is_scraped(parts: TestServer) -> None:
    (found,) = await get_json(str(parts.make_url("/good")))
    assert found.error is None
    assert Samples(found.samples).total(worker.LAG) == 42


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("never", "no response within"),
        ("endless", "more than"),
        ("redirect", "status 302"),
        ("missing", "status 404"),
        ("binary", "invalid metrics"),
    ],
)
async def test_a_failed_scrape_has_its_error(parts: TestServer, name: str, why: str) -> None:
    (found,) = await get_json(str(parts.make_url(f"/{name}/")))
    assert found.samples == ()
    assert why in (found.error or "")


async def test_an_unreachable_target_delays_no_other(parts: TestServer) -> None:
    unreachable = f"http://127.0.0.1:{unused_port()}"
    first, second, third = await get_json(unreachable, str(parts.make_url("/never")), str(parts.make_url("/good")))
    assert first.error == "Connection refused"  # the address is not repeated
    assert [one.is_up for one in (second, third)] == [False, True]


@pytest.mark.parametrize(
    ("found", "urls"),
    [
        (("10.0.0.2", "10.0.0.3"), ["http://10.0.0.2:8080", "http://10.0.0.3:8080"]),
        (("127.0.0.1", "::1"), ["http://enrichment:8080"]),
        (("10.0.0.2",), ["http://enrichment:8080"]),
        ((), ["http://enrichment:8080"]),
        (("10.0.0.2", "fd00::2", "fd00::3"), ["http://[fd00::2]:8080", "http://[fd00::3]:8080"]),
    ],
)
async def test_a_name_of_several_instances_is_scraped_at_each(found: tuple[str, ...], urls: list[str]) -> None:
    async def hosts(_host: str, _port: int) -> tuple[str, ...]:
        return found

    spread = await instances(ScrapeTarget("enrichment", "http://enrichment:8080"), hosts)
    assert [address.url for address in spread] == urls


async def test_an_unresolved_name_is_scraped_as_it_is() -> None:
    async def hosts(_host: str, _port: int) -> tuple[str, ...]:
        raise OSError("no such host")

    assert await instances(ScrapeTarget("job", "http://job:8080"), hosts) == [ScrapeTarget("job", "http://job:8080")]
