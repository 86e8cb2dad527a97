"""Filters of subscriptions: a key, or a prefix and values of fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_FIELDS: Mapping[str, Any] = {}
WindowChoice = int | Literal["newest", "all"]
"""The newest window of a key, all of its windows, or the one at a time in milliseconds since 1970."""


class SubscriptionFilter(NamedTuple):
    """One key of a state; or, if that is None, all keys with this prefix whose fields have these values.

    `where` has pairs of a path and the text of a value: a string as it is, any other value as JSON. In a state that is
    not windowed, the window is the newest one. With `silent_for`, in seconds, a key matches only while its last record
    is older.
    """

    state: str
    key: str | None = None
    prefix: str = ""
    where: tuple[tuple[str, str], ...] = ()
    window: WindowChoice = "newest"
    silent_for: int | None = None

    @property
    def is_conditional(self) -> bool:
        """Whether a key matches at some times only. The client learns when it stops."""
        return bool(self.where) or self.silent_for is not None

    @property
    def receives_all(self) -> bool:
        """Whether the client learns of every removal: of its key, or of each key with the prefix."""
        return self.key is not None or not self.is_conditional

    @property
    def scope(self) -> str:
        """The key, or the prefix of all keys that can match."""
        return self.prefix if self.key is None else self.key

    def matches_key(self, key: str) -> bool:
        """Whether this is the key, or one with the prefix."""
        return key.startswith(self.prefix) if self.key is None else key == self.key

    def matches(self, record: RecordFields) -> bool:
        """Whether the record has these values."""
        return all(record.text(path) == value for path, value in self.where)


class RecordFields:
    """The fields of a record's value, which is parsed on the first access, once."""

    __slots__ = ("_parsed", "_value")

    def __init__(self, value: bytes) -> None:
        self._value = value
        self._parsed: Any = None

    def text(self, path: str) -> str | None:
        """The text of the value at a dotted path; None if it is absent, null, an object or a list."""
        found = self._parse()
        for name in path.split("."):
            if not isinstance(found, dict):
                return None
            found = found.get(name)
        if isinstance(found, str):
            return found
        return None if found is None or isinstance(found, dict | list) else orjson.dumps(found).decode()

    def _parse(self) -> Any:
        """A value that is not JSON has no fields; ingestion decides whether it may be stored at all."""
        if self._parsed is None:
            try:
                self._parsed = orjson.loads(self._value)
            except orjson.JSONDecodeError:
                self._parsed = NO_FIELDS
        return self._parsed
