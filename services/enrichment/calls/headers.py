"""The secret headers of APIs, from the environment or from files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from contracts.settings import FILE, read_secret
from services.enrichment.errors import HeaderUnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
PLAIN = re.compile(r"accept(-.*)?|user-agent|cache-control", re.IGNORECASE)
"""The names of headers that may be set for an API and are no secret."""
SHORTEST = 6
VALUE = re.compile(r"[\t\x20-\x7e]+")


def reveal(headers: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return the headers of one API; a value `file:/path` is read from the file.

    Raises HeaderUnreadableError, which contains names and paths only.
    """
    return {name: _value(name, secret.get_secret_value()) for name, secret in headers.items()}


def secrets(headers: Mapping[str, str]) -> list[bytes]:
    """Return the forms in which a response may repeat these headers: whole, without a scheme, and escaped as JSON.

    Headers that every client sends are no secret. Values below 6 characters would match by chance.
    """
    whole = [value for name, value in headers.items() if not PLAIN.fullmatch(name)]
    values = [text for value in whole for text in (value, value.partition(" ")[2]) if len(text) >= SHORTEST]
    escaped = [orjson.dumps(text)[1:-1] for text in values]
    forms = [*(text.encode() for text in values), *escaped, *(text.replace(b"/", b"\\/") for text in escaped)]
    return list(dict.fromkeys(forms))


def _value(name: str, configured: str) -> str:
    where = configured if configured.startswith(FILE) else "STATELOOP_API_HEADERS"
    try:
        value = read_secret(configured)
    except (OSError, UnicodeDecodeError) as error:
        raise HeaderUnreadableError(name, where, f"it cannot be read ({type(error).__name__})") from error
    if not NAME.fullmatch(name):
        raise HeaderUnreadableError(name, where, "the name is invalid")
    if not VALUE.fullmatch(value):
        raise HeaderUnreadableError(name, where, "the value is empty, or more than one line of ASCII")
    return value
