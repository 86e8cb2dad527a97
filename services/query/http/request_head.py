"""Parses the header lines of plain requests for the fast path. aiohttp parses all others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from services.query.http.peer_client import FORWARDED

if TYPE_CHECKING:
    from collections.abc import Mapping

LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
READ = {name.lower().encode(): name for name in ("Host", "Authorization", "If-None-Match", "Origin", FORWARDED)}
"""The headers that change an answer, with the names under which handlers read them."""
NOT_PLAIN = (
    *(b"transfer-encoding", b"upgrade", b"expect", b"content-encoding", b"trailer", b"te"),
    *(b"proxy-connection", b"sec-websocket-key1"),
)
"""Headers that change what the request is, or where it ends."""
LINES_MAX = 100
"""aiohttp accepts this many header lines."""
LENGTH_DIGITS_MAX = 18
"""Digits of a length that fits into 64 bits."""


class RequestHead(NamedTuple):
    """The length of the body in bytes, and the headers that change an answer."""

    length: int
    headers: Mapping[str, str]


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
    headers = {name: found[read].decode("utf-8", "surrogateescape") for read, name in READ.items() if read in found}
    return RequestHead(int(length), headers)  # decoded as aiohttp does
