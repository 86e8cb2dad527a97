"""The commands: each writes its result, and returns the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from services.client.answers import Expired, Found, NeverSeen
from services.client.errors import UnknownFieldError
from services.client.flat import rows
from services.client.json_lines import line
from services.client.paths import has_path, unknown_path
from services.client.subscriptions import WatchFilter
from services.client.tables import fields, happened, heading, missing, states
from services.client.watch_updates import Mark

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

    from services.client.client import Client
    from services.client.request_targets import ReadOptions

MAX_WATCHED_KEYS = 10_000
"""The number of keys whose last values a watch stores, to print the changes."""


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
    """The commands on one client. `write` writes lines, `console` tables; `time` returns the time of day."""

    client: Client
    console: Console
    write: Callable[[str], None]
    time: Callable[[], str]

    async def run(self, options: Namespace) -> Code:
        """Run the command of the arguments."""
        match options.command:
            case "get":
                return await self._get(options)
            case "watch":
                return await self._watch(options)
            case "keys":
                return await self._keys(options)
        return await self._states(options)

    async def _get(self, options: Namespace) -> Code:
        answer = await self.client.get(options.state, options.key, **_read_options(options))
        if isinstance(answer, Found):
            await self._check_fields(
                options.state, [path for path in options.fields if not has_path(answer.value, path)]
            )
        if options.json:
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
        """Raise UnknownFieldError for a path that no record of the state has, not one that this record lacks."""
        if not missing:
            return
        schema: Mapping[str, Any] = next(
            (one.facts["schema"] for one in await self.client.states() if one.name == state), {}
        )
        for path in missing:
            if unknown := unknown_path(schema, path):
                raise UnknownFieldError(state, unknown)

    async def _keys(self, options: Namespace) -> Code:
        """Write the keys as they are, so that they can be piped."""
        async for key in self.client.keys(options.state, prefix=options.prefix, where=dict(options.where)):
            self.write(line(key) if options.json else key)
        return Code.FOUND

    async def _states(self, options: Namespace) -> Code:
        known = await self.client.states()
        if options.json:
            for one in known:
                self.write(line(one))
        else:
            self.console.print(states(known))
        return Code.FOUND

    async def _watch(self, options: Namespace) -> Code:
        before: LRUCache[str, Mapping[str, str]] = LRUCache(MAX_WATCHED_KEYS)
        if options.key is None:
            updates = self.client.watch_many(
                WatchFilter(options.state, prefix=options.prefix, where=dict(options.where))
            )
        else:
            updates = self.client.watch(options.state, options.key)
        async for update in updates:
            if options.json or isinstance(update, Mark):
                self.write(line(update))
                continue
            self.console.print(happened(update, before.get(update.key), self.time()), no_wrap=False)
            if isinstance(update, Found):
                before[update.key] = rows(update.value)
            else:
                before.pop(update.key, None)
        return Code.FOUND


def _read_options(options: Namespace) -> ReadOptions:
    found: ReadOptions = {"fields": options.fields}
    if options.version is not None:
        found["as_of"] = options.version
    if options.min_version is not None:
        found["min_version"] = options.min_version
    if options.min_offset is not None:
        found["min_offset"] = options.min_offset
    if options.wait is not None:
        found["wait"] = options.wait
    return found
