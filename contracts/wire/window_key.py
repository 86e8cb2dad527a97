"""Keys of records that name a window: compaction then keeps the last record of each window, not of each device.

Records of one device stay in the device's partition, whatever their keys are, so they keep their order.
"""

from datetime import UTC, datetime

from contracts.types.columns import text

SEPARATOR = "@"
PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""Spark's pattern of the times on the wire, in a session whose time zone is UTC."""
SUFFIX_BYTES = len("@2026-05-01T08:00:00.000000Z")
"""The separator and the time have a fixed width, so the rest is the device, whatever characters it has."""
DERIVED_SEPARATOR = b"\x1f"
"""The separator of a derived state's key and the window: ASCII's unit separator."""


def window_key(device_id: str, window_start: datetime) -> bytes:
    """The record key of a window, for example `scooter-7@2026-05-01T08:00:00.000000Z`."""
    start = window_start.astimezone(UTC).replace(tzinfo=None)
    return f"{device_id}{SEPARATOR}{start.isoformat(timespec='microseconds')}Z".encode()


def window_key_sql(device_id: str, window_start: str) -> str:
    """The same in Spark SQL, of two columns."""
    return f"concat({device_id}, {text(SEPARATOR)}, date_format({window_start}, {text(PATTERN)}))"


def parse_window_key(key: bytes) -> tuple[str, datetime]:
    """Device and window start of a record key. Raises ValueError for a key that names no window."""
    device, suffix = key[:-SUFFIX_BYTES].decode(), key[-SUFFIX_BYTES:].decode()
    start = datetime.fromisoformat(suffix.removeprefix(SEPARATOR))
    if not device or start.tzinfo != UTC or window_key(device, start) != key:
        raise ValueError("names no window")
    return device, start


def derived_key(key: str, device_id: str, window_start: datetime) -> bytes:
    """The record key of the record that one window of a device derives for another key."""
    return key.encode() + DERIVED_SEPARATOR + window_key(device_id, window_start)
