"""A real HTTP server that behaves as badly as an API can. The requested value names its fault."""

from __future__ import annotations

import asyncio
import gzip
import struct
import zlib
from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache, reduce
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable

STORM = 2
"""The number of failing calls in a storm."""


class Registry:
    """Logs every call, and answers `/owners/{value}` by the fault that the value names."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.raw: list[str] = []
        self.authorizations: set[str | None] = set()
        self.latency = 0.0
        self.gate = asyncio.Event()
        self.gate.set()
        self.url = ""
        self.leads_to = "/owners/inside"

    async def owner(self, request: web.Request) -> web.StreamResponse:
        self._log(request)
        await asyncio.sleep(self.latency)
        await self.gate.wait()
        fault = getattr(self, request.match_info["value"].split("-")[0], None)
        if fault is not None:
            handler: Callable[[web.Request], Awaitable[web.StreamResponse]] = fault
            return await handler(request)
        return _json(f'{{"name": "owner of {request.match_info["value"]}"}}')

    async def street(self, request: web.Request) -> web.StreamResponse:
        self._log(request)
        return _json('{"street": "Main Street"}')

    async def quote(self, request: web.Request) -> web.StreamResponse:
        self._log(request)
        return _json('{"price": 1.5}')

    async def any(self, request: web.Request) -> web.StreamResponse:
        self._log(request)
        return _json('{"name": "anything"}')

    def _log(self, request: web.Request) -> None:
        self.calls[request.path] += 1
        self.raw.append(request.raw_path)
        self.authorizations.add(request.headers.get("Authorization"))

    async def missing(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=404)

    async def forbidden(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=403)

    async def redirect(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/owners/inside"})

    async def moved(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": self.leads_to})

    async def echo(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"name": request.headers.get("Authorization", "nobody")})

    async def scold(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=401, text=f"not {request.headers.get('Authorization')}")

    async def headers(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"X-Long": "x" * 10_000})
        await response.prepare(request)
        return response

    async def many(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={f"X-{number}": "x" for number in range(1000)})
        await response.prepare(request)
        return response

    async def drip(self, request: web.Request) -> web.StreamResponse:
        """Never pauses for as long as a timeout, and never ends."""
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.05)

    async def nothing(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    async def hang(self, _: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        return web.Response()

    async def slow(self, _: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.2)
        return _json('{"name": "slow"}')

    async def down(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=503, text="we are down")

    async def storm(self, request: web.Request) -> web.StreamResponse:
        if self.calls[request.path] <= STORM:
            return web.Response(status=500)
        return _json('{"name": "after the storm"}')

    async def busy(self, request: web.Request) -> web.StreamResponse:
        if self.calls[request.path] > 1:
            return _json('{"name": "not busy"}')
        headers = {"busy-bare": {}, "busy-date": {"Retry-After": "Thu, 01 Jan 2026 00:00:07 GMT"}}
        return web.Response(status=429, headers=headers.get(request.match_info["value"], {"Retry-After": "3"}))

    async def malformed(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=b"\xff\x00{")

    async def html(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>Log in, please</html>", content_type="text/html")

    async def nan(self, _: web.Request) -> web.StreamResponse:
        return _json('{"name": "x", "rating": NaN}')

    async def wrong(self, _: web.Request) -> web.StreamResponse:
        return _json('{"name": ["a secret"]}')

    async def reset(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"name": ')
        if request.transport is not None:
            request.transport.abort()
        return response

    async def endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)

    async def bomb(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=_bomb(), headers={"Content-Encoding": "gzip"})

    @asynccontextmanager
    async def serving(self, certificate: ssl.SSLContext | None = None) -> AsyncIterator[Registry]:
        _bomb()  # no request waits until it is made
        server = web.Application()
        server.router.add_get("/owners/{value}", self.owner)
        server.router.add_get("/streets", self.street)
        server.router.add_get("/quotes/{value}", self.quote)
        server.router.add_get("/{anything:.*}", self.any)
        runner = web.AppRunner(server, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http{'s' if certificate else ''}://{host}:{port}"
        try:
            yield self
        finally:
            await runner.cleanup()


def now() -> datetime:
    """The time that the Retry-After dates here are seven seconds after."""
    return datetime(2026, 1, 1, tzinfo=UTC)


def _json(text: str) -> web.Response:
    return web.Response(text=text, content_type="application/json")


@cache
def _bomb() -> bytes:
    """200 MB in a small body: the same compressed block again and again."""
    block, repeats = b"0" * 1_000_000, 200
    compressor = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    compressed = compressor.compress(block) + compressor.flush(zlib.Z_FULL_FLUSH)
    checksum = reduce(lambda value, _: zlib.crc32(block, value), range(repeats), 0)
    header, trailer = gzip.compress(b"", mtime=0)[:10], struct.pack("<LL", checksum, repeats * len(block))
    return header + compressed * repeats + compressor.flush() + trailer
