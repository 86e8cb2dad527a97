"""Decodes raw records to records of events in plain Python, which the job runs in Spark's Python processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson
from pydantic import BaseModel

from contracts.errors import AUTHOR_ERRORS, described, message_of
from contracts.model.application import Application
from contracts.model.raw import EVENT_ID, Raw, sources_of
from contracts.records.numbers import NULL, unwritable
from contracts.records.record import Reason, RecordError
from contracts.records.refusal import large_key, oversized
from contracts.types.columns import without_none
from contracts.types.key import LARGEST_KEY, composite_key, shortened
from contracts.types.raw_record import FieldSource, RawRecord
from contracts.wire import LARGEST_HEAD, DeadLetter

LONGEST_DETAIL = 300
"""In characters: the message of a decoder's error may have any length."""
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
NUMBERS: dict[Any, type] = {int: int, float: float}


@dataclass(frozen=True)
class EncodedEvent:
    """An event as it is written."""

    key: bytes | None
    value: bytes


class RawDecoder:
    """Decodes the records of one raw source of an application."""

    def __init__(self, application: Application, raw: Raw) -> None:
        self._raw = raw
        self._largest = application.largest_record
        self._keys, self._key_name = application.state.keys, application.key_name
        self._sources = sources_of(raw, application.event)
        fields = application.event.model_fields
        self._numbers = {name: NUMBERS.get(without_none(fields[name].annotation)[0]) for name in self._sources}

    def decode(self, record: RawRecord) -> list[EncodedEvent]:
        """Return the events of a record. Raises RecordError for one that cannot be decoded."""
        if not record.value:
            raise RecordError(Reason.EMPTY)
        if len(record.value) > self._largest:
            raise RecordError(Reason.OVERSIZED, oversized(len(record.value), self._largest))
        own = {name: self._read(name, source, record) for name, source in self._sources.items()}
        decoded = self._decoded(record)
        return [
            self._encoded(own | self._identity(own, fields, number, len(decoded)))
            for number, fields in enumerate(decoded)
        ]

    def _read(self, name: str, source: FieldSource, record: RawRecord) -> Any:
        try:
            value, kind = source.read(record), self._numbers[name]
            return kind(value) if kind and isinstance(value, str) else value
        except ValueError as error:
            raise _undecodable(f"{name}: {message_of(error)}") from error

    def _decoded(self, record: RawRecord) -> list[dict[str, Any]]:
        """The fields that the author's function gives, of each event."""
        try:
            decoded = self._raw.decode(record)
            several = [decoded] if isinstance(decoded, Mapping | BaseModel) else list(decoded or ())
            return [
                event.model_dump(exclude_none=True) if isinstance(event, BaseModel) else dict(event)
                for event in several
            ]
        except ValueError as error:
            raise _undecodable(message_of(error) or described(error)) from error
        except AUTHOR_ERRORS as error:  # one record must not stop all others
            raise _undecodable(described(error)) from error

    @staticmethod
    def _identity(own: Mapping[str, Any], fields: dict[str, Any], number: int, events: int) -> dict[str, Any]:
        """The fields of one of several events, each with an id of its own."""
        several = {EVENT_ID: f"{own[EVENT_ID]}/{number}"} if events > 1 and EVENT_ID in own else {}
        return several | fields

    def _encoded(self, event: dict[str, Any]) -> EncodedEvent:
        parts = [event.get(name) for name in self._keys]
        if missing := [name for name, part in zip(self._keys, parts, strict=True) if not isinstance(part, str)]:
            raise _undecodable(f"{missing[0]} is no text, and is of the key")
        try:
            value = orjson.dumps(event, default=_plain, option=OPTIONS)
        except TypeError as error:
            raise _undecodable(str(error)) from error
        if NULL in value and (problem := next(unwritable(event), None)):
            raise _undecodable(f"{problem.field} {problem.detail}")
        if len(value) > self._largest:
            raise RecordError(Reason.OVERSIZED, f"the event has {oversized(len(value), self._largest)}")
        key = composite_key(*cast("list[str]", parts))
        if len(encoded := key.encode()) > LARGEST_KEY:  # one of a megabyte could not be written
            raise _undecodable(large_key(self._key_name, key))
        return EncodedEvent(encoded, value)


def refused(record: RawRecord, error: RecordError) -> EncodedEvent:
    """Return the dead letter of a record that cannot be decoded, under the record's key."""
    dead_letter = DeadLetter.of(record, error.reason, error.detail, head=_head(record.value))
    return EncodedEvent(shortened(record.key), dead_letter.encode())


def _undecodable(detail: str) -> RecordError:
    return RecordError(Reason.UNDECODABLE, detail[:LONGEST_DETAIL])


def _plain(value: Any) -> Any:
    """Convert values that orjson does not support: non-contiguous arrays and numbers of numpy."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is no JSON")


def _head(value: bytes) -> str:
    """The beginning of a value: as text where it is one, or else in hexadecimal digits."""
    try:
        return value.decode()[:LARGEST_HEAD]
    except UnicodeDecodeError:
        return f"0x{value[: LARGEST_HEAD // 2 - 1].hex()}"
