"""What integration tests share: a real broker, and names that no other test has."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.services.broker.embedded import EmbeddedBroker, free_port_pair

if TYPE_CHECKING:
    from collections.abc import Iterator


settings.register_profile("stateloop", deadline=None)  # a deadline measures the machine: it is busy with other tests
settings.load_profile("stateloop")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """Give a real broker that runs; a test that kills it starts it again."""
    embedded = EmbeddedBroker(tmp_path_factory.mktemp("broker"), free_port_pair())
    embedded.start()
    yield embedded
    embedded.stop()


@pytest.fixture
def topics_prefix() -> str:
    """Give a prefix for topic and group names that no other test has."""
    return f"t{uuid.uuid4().hex[:12]}."
