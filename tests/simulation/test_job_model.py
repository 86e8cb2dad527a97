"""The model of the job against Spark: from the records of a run, both give the same windows and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contracts.wire import DeadLetter, decode_snapshot
from spark_app.query.pipeline import snapshots
from tests.same import assert_same
from tests.simulation.application import APPLICATIONS
from tests.simulation.generate import script
from tests.simulation.states import EPOCH
from tests.simulation.world import run
from tests.spark_app.frames import SCHEMA, row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from contracts import Application
    from contracts.records.record import Record

    Outputs = tuple[dict[tuple[str, datetime], dict[str, Any]], dict[tuple[str, int, int], DeadLetter]]

pytestmark = pytest.mark.spark
APPLICATION = "cars"
"""The application whose windows outlive a script: a table of records has no watermark."""
SEEDS = [seed for seed in range(60) if script(seed).application == APPLICATION and not script(seed).replaces_state][:4]
"""With another state begins an epoch, of which answers are refused before."""


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_of_the_job_ends_as_spark_does(spark: SparkSession, seed: int) -> None:
    sampled, application = script(seed), APPLICATIONS[APPLICATION]
    topics, records = application.topics, run(sampled).records
    inputs = records[topics.events], records[topics.feedback]
    windows, letters = outputs(records[topics.snapshots], records[topics.dead_letters], application)
    spark_windows, spark_letters = on_spark(spark, application, inputs, sampled.partitions)
    assert spark_windows.keys() == windows.keys()
    for window, snapshot in spark_windows.items():
        assert_same(windows[window], snapshot)
    assert spark_letters == letters


def outputs(published: Iterable[Record], dead: Iterable[Record], application: Application) -> Outputs:
    """Return the latest snapshot of each window, and the dead letter of each record of an input."""
    found = [decode_snapshot(record.value or b"") for record in published]
    latest = {one.window: one.model_dump(mode="json") for one in sorted(found, key=lambda one: one.order)}
    return latest, refused(application, [record.value or b"" for record in dead])


def on_spark(
    spark: SparkSession, application: Application, inputs: tuple[Sequence[Record], ...], partitions: int
) -> Outputs:
    """Return what the job's query gives for these records."""
    tables = [spark.createDataFrame([row(record) for record in records], SCHEMA) for records in inputs]
    rows = snapshots(tables[0], tables[1], application, EPOCH, partitions).collect()
    found = [decode_snapshot(row.value.encode()) for row in rows if row.topic == application.topics.snapshots]
    latest = {one.window: one.model_dump(mode="json") for one in found}
    return latest, refused(
        application, [row.value.encode() for row in rows if row.topic == application.topics.dead_letters]
    )


def refused(application: Application, values: Iterable[bytes]) -> dict[tuple[str, int, int], DeadLetter]:
    """Return the dead letters of the job, by their origin."""
    letters = [DeadLetter.model_validate_json(value) for value in values]
    inputs = {application.topics.events, application.topics.feedback}
    # The detail names the clock that was behind, and the record's timestamp may be rounded to a later time.
    compared = [one.model_copy(update={"detail": None}) for one in letters if one.topic in inputs]
    return {(one.topic, one.partition, one.offset): one for one in compared}
