"""Raw sources: records that the job decodes to events, such as chunks of a waveform."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from contracts.errors import DeclarationError
from contracts.model.event import BaseEvent
from contracts.model.function import check_function
from contracts.types.columns import without_none
from contracts.types.declaration import Declaration
from contracts.types.packed import PackedIntegers
from contracts.types.raw_record import FieldSource, FromOrigin, FromTimestamp, FromValue, RawRecord

EVENT_ID = "event_id"
Fields = Mapping[str, Any] | BaseModel
Decode = Callable[[RawRecord], Fields | Iterable[Fields] | None]


@dataclass(frozen=True)
class Raw(Declaration):
    """A topic of raw records that the job decodes, and writes to the topic of events.

        Raw("waveforms", PackedIntegers(bits=16, channels=("ecg",)), {"device_id": FromKey(), "ts": FromTimestamp()})

    `decode` is a `PackedIntegers`, or any pure function from a `RawRecord` to the fields of an event, or of several,
    or to None for no event; it raises ValueError for a record that it cannot decode, which becomes a dead letter.
    `fields` has the sources of the other fields. Without an entry, `event_id` is the position of the record, so that a
    record that is decoded again gives the same event. Needs the extra `stateloop[raw]`.
    """

    topic: str
    decode: Decode
    fields: Mapping[str, FieldSource] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_function(f"Raw({self.topic!r}, decode=…)", self.decode, "record")

    @property
    def name(self) -> str:
        """The name of the query that decodes it."""
        return f"raw-{self.topic}"


def check_raw(raw: Raw, event: type[BaseEvent]) -> None:
    """Check that the fields of a raw source are the event's. Raises DeclarationError."""
    declared = event.model_fields
    where, known = f"Raw({raw.topic!r})", ", ".join(declared)
    channels = raw.decode.channels if isinstance(raw.decode, PackedIntegers) else ()
    for name in (*raw.fields, *channels):
        if name not in declared:
            raise DeclarationError(where, f"{event.__name__} has no field {name!r}", f"Name one of these: {known}")
    for name, source in raw.fields.items():
        is_time = without_none(declared[name].annotation)[0] is datetime
        _check_source(f"{where}: {name}", source, is_time=is_time)
    if isinstance(raw.decode, PackedIntegers):
        _check_packed(where, raw, raw.decode, event)


def _check_source(where: str, source: FieldSource, *, is_time: bool) -> None:
    unit = getattr(source, "unit", None)
    if not is_time and (unit is not None or isinstance(source, FromTimestamp)):
        raise DeclarationError(where, "is no time", "Leave out the unit, or name a field of type AwareDatetime")
    if is_time and isinstance(source, FromValue) and unit is None:
        raise DeclarationError(where, "is a time", "Write FromValue('<q', unit=timedelta(milliseconds=1))")


def _check_packed(where: str, raw: Raw, packed: PackedIntegers, event: type[BaseEvent]) -> None:
    """All required fields have a source, and the fields of the channels are lists of numbers."""
    sources = {*raw.fields, *packed.channels, EVENT_ID}
    missing = [name for name, field in event.model_fields.items() if field.is_required() and name not in sources]
    if missing:
        problem = f"gives no {missing[0]!r}, which {event.__name__} requires"
        raise DeclarationError(where, problem, f"Write fields={{{missing[0]!r}: FromKey(), …}}")
    for name in packed.channels:
        inner, _ = without_none(event.model_fields[name].annotation)
        kind = without_none(get_args(inner)[0])[0] if get_origin(inner) is list else None
        if kind is not float and not (kind is int and packed.is_whole):
            write = f"Write `{name}: list[{'int' if packed.is_whole else 'float'}]` in {event.__name__}"
            raise DeclarationError(f"{where}: {name}", "is no list of the samples", write)


def sources_of(raw: Raw, event: type[BaseEvent]) -> dict[str, FieldSource]:
    """The sources of all fields that do not come from the decoder."""
    own = {EVENT_ID: FromOrigin()} if EVENT_ID in event.model_fields else {}
    return own | dict(raw.fields)
