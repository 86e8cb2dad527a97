"""The files of the console's page, and the headers that restrict it to its own scripts and requests."""

from __future__ import annotations

import hashlib
import logging
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from aiohttp import web

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "page"
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


def page() -> dict[str, bytes]:
    """Return all files of the page by their path in it."""
    paths = (path for path in FOLDER.rglob("*") if path.suffix in TYPES)
    return {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in paths}


def charts(jars: Path) -> dict[str, bytes]:
    """Return the files of uPlot, which draws the charts, from its webjar; or nothing and a warning."""
    found = sorted((jars / "console").glob("uplot-*.jar"))
    if not found:
        log.warning(
            "the console has no charts: no uPlot in %s/console: run stateloop jars, or set STATELOOP_JARS", jars
        )
        return {}
    with ZipFile(found[-1]) as jar:
        names = {PurePosixPath(name).name: name for name in jar.namelist() if "/dist/" in name}
        return {f"uplot/{name}": jar.read(names[name]) for name in UPLOT}


def file_response(request: web.Request, name: str, body: bytes) -> web.Response:
    """Return a file: compressed where the client accepts it, and without a body where the client has it already.

    Its tag is of its content: files of two versions may have the same size and time of change.
    """
    tag = hashlib.sha256(body).hexdigest()[:16]
    headers = HEADERS | {"Content-Type": TYPES[PurePosixPath(name).suffix]}
    if any(known.value == tag for known in request.if_none_match or ()):
        response = web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    else:
        response = web.Response(body=body, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            response.enable_compression(web.ContentCoding.gzip)
    response.etag = tag
    return response
