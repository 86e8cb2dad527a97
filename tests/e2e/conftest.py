"""Each test has times of its own."""

import pytest

from tests.e2e.times import now


@pytest.fixture(autouse=True)
def times() -> None:
    """The times of a test start with it."""
    now.cache_clear()
