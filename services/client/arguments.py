"""The command's arguments."""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from services.client.subscriptions import ALL, NEWEST

if TYPE_CHECKING:
    from argparse import _ArgumentGroup
    from collections.abc import Sequence

    from services.client.subscriptions import Window

OF_ONE_WINDOW = ("at", "version", "min_version", "min_offset", "wait")
"""Options of `get` that a range of windows does not have."""
UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
VERSION = r"(-?\d+\.(\d+\.)?)?\d+"
EPILOG = """\
The service is at --url, STATELOOP_URL, or http://127.0.0.1:8090. Its token comes from --token-file,
STATELOOP_TOKEN_FILE or STATELOOP_TOKEN.

A TIME has an offset from UTC, as 2013-01-01T08:30:00-05:00, or is `now`.

It returns 0 for found, 1 for an error, 2 for wrong arguments, 3 for a key (or window) never seen, 4 for
one that has expired, and 130 after Ctrl-C.
"""


def arguments(given: Sequence[str]) -> Namespace:
    """`command` (get, coverage, watch, keys, states), and what each of them needs."""
    parser = ArgumentParser(
        prog="stateloop",
        description="Ask the named states of a query service.",
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,  # or --token would be taken for --token-file
    )
    _common(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="get|coverage|watch|keys|states")
    # Without a default of its own, a subcommand leaves the value of an option that came before it.
    common = ArgumentParser(add_help=False, argument_default=SUPPRESS)
    _common(common)
    add = partial(commands.add_parser, allow_abbrev=False, parents=[common])
    _get(add("get", help="what is known of a key, in one window or in several"))
    _coverage(add("coverage", help="where a key has data, and where gaps, over its windows"))
    _watch(add("watch", help="what becomes of a key, or of all keys with a prefix, as it happens"))
    _keys(add("keys", help="the keys of a state, one a line"))
    add("states", help="list the states that this token may read")
    options = parser.parse_args(given)
    if problem := _problem(options):
        parser.error(problem)
    return options


def _problem(options: Namespace) -> str | None:
    """Return what is wrong with options that do not fit together."""
    match options.command:
        case "watch" if (options.key is None) == (options.prefix is None):
            return "watch: write either a KEY or --prefix P"
        case "get" if is_range(options) and any(getattr(options, name) is not None for name in OF_ONE_WINDOW):
            return "get: --from and --to select several windows; write them without options of one"
        case "get" if not is_range(options) and (options.newest_first or options.limit is not None):
            return "get: --newest-first and --limit need --from or --to"
        case "keys" if options.window is None and (options.by is not None or options.top is not None):
            return "keys: --by and --top need --window TIME"
        case "keys" if options.top is not None and options.by is None:
            return "keys: --top needs --by PATH, an indexed number"
    return None


def is_range(options: Namespace) -> bool:
    """Return whether `get` selects a range of windows."""
    return options.start is not None or options.end is not None


def _get(parser: ArgumentParser) -> None:
    _place(parser)
    parser.add_argument("key", metavar="KEY")
    parser.add_argument("--fields", type=_list, default=(), metavar="PATH,…", help="only these, as state.status")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--version", type=_version, metavar="V", help="this version (or tag), while it is kept")
    which.add_argument(
        "--min-version", type=_version, metavar="V", help="this version (or tag) or a later one: see --wait"
    )
    which.add_argument(
        "--min-offset",
        type=_position,
        metavar="PARTITION:OFFSET",
        help="a state that has merged the event there: see --wait",
    )
    parser.add_argument(
        "--wait", type=_seconds, metavar="SECONDS", help="how long to wait for --min-version or --min-offset"
    )
    parser.add_argument("--at", type=_time, metavar="TIME", help="the window that contains this time")
    parser.add_argument(
        "--from", type=_time, dest="start", metavar="TIME", help="a table of the windows that start at it or later"
    )
    parser.add_argument("--to", type=_time, dest="end", metavar="TIME", help="and before this time")
    parser.add_argument("--newest-first", action="store_true", help="the newest window first, with --from or --to")
    parser.add_argument("--limit", type=_count, metavar="N", help="only the first N windows, with --from or --to")


