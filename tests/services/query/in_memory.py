"""A store, roles and parts in memory, for tests of what is built on them."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from contracts.metrics.counts import Counts
from contracts.metrics.query import CATALOGUE
from contracts.model.named_state import NamedState, QueryOptions
from services.query.cluster.routing import Member, Role, Standing
from services.query.dependencies import Parts
from services.query.settings import QuerySettings
from services.query.store.entry import Change, Entry
from services.query.store.store import Page, Store, Update

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import timedelta

NOW = 1_700_000_000_000
"""The time in tests, in milliseconds since 1970."""


class MemoryStore:
    """A Store that keeps versions in lists. Lives end `lifetime` milliseconds after they began."""

    def __init__(self, lifetime: int | None = None, history: int = 1) -> None:
        self.lifetime = lifetime
        self.history = history
        self.entries: dict[str, list[Entry]] = {}
        self.positions: dict[int, int] = {}
        self.seen = 0

    def get(self, key: str) -> Entry | None:
        found = self.entries.get(key)
        return found[-1] if found else None

    def gets(self, keys: Sequence[str]) -> Sequence[Entry | None]:
        return [self.get(key) for key in keys]

    def versions(self, key: str) -> Sequence[Entry]:
        return self.entries.get(key, [])

    def page(
        self, *, prefix: str, after: str | None, limit: int, where: Mapping[str, str], partitions: Collection[int]
    ) -> Page:
        keys = [key for key in sorted(self.entries) if key.startswith(prefix) and (after is None or key > after)]
        found = [(key, self.entries[key][-1]) for key in keys]
        asked = [(key, one) for key, one in found if one.partition in partitions and not self.ended(one)]
        asked = [
            (key, one) for key, one in asked if all(f'"{value}"'.encode() in one.value for value in where.values())
        ]
        return Page(asked[:limit], asked[limit - 1][0] if len(asked) > limit else None)

    def keys(self) -> int:
        return len(self.entries)

    def watermark(self) -> int:
        return self.seen

    def advance(self, watermark: int) -> None:
        self.seen = max(self.seen, watermark)

    def ended(self, entry: Entry) -> bool:
        return entry.life < self.living_since()

    def living_since(self) -> int:
        return 0 if self.lifetime is None else self.seen - self.lifetime

    def position(self, partition: int) -> int | None:
        return self.positions.get(partition)

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> list[Change]:
        changes = [change for update in updates for change in self._applied(update)]
        self.positions.update(positions)
        return changes

    def put(self, key: str, **facts: Any) -> Entry:
        """Apply one entry, with these facts in place of usual ones."""
        usual: dict[str, Any] = {
            "life": NOW,
            "epoch": 0,
            "version": 1,
            "event_time": NOW,
            "partition": 0,
            "offset": 7,
            "value": b'{"a":{"b":1}}',
        }
        entry = Entry(**(usual | facts))
        self.apply([Update(key, entry.partition, entry.offset, entry)], {entry.partition: entry.offset + 1})
        return entry

    def forget(self, partition: int) -> bool:
        self.positions.pop(partition, None)
        self.entries = {key: found for key, found in self.entries.items() if found[-1].partition != partition}
        return True

    def sweep(self) -> None:
        pass

    def fresh(self, partition: int) -> int | None:  # noqa: ARG002  # no topic is behind it
        return None

    def freshen(self, times: Mapping[int, int]) -> None:
        pass

    def half_forgotten(self, partition: int) -> bool:  # noqa: ARG002  # it forgets all at once
        return False

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _applied(self, update: Update) -> list[Change]:
        entry, known = update.entry, self.get(update.key)
        if entry is None:
            if known and update.life not in (None, known.life):
                return []
            self.entries.pop(update.key, None)
        elif known and known.order >= entry.order:
            return []
        else:
            kept = self.entries[update.key][1 - self.history :] if known and known.life == entry.life else []
            self.entries[update.key] = [*(kept if self.history > 1 else []), entry]
            self.seen = max(self.seen, entry.life)
        return [Change("", update.key, entry)]


class MemoryRoles:
    """Roles that are what a test says: owner of all, unless it says otherwise."""

    def __init__(self) -> None:
        self.own = Standing(Role.OWNER, 0)
        self.others: dict[int, Standing] = {}
        self.known: list[Member] = []

    def standing(self, state: str, partition: int) -> Standing:  # noqa: ARG002  # all states alike
        return self.others.get(partition, self.own)

    def owners(self, state: str, partition: int) -> Sequence[Member]:  # noqa: ARG002  # all partitions alike
        return self.known

    def members(self) -> Sequence[Member]:
        return self.known


def a_state(
    name: str = "flights", *, lifetime: timedelta | None = None, query: QueryOptions | None = None
) -> NamedState:
    """A state of four partitions."""
    return NamedState(name, f"{name}-topic", {"type": "object"}, 4, lifetime=lifetime, query=query or QueryOptions())


def parts_of(
    *states: NamedState, stores: Mapping[str, Store] | None = None, roles: MemoryRoles | None = None, **told: Any
) -> Parts:
    """Parts of an instance with these states, whose clocks are real but for the time, and settings."""
    usual: dict[str, Any] = {"application": "none:none", "http_port": 0, "instance": "one"}
    lives = {one.name: int(one.lifetime.total_seconds() * 1000) if one.lifetime else None for one in states}
    made: dict[str, Store] = {one.name: MemoryStore(lives[one.name], one.query.history) for one in states}
    settings = QuerySettings(**(usual | told))
    return Parts(
        settings=settings,
        states={one.name: one for one in states},
        stores=stores or made,
        roles=roles or MemoryRoles(),
        counts=Counts(CATALOGUE),
        now=lambda: NOW,
        clock=time.monotonic,
    )


async def until(condition: Callable[[], bool], within_s: float = 10) -> None:
    """Let the loop turn until the condition holds."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  # what is waited for sets no event
            await asyncio.sleep(0.001)
