"""Lift: from a decoded record to a delta, a row of the columns that the merge reads. A refused record becomes a letter.

A dead letter takes the same way as a delta: it is a life of its own, whose key is the letter. So it needs no second
query and no second decoding, and reaches its topic exactly when its record is committed; it costs a row of state that
expires with its lifetime. Where a topic has the times of a replay, a letter has none: the stamp of a record that
cannot be read may be of any year, and would end every life. It then stays in the state.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.model.application import Application
from contracts.model.tracing import FIELD, carried_sql
from contracts.records.decode import ANSWER_IDENTITY, LATER_EPOCH
from contracts.records.record import HEARTBEAT_KEY, LARGEST_HEAD, Reason
from contracts.records.refusal import JOB, STAMP, ahead_sql, late_sql, wrong_key_sql
from contracts.records.shape import feedback_shape
from contracts.types.columns import sql_type, struct_type, text
from contracts.types.key import shortened_sql
from contracts.types.quantize import MICROSECOND
from contracts.wire import Answer
from contracts.wire.window_key import PATTERN
from spark_app.decode import decoded, refused

LIFE = ["device_id", "first_seen", "dead_letter"]
"""The key of the state. `dead_letter` is null but for letters."""
ONCE = ["first_seen", "delta_id"]
"""What tells a delta from its copies, and when it may be forgotten. A delta's id is the digest of its device and name:
the store of all of an hour is the larger one, and pays for every byte of its keys."""
_ANSWER = ", ".join("unix_micros(f_ts)" if name == "ts" else f"f_{name}" for name in ANSWER_IDENTITY)
DELTA_IDS = {
    "event": "concat('event/', f_event_id)",
    "feedback": f"concat_ws('/', 'feedback', {_ANSWER})",
    "refused": "concat_ws('/', 'refused', topic, partition, offset)",
    # With the length before it, no device can be named so that its delta looks like another's.
    "digest": "unhex(md5(concat_ws('/', CAST(length(device_id) AS STRING), device_id, delta_id)))",
}
"""The expressions of a delta's name, by its origin, and of the digest of device and name."""
CLOCK = "least(timestamp, timestamp_millis(CAST(reflect('java.lang.System', 'currentTimeMillis') AS BIGINT)))"
"""The broker's time of a record, or the job's where that is earlier: a broker's clock that is ahead expires no state.
It is taken for each record; current_timestamp() would be the time at which the batch began."""
IS_HEARTBEAT = f"value IS NULL AND coalesce(key = X'{HEARTBEAT_KEY.hex()}', false)"
"""Of the job's own heartbeats: such a record becomes a row that is neither a device's delta nor a dead letter."""
TIMESTAMP_FORMAT = {"timestampFormat": PATTERN}
DEVICE_PARTITION, RECORD_PARTITION = "device_partition", "record_partition"
"""The partition of an event, null in an answer; and that of any record. Letters have neither."""
OFFSET = "events_offset"
"""The offset of an event, null in an answer. It is not event_offset: so the column of a field `offset` is named."""


def events(records: DataFrame, application: Application, epoch: int) -> DataFrame:
    """The deltas of the topic of events. The epoch is that of the dead letters."""
    fields = decoded(records.withColumn("clock", F.expr(CLOCK)), application.event_shape, application)
    judged = fields.withColumn("reason", _judged(application, application.state.key, ("first_seen", "ts")))
    sources = set(application.sources.values()) - {"ts"}
    values = {f"event_{name}": f"f_{name}" for name in sources}
    own = {"ts": "f_ts", DEVICE_PARTITION: "partition", OFFSET: "offset"} | values | _context(application)
    return _deltas(judged, application, application.state.key, DELTA_IDS["event"], own, epoch=epoch)


def feedback(records: DataFrame, application: Application, epoch: int) -> DataFrame:
    """The deltas of the topic of feedback, for a state of this epoch."""
    fields = decoded(records.withColumn("clock", F.expr(CLOCK)), feedback_shape(application), application)
    fields = fields.withColumn("f_epoch", F.expr("coalesce(f_epoch, 0L)"))
    names = application.by_name
    given = " ".join(f"WHEN {text(name)} THEN f_result.`{name}` IS NOT NULL" for name in names)
    unlike = f"(f_status = 'result') != coalesce(CASE f_enrichment {given} END, false)"
    later = f"f_epoch > {epoch}L"
    mistaken = (
        f"coalesce(reason, CASE WHEN {unlike} THEN {refused(Reason.INVALID_FIELD, text('result'))}"
        f" WHEN {later} THEN {refused(Reason.INVALID_FIELD, text(LATER_EPOCH))} END)"
    )
    fields = fields.withColumn("reason", F.expr(mistaken))
    judged = fields.withColumn("reason", _judged(application, "device_id", ("first_seen",)))
    answers = {f"answer_{name}": _answer(name) for name in names}
    return _deltas(
        judged, application, "device_id", DELTA_IDS["feedback"], answers | _context(application), epoch=epoch
    )