def _coverage(parser: ArgumentParser) -> None:
    _place(parser)
    parser.add_argument("key", metavar="KEY")
    parser.add_argument("--from", type=_time, dest="start", metavar="TIME", help="start of the range")
    parser.add_argument("--to", type=_time, dest="end", metavar="TIME", help="end of the range")
    parser.add_argument("--field", metavar="PATH", help="the Coverage field, where the state has several")


def _watch(parser: ArgumentParser) -> None:
    _place(parser)
    parser.add_argument("key", metavar="KEY", nargs="?")
    parser.add_argument("--prefix", metavar="P", help="all keys that begin so; '' for all of the state")
    which = parser.add_mutually_exclusive_group()
    _silent(which)
    which.add_argument(
        "--window",
        type=_window,
        default=NEWEST,
        metavar="newest|all|TIME",
        help="of a windowed state: each key's newest window (default), all, or the one that contains this time",
    )
    _where(parser)


def _keys(parser: ArgumentParser) -> None:
    _place(parser)
    parser.add_argument("--prefix", default="", metavar="P", help="only keys that begin so")
    which = parser.add_mutually_exclusive_group()
    _silent(which)
    which.add_argument("--window", type=_time, metavar="TIME", help="the keys of the window that contains this time")
    parser.add_argument("--by", metavar="PATH", help="the largest value of this indexed number first, with the value")
    parser.add_argument("--top", type=_count, metavar="N", help="only the first N keys, with --by")
    _where(parser)


def _place(parser: ArgumentParser) -> None:
    parser.add_argument("state", metavar="STATE")


def _where(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--where", type=_filter, action="append", default=[], metavar="PATH:VALUE", help="only with this in this field"
    )


def _silent(options: _ArgumentGroup) -> None:
    options.add_argument(
        "--silent-for", type=_span, metavar="SPAN", help="only while the last record is older, as 30s, 5m, 2h or 1d"
    )


def _common(parser: ArgumentParser) -> None:
    """Add the options that may stand before and after the subcommand."""
    add = parser.add_argument
    add("--json", action="store_true", help="one JSON a line, for machines")
    add("--url", help="of any instance, as http://host:port; several, separated by commas")
    add("--token-file", type=Path, metavar="FILE", help="where the token is")


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _filter(text: str) -> tuple[str, str]:
    path, found, value = text.partition(":")
    if not path or not found:
        raise ArgumentTypeError("write it as state.status:landed")
    return path, value


def _version(text: str) -> str:
    if not re.fullmatch(VERSION, text, re.ASCII):
        raise ArgumentTypeError("write a whole number, or an ETag without its quotes")
    return text


def _time(text: str) -> datetime:
    if text == "now":
        return datetime.now(UTC)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ArgumentTypeError("write a time with its offset from UTC, as 2013-01-01T08:30:00-05:00, or now")
    return time


def _window(text: str) -> Window:
    if text in (NEWEST, ALL):
        return NEWEST if text == NEWEST else ALL
    return _time(text)


def _count(text: str) -> int:
    count = _whole(text)
    if not count:
        raise ArgumentTypeError("write 1 or more")
    return count


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ArgumentTypeError("write a whole number")
    return int(text)


def _position(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition(":")
    try:
        return _whole(partition), _whole(offset)
    except ArgumentTypeError:
        raise ArgumentTypeError("write partition and offset of the event, as 2:1047") from None


def _span(text: str) -> timedelta:
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if found is None:
        raise ArgumentTypeError("write a span such as 30s, 5m, 2h or 1d")
    return int(found[1]) * UNITS[found[2] or "s"]


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ArgumentTypeError("write a number of seconds, such as 30")
    return seconds
