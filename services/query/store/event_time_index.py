"""The index of event times: finds the keys whose last record is older than a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.store.window_keys import NUMBER, pack_start, unpack_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lmdb import Transaction, _Database

HEAD = b"\xfe"
"""Begins the entries of this index, where those of a field begin with its number."""
LISTED = b"\1"
"""The value of every entry: LMDB has no empty value among sorted duplicates."""
SECOND = 1000
FIRST_SECOND = -(1 << 62)
"""Before every event time."""
KEY_AT = len(HEAD) + NUMBER.size


class EventTimeIndex:
    """Lists the keys by the event time of their current entry, in whole seconds.

    A key that changes several times within a second is moved once. Silent keys are one range of the list.
    """

    def move(self, txn: Transaction[bytes], database: _Database, key: bytes, old: int | None, new: int | None) -> None:
        """Replace the event time of a key, in milliseconds since 1970; None if the key is not listed."""
        before, after = (None if time is None else _head(time // SECOND) + key for time in (old, new))
        if before == after:
            return
        if before is not None:
            txn.delete(before, db=database)
        if after is not None:
            txn.put(after, LISTED, db=database)

    def walk(
        self, txn: Transaction[bytes], database: _Database, since: int, key: bytes, until: int
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the seconds before `until` with the keys, in order, from a second and a key of that second on."""
        bound = _head(until)
        with txn.cursor(database) as cursor:
            if cursor.set_range(_head(since) + key):
                for name in cursor.iternext(keys=True, values=False):
                    if name >= bound:
                        return
                    yield unpack_start(name[len(HEAD) : KEY_AT]), name[KEY_AT:]


def silent_until(now: int, silent_for: int) -> int:
    """Return the second before which the event times of keys are that have been silent for so many seconds."""
    return now // SECOND - silent_for


def _head(second: int) -> bytes:
    return HEAD + pack_start(second)
