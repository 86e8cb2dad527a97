"""A topic, and its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contracts.model.named_state import NamedState, QueryOptions
from tests.services.query.ingest.ingesting import Topic

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker


@pytest.fixture
def topic(broker: EmbeddedBroker, topics_prefix: str) -> Topic:
    """Give an empty topic."""
    return Topic(broker.bootstrap, f"{topics_prefix}snapshots")


@pytest.fixture
def state(topic: Topic) -> NamedState:
    """Give the state of the topic."""
    return NamedState("flights", topic.name, {}, 2, query=QueryOptions(history=5, indexes=("state.status",)))
