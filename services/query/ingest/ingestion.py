"""How far the stores are behind their topics, and who says which partitions are followed: the seam to the cluster.

The follower has a consumer of its own, in no group: whoever is a member of the group says what to follow, as owner or
for a standby copy. So a copy that becomes the owner goes on as it is, without a seek.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from services.query.store.entry import Change


class Part(NamedTuple):
    """A partition of a state's topic."""

    state: str
    partition: int


class Progress(NamedTuple):
    """How far a partition was followed."""

    position: int
    """The offset of the first record that readers do not see yet."""
    end: int | None
    """The partition's end, as the broker told it last; None until it did. While the broker is away it stands still."""

    @property
    def lag(self) -> int:
        """Records between the two; 0 until the end is known."""
        return max(0, (self.end or 0) - self.position)


class Listener(Protocol):
    """Is told what the follower did; always in the event loop."""

    def changed(self, changes: Sequence[Change]) -> None:
        """Readers can see these since just now, in this order."""

    def restarted(self, part: Part) -> None:
        """All that is held of it will be removed as soon as this returns, and read from the topic's beginning.

        It happens when the topic no longer has the record at the position. Until the partition has caught up again,
        what the store says of its keys is not true.
        """


class Following(Protocol):
    """Keeps the stores up with their topics. From the event loop; nothing but `run` and `ends` takes time."""

    def follow(self, part: Part) -> None:
        """Read it from where the store is on, from its beginning if nothing of it is there."""

    def leave(self, part: Part) -> None:
        """Read it no more. What is in the store stays, and is where `follow` goes on."""

    def progress(self, part: Part) -> Progress | None:
        """How far it is; None when it is not followed, or was not begun yet."""

    async def ends(self, parts: Collection[Part]) -> dict[Part, int]:
        """Where the partitions end now, asked of the brokers; what they do not tell within some seconds is left out.

        A partition whose position reaches this end has all that anybody can have read when this was called.
        """
        ...

    async def run(self) -> None:
        """Follow until cancelled. Raises what it cannot survive: a full disk, for one."""
