"""Lift: from a decoded record to a delta, a row of the columns that the merge reads, or to a dead letter.

A dead letter passes through the state as a delta with a window of its own. So it needs no second query and no second
decoding, and reaches its topic exactly when its record is committed; it costs a row of state that expires with its
lifetime. In a replay it has no time, because the timestamp of a record that cannot be read may be of any year, and
would expire every window; it then stays in the state.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.model.tracing import FIELD, carried_sql
from contracts.records.decode import ANSWER_IDENTITY, LATER_EPOCH
from contracts.records.record import HEARTBEAT_KEY, LARGEST_HEAD, Reason
from contracts.records.refusal import JOB, STAMP, ahead_sql, late_sql, wrong_key_sql
from contracts.records.shape import feedback_shape
from contracts.types.columns import text
from contracts.types.key import composite_key_sql, shortened_sql
from contracts.types.quantize import MICROSECOND
from contracts.wire import Answer
from contracts.wire.window_key import PATTERN
from spark_app.columns import (
    CLOCK,
    DEAD_LETTER,
    DELTA_ID,
    DEVICE_ID,
    DEVICE_PARTITION,
    EVENT_OFFSET,
    FIRST_SEEN,
    REASON,
    RECORD_PARTITION,
    RECORD_TIME,
    TEXT,
    answer_column,
    delta_types,
    event_column,
    event_fields,
    field_column,
)
from spark_app.decode import decoded, refused

_ANSWER = ", ".join(
    f"unix_micros({field_column(one)})" if one == "ts" else field_column(one) for one in ANSWER_IDENTITY
)
DELTA_IDS = {
    "event": f"concat('event/', {field_column('event_id')})",
    "feedback": f"concat_ws('/', 'feedback', {_ANSWER})",
    "refused": "concat_ws('/', 'refused', topic, partition, offset)",
    # The length comes first, so that no two pairs of device and name are equal as text.
    "digest": "unhex(md5(concat_ws('/', CAST(length(device_id) AS STRING), device_id, delta_id)))",
}
"""The expressions of a delta's name, by its origin, and of the digest of device and name."""
CLOCK_SQL = "least(timestamp, timestamp_millis(CAST(reflect('java.lang.System', 'currentTimeMillis') AS BIGINT)))"
"""The job's clock limits the broker's, so that a broker's clock that is ahead expires no state. It is read for each
record; current_timestamp() would be the time at which the batch began."""
IS_HEARTBEAT = f"value IS NULL AND coalesce(key = X'{HEARTBEAT_KEY.hex()}', false)"
"""A heartbeat of the job becomes a row that is neither a device's delta nor a dead letter."""
TIMESTAMP_FORMAT = {"timestampFormat": PATTERN}


def events(records: DataFrame, application: Application, epoch: int) -> DataFrame:
    """Return the deltas of the topic of events. `epoch` is that of the dead letters."""
    fields = decoded(records.withColumn(CLOCK, F.expr(CLOCK_SQL)), application.event_shape, application)
    key = composite_key_sql(*map(field_column, application.state.keys))
    checked = fields.withColumn(REASON, _checked(application, application.key_name, key, ("first_seen", "ts")))
    values = {event_column(name): field_column(name) for name in ("ts", *event_fields(application))}
    own = {DEVICE_PARTITION: "partition", EVENT_OFFSET: "offset"} | values | _context(application)
    return _deltas(checked, application, key, DELTA_IDS["event"], own, epoch=epoch)


def feedback(records: DataFrame, application: Application, epoch: int) -> DataFrame:
    """Return the deltas of the topic of feedback, for a state of this epoch."""
    fields = decoded(records.withColumn(CLOCK, F.expr(CLOCK_SQL)), feedback_shape(application), application)
    own_epoch, status, enrichment = (field_column(name) for name in ("epoch", "status", "enrichment"))
    fields = fields.withColumn(own_epoch, F.expr(f"coalesce({own_epoch}, 0L)"))
    names = application.by_name
    given = " ".join(f"WHEN {text(name)} THEN {field_column('result')}.`{name}` IS NOT NULL" for name in names)
    unlike = f"({status} = 'result') != coalesce(CASE {enrichment} {given} END, false)"
    later = f"{own_epoch} > {epoch}L"
    invalid = (
        f"coalesce({REASON}, CASE WHEN {unlike} THEN {refused(Reason.INVALID_FIELD, text('result'))}"
        f" WHEN {later} THEN {refused(Reason.INVALID_FIELD, text(LATER_EPOCH))} END)"
    )
    fields = fields.withColumn(REASON, F.expr(invalid))
    key = field_column(DEVICE_ID)
    checked = fields.withColumn(REASON, _checked(application, DEVICE_ID, key, ("first_seen",)))
    answers = {answer_column(name): _answer(name) for name in names}
    return _deltas(checked, application, key, DELTA_IDS["feedback"], answers | _context(application), epoch=epoch)


