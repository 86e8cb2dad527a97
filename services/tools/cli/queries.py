"""The queries of the command line: each writes its result, and returns the exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from contracts.settings import read
from services.client import Client, InvalidAddressError
from services.client.answers import Expired, Found, NeverSeen, NoWindow
from services.client.errors import UnknownFieldError
from services.client.json_lines import line
from services.client.paths import has_path, rows, text, unknown_path, value_at
from services.client.settings import ClientSettings
from services.client.tables import coverage, fields, happened, heading, missing, states, windows
from services.client.watch import Mark, WatchFilter
from services.runtime.command_line import ExitCode, UsageError, print_line
from services.runtime.terminal import TerminalConsole
from services.tools.cli.commands.queries import NEWEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from rich.console import Console, RenderableType

    from services.client.read_options import ReadOptions
    from services.tools.cli.commands.queries import (
        CoverageOptions,
        GetOptions,
        KeysOptions,
        QueryArguments,
        WatchOptions,
    )

MAX_WATCHED_KEYS = 10_000
"""The number of keys whose last values a watch stores, to print the changes."""


UNBOUNDED = 10_000
"""A width, in characters, that no line has."""


def ask(options: QueryArguments, query: Callable[[Queries], Awaitable[ExitCode]], *, discover: bool = True) -> int:
    """Run a query on a client of the service of the options and settings. Raises UsageError, StateloopError."""
    try:
        return asyncio.run(_ask(options, query, discover=discover))
    except (InvalidAddressError, UnknownFieldError) as error:
        raise UsageError(str(error)) from error


async def _ask(options: QueryArguments, query: Callable[[Queries], Awaitable[ExitCode]], *, discover: bool) -> int:
    settings = read(ClientSettings)
    urls = (options.url or settings.url).split(",")
    async with Client(urls, token=settings.secret(options.token_file), discover=discover) as client:
        return await query(Queries(client, _console(), is_json=options.json))


def _console() -> Console:
    """Return the console. Lines that are piped to a program are not wrapped, unless COLUMNS sets a width."""
    is_piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return TerminalConsole(highlight=False, width=UNBOUNDED if is_piped else None)


@dataclass(frozen=True)
class Queries:
    """The queries on one client, with their results as JSON lines, or as tables on the console."""

    client: Client
    console: Console
    is_json: bool

    async def get(self, state: str, key: str, options: GetOptions) -> ExitCode:
        """Write what is known of a key: of one window, or a table of a range of them."""
        if options.is_range:
            return await self._get_windows(state, key, options)
        answer = await self.client.get(state, key, **_read_options(options))
        if isinstance(answer, Found):
            await self._check_fields(state, [path for path in options.fields if not has_path(answer.value, path)])
        if self.is_json:
            print_line(line(answer))
        elif isinstance(answer, Found):
            self.console.print(heading(answer))
            self._print_table(fields(answer))
        else:
            self.console.print(missing(answer))
        if isinstance(answer, NeverSeen | NoWindow):
            return ExitCode.ABSENT
        return ExitCode.EXPIRED if isinstance(answer, Expired) else ExitCode.OK

    async def _get_windows(self, state: str, key: str, options: GetOptions) -> ExitCode:
        """Write the windows of a key: JSON as they come, or a table of all."""
        answers = []
        async for answer in self.client.windows(
            state,
            key,
            start=options.start,
            end=options.end,
            newest_first=options.newest_first,
            fields=options.fields,
            limit=options.limit,
        ):
            answers.append(answer)
            if self.is_json:
                print_line(line(answer))
        await self._check_fields(
            state, [path for path in options.fields if not any(has_path(answer.value, path) for answer in answers)]
        )
        if not self.is_json:
            self._print_table(windows(key, answers, options.fields), crop=False)
        return ExitCode.OK if answers else ExitCode.ABSENT

    async def coverage(self, state: str, key: str, options: CoverageOptions) -> ExitCode:
        """Write where a key has data, and where gaps."""
        answer = await self.client.coverage(state, key, start=options.start, end=options.end, field=options.field)
        if self.is_json:
            print_line(line(answer))
        else:
            self._print_table(missing(answer) if isinstance(answer, NeverSeen) else coverage(answer))
        return ExitCode.ABSENT if isinstance(answer, NeverSeen) else ExitCode.OK

    def _print_table(self, table: RenderableType, *, crop: bool = True) -> None:
        """Print a table. Where it is piped, its lines end with their last values."""
        if self.console.is_terminal:
            self.console.print(table, crop=crop)
            return
        with self.console.capture() as captured:
            self.console.print(table, crop=crop)
        for row in captured.get().removesuffix("\n").split("\n"):
            print_line(row.rstrip(" "))

    async def _check_fields(self, state: str, missing: Sequence[str]) -> None:
        """Raise UnknownFieldError for a path that no record of the state has, not one that this record lacks."""
        if not missing:
            return
        schema: Mapping[str, Any] = next(
            (known.facts["schema"] for known in await self.client.states() if known.name == state), {}
        )
        for path in missing:
            if unknown := unknown_path(schema, path):
                raise UnknownFieldError(state, unknown)

    async def keys(self, state: str, options: KeysOptions) -> ExitCode:
        """Write the keys, as they are where they are piped; with --by, a tab and the number after each."""
        if options.window is not None:
            return await self._keys_of_window(state, options.window, options)
        keys = self.client.keys(state, prefix=options.prefix, where=dict(options.where), silent_for=options.silent_for)
        async for key in keys:
            print_line(line(key) if self.is_json else key)
        return ExitCode.OK

    async def _keys_of_window(self, state: str, window: datetime, options: KeysOptions) -> ExitCode:
        async for item in self.client.window_items(
            state,
            window,
            prefix=options.prefix,
            where=dict(options.where),
            order_by=options.by and f"-{options.by}",
            limit=options.top,
        ):
            if self.is_json:
                print_line(line(item if options.by else item.key))
            else:
                print_line(f"{item.key}\t{text(value_at(item.value, options.by))}" if options.by else item.key)
        return ExitCode.OK

    async def states(self) -> ExitCode:
        """List the states."""
        known = await self.client.states()
        if self.is_json:
            for state in known:
                print_line(line(state))
        else:
            self._print_table(states(known))
        return ExitCode.OK

    async def watch(self, state: str, key: str | None, options: WatchOptions) -> ExitCode:
        """Write each change of a key, or of all keys with a prefix, until the process is stopped."""
        before: LRUCache[tuple[str, datetime | None], Mapping[str, str]] = LRUCache(MAX_WATCHED_KEYS)
        window = options.window or NEWEST
        if key is None or options.silent_for is not None:
            wanted = WatchFilter(
                state,
                key,
                prefix=options.prefix or "",
                where=dict(options.where),
                window=window,
                silent_for=options.silent_for,
            )
            updates = self.client.watch_many(wanted)
        else:
            updates = self.client.watch(state, key, window=window)
        async for update in updates:
            if self.is_json or isinstance(update, Mark):
                print_line(line(update))
                continue
            of_window = not isinstance(update, Found) or update.window_end is not None
            place = update.key, update.window_start if of_window else None
            now = f"{datetime.now().astimezone():%H:%M:%S}"
            self.console.print(happened(update, before.get(place), now), no_wrap=False)
            if isinstance(update, Found):
                before[place] = rows(update.value)
            else:
                before.pop(place, None)
        return ExitCode.OK


def _read_options(options: GetOptions) -> ReadOptions:
    read_options: ReadOptions = {"fields": options.fields}
    if options.version is not None:
        read_options["as_of"] = options.version
    if options.min_version is not None:
        read_options["min_version"] = options.min_version
    if options.min_offset is not None:
        read_options["min_offset"] = options.min_offset
    if options.wait is not None:
        read_options["wait"] = options.wait
    if options.at is not None:
        read_options["at"] = options.at
    return read_options
