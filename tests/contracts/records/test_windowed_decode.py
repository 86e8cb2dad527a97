"""Events of windowed states as deltas."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from contracts import State, composite_key
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Reason, RecordError
from contracts.records.schema import schemas
from contracts.types.key import LARGEST_KEY
from tests import everything
from tests.clicks import HOUR, MINUTE, NOW, Counts, Hops, Pairs, application, click_record, hops, owned, random_answers

TEN = NOW - 2 * HOUR


def click(ts: datetime, **fields: Any) -> dict[str, Any]:
    return {"click": "c", "event_id": "1", "page": "p", "country": "US", "ts": ts} | fields


def starts(state: type[State], ts: datetime, stamp: datetime) -> list[datetime]:
    deltas = Decoder(application(state)).event(click_record(click(ts), stamp=stamp))
    return [delta.first_seen for delta in deltas]


def test_an_event_is_in_the_window_that_contains_its_time() -> None:
    assert starts(Counts, TEN, TEN) == [TEN]
    assert starts(Counts, TEN + HOUR, TEN + HOUR) == [TEN + HOUR]
    assert starts(Pairs, TEN, TEN) == [TEN - 53 * MINUTE]


def test_an_event_is_in_each_hopping_window_that_is_not_over() -> None:
    ts = TEN + 2 * MINUTE
    all_four = [TEN + timedelta(seconds=90) + number * 15 * MINUTE for number in (-3, -2, -1, 0)]
    assert starts(Hops, ts, ts) == all_four
    end_of_first = all_four[0] + Hops.lifetime + Hops.grace
    assert starts(Hops, ts, end_of_first) == all_four
    assert starts(Hops, ts, end_of_first + timedelta(milliseconds=1)) == all_four[1:]
    assert starts(Hops, ts, end_of_first + 45 * MINUTE) == all_four[3:]
    with pytest.raises(RecordError, match="its last window ended more than 0:10:00 before") as error:
        starts(Hops, ts, end_of_first + 45 * MINUTE + timedelta(milliseconds=1))
    assert error.value.reason == Reason.LATE


def test_a_time_ahead_of_the_clock_is_refused() -> None:
    assert starts(Counts, TEN + MINUTE, TEN)
    with pytest.raises(RecordError, match=r"ts 2026.* is more than 0:01:00 ahead"):
        starts(Counts, TEN + MINUTE + timedelta(microseconds=1), TEN)


def test_a_time_of_the_first_year_is_late() -> None:
    with pytest.raises(RecordError, match=r"ts 0001-01-01T00:00:00\.000000Z: its last window ended"):
        Decoder(hops).event(click_record(click(TEN) | {"ts": "0001-01-01T00:00:00Z"}))


@pytest.mark.parametrize("key", [None, b"other", b"\xff"])
def test_the_records_key_has_no_meaning(key: bytes | None) -> None:
    (delta,) = Decoder(application(Pairs)).event(click_record(click(TEN, page="a:b"), stamp=TEN, key=key))
    assert delta.device_id == composite_key("US", "a:b") == "US:a\\:b"
    assert delta.event_offset is None


def test_a_key_that_is_too_large_with_all_its_fields_is_refused() -> None:
    decoder = Decoder(application(Pairs))
    fits = "p" * (LARGEST_KEY - len("US:"))
    assert decoder.event(click_record(click(TEN, page=fits), stamp=TEN))
    with pytest.raises(RecordError, match="country:page: 501 bytes, and 500 are allowed"):
        decoder.event(click_record(click(TEN, page=f"{fits}p"), stamp=TEN))
    with pytest.raises(RecordError, match="invalid_field: country"):
        decoder.event(click_record(click(TEN, country=""), stamp=TEN))


def test_a_copy_counts_once_in_each_window() -> None:
    fold, decoder = Fold(hops), Decoder(hops)
    for _ in range(2):
        for delta in decoder.event(click_record(click(TEN), stamp=TEN)):
            fold.add(delta)
    assert [partial.version for partial in fold.windows.values()] == [1, 1, 1, 1]


def test_without_deduplication_each_delivery_counts() -> None:
    app = application(deduplicate=False)
    fold, decoder = Fold(app), Decoder(app)
    for offset in (1, 2):
        for delta in decoder.event(click_record(click(TEN), offset, TEN)):
            fold.add(delta)
    assert [partial.version for partial in fold.windows.values()] == [2]


def test_an_answer_for_no_window_of_the_state_is_refused() -> None:
    reasons = set()
    for record in random_answers(1, 200):
        try:
            Decoder(owned).feedback(record)
        except RecordError as error:
            reasons.add(error.detail if error.reason == Reason.INVALID_FIELD else error.reason)
    assert reasons >= {"first_seen: no window of the state starts then", Reason.LATE, Reason.WRONG_KEY}


def test_a_snapshot_of_a_windowed_state_has_no_event_offset() -> None:
    assert "event_offset" not in schemas(hops)["snapshot"]["properties"]
    assert "event_offset" in schemas(everything.app)["snapshot"]["properties"]
