from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contracts.records.decode import Decoder
from contracts.records.fold import Fold, Partial, lift, merge, present
from contracts.records.record import Delta
from contracts.wire import Snapshot
from tests.everything import NOW, answer_record, answers, app, application, event_record, events
from tests.same import assert_same

decoder = Decoder(app)
deltas = st.one_of(
    st.builds(lambda event, offset: decoder.event(event_record(event, offset))[0], events, st.integers(0, 9)),
    answers.map(lambda answer: decoder.feedback(answer_record(answer))),
)


def published(partial: Partial, delta: Delta) -> dict[str, Any]:
    return document(present(app, (delta.device_id, delta.first_seen), partial))


def document(snapshot: Snapshot) -> dict[str, Any]:
    """As on the wire: documents are compared, because a variance hangs on the order of its terms in its last digit."""
    return snapshot.model_dump(mode="json")


@given(deltas, deltas, deltas)
def test_merge_is_associative(a: Delta, b: Delta, c: Delta) -> None:
    x, y, z = (lift(app, delta) for delta in (a, b, c))
    assert_same(published(merge(app, merge(app, x, y), z), a), published(merge(app, x, merge(app, y, z)), a))


@given(deltas, deltas)
def test_merge_is_commutative(a: Delta, b: Delta) -> None:
    x, y = lift(app, a), lift(app, b)
    assert_same(published(merge(app, x, y), a), published(merge(app, y, x), a))


@given(st.lists(deltas, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_changes_the_final_state(stream: list[Delta], random: object) -> None:
    again = [*stream, *stream]
    random.shuffle(again)  # type: ignore[attr-defined]
    in_order, shuffled = Fold(app), Fold(app)
    distinct = list({(d.device_id, d.first_seen, d.delta_id): d for d in stream}.values())
    for delta in distinct:
        in_order.add(delta)
    for delta in again:
        if delta in distinct:
            shuffled.add(delta)
    assert in_order.windows.keys() == shuffled.windows.keys()
    for window, partial in in_order.windows.items():
        assert_same(document(present(app, window, partial)), document(present(app, window, shuffled.windows[window])))


@given(st.lists(events, min_size=1, max_size=12, unique_by=lambda event: event["event_id"]))
def test_a_reducer_with_a_filter_reduces_the_values_of_the_events_that_pass(stream: list[dict[str, Any]]) -> None:
    partials = [lift(app, delta) for event in stream for delta in decoder.event(event_record(event))]
    published = present(app, ("d", NOW), reduce(lambda left, right: merge(app, left, right), partials)).state
    assert published["fast"] == sum(event.get("speed", 0) > 100 for event in stream)
    passing = [event for event in stream if event.get("on") or "load" not in event]
    last = max(((event["ts"], event["speed"]) for event in passing if "speed" in event), default=(None, None))
    assert published.get("last_on") == last[1]


@given(st.lists(answers, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_repeated_and_reordered_feedback_changes_nothing_even_without_deduplication(
    stream: list[dict[str, object]], random: object
) -> None:
    counting = application(deduplicate=False)
    again = [*stream, *stream]
    random.shuffle(again)  # type: ignore[attr-defined]
    folds = []
    for order in (stream, again):
        fold = Fold(counting)
        for answer in order:
            fold.add(decoder.feedback(answer_record(answer)))
        folds.append({window: present(counting, window, p).enrichments for window, p in fold.windows.items()})
    assert folds[0] == folds[1]


@given(st.lists(deltas, min_size=1, max_size=12))
def test_a_state_has_the_largest_offset_of_its_events(stream: list[Delta]) -> None:
    fold = Fold(app)
    merged: dict[Any, list[int]] = {}
    for delta in stream:
        snapshot = fold.add(delta)
        if snapshot is None:
            continue
        offsets = merged.setdefault(snapshot.window, [])
        if delta.slot is None:
            assert delta.event_offset is not None
            offsets.append(delta.event_offset)
        assert snapshot.event_offset == max(offsets, default=None), "answers have offsets of another topic"


@given(st.lists(deltas, max_size=20))
def test_each_new_delta_gives_one_snapshot_and_the_version_counts_them(stream: list[Delta]) -> None:
    fold = Fold(app)
    for delta in stream:
        before = fold.windows.get((delta.device_id, delta.first_seen))
        snapshot = fold.add(delta)
        if snapshot is not None:
            assert snapshot.version == (before.version if before else 0) + 1
