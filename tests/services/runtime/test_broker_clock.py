"""The clock of the broker, by the timestamps of its records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from contracts.records.record import Record, timestamp_ms
from services.runtime.broker_clock import BrokerClock

START = datetime(2026, 5, 1, tzinfo=UTC)
SECONDS = st.integers(0, 100_000)


@given(st.lists(st.tuples(SECONDS, SECONDS)))
def test_it_is_never_ahead_of_the_broker_and_never_goes_back(reads: list[tuple[int, int]]) -> None:
    """A record is read some seconds after the one before, and was stamped some seconds ago."""
    elapsed = best = 0
    clock = BrokerClock(lambda: 7.0 + elapsed)
    assert clock.now() == datetime.fromtimestamp(0, UTC)
    for number, (pause, age) in enumerate(reads):
        elapsed += pause
        before = clock.now()
        clock.note(timestamp_ms(START + timedelta(seconds=elapsed - age)))
        best = age if number == 0 else min(best, age)
        assert clock.now() == START + timedelta(seconds=elapsed - best) >= before


def test_a_timestamp_after_the_year_9999_is_its_end() -> None:
    times = iter([7.0, 7.0, 7.0, 8.0])
    clock = BrokerClock(lambda: next(times))
    clock.note(10**18)
    assert clock.now() == Record("topic", 0, 0, 10**18, None, None).timestamp
    assert clock.now().year == 9999
