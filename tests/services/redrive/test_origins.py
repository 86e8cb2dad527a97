"""Single records, read where they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.redrive.origins import NEAR, Origins
from services.runtime.errors import TopicReadError
from tests.services.redrive.in_memory import Topics

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENTS, OTHER, FEEDBACK = ("events", 0), ("events", 1), ("feedback", 0)
ALL = range(5 * NEAR)


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    made = Topics(dict.fromkeys((EVENTS, OTHER, FEEDBACK), ALL), len(ALL))

    def consumer(config: Mapping[str, object]) -> Topics:
        assert config["auto.offset.reset"] == "earliest", "as the topics here have it"
        assert config["enable.auto.commit"] is False
        return made

    monkeypatch.setattr("services.runtime.kafka.options.Consumer", consumer)
    return made


def offset(origin: Origins, place: tuple[str, int], at: int) -> int | None:
    """Return the offset of the record that is found there."""
    found = origin.record(*place, at)
    return None if found is None else found.offset


def test_neighbours_are_read_on_and_others_looked_for(topics: Topics) -> None:
    origin = Origins({})
    for place, at in ((EVENTS, 7), (EVENTS, 8), (EVENTS, 10)):
        assert offset(origin, place, at) == at
    assert topics.assigned == [(*EVENTS, 7)]
    assert topics.polled == 4, "9 is passed over"
    far = 11 + NEAR + 1
    for place, at in ((EVENTS, far), (EVENTS, 3), (EVENTS, 3), (OTHER, 4), (FEEDBACK, 5)):
        assert offset(origin, place, at) == at
    assert topics.assigned[1:] == [(*EVENTS, far), (*EVENTS, 3), (*EVENTS, 3), (*OTHER, 4), (*FEEDBACK, 5)]


def test_as_far_as_it_pays_it_reads_on(topics: Topics) -> None:
    origin = Origins({})
    assert offset(origin, EVENTS, 0) == 0
    assert offset(origin, EVENTS, 1 + NEAR) == 1 + NEAR
    assert topics.assigned == [(*EVENTS, 0)]


def test_a_compacted_record_is_not_mistaken_for_its_neighbour(topics: Topics) -> None:
    topics.left = {EVENTS: [3, 6, 7]}
    topics.end = 10
    origin = Origins({})
    assert offset(origin, EVENTS, 3) == 3
    assert offset(origin, EVENTS, 5) is None
    assert offset(origin, EVENTS, 6) == 6, "the one after it was read already, and is looked for again"
    assert offset(origin, EVENTS, 7) == 7
    assert offset(origin, EVENTS, 8) is None, "there is nothing more, though there was"
    polled = topics.polled
    assert offset(origin, EVENTS, 2) is None
    assert offset(origin, EVENTS, 10) is None
    assert topics.polled == polled, "outside what the topic keeps nothing is waited for"


@pytest.mark.parametrize("fails", ["away", "broken"])
def test_an_unreadable_record_is_reported_and_not_mistaken_for_a_deleted_one(topics: Topics, fails: str) -> None:
    setattr(topics, fails, True)
    with pytest.raises(TopicReadError, match="events cannot be read"):
        Origins({}).record(*EVENTS, 3)
