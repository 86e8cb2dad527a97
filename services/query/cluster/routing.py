"""What this instance is to each partition, and who else could answer."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Role(StrEnum):
    """What an instance is to a partition."""

    OWNER = "owner"
    """The group gave it to this instance, which has caught up."""
    STANDBY = "standby"
    """A copy that has caught up with all that its owner, who is away, can have shown."""
    CATCHING_UP = "catching_up"
    """Ours, but it does not hold yet what an earlier owner may have shown."""
    ELSEWHERE = "elsewhere"
    """Another instance's."""


class Standing(NamedTuple):
    """How this instance stands to a partition now. `lag` is in records: read, but for these, up to the topic's end."""

    role: Role
    lag: int


class Member(NamedTuple):
    """An instance of the service, as it announced itself. `url` has scheme, host and port."""

    instance: str
    url: str


class Roles(Protocol):
    """Asked before every answer, from the event loop: cheap."""

    def standing(self, state: str, partition: int) -> Standing:
        """What this instance is to the partition now."""

    def owners(self, state: str, partition: int) -> Sequence[Member]:
        """Who else may answer for it, the owner first; nobody while that is not known."""

    def members(self) -> Sequence[Member]:
        """All instances that are there, this one among them."""
