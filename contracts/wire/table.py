"""The records of a reference table."""

from typing import Any

from contracts.wire.messages import Wire


class TableRecord(Wire):
    """A row of a table. The record's key is the row's, and its offset is the version of the row."""

    value: dict[str, Any]
    author: str | None = None
    """The user who wrote it. The record's timestamp is the time of the change."""
