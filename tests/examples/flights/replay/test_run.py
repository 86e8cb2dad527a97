from datetime import date
from pathlib import Path

import orjson
import pytest

from contracts.records.decode import Decoder
from contracts.records.record import Record
from examples.flights import tables
from examples.flights.application import app
from examples.flights.errors import DeliveryError
from examples.flights.replay.pace import Pace
from examples.flights.replay.position import PositionFile
from examples.flights.replay.run import Replay
from examples.flights.replay.sender import Sender
from examples.flights.stream import Place, place, stream, stream_after
from tests.examples.flights.replay.fake_producer import FakeProducer

DAYS = tables.days(date(2013, 1, 1), 1)


@pytest.fixture(scope="module")
def positions() -> list[Place]:
    return [place(event) for event in stream(DAYS)]


class Stop:
    """Stops after so many calls."""

    def __init__(self, after: int | None = None) -> None:
        self._left = after

    def __call__(self) -> bool:
        if self._left is not None:
            self._left -= 1
        return self._left is not None and self._left < 0


class Away(FakeProducer):
    """Delivers nothing."""

    def poll(self, timeout: float) -> int:
        return int(timeout < 0)

    def flush(self, timeout: float) -> int:
        return 1 + int(timeout < 0)


class Slow(FakeProducer):
    """Takes the time that it is given; `now` is the clock."""

    now = 0.0

    def poll(self, timeout: float) -> int:
        self.now += timeout
        return super().poll(timeout)


def replay(file: Path, producer: FakeProducer, stop: Stop | None = None, pace: Pace | None = None) -> bool:
    position = PositionFile(file, DAYS[0], 1)
    run = Replay(Sender(producer, "t"), pace or Pace(None, lambda: 0.0), position, stop or Stop())
    return run.run(stream_after(DAYS, position.read()), lambda *_: None)


def test_all_events_are_sent_in_order(tmp_path: Path, positions: list[Place]) -> None:
    producer = FakeProducer()
    assert replay(tmp_path / "p", producer)
    assert producer.delivered == positions


@pytest.mark.parametrize("last_first", [False, True])
def test_stopped_again_and_again_it_sends_each_event_once(
    tmp_path: Path, positions: list[Place], *, last_first: bool
) -> None:
    sent = []
    for stop_after in (1, 10, 500, 700, None):
        producer = FakeProducer(last_first=last_first)
        ended = replay(tmp_path / "p", producer, Stop(stop_after))
        assert ended == (stop_after is None)
        delivered = set(producer.delivered)
        sent += [position for position in positions if position in delivered]
    assert sent == positions


def test_after_the_end_nothing_is_left(tmp_path: Path) -> None:
    replay(tmp_path / "p", FakeProducer())
    again = FakeProducer()
    assert replay(tmp_path / "p", again)
    assert again.delivered == []


def test_only_a_contiguous_prefix_of_deliveries_is_remembered(tmp_path: Path, positions: list[Place]) -> None:
    producer = FakeProducer(room=10, refuse_at=5, last_first=True)
    with pytest.raises(DeliveryError, match="run the replay again"):
        replay(tmp_path / "p", producer)
    assert len(producer.delivered) == 5
    assert positions[0] not in producer.delivered
    assert PositionFile(tmp_path / "p", DAYS[0], 1).read() is None


def test_a_refused_event_is_sent_by_the_next_replay(tmp_path: Path, positions: list[Place]) -> None:
    with pytest.raises(DeliveryError):
        replay(tmp_path / "p", FakeProducer(refuse_at=100))
    producer = FakeProducer()
    assert replay(tmp_path / "p", producer)
    assert producer.delivered == positions[100:]


def test_a_broker_that_is_away_does_not_keep_it_from_stopping(tmp_path: Path) -> None:
    assert not replay(tmp_path / "p", Away(room=3), Stop(50))
    assert PositionFile(tmp_path / "p", DAYS[0], 1).read() is None


def test_the_job_reads_the_records(tmp_path: Path, positions: list[Place]) -> None:
    producer = FakeProducer()
    replay(tmp_path / "p", producer)
    decoder = Decoder(app)
    for (topic, value, key, timestamp), here in zip(producer.records, positions, strict=True):
        assert (topic, key.decode(), timestamp) == ("t", here[1], here[0].timestamp() * 1000)
        assert None not in orjson.loads(value).values()
        (delta,) = decoder.event(Record("t", 0, 0, timestamp, key, value))
        assert (delta.ts, delta.device_id, delta.delta_id) == (*here[:2], f"event/{here[2]}")


def test_it_waits_until_an_event_is_due(tmp_path: Path, positions: list[Place]) -> None:
    producer = Slow()
    assert replay(tmp_path / "p", producer, pace=Pace(3600, lambda: producer.now))
    span = (positions[-1][0] - positions[0][0]).total_seconds()
    assert producer.now == pytest.approx(span / 3600, abs=0.5)
