"""The worker's topics before it begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from services.derive import topics
from services.derive.errors import NoTopicError
from services.derive.topics import LOOKS, partition_counts

if TYPE_CHECKING:
    from confluent_kafka import Consumer


class Listing:
    """A consumer whose broker knows of a topic from a certain look on, and of its partitions from another."""

    def __init__(self, known_at: int) -> None:
        self.known_at = known_at
        self.made_at = 1
        self.looks = 0

    def list_topics(self, timeout: float) -> SimpleNamespace:
        assert timeout
        self.looks += 1
        made = SimpleNamespace(partitions=range(4 if self.looks >= self.made_at else 0))
        known = {"aircraft": made} if self.looks >= self.known_at else {}
        return SimpleNamespace(topics={"other": SimpleNamespace(partitions=range(9)), **known})

    def counts(self, *, stopping: bool = False) -> dict[str, int]:
        return partition_counts(cast("Consumer", self), ["aircraft"], "nowhere", lambda: stopping)


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Listing:
    monkeypatch.setattr(topics, "AGAIN_S", 0.0)
    return Listing(1)


@pytest.mark.parametrize("known_at", [1, 3, LOOKS])
def test_a_topic_that_was_made_just_now_is_waited_for(listing: Listing, known_at: int) -> None:
    listing.known_at = known_at
    assert listing.counts() == {"aircraft": 4}
    assert listing.looks == known_at


def test_a_topic_without_partitions_is_one_that_is_being_made(listing: Listing) -> None:
    """No key has a place in it: each snapshot would be a dead letter."""
    listing.made_at = 3
    assert listing.counts() == {"aircraft": 4}
    listing.looks, listing.made_at = 0, LOOKS + 1
    with pytest.raises(NoTopicError, match="aircraft"):
        listing.counts()


def test_a_topic_that_is_not_there_is_reported_in_the_end(listing: Listing) -> None:
    listing.known_at = LOOKS + 1
    with pytest.raises(NoTopicError, match="aircraft"):
        listing.counts()


def test_a_stopping_worker_does_not_look_for_topics(listing: Listing) -> None:
    listing.known_at = LOOKS
    assert listing.counts(stopping=True) == {}
    assert not listing.looks
