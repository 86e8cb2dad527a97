"""Benchmarks name their topics without a prefix: the modules that test them use the broker one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.shared import exclusive
from tests.shared_broker import shared_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.services.tools.broker.embedded import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Give the broker of the run, while no other module of benchmarks has it."""
    with exclusive("bench"):
        yield shared_broker()
