"""Formats results for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from services.client.answers import Expired, Found, NeverSeen, NoWindow, Removed
from services.client.paths import changes, rows, text, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from rich.console import RenderableType

    from contracts.api.windows import IntervalKind
    from services.client.answers import Update
    from services.client.coverage import KeyCoverage
    from services.client.pages import StateInfo

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
TIME = "%Y-%m-%d %H:%M:%S"
STATE = "state."
COVERAGE: Mapping[IntervalKind, str] = {"data": "green", "gap": "bold red", "open": "dim", "unknown": "yellow"}
"""The style of each kind of interval."""
ITS_ORDER = ("device_id", "key", "first_seen", "epoch", "version", "as_of")
"""Fields that repeat the beginning of a line of a watch, or change each time."""


def heading(update: Found[Any]) -> Text:
    """Return the key, its version and age, and the source of the result."""
    line = Text.assemble((update.key, "bold"), f"  version {update.version}", (f"  {age(update.age)} old", "green"))
    if update.epoch:
        line.append(f"  epoch {update.epoch}", style="dim")
    if update.window_start and update.window_end:
        line.append(f"  {window(update.window_start, update.window_end)}", style="dim")
        line.append("  open" if update.is_open else "  closed", style="green" if update.is_open else "dim")
    elif update.window_start:
        line.append(f"  window of {update.window_start:{TIME} %Z}", style="dim")
    behind = f", {update.lag:,} behind" if update.lag else ""
    origin = f"\n{update.source.topic}/{update.source.partition} offset {update.source.offset:,}"
    return line.append(f"{origin}, from {update.instance} ({update.role}{behind})", style="dim")


def fields(update: Found[Any]) -> Table:
    """Return all fields of the value."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows(update.value).items():
        table.add_row(Text(name), Text(value))
    return table


def windows(key: str, answers: Sequence[Found[Any]], paths: Sequence[str]) -> RenderableType:
    """Return a table with a row for each window of a key: these fields, or all of the state that are no objects."""
    if not answers:
        return Text.assemble((key, "bold"), "  has no such window")
    columns = paths or [
        path for path in dict.fromkeys(name for answer in answers for name in rows(answer.value)) if _of_state(path)
    ]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("window (UTC)", no_wrap=True)
    for name in ("", "version", *(path.removeprefix(STATE) for path in columns)):
        table.add_column(name, justify="left" if not name else "right", overflow="fold", min_width=len(name))
    for answer in answers:
        start = Text(f"{answer.window_start:{TIME}}" if answer.window_start else "", style="bold")
        is_open = Text("open", style="green") if answer.is_open else Text("")
        cells = (Text(_cell(value_at(answer.value, path))) for path in columns)
        table.add_row(start, is_open, str(answer.version), *cells)
    return table


def coverage(key_coverage: KeyCoverage) -> Table:
    """Return a table with a row for each interval, and the total of each kind below it."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("from (UTC)", no_wrap=True)
    table.add_column("to", no_wrap=True)
    table.add_column("")
    table.add_column("duration", justify="right")
    for kind, start, end in key_coverage.intervals:
        table.add_row(f"{start:{TIME}}", f"{end:{TIME}}", Text(kind, style=COVERAGE[kind]), f"{end - start}")
    table.add_section()
    for kind, style in COVERAGE.items():
        if total := key_coverage.total(kind):
            table.add_row("", "", Text(kind, style=style), f"{total}")
    return table


def window(start: datetime, end: datetime) -> str:
    """Return a window in one line: its end without the day where that is the same."""
    return f"{start:{TIME}} to {end:{'%H:%M:%S' if start.date() == end.date() else TIME} %Z}"


def missing(update: NeverSeen | NoWindow | Expired) -> Text:
    """Return the reason why there is no value."""
    known = {name: value for name, value in update.facts.items() if name not in ("type", "title", "status", "detail")}
    line = Text.assemble((update.key, "bold"), f"  {update.facts.get('detail') or type(update).__name__}")
    facts = ", ".join(f"{name} {text(value)}" for name, value in known.items() if name not in ("state", "key"))
    return line.append(f"\n{facts}", style="dim") if facts else line


def happened(update: Update[Any], before: Mapping[str, str] | None, time: str) -> Text:
    """Return one line with the changes since the last update of the key, or all fields."""
    line = Text.assemble((time, "dim"), "  ", (update.key, "bold"), "  ")
    if not isinstance(update, Found):
        style = "yellow" if isinstance(update, Expired | Removed) else "dim"
        return line.append({"NeverSeen": "never seen"}.get(type(update).__name__, type(update).__name__.lower()), style)
    if update.window_end:
        line.append(f"{update.window_start:{TIME}}  ", style="dim")
    line.append(f"v{update.version}  ", style="cyan")
    for name, (old, new) in changes(before or {}, rows(update.value)).items():
        if name in ITS_ORDER:
            continue
        line.append(f"{name} ", style="dim")
        line.append(f"{old} → {new}  " if before and old else f"{new or '—'}  ", style="green" if before else "")
    return line


def states(known: Sequence[StateInfo]) -> RenderableType:
    """Return a table with a row for each state."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("state", no_wrap=True)
    for name in ("keys", "partitions", "lag"):
        table.add_column(name, justify="right", no_wrap=True)
    for state in known:
        lag = Text(f"{state.lag:,}", style="" if state.lag else "green")
        keys = "—" if state.keys is None else f"{state.keys:,}"
        table.add_row(Text(state.name, style="bold"), keys, str(state.partitions), lag)
    return table if known else Text("There are no states that this token may read.", style="yellow")


def age(duration: timedelta) -> str:
    """Return a duration in a suitable unit."""
    seconds = duration.total_seconds()
    if seconds < 1:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    for unit, size in (("days", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"


def _of_state(path: str) -> bool:
    return path.startswith(STATE) and path.count(".") == 1


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return "" if value is None else text(value)
