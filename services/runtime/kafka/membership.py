"""When a member was last known to belong to its consumer group: a fence by time against processes that were frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FRESH_S = 3.0
"""The age up to which a proof counts, and the longest pause between two polls after which a poll is still one.

With the time for which a producer sends a record it is less than the session's timeout, after which other workers have
the partitions."""
NEVER = float("-inf")


class PendingCommit(NamedTuple):
    """A commit that the broker has not answered."""

    began_at: float
    positions: Mapping[int, int]


class GroupMembership:
    """The proofs that a consumer is a member of its group. Called in the consumer's thread.

    The client sends heartbeats as long as the process runs, so the start of a poll is a proof. While the group leaves a
    commit unanswered, a poll proves no more than the start of the commit: the group may not receive the heartbeats
    either. After a pause a poll is no proof: the group may have given the partitions to others while the process was
    frozen, and until the client finds out, it returns records that it had fetched before. Then only a commit is a proof
    that began after the pause, and that the group has accepted.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._polled_at = NEVER
        self._resumed_at: float | None = None
        self._pending: list[PendingCommit] = []
        self.proven_at = NEVER
        """The time of the last proof. Any thread may read it."""

    def poll(self) -> None:
        """Note that a poll begins."""
        now = self._clock()
        if now - self._polled_at > FRESH_S:
            self._resumed_at = now
        self._polled_at = now
        self._prove_by_poll()

    def begin_commit(self, positions: Mapping[int, int]) -> None:
        """Note that a commit of these positions begins."""
        self._pending.append(PendingCommit(self._clock(), dict(positions)))

    def is_pending(self, positions: Mapping[int, int]) -> bool:
        """Return whether a commit of these positions is unanswered."""
        return any(commit.positions == positions for commit in self._pending)

    @property
    def has_pending(self) -> bool:
        """Whether a commit is unanswered."""
        return bool(self._pending)

    @property
    def oldest(self) -> Mapping[int, int]:
        """The positions of the oldest unanswered commit: an error may come without positions."""
        return self._pending[0].positions if self._pending else {}

    def end_commit(self, positions: Mapping[int, int], *, accepted: bool) -> None:
        """Note the answer to the oldest unanswered commit of these positions."""
        answered = next((commit for commit in self._pending if commit.positions == positions), None)
        if answered is None:
            return
        self._pending.remove(answered)
        if accepted:
            self._prove_by_poll()
            self.proven_at = max(self.proven_at, answered.began_at)
            if self._resumed_at is not None and answered.began_at >= self._resumed_at:
                self._resumed_at = None

    def _prove_by_poll(self) -> None:
        """Take the start of the last poll for a proof, or of the oldest unanswered commit if that is earlier."""
        if self._resumed_at is None:
            unanswered = self._pending[0].began_at if self._pending else self._polled_at
            self.proven_at = max(self.proven_at, min(unanswered, self._polled_at))
