"""The page's files, held in memory, and the headers that keep it from running or asking anything else."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


class File(NamedTuple):
    """One file as it is sent, plain and compressed."""

    type: str
    body: bytes
    packed: bytes
    tag: str


@cache
def page() -> dict[str, File]:
    """All files of the page by their path in it. What has another suffix (a licence) is not served."""
    return dict(_files(files("services.query.console") / "page", ""))


async def send(request: web.Request) -> web.Response:
    """Answer with the file that the path names, the page itself for `/`."""
    file = page().get(request.match_info.get("file", INDEX))
    if file is None:
        raise web.HTTPNotFound
    headers = HEADERS | {"ETag": file.tag, "Content-Type": file.type}
    if file.tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=file.packed, headers=headers | {"Content-Encoding": "gzip"})
    return web.Response(body=file.body, headers=headers)


def _files(folder: Traversable, at: str) -> Iterator[tuple[str, File]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _files(one, f"{at}{one.name}/")
        elif kind := TYPES.get(f".{one.name.rpartition('.')[2]}"):
            body = one.read_bytes()
            tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            yield f"{at}{one.name}", File(kind, body, gzip.compress(body, mtime=0), tag)
