"""Waits for a condition with a deadline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from services.tools.broker.errors import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 0.05


def wait_until(
    condition: Callable[[], bool],
    what: str,
    deadline_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return as soon as the condition holds; raises NotReadyError with `what` after the deadline."""
    end = clock() + deadline_s
    while not condition():
        if clock() >= end:
            raise NotReadyError(what, deadline_s)
        pause(PAUSE_S)
