"""`stateloop get|coverage|watch|keys|states`."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, Group, Parameter

from services.runtime.command_line import UsageError
from services.tools.cli.commands.parameters import FLAT, count, parsed, parsed_each, zoned_time

Filter = tuple[str, str]
"""The path of a field, and its value."""
Window = Literal["newest", "all"] | datetime
NEWEST: Final = "newest"
OF_ONE_WINDOW = ("at", "version", "min_version", "min_offset", "wait")
"""Options of `get` that a range of windows does not have."""
UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
VERSION = r"(-?\d+\.(\d+\.)?)?\d+(\.closed)?"
SERVICE = Group("Query service")
EPILOGUE = """\
The service is at --url, STATELOOP_URL, or http://127.0.0.1:8090. Its token comes from --token-file, \
STATELOOP_TOKEN_FILE or STATELOOP_TOKEN.

A TIME has an offset from UTC, as 2013-01-01T08:30:00-05:00, or is `now`.

It returns 0 for found, 1 for an error, 2 for wrong arguments, 3 for a key (or window) never seen, 4 for one that has \
expired, and 130 after Ctrl-C."""
time_option = partial(parsed, zoned_time, metavar="TIME")


def _filter(text: str) -> Filter:
    path, separator, value = text.partition(":")
    if not path or not separator:
        raise ValueError("write it as state.status:landed")
    return path, value


def _paths(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _position(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition(":")
    if not all(part.isascii() and part.isdigit() for part in (partition, offset)):
        raise ValueError("write partition and offset of the event, as 2:1047")
    return int(partition), int(offset)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError("write a number of seconds, such as 30")
    return seconds


def _span(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if match is None:
        raise ValueError("write a span such as 30s, 5m, 2h or 1d")
    return int(match[1]) * UNITS[match[2] or "s"]


def _version(text: str) -> str:
    if not re.fullmatch(VERSION, text, re.ASCII):
        raise ValueError("write a whole number, or an ETag without its quotes")
    return text


def _window(text: str) -> Window:
    if text == "newest":
        return "newest"
    return "all" if text == "all" else zoned_time(text)


Where = Annotated[tuple[Filter, ...], parsed_each(_filter, metavar="PATH:VALUE", help="only with this in this field")]
SilentFor = Annotated[
    timedelta | None,
    parsed(_span, metavar="SPAN", help="only while the last record is older, as 30s, 5m, 2h or 1d"),
]


@dataclass(frozen=True, kw_only=True)
class QueryArguments:
    """The options of all queries."""

    json: Annotated[bool, Parameter(group=SERVICE, help="one JSON a line, for machines")] = False
    url: Annotated[
        str | None,
        Parameter(group=SERVICE, help="of any instance, as http://host:port; several, separated by commas"),
    ] = None
    token_file: Annotated[Path | None, Parameter(group=SERVICE, metavar="FILE", help="where the token is")] = None


@dataclass(frozen=True, kw_only=True)
class GetOptions(QueryArguments):
    """The options of `get`."""

    fields: Annotated[tuple[str, ...], parsed(_paths, metavar="PATH,…", help="only these, as state.status")] = ()
    version: Annotated[str | None, parsed(_version, metavar="V", help="this version (or tag), while it is kept")] = None
    min_version: Annotated[
        str | None, parsed(_version, metavar="V", help="this version (or tag) or a later one: see --wait")
    ] = None
    min_offset: Annotated[
        tuple[int, int] | None,
        parsed(_position, metavar="PARTITION:OFFSET", help="a state that has merged the event there: see --wait"),
    ] = None
    wait: Annotated[
        float | None,
        parsed(_seconds, metavar="SECONDS", help="how long to wait for --min-version or --min-offset"),
    ] = None
    at: Annotated[datetime | None, time_option(help="the window that contains this time")] = None
    start: Annotated[
        datetime | None,
        time_option(name="--from", help="a table of the windows that start at it or later"),
    ] = None
    end: Annotated[datetime | None, time_option(name="--to", help="and before this time")] = None
    newest_first: Annotated[bool, Parameter(help="the newest window first, with --from or --to")] = False
    limit: Annotated[int | None, parsed(count, metavar="N", help="only the first N windows, with --from or --to")] = (
        None
    )

    @property
    def is_range(self) -> bool:
        """Whether they select a range of windows."""
        return self.start is not None or self.end is not None

    def check(self) -> None:
        """Raise UsageError for options that do not fit together."""
        selectors = sum(option is not None for option in (self.version, self.min_version, self.min_offset))
        if selectors > 1:
            raise UsageError("--version, --min-version and --min-offset exclude each other: write one of them")
        if self.is_range and any(getattr(self, name) is not None for name in OF_ONE_WINDOW):
            raise UsageError("--from and --to select several windows; write them without options of one")
        if self.wait is not None and self.min_version is None and self.min_offset is None:
            raise UsageError("--wait needs --min-version or --min-offset: it waits for that state")
        if not self.is_range and (self.newest_first or self.limit is not None):
            raise UsageError("--newest-first and --limit need --from or --to")


@dataclass(frozen=True, kw_only=True)
class CoverageOptions(QueryArguments):
    """The options of `coverage`."""

    start: Annotated[datetime | None, time_option(name="--from", help="start of the range")] = None
    end: Annotated[datetime | None, time_option(name="--to", help="end of the range")] = None
    field: Annotated[str | None, Parameter(metavar="PATH", help="the Coverage field, where the state has several")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class WatchOptions(QueryArguments):
    """The options of `watch`."""

    prefix: Annotated[str | None, Parameter(metavar="P", help="all keys that begin so; '' for all of the state")] = None
    silent_for: SilentFor = None
    window: Annotated[
        Window | None,
        parsed(
            _window,
            metavar="newest|all|TIME",
            help="of a windowed state: each key's newest window (default), all, or the one that contains this time",
        ),
    ] = None
    where: Where = ()


@dataclass(frozen=True, kw_only=True)
class KeysOptions(QueryArguments):
    """The options of `keys`."""

    prefix: Annotated[str, Parameter(metavar="P", help="only keys that begin so")] = ""
    silent_for: SilentFor = None
    window: Annotated[datetime | None, time_option(help="the keys of the window that contains this time")] = None
    by: Annotated[
        str | None,
        Parameter(metavar="PATH", help="the largest value of this indexed number first, with the value"),
    ] = None
    top: Annotated[int | None, parsed(count, metavar="N", help="only the first N keys, with --by")] = None
    where: Where = ()

    def check(self) -> None:
        """Raise UsageError for options that do not fit together."""
        if self.silent_for is not None and self.window is not None:
            raise UsageError(EXCLUSIVE)
        if self.window is None and (self.by is not None or self.top is not None):
            raise UsageError("--by and --top need --window TIME")
        if self.top is not None and self.by is None:
            raise UsageError("--top needs --by PATH, an indexed number")


EXCLUSIVE = "--silent-for and --window exclude each other: write one of them"
get, coverage, watch, keys, states = (
    App(name=name, help_epilogue=EPILOGUE) for name in ("get", "coverage", "watch", "keys", "states")
)


@get.default
def _get(state: str, key: str, /, *, options: Annotated[GetOptions, FLAT] = GetOptions()) -> int:
    """Print what is known of a key, in one window or in several."""
    options.check()
    from services.tools.cli.queries import ask

    return ask(options, lambda query: query.get(state, key, options))


@coverage.default
def _coverage(state: str, key: str, /, *, options: Annotated[CoverageOptions, FLAT] = CoverageOptions()) -> int:
    """Print where a key has data, and where gaps, over its windows."""
    from services.tools.cli.queries import ask

    return ask(options, lambda query: query.coverage(state, key, options))


@watch.default
def _watch(state: str, key: str | None = None, /, *, options: Annotated[WatchOptions, FLAT] = WatchOptions()) -> int:
    """Print what becomes of a key, or of all keys with a prefix, as it happens."""
    if (key is None) == (options.prefix is None):
        raise UsageError("write either a KEY or --prefix P")
    if options.silent_for is not None and options.window is not None:
        raise UsageError(EXCLUSIVE)
    from services.tools.cli.queries import ask

    return ask(options, lambda query: query.watch(state, key, options))


@keys.default
def _keys(state: str, /, *, options: Annotated[KeysOptions, FLAT] = KeysOptions()) -> int:
    """Print the keys of a state, one a line."""
    options.check()
    from services.tools.cli.queries import ask

    return ask(options, lambda query: query.keys(state, options))


@states.default
def _states(*, options: Annotated[QueryArguments, FLAT] = QueryArguments()) -> int:
    """List the states that this token may read."""
    from services.tools.cli.queries import ask

    return ask(options, lambda query: query.states(), discover=False)
