"""Lifts decoded records to deltas, rows of the columns that the merge reads, or to dead letters.

A dead letter passes through the state as a delta with a window of its own. So it needs no second query and no second
decoding, and reaches its topic exactly when its record is committed; it costs a row of state that expires with its
lifetime. In a replay it has no time, because the timestamp of a record that cannot be read may be of any year, and
would expire every window; it then stays in the state.
"""

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.model.emit import Emit
from contracts.model.tracing import FIELD, carried_sql
from contracts.model.windows import last_window_start_sql, overlap, window_starts_sql
from contracts.records.decode import ANSWER_IDENTITY, LATER_EPOCH
from contracts.records.record import HEARTBEAT_KEY, Reason
from contracts.records.shape import feedback_shape
from contracts.types.columns import text
from contracts.types.filters import Filter
from contracts.types.key import shortened_sql
from contracts.wire import LARGEST_HEAD, Answer
from contracts.wire.partition import partition_sql
from contracts.wire.window_key import PATTERN
from spark_app.query import checks
from spark_app.query.columns import (
    CLOCK,
    DEAD_LETTER,
    DELTA_ID,
    DEVICE_ID,
    DEVICE_PARTITION,
    EVENT_OFFSET,
    FIRST_SEEN,
    PLACE,
    REASON,
    RECORD_OFFSET,
    RECORD_PARTITION,
    RECORD_TIME,
    RECORD_TOPIC,
    TEXT,
    answer_column,
    delta_types,
    event_column,
    event_fields,
    field_column,
)
from spark_app.query.decode import decoded, refused
from spark_app.query.observations import observe_filtered

_ANSWER = ", ".join(
    f"unix_micros({field_column(name)})" if name == "ts" else field_column(name) for name in ANSWER_IDENTITY
)
DELTA_IDS = {
    "event": f"concat('event/', {field_column('event_id')})",
    "feedback": f"concat_ws('/', 'feedback', {_ANSWER})",
    "refused": "concat_ws('/', 'refused', topic, partition, offset)",
    # The length comes first, so that no two pairs of device and name are equal as text.
    "digest": "unhex(md5(concat_ws('/', CAST(length(device_id) AS STRING), device_id, delta_id)))",
}
"""The expressions of a delta's name, by its origin, and of the digest of device and name."""
JOB_CLOCK = "timestamp_millis(CAST(reflect('java.lang.System', 'currentTimeMillis') AS BIGINT))"
"""The job's clock in real-time mode, read for each record. current_timestamp() is the time at which the batch began: in
a micro-batch, whose records are older than that, it is the same when a killed job's batch runs again."""
OWN_OFFSET = f"CASE WHEN partition = {PLACE} THEN offset END"
IS_HEARTBEAT = f"value IS NULL AND coalesce(startswith(key, X'{HEARTBEAT_KEY.hex()}'), false)"
"""The row of a heartbeat, which is neither a device's delta nor a dead letter."""
LEAD = timedelta(days=36_500)
"""How far the rows of heartbeats are ahead of all others: only they move the watermark, which is delayed by as much."""
TIMESTAMP_FORMAT = {"timestampFormat": PATTERN}
BEFORE_1970 = "ts: must be after 1970-01-01T00:00:00Z, as the time of a record"
"""The detail of an event whose record cannot have its time: clients of Kafka take zero for the present."""
NO_HEARTBEATS = b""
"""The key of no heartbeat: the watermark does not move."""


def events(
    records: DataFrame, application: Application, epoch: int, partitions: int, heartbeats: bytes = NO_HEARTBEATS
) -> DataFrame:
    """Return the deltas of the topic of events. `epoch` is the epoch of the dead letters.

    Only heartbeats whose key begins with `heartbeats` have a time.
    """
    state = application.state
    fields = decoded(_timed(records, application), application.event_shape, application)
    fields = _passing(fields, state.where)
    fields = fields.withColumn(REASON, checks.checked(checks.event_cases(application)))
    values = {event_column(name): field_column(name) for name in ("ts", *event_fields(application))}
    key = checks.event_key(application)
    fields = _placed(fields, application, key, partitions)
    placed = {} if state.is_windowed else {DEVICE_PARTITION: PLACE, EVENT_OFFSET: OWN_OFFSET}
    own = values | placed | _context(application)
    dead_start = _dead_start(application, heartbeats)
    identity = _identity(key, _start(application), dead_start, application, DELTA_IDS["event"])
    if not overlap(state):
        return _deltas(fields, application, identity, own, epoch)
    identity[FIRST_SEEN] = _either(_open_starts(application), f"array({dead_start})")
    return _deltas(fields, application, identity, own, epoch).withColumn(FIRST_SEEN, F.explode(FIRST_SEEN))


