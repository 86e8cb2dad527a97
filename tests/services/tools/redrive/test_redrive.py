"""The main path, in memory: what goes back, when, and how often."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import Application, Topics
from contracts.alerts.deliveries import events
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from contracts.records.record import Reason, Record, timestamp_ms
from contracts.types.origin import PLACE, TIME
from contracts.wire import Feedback
from services.enrichment.calls.caller import Outcome
from services.runtime.broker_clock import BrokerClock
from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka.values import BY_KEY, NEWEST, BoundedRange, OffsetAt, Output, Partition
from services.runtime.worker.bounded import run_bounded
from services.tools.redrive.action import RedriveAction
from services.tools.redrive.commands import newest_input_ms
from services.tools.redrive.dead_letters import DeadLetterFilter
from services.tools.redrive.errors import WriteError
from services.tools.redrive.redrive import RedriveHandler, RedriveRun
from tests.services.enrichment.alerted import crossing
from tests.services.runtime.worker.stored_topics import StoredTopics
from tests.services.tools.redrive.in_memory import KEPT_MS, kept
from tests.services.tools.redrive.test_action import LATER, LIVE, START, found
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from contracts.alerts.deliveries import DeliveryRequest
    from contracts.wire.alert_record import AlertRecord
    from services.tools.redrive.dead_letters import StoredDeadLetter


class KilledError(Exception):
    """The process was killed."""


class Loop:
    """The origins, the producer and the webhooks of a redrive. Implements TopicReader, Producer and Webhooks."""

    def __init__(self, *kept: Record) -> None:
        self.kept = {(one.topic, one.offset): one for one in kept}
        self.written: list[Output] = []
        self.error: DeliveryFailedError | None = None
        self.fails: Callable[[Sequence[Output]], bool] = lambda _: True
        self.paced = 0
        self.pace_s = 0.0
        self.lines: list[str] = []
        self.bounds_of_topics = BoundedRange(0, 100)
        self.partition_count = 1
        self.requested: list[int] = []
        self.calls: list[str] = []
        self.refuses: set[str] = set()
        self.calls_left = 1 << 30
        self.is_calling = False
        self.is_addressed = True
        self.is_dry_run = False
        self.now = LATER
        """The time of the machine."""
        self.newest_ms = -1
        """The timestamp of the newest record of the inputs."""

    async def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        return [Partition(topic, number) for topic in topics for number in range(self.partition_count)]

    async def bounds(self, partitions: Collection[Partition]) -> Mapping[Partition, BoundedRange]:
        return dict.fromkeys(partitions, self.bounds_of_topics)

    async def at(self, partition: Partition, offsets: Sequence[int], _: object) -> Sequence[Record]:
        self.requested += offsets
        return [self.kept[one] for offset in offsets if (one := (partition.topic, offset)) in self.kept]

    async def send(self, outputs: Sequence[Output]) -> None:
        self.written += outputs
        if self.error is not None and self.fails(outputs):
            raise self.error

    def has_address(self, alerts: str) -> bool:
        assert alerts == "too_high"
        return self.is_addressed

    async def deliver(self, request: DeliveryRequest) -> Outcome:
        """Note the key of the event. Once no calls are left, the process is killed: before or after it was received."""
        if not self.calls_left:
            raise KilledError
        assert not self.is_calling, "one event is delivered after the other"
        self.is_calling = True
        await asyncio.sleep(0.01)
        self.is_calling = False
        self.calls_left -= 1
        self.calls.append(request.fingerprint)
        assert self.paced == len(self.calls), "each waits for its turn"
        return Outcome("failure", reason="status 410") if request.fingerprint in self.refuses else Outcome("result")

    async def pace(self) -> None:
        await asyncio.sleep(self.pace_s)
        self.paced += 1

    def back(self, *dead_letters: StoredDeadLetter, partitions: int = 1) -> dict[RedriveAction, int]:
        """Redrive dead letters, which are in turns in these partitions; return their numbers by action."""
        ours: Any = self
        clock = BrokerClock(lambda: 0.0)
        clock.note(self.newest_ms)
        given = ours, ours, lambda: self.now, clock, self.pace, self.lines.append
        redriven = RedriveRun(*given, is_dry_run=self.is_dry_run)
        places = (divmod(number, partitions) for number in range(len(dead_letters)))
        records = [stored_record(one, *place) for one, place in zip(dead_letters, places, strict=True)]
        topics = StoredTopics(records, [Partition(LIVE.topics.dead_letters, 0)])

        async def run() -> None:
            handler = RedriveHandler(LIVE, DeadLetterFilter(), redriven, ours)
            await run_bounded(handler, topics, LIVE.topics.dead_letters, Counts(CATALOGUE))

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(run())
        return dict(redriven.counts)


def stored_record(found: StoredDeadLetter, offset: int, partition: int) -> Record:
    """The record of a dead letter."""
    assert found.dead_letter is not None
    value = found.dead_letter.encode()
    return Record(LIVE.topics.dead_letters, partition, offset, timestamp_ms(found.written), found.key, value)


def refused(offset: int, reason: Reason = Reason.MALFORMED, topic: str = "events") -> StoredDeadLetter:
    """Return the dead letter of a record of these tests."""
    written = datetime.fromtimestamp((KEPT_MS + offset) / 1000, UTC)
    return found(reason, topic=topic, offset=offset, timestamp=written)


def copy(record: Record, *headers: tuple[str, str | bytes | None]) -> Output:
    """The copy of a record, with these headers beside those of its origin."""
    own = tuple(origin(record.offset).items())
    return Output(record.topic, record.key, record.value, BY_KEY, record.timestamp_ms, (*headers, *own))


def origin(offset: int) -> dict[str, bytes]:
    """The headers of the copy of a record."""
    return {PLACE: b"events/0/%d" % offset, TIME: b"%d" % (KEPT_MS + offset)}


def test_a_refused_record_keeps_its_time_and_headers_and_learns_where_it_was() -> None:
    record = kept("events", 7, headers=[("beds", b"3")])
    loop = Loop(record)
    assert loop.back(refused(7), refused(8)) == {RedriveAction.SENT_AGAIN: 1, RedriveAction.NOT_RETAINED: 1}
    assert loop.written == [copy(record, ("beds", b"3"))]
    assert loop.paced == 1, "what does not go back takes nothing of the rate"


def test_of_a_record_that_was_refused_again_the_first_place_counts() -> None:
    """Whether the client gives its header as text or as bytes."""
    as_text = {name: value.decode() for name, value in origin(7).items()}
    again = [kept("events", 9, headers=[*origin(7).items()]), kept("events", 11, headers=[*as_text.items()])]
    loop = Loop(kept("events", 7), *again)
    assert loop.back(refused(7), refused(9), refused(11)) == {RedriveAction.SENT_AGAIN: 1, RedriveAction.DUPLICATE: 2}
    assert loop.written == [copy(kept("events", 7))]
    loop = Loop(*again)
    assert loop.back(refused(9)) == {RedriveAction.SENT_AGAIN: 1}
    assert [(one.timestamp_ms, dict(one.headers)) for one in loop.written] == [(KEPT_MS + 9, origin(7))]


@pytest.mark.parametrize(("offset", "is_kept"), [(2, False), (3, True), (4, False), (5, True), (7, False), (8, False)])
def test_a_record_that_was_deleted_or_compacted_is_not_sent(offset: int, *, is_kept: bool) -> None:
    loop = Loop(kept("events", 3), kept("events", 5))
    loop.bounds_of_topics = BoundedRange(3, 8)
    assert loop.back(refused(offset)) == {RedriveAction.SENT_AGAIN if is_kept else RedriveAction.NOT_RETAINED: 1}
    assert loop.requested == ([offset] if 3 <= offset < 8 else []), "outside, nothing is waited for"


def test_a_raw_record_is_sent_to_its_topic_again() -> None:
    loop = Loop(kept("monitors", 7))
    assert loop.back(refused(7, Reason.UNDECODABLE, "monitors")) == {RedriveAction.SENT_AGAIN: 1}
    assert [(one.topic, one.key, one.value) for one in loop.written] == [("monitors", b"d1", b"7")]


def test_a_failed_request_is_repeated_in_its_window() -> None:
    loop = Loop()
    assert loop.back(found()) == Counter({RedriveAction.REQUESTED_AGAIN: 1})
    (written,) = loop.written
    assert (written.topic, written.key, written.headers) == (LIVE.topics.feedback, b"d1", ())
    assert written.timestamp_ms == round(START.timestamp() * 1000), "not late, and not ahead"


OVER = START + LIVE.kept_for + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("own", "newest", "expected"),
    [
        (OVER, LATER, RedriveAction.REQUESTED_AGAIN),
        (LATER, OVER, RedriveAction.EXPIRED),
        (OVER, None, RedriveAction.REQUESTED_AGAIN),
    ],
    ids=["a clock ahead", "a clock behind", "its dead letter is the newest record"],
)
def test_the_clock_of_the_broker_ends_a_window(own: datetime, newest: datetime | None, expected: RedriveAction) -> None:
    loop = Loop()
    loop.now, loop.newest_ms = own, timestamp_ms(newest) if newest else -1
    assert loop.back(found()) == {expected: 1}


def test_a_dead_letter_that_is_the_newest_record_shows_the_end_of_its_window() -> None:
    assert Loop().back(replace(found(), written=OVER)) == {RedriveAction.EXPIRED: 1}


def test_a_slot_is_reopened_after_its_failure_although_the_clock_is_behind() -> None:
    loop = Loop()
    loop.now = START - timedelta(hours=1)
    loop.back(found())
    (written,) = loop.written
    assert Feedback.model_validate_json(written.value or b"").ts == LATER, "the time of the dead letter"


def test_the_newest_input_that_the_broker_has_stamped_shows_its_clock() -> None:
    """Not those of a replay, nor events that are decoded from raw records: producers stamp these."""
    newest = {"events": 9, "feedback": 5, "a.events": 7, "a.feedback": 3, "b.events": 8, "b.feedback": 8}
    admin = cast("Any", NewestRecords(newest))
    declared: Any = {"event": LIVE.event, "state": LIVE.state, "enrichments": LIVE.enrichments}
    other = Application(name="other", topics=Topics(prefix="a."), **declared)
    replayed = Application(name="replayed", topics=Topics(prefix="b.", replay=True), **declared)
    assert newest_input_ms(admin, [LIVE]) == 5
    assert newest_input_ms(admin, [LIVE, other, replayed]) == 7
    assert newest_input_ms(cast("Any", NewestRecords({})), [LIVE]) == -1


class NewestRecords:
    """Topics of two partitions, the second one empty, by the timestamps of their newest records."""

    def __init__(self, newest: Mapping[str, int]) -> None:
        self.newest = newest

    def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        return {topic: 2 for topic in topics if topic in self.newest}

    def records(self, at: Mapping[Partition, int]) -> dict[Partition, OffsetAt]:
        assert set(at.values()) <= {NEWEST}
        return {place: OffsetAt(-1, -1) if place.number else OffsetAt(0, self.newest[place.topic]) for place in at}


def test_a_dry_run_counts_the_actions_and_takes_none() -> None:
    loop = alerted()
    loop.kept |= Loop(kept("events", 7)).kept
    loop.is_dry_run = True
    lost = found(Reason.DELIVERY_FAILED, offset=99, idempotency_key="lost")
    assert loop.back(refused(7), found(), undelivered(0), undelivered(0), lost) == {
        RedriveAction.SENT_AGAIN: 1,
        RedriveAction.REQUESTED_AGAIN: 1,
        RedriveAction.DELIVERED_AGAIN: 1,
        RedriveAction.DUPLICATE: 1,
        RedriveAction.NOT_RETAINED: 1,
    }
    assert (loop.written, loop.calls, loop.paced) == ([], [], 0)


def test_a_record_that_is_not_written_ends_the_redrive() -> None:
    """The error comes while others wait for their turn."""
    loop = Loop(*(kept("events", offset) for offset in range(50)))
    loop.error, loop.pace_s = DeliveryFailedError("events", "TOPIC_AUTHORIZATION_FAILED", "denied"), 1.0
    with pytest.raises(WriteError, match=r"events \(TOPIC_AUTHORIZATION_FAILED: denied\): check that it may be"):
        loop.back(*map(refused, range(50)))
    assert len(loop.written) == 1


def test_a_record_that_is_too_large_now_stops_no_other() -> None:
    loop = Loop(*(kept("events", offset) for offset in range(3)))
    loop.error = DeliveryFailedError("events", "MSG_SIZE_TOO_LARGE", "too large")
    loop.fails = lambda outputs: outputs[0].value == b"1"
    assert loop.back(*map(refused, range(3))) == {RedriveAction.SENT_AGAIN: 2, RedriveAction.TOO_LARGE: 1}
    assert [output.value for output in loop.written] == [b"0", b"1", b"2"]


def test_another_record_of_a_topic_that_was_recreated_is_not_sent() -> None:
    loop = Loop(kept("events", 7), kept("events", 8))
    other = found(Reason.MALFORMED, topic="events", offset=7)
    elsewhere = found(Reason.MALFORMED, topic="events", partition=3, offset=8)
    assert loop.back(other, elsewhere, refused(8)) == {RedriveAction.NOT_RETAINED: 2, RedriveAction.SENT_AGAIN: 1}
    assert loop.written == [copy(kept("events", 8))]


def test_a_record_that_is_not_confirmed_ends_the_redrive() -> None:
    loop = Loop(kept("events", 7))
    loop.send = never  # type: ignore[method-assign,assignment]
    with pytest.raises(WriteError, match="TIMED_OUT: it was not confirmed in 300 s"):
        loop.back(refused(7))


async def never(_: object) -> None:
    await asyncio.Event().wait()


def test_the_counts_are_reported_each_second_while_they_grow() -> None:
    loop = Loop(*(kept("events", offset) for offset in range(3)))
    loop.pace_s = 2.5
    loop.back(*map(refused, range(3)))
    assert loop.lines == [f"{count} dead letters, {count} sent again" for count in (1, 2)]


RECORDS = [record for number in range(4) for record in crossing(f"sensor-{number}", 1)]
"""An alert of each of four devices opens, and closes."""
KEYS = [event.idempotency_key for record in RECORDS for event in events("too_high", record)]


def stored(record: AlertRecord, offset: int) -> Record:
    return kept("too_high", offset, value=record.encode())


def alerted() -> Loop:
    """A loop with these records at the offsets of their places in the list."""
    return Loop(*(stored(record, offset) for offset, record in enumerate(RECORDS)))


def undelivered(number: int) -> StoredDeadLetter:
    return found(Reason.DELIVERY_FAILED, offset=number, idempotency_key=KEYS[number])


def test_a_failed_delivery_is_made_again_for_its_event_only() -> None:
    record = crossing("sensor-1", 1)[0]
    other = record.alerts[0].model_copy(update={"id": "other"})
    both = record.model_copy(update={"alerts": (*record.alerts, other), "changed": (*record.changed, "other")})
    loop, (_, event) = Loop(stored(both, 9)), events("too_high", both)
    key = event.idempotency_key
    dead_letter = found(Reason.DELIVERY_FAILED, offset=9, idempotency_key=key)
    assert loop.back(dead_letter) == {RedriveAction.DELIVERED_AGAIN: 1}
    assert (loop.calls, loop.written) == ([key], [])


def test_an_event_that_failed_more_than_once_is_delivered_once_and_one_may_be_refused_again() -> None:
    loop = alerted()
    loop.refuses = {KEYS[1]}
    assert loop.back(undelivered(0), undelivered(1), undelivered(0), undelivered(1)) == {
        RedriveAction.DELIVERED_AGAIN: 1,
        RedriveAction.REFUSED_AGAIN: 1,
        RedriveAction.DUPLICATE: 2,
    }
    assert loop.calls == KEYS[:2]
    (line,) = loop.lines
    assert line.startswith("closed ")
    assert line.endswith(" is refused again: status 410")


def test_events_of_several_partitions_are_delivered_one_after_the_other() -> None:
    loop = alerted()
    loop.pace_s = 0.1
    assert loop.back(*map(undelivered, range(len(KEYS))), partitions=3) == {RedriveAction.DELIVERED_AGAIN: len(KEYS)}
    assert sorted(loop.calls) == sorted(KEYS)


@pytest.mark.parametrize("record", [None, kept("too_high", 0), kept("too_high", 0, value=b""), stored(RECORDS[1], 0)])
def test_an_event_whose_record_is_gone_is_not_delivered(record: Record | None) -> None:
    loop = Loop(*([record] if record else []))
    assert loop.back(undelivered(0)) == {RedriveAction.NOT_RETAINED: 1}
    assert (loop.calls, loop.paced) == ([], 0)


def test_an_event_is_not_delivered_without_the_address_of_its_webhook() -> None:
    loop = alerted()
    loop.is_addressed = False
    assert loop.back(undelivered(0), undelivered(1)) == {RedriveAction.NOT_ADDRESSED: 2}
    assert loop.calls == []


@given(
    failed=st.lists(st.integers(0, len(KEYS) - 1), unique=True).map(sorted),
    repeated=st.integers(0, 3),
    killed_after=st.integers(0, len(KEYS)),
)
def test_a_killed_redrive_that_is_started_again_delivers_each_event_in_order_and_no_other(
    failed: list[int], repeated: int, killed_after: int
) -> None:
    """A worker that was killed has written some dead letters twice."""
    dead_letters, loop = [*map(undelivered, failed), *map(undelivered, failed[:repeated])], alerted()
    loop.calls_left = killed_after
    if killed_after < len(failed):
        with pytest.raises(KilledError):
            loop.back(*dead_letters)
    else:
        loop.back(*dead_letters)
    first, loop.calls, loop.calls_left, loop.paced = loop.calls, [], len(failed), 0
    assert loop.back(*dead_letters).get(RedriveAction.DELIVERED_AGAIN, 0) == len(failed)
    assert first == [KEYS[number] for number in failed][:killed_after]
    assert loop.calls == [KEYS[number] for number in failed], "the order of an alert is that of its dead letters"
