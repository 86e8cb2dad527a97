"""The commands: each writes what it learns, and returns the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from services.client.answers import Expired, Found, NeverSeen
from services.client.errors import UnknownField
from services.client.flat import rows
from services.client.paths import has_path, unknown_path
from services.client.subscriptions import Interest
from services.client.tables import fields, happened, heading, missing, states
from services.client.told import line
from services.client.updates import Mark

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

    from services.client.client import Client
    from services.client.targets import Asking

FOLLOWED = 10_000
"""Keys of which a watch remembers what it showed, to tell what has changed."""


class Code(IntEnum):
    """Exit codes."""

    FOUND = 0
    ERROR = 1
    USAGE = 2
    NEVER_SEEN = 3
    EXPIRED = 4
    INTERRUPTED = 130


@dataclass(frozen=True)
class Commands:
    """The commands on one client. `write` is for machines, `console` for people; `time` is that of the clock."""

    client: Client
    console: Console
    write: Callable[[str], None]
    time: Callable[[], str]

    async def run(self, told: Namespace) -> Code:
        """Do what the arguments say."""
        match told.command:
            case "get":
                return await self._get(told)
            case "watch":
                return await self._watch(told)
            case "keys":
                return await self._keys(told)
        return await self._states(told)

    async def _get(self, told: Namespace) -> Code:
        answer = await self.client.get(told.state, told.key, **_asking(told))
        if isinstance(answer, Found):
            await self._check_fields(told.state, [path for path in told.fields if not has_path(answer.value, path)])
        if told.json:
            self.write(line(answer))
        elif isinstance(answer, Found):
            self.console.print(heading(answer))
            self.console.print(fields(answer))
        else:
            self.console.print(missing(answer))
        if isinstance(answer, NeverSeen):
            return Code.NEVER_SEEN
        return Code.EXPIRED if isinstance(answer, Expired) else Code.FOUND

    async def _check_fields(self, state: str, missing: Sequence[str]) -> None:
        """Raise UnknownField for a path that no record of the state has. One that only this record lacks is empty."""
        if not missing:
            return
        schema: Mapping[str, Any] = next(
            (one.told["schema"] for one in await self.client.states() if one.name == state), {}
        )
        for path in missing:
            if unknown := unknown_path(schema, path):
                raise UnknownField(state, unknown)

    async def _keys(self, told: Namespace) -> Code:
        """A key is written as it is, also for people: it is there to be piped on."""
        async for key in self.client.keys(told.state, prefix=told.prefix, where=dict(told.where)):
            self.write(line(key) if told.json else key)
        return Code.FOUND

    async def _states(self, told: Namespace) -> Code:
        known = await self.client.states()
        if told.json:
            for one in known:
                self.write(line(one))
        else:
            self.console.print(states(known))
        return Code.FOUND

    async def _watch(self, told: Namespace) -> Code:
        before: LRUCache[str, Mapping[str, str]] = LRUCache(FOLLOWED)
        if told.key is None:
            updates = self.client.watch_many(Interest(told.state, prefix=told.prefix, where=dict(told.where)))
        else:
            updates = self.client.watch(told.state, told.key)
        async for update in updates:
            if told.json or isinstance(update, Mark):
                self.write(line(update))
                continue
            self.console.print(happened(update, before.get(update.key), self.time()), no_wrap=False)
            if isinstance(update, Found):
                before[update.key] = rows(update.value)
            else:
                before.pop(update.key, None)
        return Code.FOUND


def _asking(told: Namespace) -> Asking:
    asking: Asking = {"fields": told.fields}
    if told.version is not None:
        asking["as_of"] = told.version
    if told.min_version is not None:
        asking["min_version"] = told.min_version
    if told.min_offset is not None:
        asking["min_offset"] = told.min_offset
    if told.wait is not None:
        asking["wait"] = told.wait
    return asking
