"""The credentials that a request brings."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

BEARER = "stateloop.bearer."
"""A WebSocket's subprotocol of this beginning is a token: its bytes in base64url, without padding.

A page can send no headers with a WebSocket, and a token in an address would be in logs and histories.
"""


def credentials_of(request: web.Request) -> str | None:
    """The Authorization header, or what a WebSocket offers in its place."""
    header = request.headers.get("Authorization")
    if header is not None or request.headers.get("Upgrade", "").lower() != "websocket":
        return header
    for name in request.headers.get("Sec-WebSocket-Protocol", "").split(","):
        if name.strip().startswith(BEARER):
            return f"Bearer {_token(name.strip().removeprefix(BEARER))}"
    return None


def _token(written: str) -> str:
    try:
        return urlsafe_b64decode(written + "=" * (-len(written) % 4)).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        return ""
