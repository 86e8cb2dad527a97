"""Reads the tag of an entry, by which a client says what it has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.query.store.entry import Order

PATTERN = r"^(?:(-?[0-9]{1,19})\.(?:(-?[0-9]{1,19})\.)?)?(-?[0-9]{1,19})$"
"""Tags of releases before 0.2.0 have no epoch; their streams go on here."""


def parse_tag(tag: str) -> Order | None:
    """The order of the entry that has this tag; None: no entry has it."""
    found = re.fullmatch(PATTERN, tag)
    return None if found is None else (int(found[1] or 0), int(found[2] or 0), int(found[3]))
