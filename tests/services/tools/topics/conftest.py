"""The topics that the tests add partitions to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.tools.topics import growth
from tests.services.tools.topics.grown import World

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker


@pytest.fixture
def world(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """Give topics with few partitions."""
    monkeypatch.setattr(growth, "METADATA_S", 0.0)
    monkeypatch.setattr(growth, "FOLLOW_S", 0.0)
    return World(broker, topics_prefix)
