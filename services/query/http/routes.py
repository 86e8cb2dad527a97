"""The routes of endpoints in aiohttp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

    from contracts.api.endpoint import Endpoint

KEY = "[^/]+"


def route(endpoint: Endpoint, handler: Handler, *, allow_head: bool = True, **patterns: str) -> web.RouteDef:
    """Return the route of an endpoint. `patterns`: regular expressions of path parameters; a GET may allow HEAD."""
    path = endpoint.path
    for name, pattern in ({"key": KEY} | patterns).items():
        path = path.replace(f"{{{name}}}", f"{{{name}:{pattern}}}")
    options = {"allow_head": allow_head} if endpoint.method == "get" else {}
    return web.route(endpoint.method.upper(), path, handler, **options)
