"""The worker's topics before it begins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

import pytest

from services.derive.topics import partition_counts
from services.runtime.errors import KafkaRequestError, TopicsMissingError
from services.runtime.topic_check import EVERY_S, PATIENCE_S, TopicCheck
from tests.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from services.runtime.kafka.interfaces import Admin

T = TypeVar("T")
PATIENT_LOOKS = int(PATIENCE_S / EVERY_S)
OTHER = {"other": 9}


class Listing:
    """A broker that answers from one look on, knows of a topic from another, and of its partitions from a third."""

    def __init__(self, *, answers_at: int = 1, known_at: int = 1, made_at: int = 1) -> None:
        self.answers_at, self.known_at, self.made_at = answers_at, known_at, made_at
        self.looks = self.owner_checks = 0

    def partition_counts(self) -> Mapping[str, int]:
        self.looks += 1
        if self.looks < self.answers_at:
            raise KafkaRequestError("list the topics", "_TRANSPORT", "no broker")
        if self.looks < self.known_at:
            return OTHER
        return OTHER | {"aircraft": 4 if self.looks >= self.made_at else 0}

    def check_owner(self) -> None:
        self.owner_checks += 1

    def counts(self) -> Mapping[str, int]:
        loop = VirtualTimeLoop()
        check = TopicCheck(("aircraft",), "nowhere", self.check_owner, loop.time)
        try:
            return loop.run_until_complete(partition_counts(cast("Admin", self), check, InlineCalls()))
        finally:
            loop.close()


class InlineCalls:
    """Calls functions in the event loop."""

    async def call(self, function: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        return function()


@pytest.mark.parametrize("known_at", [1, 3, PATIENT_LOOKS - 2])
def test_a_topic_that_was_created_just_now_is_waited_for(known_at: int) -> None:
    listing = Listing(known_at=known_at)
    assert listing.counts() == OTHER | {"aircraft": 4}
    assert listing.looks == known_at
    assert listing.owner_checks == 1


def test_a_topic_without_partitions_is_one_that_is_being_created() -> None:
    """No key has a place in it: each snapshot would be a dead letter."""
    assert Listing(made_at=3).counts()["aircraft"] == 4
    with pytest.raises(TopicsMissingError, match="aircraft"):
        Listing(made_at=PATIENT_LOOKS + 2).counts()


def test_a_topic_that_does_not_exist_is_reported_in_the_end() -> None:
    listing = Listing(known_at=PATIENT_LOOKS + 2)
    with pytest.raises(TopicsMissingError, match="aircraft"):
        listing.counts()
    assert not listing.owner_checks


def test_a_broker_that_is_away_is_waited_for() -> None:
    listing = Listing(answers_at=20 * PATIENT_LOOKS)
    assert listing.counts()["aircraft"] == 4
    assert listing.looks == listing.answers_at
