"""Which APIs may be called now: what the reading side asks of the calling side."""

from __future__ import annotations

from typing import Protocol


class Availability(Protocol):
    """The state of every API. An open circuit breaker makes one unavailable."""

    def is_available(self, api: str) -> bool:
        """Whether a request of that API may begin."""
        ...

    async def available(self, api: str) -> None:
        """Wait until it may."""
        ...
