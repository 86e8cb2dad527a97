"""The header of a copy that is made while partitions are added: the number of partitions by which it is placed.

Copies repeat the history of a key, in partitions that are not in use yet. A reader that places keys by fewer partitions
skips them: it has read the records that they replace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.types.header import header_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    Headers = Iterable[tuple[str, bytes | str | None]]

NAME = "stateloop-partitions"
MOST_DIGITS = 9


def copied_headers(headers: Headers, partitions: int) -> tuple[tuple[str, bytes | str | None], ...]:
    """Return the headers of a copy, which is placed by this number of partitions."""
    return (*(header for header in headers if header[0] != NAME), (NAME, str(partitions).encode()))


def is_copy_for_more(headers: Headers, partitions: int) -> bool:
    """Return whether the headers are those of a copy that is placed by more partitions than these."""
    return any(name == NAME and (header_number(value, MOST_DIGITS) or 0) > partitions for name, value in headers)
