from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import Application, DeclarationError
from contracts.model.tracing import carried
from contracts.records.decode import Decoder
from contracts.records.fold import Fold, lift, merge
from contracts.records.record import Delta, Record
from contracts.records.schema import schemas
from contracts.records.shape import feedback_shape
from contracts.wire import Feedback
from tests import everything, traced
from tests.everything import NOW, Everything, Thing, answer_record, event_record
from tests.traced import TracedThing, context

EVENT = {"device_id": "d1", "first_seen": NOW, "ts": NOW, "event_id": "1"}
ANSWER = EVENT | {"version": 1, "fingerprint": "f", "answer": ("owner", "absence", None)}
BOTH = (everything.owner, everything.score)

decoder = Decoder(traced.app)


def event(number: int, traceparent: object, seconds: int) -> Record:
    return traced.traced(event_record(EVENT | {"event_id": str(number)}), traceparent, seconds)


def after(*records: Record) -> list[str | None]:
    """The context of each snapshot."""
    fold = Fold(traced.app)
    deltas = [delta for record in records for delta in decoder.event(record)]
    return [snapshot.traceparent for delta in deltas if (snapshot := fold.add(delta))]


def test_a_snapshot_carries_the_context_of_the_record_that_made_it() -> None:
    fold = Fold(traced.app)
    (delta,) = decoder.event(event(1, context(1), 0))
    snapshot = fold.add(delta)
    assert snapshot is not None
    assert snapshot.traceparent == context(1)
    answered = fold.add(decoder.feedback(traced.traced(answer_record(ANSWER), context(2), 1)))
    assert answered is not None
    assert answered.traceparent == context(2)


def test_of_several_records_it_is_that_of_the_latest_by_the_brokers_clock() -> None:
    assert after(event(1, context(1), 5), event(2, context(2), 3)) == [context(1), context(1)]
    assert after(event(1, context(1), 5), event(2, context(2), 5)) == [context(1), context(2)]
    assert after(event(1, context(1), 5), event(2, None, 6)) == [context(1), None]


@pytest.mark.parametrize("nonsense", ["", "nonsense", context(1) + "\n", context(1).upper(), {"a": 1}, 7, "x" * 1000])
def test_nonsense_loses_the_trace_and_not_the_record(nonsense: object) -> None:
    assert after(event(1, nonsense, 0)) == [None]


def test_an_invalid_trace_context_is_dropped() -> None:
    assert carried(context(1)) == context(1)
    assert [carried(value) for value in (None, "", "01" + context(1)[2:], context(1)[:-1], context(1) + "0")] == [
        None
    ] * 5


contexts = st.one_of(st.none(), st.integers(0, 3).map(context))
deltas = st.builds(
    lambda number, traceparent, seconds: Delta(
        "d1", NOW, str(number), NOW + timedelta(seconds=seconds), traceparent=traceparent
    ),
    st.integers(0, 9),
    contexts,
    st.integers(0, 3),
)


@given(deltas, deltas, deltas)
def test_the_context_is_merged_as_everything_else_is(a: Delta, b: Delta, c: Delta) -> None:
    app = traced.app
    x, y, z = (lift(app, delta) for delta in (a, b, c))
    assert merge(app, merge(app, x, y), z) == merge(app, x, merge(app, y, z))
    assert merge(app, x, y) == merge(app, y, x)


def test_an_application_that_is_not_traced_has_none_of_it() -> None:
    assert "traceparent" not in feedback_shape(everything.app).model_fields
    assert "traceparent" in feedback_shape(traced.app).model_fields
    untraced, with_traces = schemas(everything.app), schemas(traced.app)
    assert not [name for name, schema in untraced.items() if "traceparent" in schema["properties"]]
    assert {name for name, schema in with_traces.items() if "traceparent" in schema["properties"]} == {
        "event",
        "feedback",
        "snapshot",
    }
    (delta,) = Decoder(everything.app).event(event(1, context(1), 0))
    snapshot = Fold(everything.app).add(delta)
    assert snapshot is not None
    assert snapshot.traceparent is None


def test_a_record_without_a_context_has_no_field_for_it() -> None:
    plain = Feedback(
        device_id="d1", first_seen=NOW, enrichment="owner", version=1, status="absence", ts=NOW, fingerprint="f"
    )
    assert b"traceparent" not in plain.encode()


class Required(Thing):
    traceparent: str


@pytest.mark.parametrize("kind", [Thing, Required])
def test_an_event_without_the_field_cannot_be_traced(kind: type[Thing]) -> None:
    with pytest.raises(DeclarationError, match=r"Write `traceparent: str \| None = None`"):
        Application(name="x", event=kind, state=Everything, enrichments=BOTH, traced=True)
    Application(name="x", event=TracedThing, state=Everything, enrichments=BOTH)
