"""Which time the job records as its progress, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from contracts import Application, Count, Emit, Event, State, Topics
from services.runtime.broker_clock import BrokerClock
from spark_app.errors import BrokerUnreachableError
from spark_app.run.heartbeat import EVERY
from spark_app.run.low_watermark import LowWatermark
from spark_app.run.published_progress import PublishedProgress
from tests.clock import Clock

if TYPE_CHECKING:
    from spark_app.topics.offsets import Positions

LOW = datetime(2026, 5, 1, 8, tzinfo=UTC)
WATERMARK = LOW - timedelta(hours=2)
EPOCH, END = 3, 7


class Pings(State):
    pings: Annotated[int, Count()]


class Job:
    """A query with a low watermark, and the progress that it has recorded."""

    def __init__(self, emit: Emit = Emit.EVENT, *, is_replay: bool = False) -> None:
        self.recorded: list[tuple[datetime, int, dict[int, int]]] = []
        self.clock = Clock()
        inputs: Any = SimpleNamespace()
        self.low = LowWatermark(inputs, lambda: None, BrokerClock(self.clock))
        self.is_broker_away = False
        progress: Any = SimpleNamespace(record=lambda *found: self.recorded.append(found))
        topics = Topics(replay=is_replay)
        application = Application(name="pings", event=Event, state=Pings, emit=emit, topics=topics)
        self.published = PublishedProgress(application, EPOCH, self._ends, progress, self.low, self.clock)

    def ends_batch(self, low: datetime | None = LOW, watermark: datetime | None = WATERMARK) -> list[datetime]:
        """End a batch, some time after the one before; return the times that were recorded so far."""
        self.low.time = low
        self.clock.now += EVERY.total_seconds()
        progress: Any = SimpleNamespace(eventTime={} if watermark is None else {"watermark": watermark.isoformat()})
        self.published.after(progress)
        assert all((epoch, ends) == (EPOCH, {0: END}) for _, epoch, ends in self.recorded)
        return [time for time, *_ in self.recorded]

    def _ends(self) -> Positions:
        if self.is_broker_away:
            raise BrokerUnreachableError("broker", "it is away")
        return {("snapshots", 0): END}


@pytest.mark.parametrize(("emit", "time"), [(Emit.EVENT, LOW), (Emit.BATCH, LOW), (Emit.CLOSE, WATERMARK)])
def test_windows_that_wait_for_their_end_are_published_up_to_the_watermark(emit: Emit, time: datetime) -> None:
    job = Job(emit)
    assert job.ends_batch(low=None, watermark=None) == []
    assert job.ends_batch() == [time]
    assert job.ends_batch() == [time], "it is recorded once"


def test_a_replay_has_no_progress() -> None:
    assert Job(is_replay=True).ends_batch() == []


def test_the_progress_is_recorded_when_the_broker_is_back() -> None:
    job = Job()
    job.is_broker_away = True
    assert job.ends_batch() == []
    job.is_broker_away = False
    assert job.ends_batch() == [LOW]


def test_short_batches_do_not_record_each_time() -> None:
    job = Job()
    job.ends_batch()
    job.clock.now -= EVERY.total_seconds() / 2
    assert job.ends_batch(LOW + EVERY) == [LOW]
    assert job.ends_batch(LOW + EVERY) == [LOW, LOW + EVERY]