def _context(application: Application) -> dict[str, str]:
    return {FIELD: carried_sql(field_column(FIELD))} if application.traced else {}


def _answer(name: str) -> str:
    fields = ", ".join(f"{field_column(one)} AS {one}" for one in Answer.model_fields if one != "result")
    whole = f"struct({fields}, {field_column('result')}.`{name}` AS result)"
    return f"CASE WHEN {field_column('enrichment')} = {text(name)} THEN {whole} END"


def _checked(application: Application, key_name: str, key: str, times: tuple[str, ...]) -> Column:
    """Return the reason, after the comparison of the record's key with its device and of its times with the clock."""
    # As numbers: an interval is added to a time by the calendar.
    skew, kept_for = (f"{duration // MICROSECOND}L" for duration in (application.skew, application.kept_for))
    whose = f"CASE WHEN {CLOCK} < timestamp THEN {text(JOB)} ELSE {text(STAMP)} END"
    cases = [
        (f"{REASON} IS NOT NULL", REASON),
        (
            f"NOT key <=> CAST({key} AS BINARY)",
            refused(Reason.WRONG_KEY, wrong_key_sql(key_name, "key", key)),
        ),
    ]
    for name in times:
        detail = ahead_sql(name, field_column(name), CLOCK, whose, application.skew)
        is_ahead = f"unix_micros({field_column(name)}) > unix_micros({CLOCK}) + {skew}"
        cases.append((is_ahead, refused(Reason.INCREDIBLE_TIME, detail)))
    detail = late_sql(field_column(FIRST_SEEN), CLOCK, whose, application.kept_for)
    cases.append(
        (f"unix_micros({CLOCK}) > unix_micros({field_column(FIRST_SEEN)}) + {kept_for}", refused(Reason.LATE, detail))
    )
    return F.expr(f"CASE {' '.join(f'WHEN {condition} THEN {reason}' for condition, reason in cases)} END")


def _deltas(  # noqa: PLR0913
    checked: DataFrame, application: Application, key: str, delta_id: str, own: dict[str, str], *, epoch: int
) -> DataFrame:
    """Return deltas of the valid records and dead letters of the others, with the same columns for every topic."""
    valid = {DEVICE_ID: key, FIRST_SEEN: field_column(FIRST_SEEN), DELTA_ID: delta_id}
    dead = {
        DEVICE_ID: f"CASE WHEN NOT ({IS_HEARTBEAT}) THEN {shortened_sql('key')} END",
        FIRST_SEEN: "CAST(NULL AS TIMESTAMP)" if application.topics.replay else CLOCK,
        DELTA_ID: DELTA_IDS["refused"],
    }
    identity = [F.expr(f"CASE WHEN {REASON} IS NULL THEN {valid[c]} ELSE {dead[c]} END").alias(c) for c in valid]
    own = own | {RECORD_PARTITION: "partition"}
    carried = [
        F.expr(f"CASE WHEN {REASON} IS NULL THEN {own[c]} END" if c in own else f"CAST(NULL AS {kind})").alias(c)
        for c, kind in delta_types(application).items()
    ]
    deltas = checked.select(
        *identity, _dead_letter(epoch).alias(DEAD_LETTER), F.col("timestamp").alias(RECORD_TIME), *carried
    )
    return deltas.withColumn(DELTA_ID, F.expr(DELTA_IDS["digest"]))


def _dead_letter(epoch: int) -> Column:
    head = F.expr(f"left(coalesce({TEXT}, CAST(left(value, {LARGEST_HEAD}) AS STRING)), {LARGEST_HEAD})").alias("head")
    generation = F.lit(epoch).cast("long").alias("epoch")
    reason = (f"{REASON}.reason", f"{REASON}.detail")
    content = F.struct(*reason, "topic", "partition", "offset", "timestamp", generation, head)
    return F.when(F.expr(f"{REASON} IS NOT NULL AND NOT ({IS_HEARTBEAT})"), F.to_json(content, TIMESTAMP_FORMAT))
