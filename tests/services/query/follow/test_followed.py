"""What is told of a partition while it is forgotten, without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from services.query.follow.followed import Followed
from services.query.follow.following import Part, Progress
from services.query.follow.freshness import Freshness
from services.query.follow.reader import Reader
from services.query.follow.removals import NEVER_LOST
from tests.services.query.in_memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping

PART = Part("flights", 0)


class Noted(Reader):
    """A reader that reads nothing, and notes where it was to."""

    def __init__(self) -> None:
        super().__init__(Consumer({"group.id": "none", "bootstrap.servers": ""}), lambda: 0.0)
        self.places: list[int | None] = []

    def begin(self, topic: str, partition: int, position: int | None) -> None:  # noqa: ARG002  # there is one
        self.places.append(position)

    def end(self, topic: str, partition: int) -> None:
        pass

    def place(self, positions: Mapping[tuple[str, int], int | None]) -> None:
        self.places = list(positions.values())

    def known_end(self, topic: str, partition: int) -> int | None:  # noqa: ARG002  # all are alike
        return 9


@pytest.fixture
def reader() -> Noted:
    return Noted()


@pytest.fixture
def followed(reader: Noted) -> Followed:
    """Give one partition that was read to 9, and is to be read anew."""
    stores = {"flights": MemoryStore()}
    stores["flights"].positions[0] = 9
    found = Followed(reader, {"flights": "topic"}, stores, Freshness(stores, NEVER_LOST))
    found.begin(PART)
    assert found.progress[PART] == Progress(9, None)
    found.restart(PART, "it is wanted", lambda: True)
    return found


def test_an_end_that_was_on_its_way_tells_nothing_of_the_new_beginning(followed: Followed, reader: Noted) -> None:
    followed.reached(PART, 9)
    assert PART not in followed.progress
    followed.mend()
    assert reader.places == []
    followed.forget()
    assert (reader.places, followed.progress) == ([None], {})


def test_a_partition_is_forgotten_once_however_often_that_is_said(followed: Followed, reader: Noted) -> None:
    followed.restart(PART, "it is said again", lambda: True)
    for _ in range(3):
        followed.forget()
    assert reader.places == [9, None]
    assert not followed.busy
