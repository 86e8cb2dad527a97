"""A clock that stands where a test puts it."""

from __future__ import annotations


class Clock:
    """In seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
