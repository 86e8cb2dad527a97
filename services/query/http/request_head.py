"""What the header lines of a request say, for who answers without aiohttp: only the plain ones are understood here."""

from __future__ import annotations

import re
from typing import NamedTuple

from services.query.dependencies import HOP

LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
READ = (b"host", b"authorization", b"if-none-match", b"content-length", b"origin")
NOT_PLAIN = (
    *(b"transfer-encoding", b"upgrade", b"expect", b"content-encoding", b"trailer", b"te"),
    *(b"proxy-connection", b"sec-websocket-key1"),
)
"""What makes a request, or the end of it, something else."""
MOST_LINES = 100
"""Of so many header lines aiohttp refuses none."""
HOP_NAME = HOP.lower().encode()
LONGEST = 18
"""Digits of a length that fits a number of 64 bits."""


class RequestHead(NamedTuple):
    """The lines that change an answer. `length` is that of the body, in bytes; `handed_on`: by another instance."""

    length: int
    authorization: str | None
    none_match: str | None
    handed_on: bool
    host: str | None
    origin: str | None


def read(lines: bytes) -> RequestHead | None:
    """The head, from the end of its first line to its end; None: something that is aiohttp's to judge."""
    found: dict[bytes, bytes] = {}
    split = lines.split(b"\r\n")[1:-2]
    if len(split) > MOST_LINES:
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
    if b"host" not in found or not length.isdigit() or len(length) > LONGEST:
        return None
    said = {name: _text(found.get(name)) for name in READ}
    return RequestHead(
        length=int(length),
        authorization=said[b"authorization"],
        none_match=said[b"if-none-match"],
        handed_on=HOP_NAME in found,
        host=said[b"host"],
        origin=said[b"origin"],
    )


def _text(value: bytes | None) -> str | None:
    """As aiohttp reads it."""
    return None if value is None else value.decode("utf-8", "surrogateescape")
