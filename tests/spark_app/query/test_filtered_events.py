"""The filter of the state in the job: against the fold, and counted by a real-time query."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import orjson

from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.records.record import Reason, RecordError
from contracts.wire import decode_snapshot
from tests.everything import EPOCH, NOW, application, event_record, random_stream
from tests.filtered import Passing, app
from tests.same import assert_same
from tests.spark_app.frames import run
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import Topics, everything, until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contracts.records.record import Record


def folded(events: list[Record]) -> tuple[Fold, int, int]:
    """The fold of the events that pass, the number of snapshots, and the number of events that do not pass."""
    decoder, fold = Decoder(app, EPOCH), Fold(app, EPOCH)
    deltas = [decoder.event(record) for record in events]
    new = sum(fold.add(delta) is not None for passing in deltas for delta in passing)
    return fold, new, deltas.count(())


def test_the_job_merges_the_events_that_the_fold_merges(spark: SparkSession) -> None:
    events, _ = random_stream(7, devices=100, events=600, answers=0)
    fold, _, filtered = folded(events)
    assert 100 < filtered < 500
    snapshots = {
        snapshot.window: snapshot for snapshot in (decode_snapshot(value) for _, _, value in run(spark, app, events))
    }
    assert snapshots.keys() == fold.windows.keys()
    for window, partial in fold.windows.items():
        assert_same(
            snapshots[window].model_dump(mode="json"), present(app, window, partial, EPOCH).model_dump(mode="json")
        )


def test_the_shape_is_checked_before_the_filter_and_key_and_times_after_it(spark: SparkSession) -> None:
    excluded = {"device_id": "d", "event_id": "1", "first_seen": NOW, "ts": NOW + timedelta(days=1), "speed": 0.0}
    passing = excluded | {"speed": 100.0}
    records = [
        event_record(excluded | {"speed": "fast"}),
        event_record(excluded),
        event_record(excluded)._replace(key=b"another"),
        event_record(passing),
        event_record(passing)._replace(key=b"another"),
    ]
    records = [record._replace(offset=number) for number, record in enumerate(records)]
    reasons = [reason(record) for record in records]
    assert reasons == [Reason.MALFORMED, None, None, Reason.INCREDIBLE_TIME, Reason.WRONG_KEY]
    refusals = [orjson.loads(value)["reason"] for _, _, value in run(spark, app, records)]
    assert sorted(refusals) == sorted(filter(None, reasons))


def reason(record: Record) -> Reason | None:
    """The reason of a refused event; None for one that does not pass."""
    try:
        assert Decoder(app, EPOCH).event(record) == ()
    except RecordError as refused:
        return refused.reason
    return None


def test_a_real_time_query_counts_the_events_that_do_not_pass_and_the_dead_letters(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    events, _ = random_stream(8, devices=20, events=300, answers=0)
    fold, new, filtered = folded(events)
    job = HostedJob(spark, topics.kafka, tmp_path, application(Passing)).start()
    try:
        topics.send(topics.names.events, [*events, events[0]._replace(value=b"no JSON")])
        published = topics.read(topics.names.snapshots, new)
        refused = topics.read(topics.names.dead_letters, 1)
        until(lambda: sum(line["filtered"] for line in job.lines("batch")) == filtered, f"{filtered} events counted")
        until(lambda: job.figures()["dead_letters_total", app.name] == 1, "one dead letter counted")
        assert job.figures()["filtered_total", app.name] == filtered
    finally:
        job.stop()
    assert len(published) == new
    assert {decode_snapshot(message.value() or b"").window for message in published} == fold.windows.keys()
    assert orjson.loads(refused[0].value() or b"")["reason"] == Reason.MALFORMED
    assert len(everything(topics.kafka, topics.names.dead_letters)) == 1
