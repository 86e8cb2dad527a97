"""What a subscription asks for, and whether a record is of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Mapping[str, Any] = {}


class Filter(NamedTuple):
    """A key of a state; or, where that is None, all keys with this prefix whose fields have these values.

    `where` are pairs of a path and the value's text: that of a string is itself, that of another value its JSON.
    """

    state: str
    key: str | None = None
    prefix: str = ""
    where: tuple[tuple[str, str], ...] = ()

    @property
    def reach(self) -> str:
        """The key, or what all keys that are asked for begin with."""
        return self.prefix if self.key is None else self.key

    def holds(self, record: RecordFields) -> bool:
        """Whether the record has these values."""
        return all(record.text(path) == value for path, value in self.where)


class RecordFields:
    """A record's value, parsed when it is first looked at, and at most once."""

    __slots__ = ("_parsed", "_value")

    def __init__(self, value: bytes) -> None:
        self._value = value
        self._parsed: Any = None

    def text(self, path: str) -> str | None:
        """The text of what is at a dotted path; None where there is nothing, null, an object or a list."""
        found = self._read()
        for name in path.split("."):
            if not isinstance(found, dict):
                return None
            found = found.get(name)
        if isinstance(found, str):
            return found
        return None if found is None or isinstance(found, dict | list) else orjson.dumps(found).decode()

    def _read(self) -> Any:
        """A value that is no JSON has no fields: whether it may be there at all is the follower's decision."""
        if self._parsed is None:
            try:
                self._parsed = orjson.loads(self._value)
            except orjson.JSONDecodeError:
                self._parsed = NOTHING
        return self._parsed