def kinds(application: Application) -> dict[str, str]:
    """The columns that deltas carry besides their life and identity, with their SQL types; null where not theirs."""
    fields = application.event.model_fields
    values = {
        f"event_{name}": sql_type(fields[name].annotation, name)
        for name in sorted(set(application.sources.values()) - {"ts"})
    }
    answers = {f"answer_{one.name}": _answer_type(application, one.name) for one in application.enrichments}
    context = {FIELD: "STRING"} if application.traced else {}
    origin = {DEVICE_PARTITION: "INT", RECORD_PARTITION: "INT", OFFSET: "BIGINT"}
    return {"ts": "TIMESTAMP"} | origin | values | answers | context


def _context(application: Application) -> dict[str, str]:
    return {FIELD: carried_sql(f"f_{FIELD}")} if application.traced else {}


def _answer(name: str) -> str:
    fields = ", ".join(f"f_{field} AS {field}" for field in Answer.model_fields if field != "result")
    return f"CASE WHEN f_enrichment = {text(name)} THEN struct({fields}, f_result.`{name}` AS result) END"


def _answer_type(application: Application, name: str) -> str:
    own = {
        field: sql_type(info.annotation, field) for field, info in Answer.model_fields.items() if field != "result"
    } | {"result": struct_type(application.by_name[name].result, name)}
    return f"STRUCT<{', '.join(f'{field}: {kind}' for field, kind in own.items())}>"


def _judged(application: Application, key: str, times: tuple[str, ...]) -> Column:
    """The verdict, after the record's key was compared with its device's, and its times with the clock."""
    # As numbers: an interval is added to a time by the calendar.
    skew, kept_for = (f"{duration // MICROSECOND}L" for duration in (application.skew, application.kept_for))
    whose = f"CASE WHEN clock < timestamp THEN {text(JOB)} ELSE {text(STAMP)} END"
    cases = [
        ("reason IS NOT NULL", "reason"),
        (f"NOT key <=> CAST(f_{key} AS BINARY)", refused(Reason.WRONG_KEY, wrong_key_sql(key, "key", f"f_{key}"))),
    ]
    for name in times:
        detail = ahead_sql(name, f"f_{name}", "clock", whose, application.skew)
        is_ahead = f"unix_micros(f_{name}) > unix_micros(clock) + {skew}"
        cases.append((is_ahead, refused(Reason.INCREDIBLE_TIME, detail)))
    detail = late_sql("f_first_seen", "clock", whose, application.kept_for)
    cases.append((f"unix_micros(clock) > unix_micros(f_first_seen) + {kept_for}", refused(Reason.LATE, detail)))
    return F.expr(f"CASE {' '.join(f'WHEN {condition} THEN {verdict}' for condition, verdict in cases)} END")


def _deltas(  # noqa: PLR0913
    judged: DataFrame, application: Application, device_id: str, delta_id: str, own: dict[str, str], *, epoch: int
) -> DataFrame:
    """Deltas of the good records, letters of the others; the columns are the same for every topic."""
    good = {"device_id": f"f_{device_id}", "first_seen": "f_first_seen", "delta_id": delta_id}
    letter = {
        "device_id": f"CASE WHEN NOT ({IS_HEARTBEAT}) THEN {shortened_sql('key')} END",
        "first_seen": "CAST(NULL AS TIMESTAMP)" if application.topics.replay else "clock",
        "delta_id": DELTA_IDS["refused"],
    }
    identity = [F.expr(f"CASE WHEN reason IS NULL THEN {good[c]} ELSE {letter[c]} END").alias(c) for c in good]
    own = own | {RECORD_PARTITION: "partition"}
    carried = [
        F.expr(f"CASE WHEN reason IS NULL THEN {own[c]} END" if c in own else f"CAST(NULL AS {kind})").alias(c)
        for c, kind in kinds(application).items()
    ]
    deltas = judged.select(
        *identity, _letter(epoch).alias("dead_letter"), F.col("timestamp").alias("record_time"), *carried
    )
    return deltas.withColumn("delta_id", F.expr(DELTA_IDS["digest"]))


def _letter(epoch: int) -> Column:
    head = F.expr(f"left(coalesce(text, CAST(left(value, {LARGEST_HEAD}) AS STRING)), {LARGEST_HEAD})").alias("head")
    generation = F.lit(epoch).cast("long").alias("epoch")
    letter = F.struct("reason.reason", "reason.detail", "topic", "partition", "offset", "timestamp", generation, head)
    return F.when(F.expr(f"reason IS NOT NULL AND NOT ({IS_HEARTBEAT})"), F.to_json(letter, TIMESTAMP_FORMAT))
