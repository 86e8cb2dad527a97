"""Closes the stores of a test when it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.services.query.in_memory import OPEN, close_scratch_stores

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _scratch_stores() -> Iterator[None]:
    before = len(OPEN)
    yield
    close_scratch_stores(before)
