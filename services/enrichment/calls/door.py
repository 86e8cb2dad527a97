"""What lets the calls of an API through, or has them wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, eq=False)
class Ticket:
    """What a call is let through with. Those of one turn share it."""

    is_probe: bool = False
    """Whether the call is made to try an API that was down."""


class Door(Protocol):
    """What lets the calls of an API through."""

    @property
    def blocks(self) -> bool:
        """Whether a call that began now would have to wait."""
        ...

    async def unblocked(self) -> None:
        """Return when a call that begins then need not wait."""
        ...

    def at_once(self) -> Ticket | None:
        """The ticket of a call that need not wait, if it need not. `ended` must follow."""
        ...

    async def admitted(self) -> Ticket:
        """Wait until a call may be made, in the order of arrival: its ticket. `ended` must follow."""
        ...

    def holds(self, ticket: Ticket) -> bool:
        """Whether a call may still be made by this ticket."""
        ...

    def ended(self, ticket: Ticket, *, failed: bool | None, rest: float = 0.0, why: str = "") -> None:
        """Note how a call ended; None when that says nothing of the API, because the call was given up.

        `rest` is how many seconds the API asked to be left alone, `why` the reason of a failure.
        """
        ...


class OpenDoor:
    """Lets every call through, for an API without a breaker. Implements Door."""

    blocks = False

    def __init__(self) -> None:
        self._ticket = Ticket()

    async def unblocked(self) -> None:
        """See `Door.unblocked`."""

    def at_once(self) -> Ticket:
        """See `Door.at_once`."""
        return self._ticket

    async def admitted(self) -> Ticket:
        """See `Door.admitted`."""
        return self._ticket

    def holds(self, _: Ticket) -> bool:
        """See `Door.holds`."""
        return True

    def ended(self, _: Ticket, *, failed: bool | None, rest: float = 0.0, why: str = "") -> None:
        """See `Door.ended`."""
