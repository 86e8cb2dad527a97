"""Hostile records: what devices, bugs and attackers send. Each is a value of the topic of events."""

import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson

from contracts.records.record import RecordError
from contracts.records.shape import read
from tests.everything import NOW, Thing

LARGEST = 256 * 1024

GOOD: dict[str, Any] = {
    "device_id": "d",
    "event_id": "1",
    "first_seen": NOW - timedelta(minutes=5),
    "ts": NOW - timedelta(minutes=1),
}
LITERALS = [
    "null", "true", "false", "0", "-0", "1", "-1", "1.0", "1.5", "-1e3", "1e400", "-1e400", "1E5", "01", "+1",
    ".5", "1.", "0x10", "NaN", "Infinity", "-Infinity", "nan", '""', '"1"', '"NaN"', '"Infinity"', '"true"',
    '" "', '"\\u0000"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"', '"\\ud800x"', '"\\\\ud800"',
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551616", "1" * 400, "1" * 1100, "[]", "[1]", "[[]]", "{}", '{"lat":1}', '{"lat":"1"}',
    '{"lat":null}', "1e-7", "1.50", "-12345678.9", "1e-400", "0.1", "1234567890.123456789", "123456789012345678",
    '"é\\u00e9"', '[1.50, "ä"]', '{"lat":1,"lat":2}', '{"lat":1e400}', '{"lon":2}', '[{"lat":1}]',
    "'a'", "a", "undefined", '"a', 'a"', '"\t"', '"\n"', '"\\x"', '"\\u12"', "// x", "/* x */ 1", "1 2", "1,2",
    "True", "None",
]  # fmt: skip
TIMES = [
    "2026-01-01T11:55:00Z", "2026-01-01T11:55:00+00:00", "2026-01-01T13:55:00+02:00", "2026-01-01T11:55:00.1Z",
    "2026-01-01T11:55:00.123456Z", "2026-01-01T11:55:00.1234567Z", "2026-01-01T11:55:00,5Z",
    "2026-01-01 11:55:00Z", "2026-01-01T11:55:00", "2026-01-01T11:55Z", "2026-01-01", "2026",
    "20260101T115500Z", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z",
    "2026-01-01T11:60:00Z", "2026-01-01T11:55:60Z", "2026-01-01T11:55:00z", "2026-01-01t11:55:00Z",
    " 2026-01-01T11:55:00Z", "2026-01-01T11:55:00Z ", "2026-01-01T11:55:00Z\\n", "now", "today", "epoch", "",
    "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z",
    "2026-01-01T11:55:00+18:00", "2026-01-01T11:55:00+17:59", "2026-01-01T11:55:00-17:59",
    "2026-01-01T11:55:00+24:00", "2026-01-01T11:55:00+0000", "2026-01-01T11:55:00 UTC",
    "2026-01-01T11:55:00[Europe/Berlin]", "٢٠٢٦-01-01T11:55:00Z", "1767268500", "2026-01-01T14:01:00Z",
    "2036-01-01T00:00:00Z", "2016-01-01T00:00:00Z", "2026-01-01T12:00:59Z", "2026-01-01T12:01:01Z",
    "2026-01-01T10:50:00Z", "2026-01-01T10:49:59Z", "-2026-01-01T11:55:00Z",
    "9999-12-31T23:59:59-17:59", "9999-12-31T23:59:59+17:59", "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-00:00", "9999-12-31T00:00:00-00:01", "9999-12-30T23:59:59.999999-17:59",
    "0001-01-01T00:00:00+17:59", "0001-01-01T00:00:00-17:59", "0001-01-01T00:00:00+00:00",
    "0001-01-01T23:59:59+00:01", "0001-01-02T00:00:00+17:59", "1582-10-10T00:00:00Z", "1900-02-29T00:00:00Z",
]  # fmt: skip

