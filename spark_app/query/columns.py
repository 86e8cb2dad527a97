"""The columns of the job's rows: each name is declared here once, with its meaning.

A column with a value of the application has a prefix for the stage of the row, so that a field may have any name. The
names of a delta's columns are in the expressions of the state model: a change of one invalidates every checkpoint.
"""

from contracts.model.application import Application
from contracts.model.emit import Emit
from contracts.model.tracing import FIELD
from contracts.types.columns import sql_type, struct_type
from contracts.wire import Answer

# A record: Kafka's key, value, topic, partition, offset and timestamp, and what decoding adds.
CLOCK = "clock"
"""The broker's time of the record, or the job's where that is earlier: the record's times are compared with it."""
TEXT = "text"
"""The value as text; null for one that is too large."""
PLACE = "place"
"""The partition of the device, by its key."""
REASON = "reason"
"""The reason and the detail of a refusal, a struct; null for a valid record."""

# A delta: one valid record, or one dead letter.
DEVICE_ID = "device_id"
"""The key of the state; of a dead letter its record's key, null for a heartbeat."""
FIRST_SEEN = "first_seen"
"""The start of the window; of a dead letter the clock, or null in a replay."""
DEAD_LETTER = "dead_letter"
"""The JSON of a dead letter; null for every other row."""
DELTA_ID = "delta_id"
"""The digest of the device and of the delta's name: equal for copies of one delta."""
RECORD_TIME = "record_time"
"""Kafka's timestamp of the record."""
MEASURED_AT = "ts"
"""The time of the measurement; null in an answer."""
DEVICE_PARTITION = "device_partition"
"""The partition of the device; null in a dead letter. A windowed state has neither this nor the next two: the events of
its keys are in any partition."""
RECORD_PARTITION = "record_partition"
"""The partition of an event or an answer; null in a dead letter."""
EVENT_OFFSET = "events_offset"
"""The offset of an event in the partition of its device; null in an answer, and in an event of another partition, where
it was written before partitions were added. `event_offset` would be the column of a field `offset`."""
RECORD_TOPIC = "record_topic"
"""The topic of an event or an answer. A delta has this and the next one only for a processor."""
RECORD_OFFSET = "record_offset"
"""The offset of an event or an answer."""

WINDOW = [DEVICE_ID, FIRST_SEEN]
"""The columns of a window's key."""
DEDUPLICATION = [FIRST_SEEN, DELTA_ID]
"""The columns in which copies of a delta are equal, and the time after which Spark may forget it. The digest is short,
because the store of an hour's deltas is the larger one, and pays for every byte of its keys."""


def field_column(name: str) -> str:
    """Return the column of a decoded record's field."""
    return f"f_{name}"


def given_column(name: str) -> str:
    """Return the column with whether a decoded record has a value for this optional time, a valid one or not."""
    return f"given_{name}"


def event_column(name: str) -> str:
    """Return the column of a delta with this field of the event."""
    return MEASURED_AT if name == "ts" else f"event_{name}"


def lifted_column(name: str) -> str:
    """Return the column of a delta with what the reducer of this field of the state merges, if that is no field."""
    return f"lifted_{name}"


def answer_column(name: str) -> str:
    """Return the column of a delta, and of the merged state, with the answer of this enrichment."""
    return f"answer_{name}"


def state_column(name: str) -> str:
    """Return the column of the merged state with this field."""
    return f"state_{name}"


def state_key(application: Application) -> list[str]:
    """Return the columns of the state's key. With `Emit.CLOSE` no dead letter passes through the state.

    A processor's state has none of them: dead letters pass it by.
    """
    return WINDOW if application.emit is Emit.CLOSE or application.processor else [*WINDOW, DEAD_LETTER]


def event_fields(application: Application) -> list[str]:
    """Return the fields of the event that the state reads, other than `ts`. A processor reads all."""
    if application.processor is not None:
        return sorted(application.event.model_fields.keys() - {"ts"})
    filters = (reducer.where for reducer in application.reducers.values() if reducer.where is not None)
    return sorted({*application.sources.values()}.union(*(condition.fields for condition in filters)) - {"ts"})


def delta_types(application: Application) -> dict[str, str]:
    """Return the SQL types of a delta's columns other than its window, identity and record time.

    A column is null in a delta of the other topic.
    """
    fields = application.event.model_fields
    values = {event_column(name): sql_type(fields[name].annotation, name) for name in event_fields(application)}
    answers = {
        answer_column(enrichment.name): answer_type(application, enrichment.name)
        for enrichment in application.enrichments
    }
    context = {FIELD: "STRING"} if application.traced else {}
    placed = {DEVICE_PARTITION: "INT", RECORD_PARTITION: "INT", EVENT_OFFSET: "BIGINT"}
    origin = {} if application.state.is_windowed else placed
    if application.processor is not None:
        origin = origin | {RECORD_TOPIC: "STRING", RECORD_PARTITION: "INT", RECORD_OFFSET: "BIGINT"}
    return {MEASURED_AT: "TIMESTAMP"} | origin | values | answers | context


def answer_type(application: Application, name: str) -> str:
    """Return the SQL type of an answer of this enrichment."""
    types = {
        field: sql_type(info.annotation, field) for field, info in Answer.model_fields.items() if field != "result"
    } | {"result": struct_type(application.by_name[name].result, name)}
    return f"STRUCT<{', '.join(f'{field}: {kind}' for field, kind in types.items())}>"
