"""The errors of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contracts.errors import PermanentError, RetryableError, StateloopError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contracts.sinks.store import Row


class StoreUnavailableError(RetryableError):
    """The store did not answer, or not as it will when it works again. `reason` contains no password."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the store is unavailable ({reason}): the sink tries again until it answers")
        self.reason = reason


class StoreMismatchError(PermanentError):
    """The target exists, and is not what the sink needs."""

    def __init__(self, target: str, problem: str, remedy: str) -> None:
        super().__init__(f"{target} {problem}: {remedy}")
        self.target = target


class PositionConflictError(StateloopError):
    """Partitions are not at the expected positions: another sink wrote, or the store lost writes or all it had."""

    def __init__(self, positions: Mapping[int, int]) -> None:
        super().__init__(f"the store has other positions: {dict(positions)}")
        self.positions = positions
        """The present position of each partition of the batch, 0 for one without."""


class RefusedRow(NamedTuple):
    """A row that a store can never write, and why."""

    row: Row
    reason: str


class RowsRefusedError(StateloopError):
    """The store can never write these rows of a batch, and has written none of it."""

    def __init__(self, refused: Sequence[RefusedRow]) -> None:
        super().__init__(f"the store refuses {len(refused)} rows, the first because: {refused[0].reason}")
        self.refused = refused