def checked_events(rows: DataFrame, application: Application) -> DataFrame:
    """Return decoded events with the reason of refusal: rows that have no key and no time, so they have the event's.

    A row without a time that a record can have is refused, with the present as its time.
    """
    fields = decoded(rows, application.event_shape, application)
    stamp = f"unix_millis({checks.TS})"
    time = F.expr(f"CASE WHEN {stamp} > 0 THEN {checks.TS} ELSE current_timestamp() END")
    fields = fields.withColumns({"timestamp": time, "key": F.expr(f"CAST({checks.event_key(application)} AS BINARY)")})
    too_early = (f"{stamp} <= 0", refused(Reason.INVALID_FIELD, text(BEFORE_1970)))
    return _timed(fields, application).withColumn(REASON, checks.checked([too_early, *checks.event_cases(application)]))


def feedback(
    records: DataFrame, application: Application, epoch: int, partitions: int, heartbeats: bytes = NO_HEARTBEATS
) -> DataFrame:
    """Return the deltas of the topic of feedback, for a state of this epoch. `heartbeats` as in `events`."""
    fields = decoded(_timed(records, application), feedback_shape(application), application)
    own_epoch, status, enrichment = (field_column(name) for name in ("epoch", "status", "enrichment"))
    fields = fields.withColumn(own_epoch, F.expr(f"coalesce({own_epoch}, 0L)"))
    names = application.by_recorded_name
    has_result = " ".join(f"WHEN {text(name)} THEN {field_column('result')}.`{name}` IS NOT NULL" for name in names)
    unlike = f"({status} = 'result') != coalesce(CASE {enrichment} {has_result} END, false)"
    later = f"{own_epoch} > {epoch}L"
    invalid = (
        f"coalesce({REASON}, CASE WHEN {unlike} THEN {refused(Reason.INVALID_FIELD, text('result'))}"
        f" WHEN {later} THEN {refused(Reason.INVALID_FIELD, text(LATER_EPOCH))} END)"
    )
    fields = fields.withColumn(REASON, F.expr(invalid))
    fields = fields.withColumn(REASON, checks.checked(checks.feedback_cases(application)))
    answers = {answer_column(enrichment.name): _answer(name) for name, enrichment in names.items()}
    key, start = field_column(DEVICE_ID), field_column(FIRST_SEEN)
    fields = _placed(fields, application, key, partitions)
    placed = {} if application.state.is_windowed else {DEVICE_PARTITION: PLACE}
    identity = _identity(key, start, _dead_start(application, heartbeats), application, DELTA_IDS["feedback"])
    return _deltas(fields, application, identity, answers | placed | _context(application), epoch)


def _timed(records: DataFrame, application: Application) -> DataFrame:
    """Add the clock. The job's limits the broker's, so that a broker's clock that is ahead expires no state."""
    own = JOB_CLOCK if application.emit is Emit.EVENT else "current_timestamp()"
    return records.withColumn(CLOCK, F.expr(f"least(timestamp, {own})"))


def _passing(events: DataFrame, where: Filter | None) -> DataFrame:
    """Return the decoded events, without the events of a valid shape that the filter of the state excludes."""
    if where is None:
        return events
    is_filtered = f"{REASON} IS NULL AND NOT coalesce({where.sql(field_column)}, false)"
    return observe_filtered(events, is_filtered).where(f"NOT ({is_filtered})")


def _placed(fields: DataFrame, application: Application, key: str, partitions: int) -> DataFrame:
    """Add the partition of the device. A record may be in another one, if its producer knew fewer partitions."""
    if application.state.is_windowed:
        return fields
    return fields.withColumn(PLACE, F.expr(f"CASE WHEN {REASON} IS NULL THEN {partition_sql(key, partitions)} END"))


def _context(application: Application) -> dict[str, str]:
    return {FIELD: carried_sql(field_column(FIELD))} if application.traced else {}


