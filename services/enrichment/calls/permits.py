"""Permits for calls: each call to an API needs one, and an API that is down grants none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.enrichment.calls.suspension import Suspension


@dataclass(frozen=True, eq=False)
class Permit:
    """The permission to make a call. The calls of one breaker period share a permit."""

    is_probe: bool = False
    """Whether the call tests an API that was down."""


class PermitSource(Protocol):
    """Grants the permits of one API."""

    @property
    def is_blocked(self) -> bool:
        """Return whether a call that started now would have to wait."""
        ...

    async def wait_until_unblocked(self) -> None:
        """Wait until a call can start without waiting."""
        ...

    def try_acquire(self) -> Permit | None:
        """Return a permit if one is free. `release` must follow."""
        ...

    async def acquire(self) -> Permit:
        """Wait for a permit, in the order of arrival. `release` must follow."""
        ...

    def is_valid(self, permit: Permit) -> bool:
        """Return whether a call may still start with this permit."""
        ...

    def release(self, permit: Permit, *, failed: bool | None, pause_s: float = 0.0, reason: str = "") -> None:
        """Report the result of a call. `failed` is None if the result means nothing for the API: it was cancelled.

        `pause_s` is the pause in seconds that the API requested, `reason` the reason of a failure.
        """
        ...


class Unrestricted:
    """Grants every permit immediately, for an API without a breaker. Implements PermitSource."""

    is_blocked = False

    def __init__(self) -> None:
        self._permit = Permit()

    async def wait_until_unblocked(self) -> None:
        """See `PermitSource`."""

    def try_acquire(self) -> Permit:
        """See `PermitSource`."""
        return self._permit

    async def acquire(self) -> Permit:
        """See `PermitSource`."""
        return self._permit

    def is_valid(self, _: Permit) -> bool:
        """See `PermitSource`."""
        return True

    def release(self, _: Permit, *, failed: bool | None, pause_s: float = 0.0, reason: str = "") -> None:
        """See `PermitSource`."""


class ApiAvailability:
    """Reports which APIs may be called now: those that grant permits, and are not suspended.

    Implements `dispatcher.Availability`.
    """

    def __init__(self, permits: Mapping[str, PermitSource], suspensions: Mapping[str, Suspension]) -> None:
        self._permits = permits
        self._suspensions = suspensions

    def is_available(self, api: str) -> bool:
        """Return whether a call that started now would get a permit. A probe of an API that was down gets one too."""
        return not self._permits[api].is_blocked and self._is_open(api)

    async def wait_until_available(self, api: str) -> None:
        """Wait until a call can get a permit immediately."""
        while True:
            await self._permits[api].wait_until_unblocked()
            if self._is_open(api):
                return
            await self._suspensions[api].wait_until_open()

    def _is_open(self, api: str) -> bool:
        return api not in self._suspensions or self._suspensions[api].is_open
