"""Lift: from a decoded record to a delta, a row of the columns that the merge reads. A refused record becomes a letter.

A dead letter takes the same way as a delta: it is a life of its own, whose key is the letter. So it needs no second
query and no second decoding, and reaches its topic exactly when its record is committed; it costs a row of state that
expires with its lifetime. Where a topic has the times of a replay, a letter has none: the stamp of a record that
cannot be read may be of any year, and would end every life. It then stays in the state.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contracts.application import Application
from contracts.columns import sql_type, struct_type, text
from contracts.near import MICROSECOND
from contracts.record import LARGEST_HEAD, Reason
from contracts.shape import feedback_shape
from contracts.tracing import FIELD, carried_sql
from contracts.wire import Answer
from spark_app.decode import decoded, refused

LIFE = ["device_id", "first_seen", "dead_letter"]
"""The key of the state. `dead_letter` is null but for letters."""
ONCE = ["first_seen", "delta_id"]
"""What tells a delta from its copies, and when it may be forgotten. A delta's id is the digest of its device and name:
the store of all of an hour is the larger one, and pays for every byte of its keys."""
TIMESTAMP_FORMAT = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def events(records: DataFrame, application: Application) -> DataFrame:
    """The deltas of the topic of events."""
    fields = decoded(records, application.event, application)
    judged = fields.withColumn("reason", _with_time(application, ahead="greatest(f_first_seen, f_ts)"))
    sources = set(application.sources.values()) - {"ts"}
    values = {f"event_{name}": f"f_{name}" for name in sources}
    own = {"ts": "f_ts"} | values | _context(application)
    return _deltas(judged, application, application.state.key, "concat('event/', f_event_id)", own)


def feedback(records: DataFrame, application: Application) -> DataFrame:
    """The deltas of the topic of feedback."""
    fields = decoded(records, feedback_shape(application), application)
    names = application.by_name
    given = " ".join(f"WHEN {text(name)} THEN f_result.`{name}` IS NOT NULL" for name in names)
    unlike = f"(f_status = 'result') != coalesce(CASE f_enrichment {given} END, false)"
    mistaken = f"coalesce(reason, CASE WHEN {unlike} THEN {refused(Reason.INVALID_FIELD, 'result')} END)"
    judged = fields.withColumn("reason", F.expr(mistaken)).withColumn("reason", _with_time(application, "f_first_seen"))
    delta_id = "concat_ws('/', 'feedback', f_enrichment, f_fingerprint, f_version, f_status, unix_micros(f_ts))"
    answers = {f"answer_{name}": _answer(name) for name in names}
    return _deltas(judged, application, "device_id", delta_id, answers | _context(application))


def kinds(application: Application) -> dict[str, str]:
    """The columns that deltas carry besides their life and identity, with their SQL types; null where not theirs."""
    fields = application.event.model_fields
    values = {
        f"event_{name}": sql_type(fields[name].annotation, name)
        for name in sorted(set(application.sources.values()) - {"ts"})
    }
    answers = {f"answer_{one.name}": _answer_type(application, one.name) for one in application.enrichments}
    context = {FIELD: "STRING"} if application.traced else {}
    return {"ts": "TIMESTAMP"} | values | answers | context


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


def _with_time(application: Application, ahead: str) -> Column:
    """The verdict, after both times were held against the broker's clock."""
    # As numbers: an interval is added to a time by the calendar.
    skew, life = (f"{duration // MICROSECOND}L" for duration in (application.skew, application.kept_for))
    return F.expr(
        f"CASE WHEN reason IS NOT NULL THEN reason"
        f" WHEN unix_micros({ahead}) > unix_micros(timestamp) + {skew} THEN {refused(Reason.INCREDIBLE_TIME)}"
        f" WHEN unix_micros(timestamp) > unix_micros(f_first_seen) + {life} THEN {refused(Reason.LATE)} END"
    )


def _deltas(
    judged: DataFrame, application: Application, device_id: str, delta_id: str, own: dict[str, str]
) -> DataFrame:
    """Deltas of the good records, letters of the others; the columns are the same for every topic."""
    good = {"device_id": f"f_{device_id}", "first_seen": "f_first_seen", "delta_id": delta_id}
    letter = {
        "device_id": "CAST(key AS STRING)",
        "first_seen": "CAST(NULL AS TIMESTAMP)" if application.topics.replay else "timestamp",
        "delta_id": "concat_ws('/', 'refused', topic, partition, offset)",
    }
    identity = [F.expr(f"CASE WHEN reason IS NULL THEN {good[c]} ELSE {letter[c]} END").alias(c) for c in good]
    carried = [
        F.expr(f"CASE WHEN reason IS NULL THEN {own[c]} END" if c in own else f"CAST(NULL AS {kind})").alias(c)
        for c, kind in kinds(application).items()
    ]
    deltas = judged.select(*identity, _letter().alias("dead_letter"), F.col("timestamp").alias("record_time"), *carried)
    # With the length before it, no device can be named so that its delta looks like another's.
    whole = F.concat_ws("/", F.length("device_id").cast("string"), "device_id", "delta_id")
    return deltas.withColumn("delta_id", F.unhex(F.md5(whole)))


def _letter() -> Column:
    head = F.expr(f"left(coalesce(text, CAST(left(value, {LARGEST_HEAD}) AS STRING)), {LARGEST_HEAD})").alias("head")
    letter = F.struct("reason.reason", "reason.detail", "topic", "partition", "offset", "timestamp", head)
    return F.when(F.col("reason").isNotNull(), F.to_json(letter, TIMESTAMP_FORMAT))
