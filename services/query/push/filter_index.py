"""Finds the subscriptions that a change concerns, at a cost that does not grow with those that it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from services.query.push.filter import Filter, RecordFields

S = TypeVar("S")
K = TypeVar("K")
L = TypeVar("L")
V = TypeVar("V")


class FilterIndex(Generic[S]):
    """Subscriptions by their interest, of one state.

    A change costs a look by its key, one by each length of prefix, and one by each path that somebody filters by.
    """

    def __init__(self) -> None:
        self._keys: dict[str, dict[S, None]] = {}
        self._prefixes: dict[int, dict[str, dict[S, None]]] = {}
        self._filters: dict[str, dict[str, dict[S, Filter]]] = {}
        self._all: set[S] = set()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[S]:
        return iter(self._all)

    def add(self, interest: Filter, subscription: S) -> None:
        """From now on it is found."""
        self._all.add(subscription)
        if interest.key is not None:
            self._keys.setdefault(interest.key, {})[subscription] = None
        elif interest.where:
            path, value = interest.where[0]
            self._filters.setdefault(path, {}).setdefault(value, {})[subscription] = interest
        else:
            prefixes = self._prefixes.setdefault(len(interest.prefix), {})
            prefixes.setdefault(interest.prefix, {})[subscription] = None

    def remove(self, interest: Filter, subscription: S) -> None:
        """From now on it is not found. What nobody asks for any more costs nothing."""
        self._all.discard(subscription)
        if interest.key is not None:
            _drop(self._keys, interest.key, subscription)
        elif interest.where:
            path, value = interest.where[0]
            _drop(self._filters[path], value, subscription)
            _prune(self._filters, path)
        else:
            _drop(self._prefixes[len(interest.prefix)], interest.prefix, subscription)
            _prune(self._prefixes, len(interest.prefix))

    @property
    def filters(self) -> bool:
        """Whether anybody filters: otherwise nobody need parse a record."""
        return bool(self._filters)

    def named(self, key: str) -> Iterator[S]:
        """Those that ask for the key itself, or for its prefix: for these the record's fields do not matter."""
        yield from self._keys.get(key, ())
        for length, prefixes in self._prefixes.items():
            if length <= len(key):
                yield from prefixes.get(key[:length], ())

    def filtered(self, key: str, record: RecordFields) -> Iterator[S]:
        """Those that ask for what is in the record's fields."""
        for path, values in self._filters.items():
            found = record.text(path)
            for subscription, interest in values.get(found, {}).items() if found is not None else ():
                if key.startswith(interest.prefix) and interest.holds(record):
                    yield subscription


def _drop(found: dict[str, dict[S, V]], name: str, subscription: S) -> None:
    del found[name][subscription]
    _prune(found, name)


def _prune(found: dict[K, dict[L, V]], name: K) -> None:
    if not found[name]:
        del found[name]
