"""Runs the tests of this folder on uvloop, as the service does: its transports differ from those of asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvloop

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the event loop factory."""
    return {"uvloop": uvloop.new_event_loop}
