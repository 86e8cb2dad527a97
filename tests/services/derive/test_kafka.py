"""What the worker asks of its broker before it begins."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from services.derive import kafka
from services.derive.errors import NoTopicError
from services.derive.kafka import LOOKS, RealKafka

CLIENT = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}


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


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Listing:
    monkeypatch.setattr(kafka, "AGAIN_S", 0.0)
    return Listing(1)


def of(listing: Listing, *, stopping: bool = False) -> RealKafka:
    ours = RealKafka(CLIENT, {**CLIENT, "group.id": "derive"}, "snapshots", 1, lambda: stopping)
    ours._consumer = listing  # type: ignore[assignment]  # noqa: SLF001
    return ours


@pytest.mark.parametrize("known_at", [1, 3, LOOKS])
def test_a_topic_that_was_made_just_now_is_waited_for(listing: Listing, known_at: int) -> None:
    listing.known_at = known_at
    assert of(listing).partitions(["aircraft"], "nowhere") == {"aircraft": 4}
    assert listing.looks == known_at


def test_a_topic_without_partitions_is_one_that_is_being_made(listing: Listing) -> None:
    """No key has a place in it: each snapshot would be a dead letter."""
    listing.made_at = 3
    assert of(listing).partitions(["aircraft"], "nowhere") == {"aircraft": 4}
    listing.looks, listing.made_at = 0, LOOKS + 1
    with pytest.raises(NoTopicError, match="aircraft"):
        of(listing).partitions(["aircraft"], "nowhere")


def test_a_topic_that_is_not_there_is_reported_in_the_end(listing: Listing) -> None:
    listing.known_at = LOOKS + 1
    with pytest.raises(NoTopicError, match="aircraft"):
        of(listing).partitions(["aircraft"], "nowhere")


def test_who_is_to_stop_looks_no_further(listing: Listing) -> None:
    listing.known_at = LOOKS
    assert of(listing, stopping=True).partitions(["aircraft"], "nowhere") == {}
    assert not listing.looks
