"""The operations on a running job."""

from typing import Protocol

PARTITIONS, MORE = 2, 4
"""The parallelism of the state, before and after rescaling."""


class Engine(Protocol):
    """One engine, whose job runs with the first model of the state from the beginning."""

    name: str

    def savepoint(self) -> None:
        """Make a savepoint while the job runs."""
        ...

    def change(self) -> None:
        """Replace the job by one with the second model."""
        ...

    def roll_back(self) -> None:
        """Replace the job by one with the first model and its state."""
        ...

    def rescale(self) -> None:
        """Replace the job by one with another parallelism of the state."""
        ...

    def stop(self) -> None:
        """End everything."""
        ...
