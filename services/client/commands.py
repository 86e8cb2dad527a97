"""The commands: each writes its result, and returns the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from services.client.answers import Expired, Found, NeverSeen, NoWindow
from services.client.arguments import is_range
from services.client.errors import UnknownFieldError
from services.client.flat import rows, text
from services.client.json_lines import line
from services.client.paths import has_path, unknown_path, value_at
from services.client.subscriptions import WatchFilter
from services.client.tables import coverage, fields, happened, heading, missing, states, windows
from services.client.watch_updates import Mark

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

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
            case "get" if is_range(options):
                return await self._get_windows(options)
            case "get":
                return await self._get(options)
            case "coverage":
                return await self._coverage(options)
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
        if isinstance(answer, NeverSeen | NoWindow):
            return Code.NEVER_SEEN
        return Code.EXPIRED if isinstance(answer, Expired) else Code.FOUND

    async def _get_windows(self, options: Namespace) -> Code:
        """Write the windows of a key: JSON as they come, or a table of all."""
        found = []
        async for one in self.client.windows(
            options.state,
            options.key,
            start=options.start,
            end=options.end,
            newest_first=options.newest_first,
            fields=options.fields,
            limit=options.limit,
        ):
            found.append(one)
            if options.json:
                self.write(line(one))
        await self._check_fields(
            options.state, [path for path in options.fields if not any(has_path(one.value, path) for one in found)]
        )
        if not options.json:
            self.console.print(windows(options.key, found, options.fields), crop=False)
        return Code.FOUND if found else Code.NEVER_SEEN

    async def _coverage(self, options: Namespace) -> Code:
        found = await self.client.coverage(
            options.state, options.key, start=options.start, end=options.end, field=options.field
        )
        if options.json:
            self.write(line(found))
        else:
            self.console.print(missing(found) if isinstance(found, NeverSeen) else coverage(found))
        return Code.NEVER_SEEN if isinstance(found, NeverSeen) else Code.FOUND

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
        """Write the keys as they are, so that they can be piped; with --by, a tab and the number after each."""
        if options.window is not None:
            return await self._keys_of_window(options)
        keys = self.client.keys(
            options.state, prefix=options.prefix, where=dict(options.where), silent_for=options.silent_for
        )
        async for key in keys:
            self.write(line(key) if options.json else key)
        return Code.FOUND

    async def _keys_of_window(self, options: Namespace) -> Code:
        async for one in self.client.window_items(
            options.state,
            options.window,
            prefix=options.prefix,
            where=dict(options.where),
            order_by=options.by and f"-{options.by}",
            limit=options.top,
        ):
            if options.json:
                self.write(line(one if options.by else one.key))
            else:
                self.write(f"{one.key}\t{text(value_at(one.value, options.by))}" if options.by else one.key)
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
        before: LRUCache[tuple[str, datetime | None], Mapping[str, str]] = LRUCache(MAX_WATCHED_KEYS)
        if options.key is None or options.silent_for is not None:
            wanted = WatchFilter(
                options.state,
                options.key,
                prefix=options.prefix or "",
                where=dict(options.where),
                window=options.window,
                silent_for=options.silent_for,
            )
            updates = self.client.watch_many(wanted)
        else:
            updates = self.client.watch(options.state, options.key, window=options.window)
        async for update in updates:
            if options.json or isinstance(update, Mark):
                self.write(line(update))
                continue
            of_window = not isinstance(update, Found) or update.window_end is not None
            place = update.key, update.window_start if of_window else None
            self.console.print(happened(update, before.get(place), self.time()), no_wrap=False)
            if isinstance(update, Found):
                before[place] = rows(update.value)
            else:
                before.pop(place, None)
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
    if options.at is not None:
        found["at"] = options.at
    return found
