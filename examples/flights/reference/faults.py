"""The faults of the server: a rate limit, and calls that fail."""

import hashlib
from collections.abc import Callable

CALLS = 1 << 64


class TokenBucket:
    """A token bucket that holds one second's calls (at least one). A rate of 0 is no limit."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._most = max(rate, 1.0)
        self._tokens = self._most
        self._filled = clock()

    def take(self) -> float:
        """Take a token, if there is one. How many seconds it is until the next one; 0 when it was taken."""
        if not self._rate:
            return 0.0
        now = self._clock()
        self._tokens = min(self._most, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate


def fails(path: str, nth: int, rate: float, seed: int) -> bool:
    """Whether the nth call of a path fails: the same ones in each run with a seed, in whatever order they come."""
    digest = hashlib.blake2b(f"{seed} {nth} {path}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < rate * CALLS
