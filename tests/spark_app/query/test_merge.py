"""The job's merge against the plain Python fold, for every reducer, on generated streams."""

from itertools import chain

import pytest
from pyspark.sql import SparkSession

from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.wire import decode_snapshot
from tests.everything import EPOCH, app, random_stream
from tests.same import assert_same
from tests.spark_app.frames import run

pytestmark = pytest.mark.spark


def test_sparks_merge_equals_the_fold(spark: SparkSession) -> None:
    events, answers = random_stream(0, devices=400, events=3_000, answers=600)
    decoder, fold = Decoder(app, EPOCH), Fold(app, EPOCH)
    for delta in [*chain.from_iterable(map(decoder.event, events)), *map(decoder.feedback, answers)]:
        fold.add(delta)
    published = run(spark, app, events, answers)
    snapshots = {snapshot.window: snapshot for snapshot in (decode_snapshot(value) for _, _, value in published)}
    assert snapshots.keys() == fold.windows.keys()
    assert len(snapshots) >= 380
    for window, partial in fold.windows.items():
        assert_same(
            snapshots[window].model_dump(mode="json"), present(app, window, partial, EPOCH).model_dump(mode="json")
        )