def _answer(name: str) -> str:
    fields = ", ".join(f"{field_column(name)} AS {name}" for name in Answer.model_fields if name != "result")
    whole = f"struct({fields}, {field_column('result')}.`{name}` AS result)"
    return f"CASE WHEN {field_column('enrichment')} = {text(name)} THEN {whole} END"


def _start(application: Application) -> str:
    """The SQL of the start of an event's window; of the newest one where windows overlap."""
    state = application.state
    is_given = not state.is_windowed
    return field_column(FIRST_SEEN) if is_given else f"timestamp_micros({last_window_start_sql(state, checks.TS)})"


def _open_starts(application: Application) -> str:
    """The SQL of the starts of an event's windows that are not over, an array."""
    is_over = checks.is_over(application, "unix_micros(start)")
    return f"filter({window_starts_sql(application.state, checks.TS)}, start -> NOT {is_over})"


def _identity(key: str, start: str, dead_start: str, application: Application, delta_id: str) -> dict[str, str]:
    """The SQL of the columns that identify a delta or a dead letter. Without deduplication there is no delta id."""
    dead_key = f"CASE WHEN NOT ({IS_HEARTBEAT}) THEN {shortened_sql('key')} END"
    window = {DEVICE_ID: _either(key, dead_key), FIRST_SEEN: _either(start, dead_start)}
    return window | ({DELTA_ID: _either(delta_id, DELTA_IDS["refused"])} if application.deduplicate else {})


def _dead_start(application: Application, heartbeats: bytes) -> str:
    """The SQL of the time of a dead letter, and of a heartbeat: one of another run of a job has none."""
    if application.topics.replay:
        return "CAST(NULL AS TIMESTAMP)"
    if not heartbeats:
        return f"CASE WHEN NOT ({IS_HEARTBEAT}) THEN {CLOCK} END"
    written = f"try_cast(CAST(substring(key, {len(heartbeats) + 1}) AS STRING) AS BIGINT)"
    ahead = f"greatest({written} - unix_millis(timestamp), 0L)"  # the broker's clock may be behind the job's
    time = f"timestamp_millis({written} - {ahead} + {LEAD // timedelta(milliseconds=1)}L)"
    is_own = f"startswith(key, X'{heartbeats.hex()}')"
    return f"CASE WHEN NOT ({IS_HEARTBEAT}) THEN {CLOCK} WHEN {is_own} THEN {time} END"


def _either(valid: str, dead: str) -> str:
    return f"CASE WHEN {REASON} IS NULL THEN {valid} ELSE {dead} END"


def _deltas(
    fields: DataFrame, application: Application, identity: dict[str, str], own: dict[str, str], epoch: int
) -> DataFrame:
    """Return deltas of the valid records and dead letters of the others, with the same columns for every topic."""
    own = own | {RECORD_TOPIC: "topic", RECORD_PARTITION: "partition", RECORD_OFFSET: "offset"}
    carried = [
        F.expr(f"CASE WHEN {REASON} IS NULL THEN {own[c]} END" if c in own else f"CAST(NULL AS {kind})").alias(c)
        for c, kind in delta_types(application).items()
    ]
    refusal, record_time = dead_letter(epoch).alias(DEAD_LETTER), F.col("timestamp").alias(RECORD_TIME)
    identified = (F.expr(sql).alias(name) for name, sql in identity.items())
    deltas = fields.select(*identified, refusal, record_time, *carried)
    return deltas.withColumn(DELTA_ID, F.expr(DELTA_IDS["digest"])) if application.deduplicate else deltas


def dead_letter(epoch: int | None) -> Column:
    """Return the JSON of the dead letter of a refused record; null for every other one."""
    head = F.expr(f"left(coalesce({TEXT}, CAST(left(value, {LARGEST_HEAD}) AS STRING)), {LARGEST_HEAD})").alias("head")
    generation = F.lit(epoch).cast("long").alias("epoch")
    reason = (f"{REASON}.reason", f"{REASON}.detail")
    content = F.struct(*reason, "topic", "partition", "offset", "timestamp", generation, head)
    return F.when(F.expr(f"{REASON} IS NOT NULL AND NOT ({IS_HEARTBEAT})"), F.to_json(content, TIMESTAMP_FORMAT))
