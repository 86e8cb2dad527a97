"""Finds the subscriptions that match a change, at a cost that does not grow with those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from services.query.push.delivered_versions import DeliveredKey
    from services.query.push.filter import RecordFields, SubscriptionFilter

S = TypeVar("S")
K = TypeVar("K")
L = TypeVar("L")
V = TypeVar("V")


class FilterIndex(Generic[S]):
    """The subscriptions of one state by their filters.

    A change costs one lookup by key, one per length of prefix, and one per path that a filter names first.
    """

    def __init__(self) -> None:
        self._keys: dict[str, dict[S, None]] = {}
        self._prefixes: dict[int, dict[str, dict[S, None]]] = {}
        self._filters: dict[str, dict[str, dict[S, SubscriptionFilter]]] = {}
        self.silent: dict[S, None] = {}
        """The subscriptions to silent keys."""
        self._all: dict[S, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[S]:
        return iter(self._all)

    def add(self, wanted: SubscriptionFilter, subscription: S) -> None:
        """Add a subscription."""
        self._all[subscription] = None
        if wanted.silent_for is not None:
            self.silent[subscription] = None
        elif wanted.key is not None:
            self._keys.setdefault(wanted.key, {})[subscription] = None
        elif wanted.where:
            path, value = wanted.where[0]
            self._filters.setdefault(path, {}).setdefault(value, {})[subscription] = wanted
        else:
            prefixes = self._prefixes.setdefault(len(wanted.prefix), {})
            prefixes.setdefault(wanted.prefix, {})[subscription] = None

    def remove(self, wanted: SubscriptionFilter, subscription: S) -> None:
        """Remove a subscription, with entries that no other one needs."""
        self._all.pop(subscription, None)
        if wanted.silent_for is not None:
            del self.silent[subscription]
        elif wanted.key is not None:
            _drop(self._keys, wanted.key, subscription)
        elif wanted.where:
            path, value = wanted.where[0]
            _drop(self._filters[path], value, subscription)
            _prune(self._filters, path)
        else:
            _drop(self._prefixes[len(wanted.prefix)], wanted.prefix, subscription)
            _prune(self._prefixes, len(wanted.prefix))

    @property
    def has_filters(self) -> bool:
        """Whether a subscription filters by fields or by silence, so that a key may stop to match it."""
        return bool(self._filters or self.silent)

    def by_key(self, key: str) -> Iterator[S]:
        """The subscriptions to the key or to a prefix of it, whatever the fields of the record are."""
        yield from self._keys.get(key, ())
        for length, prefixes in self._prefixes.items():
            if length <= len(key):
                yield from prefixes.get(key[:length], ())

    def by_fields(self, key: str, record: RecordFields) -> Iterator[S]:
        """The subscriptions that filter by fields and match the record."""
        for path, values in self._filters.items():
            found = record.text(path)
            for subscription, wanted in values.get(found, {}).items() if found is not None else ():
                if key.startswith(wanted.prefix) and wanted.matches(record):
                    yield subscription


class FilterMatches(Generic[S]):
    """The subscriptions, by key, whose filter the client last saw the key match. They must learn when it stops."""

    def __init__(self) -> None:
        self._matches: dict[DeliveredKey, dict[S, None]] = {}

    def __len__(self) -> int:
        return len(self._matches)

    def add(self, key: DeliveredKey, subscription: S) -> None:
        """Note that the client receives the key."""
        self._matches.setdefault(key, {})[subscription] = None

    def remove(self, key: DeliveredKey, subscription: S) -> None:
        """Note that the client does not have the key any more."""
        found = self._matches.get(key, {})
        found.pop(subscription, None)
        if not found:
            self._matches.pop(key, None)

    def of(self, key: DeliveredKey) -> Iterator[S]:
        """The subscriptions that have the key now. They may change during the iteration."""
        return iter(tuple(self._matches.get(key, ())))


def _drop(found: dict[str, dict[S, V]], name: str, subscription: S) -> None:
    del found[name][subscription]
    _prune(found, name)


def _prune(found: dict[K, dict[L, V]], name: K) -> None:
    if not found[name]:
        del found[name]
