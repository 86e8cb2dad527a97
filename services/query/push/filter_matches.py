"""Which filters a key has passed: those subscriptions are told when it does not pass any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from services.query.push.subscription import Subscription


class FilterMatches:
    """Of one state: by key, the subscriptions with a filter that were told of it."""

    def __init__(self) -> None:
        self._holders: dict[str, dict[Subscription, None]] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def hold(self, key: str, subscription: Subscription) -> None:
        """It was told of the key."""
        self._holders.setdefault(key, {})[subscription] = None

    def release(self, key: str, subscription: Subscription) -> None:
        """It was told that the key is gone, or does not remember it."""
        held = self._holders.get(key, {})
        held.pop(subscription, None)
        if not held:
            self._holders.pop(key, None)

    def of(self, key: str) -> Iterator[Subscription]:
        """Those that hold the key now, while others come and go."""
        return iter(tuple(self._holders.get(key, ())))
