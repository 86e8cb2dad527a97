"""The keys of a windowed state's entries: the key of the state and the start of the window, in one ordered text.

They sort by key, then by window, so that the windows of a key are one range. A zero byte within a key is escaped, which
leaves the order of keys as it is.
"""

from __future__ import annotations

import struct

from contracts.types.key import LARGEST_KEY

NUMBER = struct.Struct(">Q")
OFFSET = 1 << 63
"""Added to a start, which may be negative, so that its bytes sort like the number."""
FIRST_START, LAST_START = -OFFSET, OFFSET - 1
ZERO, ESCAPED, END, BOUND = b"\0", b"\0\xff", b"\0\0", b"\0\1"
SUFFIX_SIZE = len(END) + NUMBER.size


def encode_key(key: str) -> bytes | None:
    """Return the bytes of a key; None for a text that is the key of no record."""
    try:
        name = key.encode()
    except UnicodeEncodeError:
        return None
    return name if len(name) + name.count(ZERO) <= LARGEST_KEY else None


def window_entry_key(name: bytes, window_start: int) -> bytes:
    """Return the entry's key of a window of a key."""
    return windows_prefix(name) + pack_start(window_start)


def windows_prefix(name: bytes) -> bytes:
    """Return what the entries' keys of all windows of a key begin with, and no others do."""
    return name.replace(ZERO, ESCAPED) + END


def windows_end(name: bytes) -> bytes:
    """Return a bound after the entries' keys of all windows of a key, and before those of the next key."""
    return name.replace(ZERO, ESCAPED) + BOUND


def key_prefix(prefix: bytes) -> bytes:
    """Return what the entries' keys of all keys with this prefix begin with."""
    return prefix.replace(ZERO, ESCAPED)


def split_entry_key(entry_key: bytes) -> tuple[bytes, int]:
    """Return the key and the window's start."""
    return entry_key[:-SUFFIX_SIZE].replace(ESCAPED, ZERO), unpack_start(entry_key[-NUMBER.size :])


def pack_start(window_start: int) -> bytes:
    """Return a start as bytes that sort like the number."""
    return NUMBER.pack(window_start + OFFSET)


def unpack_start(data: bytes) -> int:
    """Return the start that `pack_start` packed."""
    return NUMBER.unpack(data)[0] - OFFSET  # type: ignore[no-any-return]
