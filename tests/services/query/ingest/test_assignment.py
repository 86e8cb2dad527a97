"""What is followed, and how far, without a broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from contracts.model.named_state import NamedState
from services.query.ingest.assignment import Followed
from services.query.ingest.errors import FollowingFailed
from services.query.ingest.freshness import Freshness
from services.query.ingest.ingestion import Part, Progress
from services.query.ingest.kafka_ingestion import Follower
from services.query.ingest.tombstones import NEVER_LOST
from tests.services.query.in_memory import MemoryStore
from tests.services.query.ingest.ingesting import Told

if TYPE_CHECKING:
    from services.query.store.store import Store

PART, OTHER = Part("flights", 0), Part("flights", 1)


@pytest.fixture
def followed() -> Followed:
    """Give one whose reader knows of an end."""
    stores: dict[str, Store] = {"flights": MemoryStore()}
    reader = Mock()
    reader.known_end.return_value = 9
    return Followed(reader, {"flights": "topic"}, stores, Freshness(stores, NEVER_LOST))


def test_progress_never_goes_back(followed: Followed) -> None:
    """The client tells an end again that was passed, after it asked another broker."""
    followed.begin(PART)
    followed.reached(PART, 7)
    followed.reached(PART, 5)
    assert followed.progress == {PART: Progress(7, 9)}
    followed.reached(PART, 12)
    assert followed.progress == {PART: Progress(12, 12)}


def test_there_is_no_progress_of_what_is_not_followed(followed: Followed) -> None:
    followed.begin(PART)
    followed.end(PART)
    followed.reached(PART, 7)
    followed.reached(OTHER, 7)
    assert followed.progress == {}


def test_there_is_no_progress_of_what_is_being_forgotten(followed: Followed) -> None:
    followed.begin(PART)
    followed.reached(PART, 7)
    followed.restart(PART, "a test", lambda: True)
    followed.reached(PART, 7)
    assert (followed.progress, followed.busy) == ({}, True)
    followed.forget()
    assert not followed.busy
    followed.reached(PART, 1)
    assert followed.progress == {PART: Progress(1, 9)}


def test_nothing_is_forgotten_of_which_nobody_was_told(followed: Followed) -> None:
    """The event loop ends, so that nobody can stop answering."""
    followed.begin(PART)
    followed.restart(PART, "a test", lambda: False)
    assert not followed.busy


async def test_an_error_that_the_client_cannot_survive_ends_it() -> None:
    message = Mock()
    message.error().fatal.return_value = True
    message.error().name.return_value = "_FENCED"
    stores: dict[str, Store] = {"flights": MemoryStore()}
    state = NamedState("flights", "topic", {}, 1)
    follower = Follower({"bootstrap.servers": "127.0.0.1:1"}, {"flights": state}, stores, Told())
    follower._reader.read = Mock(return_value=[[message]])  # type: ignore[method-assign]  # noqa: SLF001
    with pytest.raises(FollowingFailed, match="start the service again"):
        await asyncio.wait_for(follower.run(), 30)
