"""The files of the console's page, in memory, and the headers that restrict it to its own scripts and requests."""

from __future__ import annotations

import gzip
import hashlib
import logging
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from zipfile import ZipFile

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

log = logging.getLogger(__name__)

INDEX = "index.html"
UPLOT = ("uPlot.esm.js", "uPlot.min.css")
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
    """One file, plain and compressed."""

    type: str
    body: bytes
    packed: bytes
    tag: str


@cache
def page() -> dict[str, File]:
    """Return all files of the page by their path in it."""
    return dict(_files(files("services.query.console") / "page", ""))


def charts(jars: Path) -> dict[str, File]:
    """Return the files of uPlot, which draws the charts, from its webjar; or nothing and a warning."""
    found = sorted((jars / "console").glob("uplot-*.jar"))
    if not found:
        log.warning("the console has no charts: uPlot is not in %s/console: run make jars, or set STATELOOP_JARS", jars)
        return {}
    with ZipFile(found[-1]) as jar:
        names = {PurePosixPath(name).name: name for name in jar.namelist() if "/dist/" in name}
        return {f"uplot/{name}": _file(name, jar.read(names[name])) for name in UPLOT}


def file_response(request: web.Request, file: File | None) -> web.Response:
    """Return the file: compressed where the client accepts it, and without a body where the client has it already."""
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
        elif _suffix(one.name) in TYPES:
            yield f"{at}{one.name}", _file(one.name, one.read_bytes())


def _file(name: str, body: bytes) -> File:
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return File(TYPES[_suffix(name)], body, gzip.compress(body, mtime=0), tag)


def _suffix(name: str) -> str:
    return f".{name.rpartition('.')[2]}"
