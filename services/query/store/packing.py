"""An entry as bytes: a head of fixed length, the marks of its indexed fields, and its value as it was on the topic."""

from __future__ import annotations

import functools
import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import orjson

from services.query.store.entry import Entry, made

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.query.store.entry import Order

HEAD = struct.Struct("<qqqqqi")
"""Life, epoch, version, event time, offset, partition."""
ORDER = struct.Struct("<qqq")
PLACE = struct.Struct("<i")
PLACE_AT = HEAD.size - PLACE.size
MARK = 8
NO_MARK = bytes(MARK)
"""Of a field that is absent, null, an object or a list: no filter finds it."""


def pack(entry: Entry, marks: bytes) -> bytes:
    """The bytes of an entry."""
    life, epoch, version, event_time, partition, offset, value = entry
    return HEAD.pack(life, epoch, version, event_time, offset, partition) + marks + value


def unpack(data: bytes, indexes: int) -> Entry:
    """The entry, of a state with so many indexes."""
    life, epoch, version, event_time, offset, partition = HEAD.unpack_from(data)
    return made(Entry, (life, epoch, version, event_time, partition, offset, data[HEAD.size + MARK * indexes :]))


def order(data: bytes) -> Order:
    """The entry's order."""
    return ORDER.unpack_from(data)


def partition(data: bytes) -> int:
    """The entry's partition."""
    return PLACE.unpack_from(data, PLACE_AT)[0]  # type: ignore[no-any-return]


def mark_at(data: bytes, index: int) -> bytes:
    """The mark of the entry's field of that index."""
    start = HEAD.size + MARK * index
    return data[start : start + MARK]


def marks(value: bytes, paths: Sequence[tuple[str, ...]]) -> bytes:
    """The marks of a value's fields at these paths."""
    if not paths:
        return b""
    document = orjson.loads(value)
    return b"".join(_marked(_field(document, path)) for path in paths)


@functools.lru_cache(4096)
def mark(text: str) -> bytes:
    """Stands for a field's value in an index. Two values share one in 2^64 cases."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=MARK).digest()


def _field(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def _marked(value: Any) -> bytes:
    """Anything but a string is named by its JSON text. Of objects and lists only some could be written."""
    if value is None or isinstance(value, dict | list):
        return NO_MARK
    return mark(value if isinstance(value, str) else orjson.dumps(value).decode())
