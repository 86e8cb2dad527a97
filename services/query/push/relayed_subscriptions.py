"""The subscriptions that another instance serves, and the commands that it has not received yet."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

from services.query.lookup.decision import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from services.query.push.subscription import Subscription


class RelayedSubscriptions:
    """Makes each command when it can be sent, from the subscriptions of that moment.

    Pending commands are therefore bounded by the subscriptions, however long the connection is down. `since` returns
    the offsets after which the instance must deliver, of the partitions that it serves.
    """

    def __init__(self, since: Callable[[Subscription], Mapping[int, int | None]]) -> None:
        self._since = since
        self._count = count(1)
        self._subscriptions: dict[str, Subscription] = {}
        self._names: dict[Subscription, str] = {}
        self._sent: set[str] = set()
        self._pending: dict[str, set[int]] = {}
        self._unacknowledged: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._names)

    @property
    def pending(self) -> int:
        """The number of subscriptions with a pending command."""
        return len(self._pending)

    def named(self, names: Iterable[str]) -> list[Subscription]:
        """The subscriptions of these names that still exist."""
        return [self._subscriptions[name] for name in names if name in self._subscriptions]

    def add(self, subscription: Subscription) -> None:
        """Subscribe."""
        if subscription not in self._names:
            name = self._names[subscription] = f"{next(self._count)}"
            self._subscriptions[name] = subscription
            self._pending[name] = set()

    def remove(self, subscription: Subscription) -> None:
        """Unsubscribe, if the subscription was sent."""
        name = self._names.pop(subscription, None)
        if name is not None:
            del self._subscriptions[name]
            self._pending.pop(name, None)
            if name in self._sent:
                self._pending[name] = set()

    def resume(self, subscription: Subscription, partition: int) -> None:
        """Request a partition that the instance serves now."""
        name = self._names.get(subscription)
        if name is not None:
            self._pending.setdefault(name, set()).add(partition)

    def reset(self) -> None:
        """Send everything again: the connection is new."""
        self._sent.clear()
        self._unacknowledged.clear()
        self._pending = {name: set() for name in self._subscriptions}

    def next_command(self) -> dict[str, Any] | None:
        """The next command, which counts as sent; None if there is none."""
        while self._pending:
            name = next(iter(self._pending))
            command = self._command(name, self._pending.pop(name))
            if command is not None:
                self._unacknowledged[name] += 1
                return command
        return None

    def acknowledge(self, name: str | None) -> None:
        """Record that the instance executed or rejected a command; None: it could not read the name."""
        if name is not None and name in self._unacknowledged:
            self._unacknowledged[name] -= 1
            if not self._unacknowledged[name]:
                del self._unacknowledged[name]

    def settled(self) -> list[Subscription]:
        """The subscriptions without pending or unacknowledged commands."""
        return [
            one
            for name, one in self._subscriptions.items()
            if not (name in self._pending or self._unacknowledged[name])
        ]

    def _command(self, name: str, partitions: set[int]) -> dict[str, Any] | None:
        subscription = self._subscriptions.get(name)
        if subscription is None:
            self._sent.discard(name)
            return {"type": "unsubscribe", "id": name}
        since = {str(one): offset for one, offset in self._since(subscription).items()}
        if name not in self._sent:
            self._sent.add(name)
            return {"type": "subscribe", "id": name, **_filter_of(subscription), "partitions": since}
        resumed = {one: offset for one, offset in since.items() if int(one) in partitions}
        return {"type": "resume", "id": name, "partitions": resumed} if resumed else None


def _filter_of(subscription: Subscription) -> dict[str, Any]:
    """The members of a subscribe command. A key that was delivered is requested again: it may have changed."""
    wanted = subscription.filter
    what: dict[str, Any] = (
        {"prefix": wanted.prefix, "where": dict(wanted.where)} if wanted.key is None else {"key": wanted.key}
    )
    if wanted.window != "newest":  # an instance of an earlier release does not know the member
        what["window"] = iso(wanted.window) if isinstance(wanted.window, int) else wanted.window
    if wanted.silent_for is not None:
        what["silent_for"] = f"{wanted.silent_for}s"
    current = subscription.current or (wanted.key is not None and bool(subscription.started))
    return {"state": wanted.state, **what, "current": current}
