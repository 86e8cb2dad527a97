"""How an API counts what it allows."""

BURST_S = 0.1
"""A bucket holds what this time brings: a client that is late for once may catch up, and no more."""


class Quota:
    """A bucket of tokens that fills at a steady rate, and from which each call takes one."""

    def __init__(self, per_s: int) -> None:
        self._per_s, self._most = per_s, max(1.0, per_s * BURST_S)
        self._tokens, self._at = self._most, 0.0

    def take(self, now: float) -> bool:
        """Whether a call at this time, in seconds, is allowed."""
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._per_s)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
