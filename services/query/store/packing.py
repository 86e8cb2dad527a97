"""The binary format of an entry: a header of fixed length, columns of its indexed fields, and its value as JSON."""

from __future__ import annotations

import functools
import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import orjson

from services.query.store.entry import Entry, make_tuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.query.store.entry import EntryOrder

HEADER = struct.Struct("<qqqqqi")
"""Window start, epoch, version, event time, offset, partition."""
ORDER = struct.Struct("<qqq")
PARTITION = struct.Struct("<i")
TIME = struct.Struct("<q")
TIME_AT = ORDER.size
PARTITION_AT = HEADER.size - PARTITION.size
HASH_SIZE = 8
COLUMN_SIZE = HASH_SIZE
"""Every column has this size; an index has the hash of the field, and in a windowed state also its number."""
NO_HASH = bytes(HASH_SIZE)
"""The hash of a field that is absent, null, an object or a list: no filter matches it."""


def pack(entry: Entry, columns: bytes) -> bytes:
    """Return the bytes of an entry."""
    window_start, epoch, version, event_time, partition, offset, value = entry
    return HEADER.pack(window_start, epoch, version, event_time, offset, partition) + columns + value


def unpack(data: bytes, columns: int) -> Entry:
    """Return the entry; `columns` is the number of columns in the entries of its state."""
    window_start, epoch, version, event_time, offset, partition = HEADER.unpack_from(data)
    value = data[HEADER.size + COLUMN_SIZE * columns :]
    return make_tuple(Entry, (window_start, epoch, version, event_time, partition, offset, value))


def order(data: bytes) -> EntryOrder:
    """Return the order of a packed entry."""
    return ORDER.unpack_from(data)


def partition(data: bytes) -> int:
    """Return the partition of a packed entry."""
    return PARTITION.unpack_from(data, PARTITION_AT)[0]  # type: ignore[no-any-return]


def event_time(data: bytes) -> int:
    """Return the event time of a packed entry."""
    return TIME.unpack_from(data, TIME_AT)[0]  # type: ignore[no-any-return]


def hash_at(data: bytes, index: int) -> bytes:
    """Return the hash of one indexed field of a packed entry."""
    start = HEADER.size + HASH_SIZE * index
    return data[start : start + HASH_SIZE]


def fields_at(value: bytes, paths: Sequence[tuple[str, ...]]) -> list[Any]:
    """Return a value's fields at these paths; None for one that is absent."""
    document = orjson.loads(value)
    return [_field(document, path) for path in paths]


@functools.lru_cache(4096)
def value_hash(text: str) -> bytes:
    """Return the hash that represents a field's value in an index; two values collide once in 2^64 cases."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=HASH_SIZE).digest()


def _field(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def field_hash(value: Any) -> bytes:
    """Hash a string as it is, other values by their JSON. Objects and lists have none: filters cannot name them."""
    if value is None or isinstance(value, dict | list):
        return NO_HASH
    return value_hash(value if isinstance(value, str) else orjson.dumps(value).decode())
