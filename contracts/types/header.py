"""The values of a record's headers, which any producer may write."""

from __future__ import annotations

MOST_DIGITS = 19
"""As many as a number of 64 bits has. Python refuses to read a number of thousands."""


def header_text(value: bytes | str | None) -> str:
    """Return the text of a header; empty without one."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def header_number(value: bytes | str | None, digits: int = MOST_DIGITS) -> int | None:
    """Return the number of a header; None if it is not one of at most this number of digits."""
    text = header_text(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None
