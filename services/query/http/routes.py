"""The routes of endpoints in aiohttp."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from services.query.http.request_context import METER, RETRIES, principal
from services.query.http.requests import HttpRequest, respond
from services.query.http.validation import unquote_segment

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler as StreamHandler

    from contracts.api.endpoint import Endpoint
    from services.query.http.requests import Handler

KEY = "[^/]+"
BODY_S = 30.0
"""The time for a body to arrive. aiohttp (3.14.5) does not wake the reader of a body whose chunks are malformed."""


def route(endpoint: Endpoint, handler: Handler, **patterns: str) -> web.RouteDef:
    """Return the route of an endpoint. `patterns`: regular expressions of path parameters. A GET allows HEAD."""

    async def handle(request: web.Request) -> web.Response:
        body = b"" if endpoint.body is None else await _body(request)
        request[RETRIES].begin()  # the upload does not use it up
        return (await respond(handler, _parsed(request, endpoint, body))).response()

    path = _path(endpoint, **patterns)
    return web.get(path, handle) if endpoint.method == "get" else web.route(endpoint.method.upper(), path, handle)


def stream_route(endpoint: Endpoint, handler: StreamHandler) -> web.RouteDef:
    """Return the route of an endpoint whose handler writes a stream."""
    return web.get(_path(endpoint), handler, allow_head=False)


async def _body(request: web.Request) -> bytes:
    """The body of a request. Raises RequestPayloadError for one that is malformed, incomplete, or too slow."""
    try:
        async with asyncio.timeout(BODY_S):
            return await request.read()
    except (TimeoutError, ConnectionResetError) as error:
        raise web.RequestPayloadError from error


def _path(endpoint: Endpoint, **patterns: str) -> str:
    path = endpoint.path
    for name, pattern in ({"key": KEY} | patterns).items():
        path = path.replace(f"{{{name}}}", f"{{{name}:{pattern}}}")
    return path


def _parsed(request: web.Request, endpoint: Endpoint, body: bytes) -> HttpRequest:
    """The request of aiohttp. Raises ProblemError (400) for a path that is not UTF-8."""
    name, key = request.match_info.get("name", ""), _segment(request, endpoint, "{key}")
    parsed = HttpRequest(principal(request), request[METER], request.headers, name, key)
    parsed.time = _segment(request, endpoint, "{time}")
    parsed.target = request.rel_url.raw_path_qs
    parsed.query = tuple(request.rel_url.query.items())
    parsed.body = body
    parsed.retries = request[RETRIES]
    return parsed


def _segment(request: web.Request, endpoint: Endpoint, name: str) -> str:
    """A segment of the path. aiohttp's own decoding of a path leaves some encodings as they are."""
    names = endpoint.path.split("/")
    return unquote_segment(request.rel_url.raw_path.split("/")[names.index(name)]) if name in names else ""
