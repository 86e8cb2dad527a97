"""A row has expired when the sink's clock and the broker's say so."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from contracts.metrics import sink as metrics
from contracts.records.record import timestamp_ms
from tests.services.sink.in_memory import RunningSink, Topic, running, until
from tests.services.sink.records import GRACE, LIFETIME, START, STATE, Change, record

if TYPE_CHECKING:
    from datetime import datetime

OVER = START + LIFETIME + GRACE + timedelta(minutes=10)
"""A time at which the row of a window since START has expired."""


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.sink.handler.EXPIRE_EVERY_S", 0.001)


def topic(read_at: datetime, own: datetime, newest_at: datetime | None = None) -> Topic:
    """A topic with a record that the broker has stamped, and whose newest record it returns, if that is given."""
    found = Topic([record(Change("a"))._replace(timestamp_ms=timestamp_ms(read_at))])
    found.time, found.newest_ms = own, timestamp_ms(newest_at) if newest_at else None
    return found


async def removed_twice(sink: RunningSink) -> None:
    """Wait until the sink has removed expired rows after all that happened before."""
    before = sink.store.removals
    await until(lambda: sink.store.removals > before + 1)


@pytest.mark.parametrize(
    ("read_at", "own", "newest_at", "is_kept"),
    [
        (START, OVER, None, True),
        (START, OVER, START, True),
        (OVER, START, OVER, True),
        (START, OVER, OVER, False),
        (OVER, OVER, None, False),
    ],
    ids=["unknown", "a clock ahead", "a clock behind", "a backlog", "a late record"],
)
async def test_a_row_expires_by_both_clocks(
    read_at: datetime, own: datetime, newest_at: datetime | None, *, is_kept: bool
) -> None:
    async with running(topic(read_at, own, newest_at)) as sink:
        await until(lambda: 1 in sink.topic.committed)
        await removed_twice(sink)
        assert len(sink.store.state.rows) == is_kept
        assert sink.counts.get(metrics.EXPIRED, STATE.name) == (not is_kept)


async def test_records_show_the_time_at_which_a_row_expires() -> None:
    async with running(topic(START, OVER)) as sink:
        await until(lambda: sink.store.state.rows)
        await removed_twice(sink)
        assert list(sink.store.state.rows) == [("a", 0)]
        sink.topic.records.append(record(Change("b", window=1), offset=1)._replace(timestamp_ms=timestamp_ms(OVER)))
        await until(lambda: list(sink.store.state.rows) == [("b", 0)])
    assert sink.counts.get(metrics.REMOVED, STATE.name) == 1
