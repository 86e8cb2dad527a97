"""The records: 500 bytes each, determined by key and version alone, so that any answer can be checked."""

import re
from collections.abc import Iterator

STATE = "keys"
TOPIC = "snapshots"
SIZE = 500
FIRST = 1
"""The version that all keys have at first."""
STRIDE = 2_654_435_761
"""A prime: multiples of it, modulo any smaller number, are all numbers below that, in what looks like no order."""
_CHECK = re.compile(rb'"check":"(k\d{12}):(\d+)"')
_PAD = "x" * SIZE


def key(number: int) -> str:
    """The key of this number; redis-benchmark can write it, too."""
    return f"k{number:012}"


def value(number: int, version: int, began: str) -> bytes:
    """Return the snapshot of a key at this version, of the window that began then."""
    name = key(number)
    head = (
        f'{{"device_id":"{name}","first_seen":"{began}","version":{version},"as_of":"{began}",'
        f'"state":{{"check":"{name}:{version}","text":"'
    )
    return f'{head}{_PAD[: SIZE - len(head) - 3]}"}}}}'.encode()


def placed(index: int, count: int) -> int:
    """The number of the key at this place of the topic: in no order, as what compaction leaves."""
    return index * STRIDE % count


def all_keys(count: int, began: str) -> Iterator[tuple[str, bytes]]:
    """Each key's first record."""
    numbers = (placed(index, count) for index in range(count))
    return ((key(number), value(number, FIRST, began)) for number in numbers)


def checked(number: int, answer: bytes) -> int | None:
    """The version that an answer for a key has; None if it is not that key's record, whole."""
    match = _CHECK.search(answer)
    if match is None or match[1].decode() != key(number):
        return None
    version = int(match[2])
    return version if b'"version":%d,' % version in answer and b'"text":"xxx' in answer else None
