"""The main path, in memory: what goes back, when, and how often."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, cast

from contracts.records.record import Reason
from contracts.types.origin import PLACE, TIME
from services.redrive.action import RedriveAction
from services.redrive.redrive import Redrive
from tests.services.redrive.in_memory import KEPT_MS, Kept
from tests.services.redrive.test_action import LATER, LIVE, START, found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

    from services.redrive.dead_letters import StoredDeadLetter


class Written(NamedTuple):
    """A record that went back."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Mapping[str, str | bytes | None]


class Loop:
    """Where records are and go; notes what was done in which order."""

    def __init__(self, *kept: Kept) -> None:
        self.kept = {(one.topic(), one.offset()): one for one in kept}
        self.written: list[Written] = []
        self.paced = 0
        self.progress: list[int] = []

    def record(self, topic: str, _: int, offset: int) -> Message | None:
        return cast("Message | None", self.kept.get((topic, offset)))

    def write(self, *told: object) -> None:
        self.written.append(Written(*told))  # type: ignore[arg-type]
        assert self.paced == len(self.written), "each waits for its turn"

    def pace(self) -> None:
        self.paced += 1

    def back(self, *letters: StoredDeadLetter) -> dict[RedriveAction, int]:
        """How many went which way."""
        note = self.progress.append
        redrive = Redrive(LIVE, self, self, lambda: LATER, self.pace, lambda counts: note(counts.total()))
        return dict(redrive.run(letters))


def refused(offset: int) -> StoredDeadLetter:
    return found(Reason.MALFORMED, topic="events", offset=offset)


def origin(offset: int) -> dict[str, bytes]:
    """The headers of the copy of a record."""
    return {PLACE: b"events/0/%d" % offset, TIME: b"%d" % (KEPT_MS + offset)}


def test_a_refused_record_keeps_its_time_and_headers_and_learns_where_it_was() -> None:
    loop = Loop(Kept("events", 7, headers=[("beds", b"3")]))
    assert loop.back(refused(7), refused(8)) == {RedriveAction.SENT_AGAIN: 1, RedriveAction.NOT_RETAINED: 1}
    assert loop.written == [Written("events", b"d1", b"7", KEPT_MS + 7, {"beds": b"3"} | origin(7))]
    assert loop.progress == [1, 2]
    assert loop.paced == 1, "what does not go back takes nothing of the rate"


def test_of_a_record_that_was_refused_again_the_first_place_counts() -> None:
    """Whether the client gives its header as text or as bytes."""
    as_text = {name: value.decode() for name, value in origin(7).items()}
    again = [Kept("events", 9, headers=[*origin(7).items()]), Kept("events", 11, headers=[*as_text.items()])]
    loop = Loop(Kept("events", 7), *again)
    assert loop.back(refused(7), refused(9), refused(11)) == {RedriveAction.SENT_AGAIN: 1, RedriveAction.DUPLICATE: 2}
    assert [one.headers for one in loop.written] == [origin(7)]
    loop = Loop(*again)
    assert loop.back(refused(9)) == {RedriveAction.SENT_AGAIN: 1}
    assert [(one.timestamp, one.headers) for one in loop.written] == [(KEPT_MS + 9, origin(7))]


def test_a_raw_record_is_sent_to_its_topic_again() -> None:
    loop = Loop(Kept("monitors", 7))
    assert loop.back(found(Reason.UNDECODABLE, topic="monitors", offset=7)) == {RedriveAction.SENT_AGAIN: 1}
    assert [(one.topic, one.key, one.value) for one in loop.written] == [("monitors", b"d1", b"7")]


def test_a_failed_request_is_repeated_in_its_window() -> None:
    loop = Loop()
    assert loop.back(found()) == Counter({RedriveAction.REQUESTED_AGAIN: 1})
    (written,) = loop.written
    assert (written.topic, written.key, written.headers) == (LIVE.topics.feedback, b"d1", {})
    assert written.timestamp == round(START.timestamp() * 1000), "not late, and not ahead"
