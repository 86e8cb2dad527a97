"""The main path, in memory: what goes back, when, and how often."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.planning.deliveries import events
from contracts.records.record import Reason
from contracts.types.origin import PLACE, TIME
from services.tools.redrive.action import RedriveAction
from services.tools.redrive.redrive import Redrive
from tests.services.enrichment.alerted import crossing
from tests.services.tools.redrive.in_memory import KEPT_MS, kept
from tests.services.tools.redrive.test_action import LATER, LIVE, START, found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contracts.planning.deliveries import DeliveryRequest
    from contracts.records.record import Record
    from contracts.wire.alerts import AlertRecord
    from services.tools.redrive.dead_letters import StoredDeadLetter


class Written(NamedTuple):
    """A record that went back."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Mapping[str, str | bytes | None]


class Loop:
    """The origins and the writer of records; logs the order of the operations."""

    def __init__(self, *kept: Record) -> None:
        self.kept = {(one.topic, one.offset): one for one in kept}
        self.written: list[Written] = []
        self.paced = 0
        self.progress: list[int] = []
        self.calls: list[str] = []
        self.refuses: set[str] = set()
        self.calls_left = 1 << 30
        self.is_addressed = True

    def record(self, topic: str, _: int, offset: int) -> Record | None:
        return self.kept.get((topic, offset))

    def write(self, *fields: object) -> None:
        self.written.append(Written(*fields))  # type: ignore[arg-type]
        assert self.paced == len(self.written), "each waits for its turn"

    def has_address(self, alerts: str) -> bool:
        assert alerts == "too_high"
        return self.is_addressed

    def deliver(self, request: DeliveryRequest) -> bool:
        """Note the key of the event. Once no calls are left, the process is killed: before or after it was received."""
        if not self.calls_left:
            raise KeyboardInterrupt
        self.calls_left -= 1
        self.calls.append(request.fingerprint)
        assert self.paced == len(self.calls), "each waits for its turn"
        return request.fingerprint not in self.refuses

    def pace(self) -> None:
        self.paced += 1

    def back(self, *dead_letters: StoredDeadLetter) -> dict[RedriveAction, int]:
        """Redrive dead letters; return their numbers by action."""
        note = self.progress.append
        redrive = Redrive(LIVE, self, self, self, lambda: LATER, self.pace, lambda counts: note(counts.total()))
        return dict(redrive.run(dead_letters))


def refused(offset: int) -> StoredDeadLetter:
    return found(Reason.MALFORMED, topic="events", offset=offset)


def origin(offset: int) -> dict[str, bytes]:
    """The headers of the copy of a record."""
    return {PLACE: b"events/0/%d" % offset, TIME: b"%d" % (KEPT_MS + offset)}


def test_a_refused_record_keeps_its_time_and_headers_and_learns_where_it_was() -> None:
    loop = Loop(kept("events", 7, headers=[("beds", b"3")]))
    assert loop.back(refused(7), refused(8)) == {RedriveAction.SENT_AGAIN: 1, RedriveAction.NOT_RETAINED: 1}
    assert loop.written == [Written("events", b"d1", b"7", KEPT_MS + 7, {"beds": b"3"} | origin(7))]
    assert loop.progress == [1, 2]
    assert loop.paced == 1, "what does not go back takes nothing of the rate"


def test_of_a_record_that_was_refused_again_the_first_place_counts() -> None:
    """Whether the client gives its header as text or as bytes."""
    as_text = {name: value.decode() for name, value in origin(7).items()}
    again = [kept("events", 9, headers=[*origin(7).items()]), kept("events", 11, headers=[*as_text.items()])]
    loop = Loop(kept("events", 7), *again)
    assert loop.back(refused(7), refused(9), refused(11)) == {RedriveAction.SENT_AGAIN: 1, RedriveAction.DUPLICATE: 2}
    assert [one.headers for one in loop.written] == [origin(7)]
    loop = Loop(*again)
    assert loop.back(refused(9)) == {RedriveAction.SENT_AGAIN: 1}
    assert [(one.timestamp, one.headers) for one in loop.written] == [(KEPT_MS + 9, origin(7))]


def test_a_raw_record_is_sent_to_its_topic_again() -> None:
    loop = Loop(kept("monitors", 7))
    assert loop.back(found(Reason.UNDECODABLE, topic="monitors", offset=7)) == {RedriveAction.SENT_AGAIN: 1}
    assert [(one.topic, one.key, one.value) for one in loop.written] == [("monitors", b"d1", b"7")]


def test_a_failed_request_is_repeated_in_its_window() -> None:
    loop = Loop()
    assert loop.back(found()) == Counter({RedriveAction.REQUESTED_AGAIN: 1})
    (written,) = loop.written
    assert (written.topic, written.key, written.headers) == (LIVE.topics.feedback, b"d1", {})
    assert written.timestamp == round(START.timestamp() * 1000), "not late, and not ahead"


RECORDS = [record for number in range(4) for record in crossing(f"sensor-{number}", 1)]
"""An alert of each of four devices opens, and closes."""
KEYS = [event.idempotency_key for record in RECORDS for event in events("too_high", record)]


def stored(record: AlertRecord, offset: int) -> Record:
    return kept("too_high", offset, value=record.encode())


def alerted() -> Loop:
    """A loop that has these records at the offsets of their places in the list."""
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
        with pytest.raises(KeyboardInterrupt):
            loop.back(*dead_letters)
    else:
        loop.back(*dead_letters)
    first, loop.calls, loop.calls_left, loop.paced = loop.calls, [], len(failed), 0
    assert loop.back(*dead_letters).get(RedriveAction.DELIVERED_AGAIN, 0) == len(failed)
    assert first == [KEYS[number] for number in failed][:killed_after]
    assert loop.calls == [KEYS[number] for number in failed], "the order of an alert is that of its dead letters"
