"""The job carries trace contexts as the plain Python fold does, and has no column for them where there are none."""

from itertools import chain

import pytest
from pyspark.sql import SparkSession

from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.wire import decode_snapshot
from spark_app.query.columns import delta_types
from tests import everything, traced
from tests.everything import EPOCH
from tests.same import assert_same
from tests.spark_app.frames import run


@pytest.mark.spark
def test_sparks_contexts_equal_the_folds(spark: SparkSession) -> None:
    events, answers = traced.random_stream(1, devices=100, records=400)
    decoder, fold = Decoder(traced.app, EPOCH), Fold(traced.app, EPOCH)
    for delta in [*chain.from_iterable(map(decoder.event, events)), *map(decoder.feedback, answers)]:
        fold.add(delta)
    published = run(spark, traced.app, events, answers)
    snapshots = {snapshot.window: snapshot for snapshot in (decode_snapshot(value) for _, _, value in published)}
    expected = {window: present(traced.app, window, partial, EPOCH) for window, partial in fold.windows.items()}
    assert {window: snapshot.traceparent for window, snapshot in snapshots.items()} == {
        window: snapshot.traceparent for window, snapshot in expected.items()
    }
    assert len({snapshot.traceparent for snapshot in snapshots.values()}) > 50
    assert None in {snapshot.traceparent for snapshot in snapshots.values()}, "an untraced record that came last"
    for window, snapshot in expected.items():
        assert_same(snapshots[window].model_dump(mode="json"), snapshot.model_dump(mode="json"))


def test_an_application_without_traces_has_no_column_for_them() -> None:
    assert "traceparent" not in delta_types(everything.app)
    assert "traceparent" in delta_types(traced.app)
