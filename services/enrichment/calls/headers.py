"""The secret headers of APIs, from the environment or from files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from services.enrichment.errors import HeaderUnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

FILE = "file:"
NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
VALUE = re.compile(r"[\t\x20-\x7e]+")


def revealed(headers: Mapping[str, SecretStr]) -> dict[str, str]:
    """The headers of one API as they are sent; a value `file:/path` is what the file holds.

    Raises HeaderUnreadableError, which tells names and paths only.
    """
    return {name: _value(name, secret.get_secret_value()) for name, secret in headers.items()}


def _value(name: str, told: str) -> str:
    where = told if told.startswith(FILE) else "STATELOOP_API_HEADERS"
    try:
        value = Path(told.removeprefix(FILE)).read_text(encoding="utf-8").strip() if where == told else told
    except (OSError, UnicodeDecodeError) as error:
        raise HeaderUnreadableError(name, where, f"it cannot be read ({type(error).__name__})") from error
    if not NAME.fullmatch(name):
        raise HeaderUnreadableError(name, where, "the name is no name of a header")
    if not VALUE.fullmatch(value):
        raise HeaderUnreadableError(name, where, "the value is empty, or more than one line of ASCII")
    return value
