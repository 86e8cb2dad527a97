"""The job's merge against the plain Python fold, for every reducer, on generated streams."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from contracts.decode import Decoder
from contracts.fold import Fold, present
from contracts.wire import decode_snapshot
from tests.everything import answer_record, answers, app, event_record, events
from tests.spark_app.frames import run

pytestmark = pytest.mark.spark
STREAMS = 120
"""How many streams one job runs: each has devices of its own."""

stream = st.tuples(st.lists(events, max_size=25), st.lists(answers, max_size=6))


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_sparks_merge_equals_the_fold(spark: SparkSession, data: st.DataObject) -> None:
    records = [_renamed(data.draw(stream), number) for number in range(STREAMS)]
    sent = [event_record(event) for events_, _ in records for event in events_]
    answered = [answer_record(answer) for _, answers_ in records for answer in answers_]
    decoder, fold = Decoder(app), Fold(app)
    for delta in [*map(decoder.event, sent), *map(decoder.feedback, answered)]:
        fold.add(delta)
    published = run(spark, app, sent, answered)
    found = {snapshot.life: snapshot for snapshot in (decode_snapshot(value) for _, _, value in published)}
    assert found.keys() == fold.lives.keys()
    for life, partial in fold.lives.items():
        assert_same(found[life].model_dump(mode="json"), present(app, life, partial).model_dump(mode="json"))


def _renamed(one: tuple[list[dict[str, Any]], list[dict[str, Any]]], number: int) -> Any:
    """A stream with devices of its own, and each event told once: which of two unlike twins counts is not defined."""
    told = {(event["device_id"], event["first_seen"], event["event_id"]): event for event in one[0]}
    asked = {(a["device_id"], a["first_seen"], a["version"], a["fingerprint"], a["answer"][:2]): a for a in one[1]}
    return tuple([e | {"device_id": f"{number}-{e['device_id']}"} for e in each.values()] for each in (told, asked))


def assert_same(found: Any, expected: Any, where: str = "") -> None:
    """Equal, numbers to 1e-9; a missing field is a null one."""
    if isinstance(expected, dict):
        for key in expected.keys() | found.keys():
            assert_same(found.get(key), expected.get(key), f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), (where, found, expected)
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(expected, float) and found is not None:
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9), (where, found, expected)
    else:
        assert found == expected, (where, found, expected)
