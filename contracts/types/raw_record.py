"""A raw record, as a source sends it, and the sources of an event's fields in it."""

import struct
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from typing_extensions import override

from contracts.errors import DeclarationError
from contracts.types.declaration import Declaration
from contracts.types.quantize import EPOCH, MICROSECOND


@dataclass(frozen=True)
class RawRecord:
    """A record of a raw topic. Of several headers of one name the last one counts.

    A record that a redrive sent again has the `timestamp` and the `origin` that it had at first, so a decoder gives the
    events that it would have given then.
    """

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes
    headers: Mapping[str, bytes] = field(default_factory=dict)
    redriven_from: str | None = None
    """The position of the record that this one repeats, if a redrive sent it."""

    @property
    def origin(self) -> str:
        """The first position of the record, `topic/partition/offset`, which only its repetitions share."""
        return self.redriven_from or f"{self.topic}/{self.partition}/{self.offset}"


class FieldSource(Declaration):
    """The source of a field of the event."""

    written_as = "FromKey(), FromHeader('name') or so"

    @abstractmethod
    def read(self, record: RawRecord) -> Any:
        """Return the value of a record: a text, a number or a time. Raises ValueError if there is none."""


@dataclass(frozen=True)
class FromKey(FieldSource):
    """The key of the record, a text in UTF-8."""

    @override
    def read(self, record: RawRecord) -> str:
        if record.key is None:
            raise ValueError("the record has no key")
        return _decoded(record.key, "the key")


@dataclass(frozen=True)
class FromHeader(FieldSource):
    """A header of the record, a text in UTF-8. With `unit` it is a number of such units since 1970, in digits."""

    name: str
    unit: timedelta | None = None

    def __post_init__(self) -> None:
        _check_unit(f"FromHeader({self.name!r})", self.unit)

    @override
    def read(self, record: RawRecord) -> str | datetime:
        if (value := record.headers.get(self.name)) is None:
            raise ValueError(f"the record has no header {self.name!r}")
        written = _decoded(value, f"the header {self.name!r}")
        if self.unit is None:
            return written
        try:
            return _time(int(written), self.unit)
        except ValueError as error:
            raise ValueError(f"the header {self.name!r} is no time") from error


@dataclass(frozen=True)
class FromTimestamp(FieldSource):
    """The timestamp of the record: when the broker first received it."""

    @override
    def read(self, record: RawRecord) -> datetime:
        return record.timestamp


@dataclass(frozen=True)
class FromOrigin(FieldSource):
    """The origin of the record, `topic/partition/offset`: the same however often it is sent again or decoded."""

    @override
    def read(self, record: RawRecord) -> str:
        return record.origin


@dataclass(frozen=True)
class FromValue(FieldSource):
    """One value inside the record's value: at byte `at`, in a format of Python's `struct`, such as `<q` or `16s`.

    A text ends at its first zero byte. With `unit`, a whole number is the number of such units since 1970.
    """

    format: str
    at: int = 0
    unit: timedelta | None = None

    def __post_init__(self) -> None:
        where = f"FromValue({self.format!r}, at={self.at})"
        _check_unit(where, self.unit)
        try:
            values = self._struct.unpack(bytes(self._struct.size))
        except struct.error as error:
            raise DeclarationError(where, str(error), "Write a format of one value, such as '<q' or '16s'") from error
        if len(values) != 1 or self.at < 0:
            raise DeclarationError(where, "is not one value", "Write a format of one value, such as '<q' or '16s'")
        if self.unit is not None and not isinstance(values[0], int):
            raise DeclarationError(where, "counts units, and is no whole number", "Write a format such as '<q'")

    @cached_property
    def _struct(self) -> struct.Struct:
        return struct.Struct(self.format)

    @override
    def read(self, record: RawRecord) -> Any:
        if len(record.value) < self.at + self._struct.size:
            raise ValueError(f"the value ends after {len(record.value)} bytes, within what comes before the samples")
        (value,) = self._struct.unpack_from(record.value, self.at)
        if isinstance(value, bytes):
            return _decoded(value.split(b"\0", 1)[0], f"the text at byte {self.at}")
        return value if self.unit is None else _time(value, self.unit)


def _check_unit(where: str, unit: timedelta | None) -> None:
    if unit is not None and unit < MICROSECOND:
        raise DeclarationError(where, f"the unit is {unit}", "Write unit=timedelta(milliseconds=1)")


def _time(number: int, unit: timedelta) -> datetime:
    try:
        return EPOCH + number * unit
    except OverflowError as error:
        raise ValueError(f"{number} is no time") from error


def _decoded(value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} is not UTF-8") from error
