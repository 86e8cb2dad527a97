"""The low watermarks of a query, and of an application behind raw sources."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from contracts.records.record import timestamp_ms
from services.runtime.broker_clock import BrokerClock
from spark_app.errors import BrokerUnreachableError
from spark_app.run.low_watermark import LowWatermark, RawProgress, committed_by

if TYPE_CHECKING:
    from spark_app.topics.offsets import Positions

BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Input:
    """Topics that get records while time passes."""

    def __init__(self) -> None:
        self.now: datetime | None = BEGIN
        self.end_offsets: Positions = {("events", 0): 0, ("events", 1): 0}
        self.newest: datetime | None = BEGIN + timedelta(days=1)
        self.elapsed_s = 0.0
        self.broker_clock = BrokerClock(lambda: self.elapsed_s)
        self.low = LowWatermark(self, lambda: self.now, self.broker_clock)
        self.is_away = False
        self.looked_up = 0

    def ends(self) -> Positions:
        if self.is_away:
            raise BrokerUnreachableError("broker", "it is away")
        return dict(self.end_offsets)

    def newest_ms(self) -> int | None:
        self.looked_up += 1
        return timestamp_ms(self.newest) if self.newest else None

    def after(self, seconds: int, first: int, second: int) -> None:
        """Let the partitions of the topic have `first` and `second` records after some seconds."""
        self.now, self.end_offsets = BEGIN + seconds * SECOND, {("events", 0): first, ("events", 1): second}


@pytest.fixture
def inputs() -> Input:
    return Input()


def commit(inputs: Input, first: int, second: int) -> datetime | None:
    inputs.low.committed({("events", 0): first, ("events", 1): second})
    return inputs.low.time


def test_empty_topics_are_read_up_to_the_first_check(inputs: Input) -> None:
    inputs.low.advance()
    assert inputs.low.time is None
    inputs.low.advance()
    assert inputs.low.time == BEGIN


def test_a_partition_that_is_behind_holds_the_low_watermark(inputs: Input) -> None:
    inputs.after(1, 10, 10)
    assert commit(inputs, 0, 0) is None
    inputs.after(9, 90, 90)
    assert commit(inputs, 80, 9) is None
    assert inputs.low.behind() == [("events", 1)]
    assert commit(inputs, 80, 10) == BEGIN + SECOND
    inputs.after(20, 90, 90)
    assert commit(inputs, 90, 89) == BEGIN + SECOND, "the next check began when the former one was complete"
    assert commit(inputs, 90, 90) == BEGIN + 9 * SECOND


def test_it_does_not_advance_while_the_broker_or_the_sources_before_it_are_unknown(inputs: Input) -> None:
    inputs.is_away = True
    assert commit(inputs, 0, 0) is None
    inputs.is_away, inputs.now = False, None
    assert commit(inputs, 0, 0) is None
    assert commit(inputs, 0, 0) is None
    inputs.after(5, 0, 0)
    assert commit(inputs, 0, 0) is None
    assert commit(inputs, 0, 0) == BEGIN + 5 * SECOND


def test_a_clock_that_is_ahead_moves_it_no_further_than_the_clock_of_the_broker(inputs: Input) -> None:
    inputs.newest = BEGIN
    inputs.after(3600, 1, 1)
    assert commit(inputs, 1, 1) is None
    inputs.elapsed_s = 5
    assert commit(inputs, 1, 1) == BEGIN, "the broker's time when the end offsets were read"
    assert commit(inputs, 1, 1) == BEGIN + 5 * SECOND, "it goes on while no record comes"
    inputs.newest = BEGIN + 60 * SECOND
    assert commit(inputs, 1, 1) == BEGIN + 5 * SECOND
    inputs.elapsed_s = 6
    assert commit(inputs, 1, 1) == BEGIN + 60 * SECOND


def test_between_two_checks_nothing_is_looked_up(inputs: Input) -> None:
    commit(inputs, 0, 0)
    assert inputs.looked_up == 1
    for _ in range(5):
        assert commit(inputs, 0, 0) == BEGIN
    assert inputs.looked_up == 1
    inputs.after(1, 0, 0)
    commit(inputs, 0, 0)
    assert inputs.looked_up == 2


def test_inputs_that_do_not_show_the_clock_of_the_broker_are_bound_by_none_and_share_none(inputs: Input) -> None:
    inputs.newest = None
    shown = inputs.broker_clock.now()
    inputs.after(3600, 1, 1)
    assert commit(inputs, 1, 1) is None
    assert commit(inputs, 1, 1) == BEGIN + 3600 * SECOND
    assert inputs.broker_clock.now() == shown


def test_an_application_is_as_far_as_the_slowest_of_its_raw_sources() -> None:
    sources, raw = [Input(), Input()], RawProgress()
    assert raw.time(()) is not None
    for number, source in enumerate(sources):
        assert raw.time(("a", "b")) is None
        source.after(number, 0, 0)
        raw.add("ab"[number], source.low)
        commit(source, 0, 0)
        commit(source, 0, 0)
    assert raw.time(("a", "b")) == BEGIN
    assert raw.time(("b",)) == BEGIN + SECOND
    raw.remove("a")
    assert raw.time(("a", "b")) is None, "a source that has given up decodes nothing"


def test_a_topic_that_is_read_twice_is_as_far_as_the_slower_reader() -> None:
    offsets = ('{"events":{"0":5,"1":7}}', '{"events":{"0":6,"1":4}}', '{"feedback":{"0":1}}', None)
    progress: Any = SimpleNamespace(sources=[SimpleNamespace(endOffset=content) for content in offsets])
    assert committed_by(progress) == {("events", 0): 5, ("events", 1): 4, ("feedback", 0): 1}
