"""A place in a topic that has to be reached: its end, as the brokers told it after a certain moment."""

from __future__ import annotations


class Barrier:
    """Passed as soon as the position was once at the end that was asked for after this was made."""

    __slots__ = ("passed", "target")

    def __init__(self) -> None:
        self.target: int | None = None
        """The end; None until the brokers told it."""
        self.passed = False

    def look(self, position: int) -> bool:
        """Whether it is passed, now that the position is there."""
        if not self.passed and self.target is not None:
            self.passed = position >= self.target
        return self.passed
