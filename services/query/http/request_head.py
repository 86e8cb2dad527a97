"""Parses the header lines of plain requests for the fast path. aiohttp parses all others."""

from __future__ import annotations

import re
from typing import NamedTuple

from services.query.http.peer_client import FORWARDED

LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
READ = (b"host", b"authorization", b"if-none-match", b"content-length", b"origin")
NOT_PLAIN = (
    *(b"transfer-encoding", b"upgrade", b"expect", b"content-encoding", b"trailer", b"te"),
    *(b"proxy-connection", b"sec-websocket-key1"),
)
"""Headers that change what the request is, or where it ends."""
LINES_MAX = 100
"""aiohttp accepts this many header lines."""
FORWARDED_NAME = FORWARDED.lower().encode()
LENGTH_DIGITS_MAX = 18
"""Digits of a length that fits into 64 bits."""


class RequestHead(NamedTuple):
    """The headers that change an answer. `length` is that of the body, in bytes."""

    length: int
    authorization: str | None
    none_match: str | None
    forwarded: bool
    """Whether another instance forwards the request."""
    host: str | None
    origin: str | None


def parse_head(lines: bytes) -> RequestHead | None:
    """The head, from the end of the request line to the empty line; None: aiohttp must parse it."""
    found: dict[bytes, bytes] = {}
    split = lines.split(b"\r\n")[1:-2]
    if len(split) > LINES_MAX:
        return None
    for line in split:
        if not (matched := LINE.fullmatch(line)):
            return None
        name, value = matched[1].lower(), matched[2]
        if name in NOT_PLAIN or (name == b"connection" and value.lower() != b"keep-alive"):
            return None
        if name in found:
            return None
        found[name] = value
    length = found.get(b"content-length", b"0")
    if b"host" not in found or not length.isdigit() or len(length) > LENGTH_DIGITS_MAX:
        return None
    texts = {name: _text(found.get(name)) for name in READ}
    return RequestHead(
        length=int(length),
        authorization=texts[b"authorization"],
        none_match=texts[b"if-none-match"],
        forwarded=FORWARDED_NAME in found,
        host=texts[b"host"],
        origin=texts[b"origin"],
    )


def _text(value: bytes | None) -> str | None:
    """The text of a header, decoded as aiohttp does."""
    return None if value is None else value.decode("utf-8", "surrogateescape")