NO_EVENT = (b"null", b"1", b'"a"', b"[]", b"{}", b" {} ", b"{", b"}", b"}{", b"<html>", b"\x00", b'{"a":1},"q":{}')
TAILS = (
    b" ", b"\n", b"\t\r\n", b"x", b"{}", b",", b",{}", b"]", b'],"r":[', b"\x00", b"//", b"\xef\xbb\xbf", b"\x0b",
)  # fmt: skip
"""Bytes before or after a whole event."""
TEXTS = (b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf0\x9f\x98\x80"', b"'d'", b'"\x01"')
KEYS = (b"device_id", b'"DEVICE_ID"', b'"device_id":"first","device_id"')


def good(**changes: Any) -> bytes:
    """A valid event with these changes."""
    return orjson.dumps(GOOD | changes)


def replaced(name: str, literal: str) -> bytes:
    """A valid event in which one field is this text, put in as it is."""
    return good(**{name: "@@"}).replace(b'"@@"', literal.encode())


def records() -> Iterator[bytes | None]:
    """All hostile records, with good ones among them."""
    yield from (None, b"", good(), good(extra={"a": [1]}), good(speed=1.5, load=3, name="a", on=True))
    for name in ("device_id", "event_id", "speed", "load", "name", "on", "at"):
        yield from (replaced(name, literal) for literal in LITERALS)
    for name in ("first_seen", "ts", "due"):
        yield from (replaced(name, f'"{time}"') for time in TIMES)
        yield from (replaced(name, literal) for literal in ("null", "0", "1767268500", "true", "[]", "{}"))
    yield from _broken()
    yield from _cut()
    for name in GOOD:
        yield orjson.dumps({key: value for key, value in GOOD.items() if key != name})
    yield from (good(device_id="x" * n) for n in (1, 500, 501, 100_000))
    yield from (good(device_id="ä" * n) for n in (250, 251))
    yield from (good(load=n) for n in (-101, -100, 100_000, 100_001))
    yield from (good(extra="x" * n) for n in (260_000, 262_000, 263_000, 1_000_000))


def keyed() -> Iterator[tuple[bytes | None, bytes | None]]:
    """All hostile records, those that give a device under its key, and good ones under hostile keys."""
    for value in records():
        yield key(value), value
    for wrong in (None, b"", b"D", b"d\0", b"\xff", b"\xc3" * 300, b"x" * 300, "é".encode() * 300):
        yield wrong, good()
        yield wrong, good(device_id="ä" * 200)


def key(value: bytes | None) -> bytes:
    """The key of the device that a record names, if it names one."""
    try:
        return str(read(Thing, value, LARGEST)["device_id"]).encode()
    except RecordError:
        return b"d"


def _broken() -> Iterator[bytes]:
    whole = good()
    yield from (*NO_EVENT, b"[" + whole + b"]")
    yield from (whole + tail for tail in TAILS)
    yield from (tail + whole for tail in TAILS)
    yield whole[:-1] + b'}],"end":1,"r":[{}'
    yield from (whole.replace(b'"d"', text) for text in TEXTS)
    yield from (whole.replace(b'"device_id"', key) for key in KEYS)
    yield whole.decode().encode("utf-16")
    yield from (good(extra="@").replace(b'"@"', b"[" * n + b"]" * n) for n in (10, 100, 500, 900, 1100, 5000))
    yield from (good(extra="@").replace(b'"@"', b'{"a":' * n + b"1" + b"}" * n) for n in (10, 500, 1100))
    yield from (good(**{"n" * n: 1}) for n in (1_000, 49_000, 60_000))


def _cut() -> Iterator[bytes]:
    whole = good(name="a", speed=1.0)
    yield from (whole[:end] for end in range(1, len(whole), 3))
    for place, wrong in itertools.product(range(0, len(whole), 11), (b"\x00", b'"', b"}", b"\xff")):
        yield whole[:place] + wrong + whole[place + 1 :]
