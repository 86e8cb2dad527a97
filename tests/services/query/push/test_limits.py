"""The limits of one client, from the settings."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.query.http.watch_routes import WatchRoutes
from services.query.limits import WatchLimits
from tests.services.query.in_memory import a_state, dependencies_of

TOLD: dict[str, Any] = {
    "watch_connections": 1,
    "watch_subscriptions": 2,
    "watch_waiting": 3,
    "watch_all_waiting_bytes": 1024 * 1024,
    "watch_marks": 0.5,
    "watch_stalled": 6,
}


async def test_settings_are_the_limits() -> None:
    found = WatchRoutes(dependencies_of(a_state(), **TOLD)).service.limits
    assert (found.connections, found.subscriptions, found.waiting_keys) == (1, 2, 3)
    assert found.all_waiting_bytes == 1024 * 1024
    assert (found.mark_every_s, found.stalled_s) == (0.5, 6)


async def test_unset_settings_are_the_defaults() -> None:
    assert WatchRoutes(dependencies_of(a_state())).service.limits == WatchLimits()


@pytest.mark.parametrize("values", [{"watch_marks": 0}, {"watch_marks": 11}, {"watch_waiting": 0}])
def test_invalid_limits_are_rejected(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(values))):
        dependencies_of(a_state(), **values)
