"""The attributes that the server attaches to a request: its principal and rate meter, read from its credentials."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

from aiohttp import web

from services.query.http.peer_client import FORWARDED
from services.query.http.retry import RetryBudget
from services.query.lookup.authentication import ANONYMOUS, PEER, Principal
from services.query.lookup.rate_limit import RateMeter

if TYPE_CHECKING:
    from collections.abc import Mapping

BEARER = "stateloop.bearer."
"""A WebSocket subprotocol with this prefix is a token: its bytes in base64url, without padding.

A page cannot send headers with a WebSocket, and a token in a URL would be in logs and histories.
"""
PRINCIPAL = web.RequestKey("principal", Principal)
METER = web.RequestKey("meter", RateMeter)
"""The rate meter of the principal of a request."""
RETRIES = web.RequestKey("retries", RetryBudget)


def principal(request: web.Request) -> Principal:
    """The principal of a request to a guarded path. Its `check` rejects requests beyond the scope."""
    return request[PRINCIPAL]


def is_of_instance(headers: Mapping[str, str], sender: Principal) -> bool:
    """Whether another instance sent a request: where tokens are needed, a client has none of an instance."""
    return FORWARDED in headers and sender in (PEER, ANONYMOUS)


def credentials_of(request: web.Request) -> str | None:
    """The Authorization header, or its equivalent in the subprotocols of a WebSocket."""
    header = request.headers.get("Authorization")
    if header is not None or request.headers.get("Upgrade", "").lower() != "websocket":
        return header
    for name in request.headers.get("Sec-WebSocket-Protocol", "").split(","):
        if name.strip().startswith(BEARER):
            return f"Bearer {_decode(name.strip().removeprefix(BEARER))}"
    return None


def _decode(token: str) -> str:
    try:
        return urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        return ""
