"""What another instance is to be told of the subscriptions that it serves, and has not been told yet."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from services.query.push.subscription import Subscription


class RelayedSubscriptions:
    """Each message is made when it can be said, from what is wished then.

    So what waits is bounded by the subscriptions, however long nobody listens. `since` says after which offsets that
    instance is to tell a subscription of the partitions that it answers for.
    """

    def __init__(self, since: Callable[[Subscription], Mapping[int, int | None]]) -> None:
        self._since = since
        self._count = count(1)
        self._subscriptions: dict[str, Subscription] = {}
        self._names: dict[Subscription, str] = {}
        self._said: set[str] = set()
        self._unsaid: dict[str, set[int]] = {}
        self._unanswered: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._names)

    @property
    def waiting(self) -> int:
        """Of how many subscriptions something is still to be said."""
        return len(self._unsaid)

    def named(self, names: Iterable[str]) -> list[Subscription]:
        """The subscriptions of these names that are still wished."""
        return [self._subscriptions[one] for one in names if one in self._subscriptions]

    def add(self, subscription: Subscription) -> None:
        """It is wished from now on."""
        if subscription not in self._names:
            name = self._names[subscription] = f"{next(self._count)}"
            self._subscriptions[name] = subscription
            self._unsaid[name] = set()

    def drop(self, subscription: Subscription) -> None:
        """It is wished no more. Of what was never said nothing need be taken back."""
        name = self._names.pop(subscription, None)
        if name is not None:
            del self._subscriptions[name]
            self._unsaid.pop(name, None)
            if name in self._said:
                self._unsaid[name] = set()

    def resume(self, subscription: Subscription, partition: int) -> None:
        """That instance answers for the partition now."""
        name = self._names.get(subscription)
        if name is not None:
            self._unsaid.setdefault(name, set()).add(partition)

    def start_anew(self) -> None:
        """Nobody has heard anything of this."""
        self._said.clear()
        self._unanswered.clear()
        self._unsaid = {name: set() for name in self._subscriptions}

    def next(self) -> dict[str, Any] | None:
        """What is to be said next, which counts as said now; None: nothing."""
        while self._unsaid:
            name = next(iter(self._unsaid))
            message = self._message(name, self._unsaid.pop(name))
            if message is not None:
                self._unanswered[name] += 1
                return message
        return None

    def answered(self, name: str | None) -> None:
        """That instance did what was said of this name, or refused; None: it does not know the name."""
        if name is not None and name in self._unanswered:
            self._unanswered[name] -= 1
            if not self._unanswered[name]:
                del self._unanswered[name]

    def settled(self) -> list[Subscription]:
        """Those of which that instance has heard all."""
        return [
            one for name, one in self._subscriptions.items() if not (name in self._unsaid or self._unanswered[name])
        ]

    def _message(self, name: str, partitions: set[int]) -> dict[str, Any] | None:
        subscription = self._subscriptions.get(name)
        if subscription is None:
            self._said.discard(name)
            return {"type": "unsubscribe", "id": name}
        since = {str(one): offset for one, offset in self._since(subscription).items()}
        if name not in self._said:
            self._said.add(name)
            return {"type": "subscribe", "id": name, **_asked(subscription), "partitions": since}
        resumed = {one: offset for one, offset in since.items() if int(one) in partitions}
        return {"type": "resume", "id": name, "partitions": resumed} if resumed else None


def _asked(subscription: Subscription) -> dict[str, Any]:
    """A key that was told of is told again: what it is now may be something else."""
    asked = subscription.interest
    what = {"prefix": asked.prefix, "where": dict(asked.where)} if asked.key is None else {"key": asked.key}
    current = subscription.current or (asked.key is not None and bool(subscription.begun))
    return {"state": asked.state, **what, "current": current}
