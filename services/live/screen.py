"""The view as a rich renderable, for a terminal of any width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from services.live.line import duration, latency, rates
from services.live.view import Device, Mark, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

STYLES = {Mark.RESULT: "green", Mark.ABSENCE: "yellow", Mark.FAILURE: "red", Mark.SKIPPED: "dim", Mark.OPEN: "dim"}
HEALTHY = ("runs", "runs again", "done")
MOST_FIELDS = 5
FIELD_WIDTH = 10
MARGIN = 2


def screen(view: View, width: int, height: int) -> RenderableType:
    """Everything, cut to the size of the terminal."""
    if view.trouble:
        return Text(view.trouble, style="yellow")
    above: list[RenderableType] = [_title(view), _figures(view)]
    if view.dead_letters:
        above.append(Text(f"dead letters  {_counts(view)}", style="red"))
    if view.parts:
        above.append(_parts(view, width))
    used = 1 + 7 + bool(view.dead_letters) + _lines(view, width) + 3
    return Group(*above, Text(), devices(view, width, max(1, height - used)))


def devices(view: View, width: int, rows: int) -> Table:
    """The table of the latest devices: as many fields of their states as there is room for beside the marks."""
    shown = view.devices[:rows]
    longest = max((len(device.device_id) for device in shown), default=len("device"))
    headings = _headings(view.enrichments, room=width - longest - len("00") - 2 * MARGIN)
    room = width - longest - len("00") - sum(len(heading) + MARGIN for heading in headings) - 2 * MARGIN
    fields = telling(shown)[: max(0, min(MOST_FIELDS, room // (FIELD_WIDTH + MARGIN)))]
    table = Table(box=None, padding=(0, MARGIN, 0, 0), header_style="dim")
    table.add_column("device", no_wrap=True, overflow="ellipsis", ratio=1 if longest > width // 2 else None)
    table.add_column("v", justify="right", no_wrap=True, min_width=2)
    for name in fields:
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=FIELD_WIDTH)
    for heading in headings:
        table.add_column(heading, justify="center", no_wrap=True, min_width=len(heading))
    for device in shown:
        table.add_row(*_row(device, fields, one_column=len(headings) == 1))
    return table


def telling(shown: Sequence[Device]) -> list[str]:
    """The fields that some device has, and that its id does not tell already."""
    names = dict.fromkeys(name for device in shown for name in device.fields)
    return [
        name
        for name in names
        if any(device.fields.get(name) for device in shown)
        and not all(device.fields.get(name, "") in device.device_id for device in shown)
    ]


def _row(device: Device, fields: Sequence[str], *, one_column: bool) -> list[Text]:
    fresh = "bold" if device.age_s < 1 else ""
    identity = Text(device.device_id, style="green" if device.settled else fresh)
    values = [Text(device.fields.get(name, "")) for name in fields]
    marks = [Text(mark, style=STYLES[mark]) for mark in device.marks.values()]
    return [identity, Text(str(device.version), style="dim"), *values, *([Text().join(marks)] if one_column else marks)]


def _headings(names: Sequence[str], room: int) -> list[str]:
    """Short names for the columns of marks; where there is no room for them, one column headed by first letters."""
    short = ["-".join(word[:4] for word in name.split("_"))[:9] for name in names]
    fits = sum(len(name) + MARGIN for name in short) <= room
    return short if fits else ["".join(name[0] for name in names)]


def _title(view: View) -> Text:
    title = Text.assemble(("Stateloop", "bold"), f"  {view.application} on {view.kafka}, ", f"{duration(view.up_s)}")
    if view.console:
        title.append(f"   {view.console}", style=f"bold link {view.console}")
    title.append("   Ctrl-C stops it", style="dim")
    title.no_wrap, title.overflow = True, "ellipsis"
    return title


def _figures(view: View) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=16)
    table.add_column(justify="right", no_wrap=True, min_width=7)
    table.add_column(no_wrap=True, overflow="ellipsis")
    answered = sum(view.totals.get(status, 0) for status in view.feedback)
    table.add_row("events/s", f"{view.events:,.1f}", f"[dim]{view.totals.get('events', 0):,} seen[/]")
    table.add_row("snapshots/s", f"{view.snapshots:,.1f}", f"[dim]{view.totals.get('snapshots', 0):,} seen[/]")
    table.add_row("calls/s", f"{sum((view.calls or {}).values()):,.1f}", f"[dim]{escape(rates(view.calls))}[/]")
    table.add_row(
        "feedback/s",
        f"{sum(view.feedback.values()):,.1f}",
        f"[dim]{escape(rates(view.feedback))}; {answered:,} seen[/]",
    )
    worker_lag = "?" if view.worker_lag is None else f"{view.worker_lag:,}"
    table.add_row("lag", f"{view.job_lag:,}", f"before the job, {worker_lag} before the workers")
    table.add_row("event → snapshot", "", latency(view.to_snapshot))
    table.add_row("event → enriched", "", latency(view.to_enriched))
    return table


def _counts(view: View) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in view.dead_letters.items())


def _parts(view: View, width: int) -> Text:
    """The parts with their marks, in as many lines as they need: none is broken."""
    title = "parts"
    lines = [Text(title, style="dim")]
    for name, state in view.parts.items():
        well = state in HEALTHY
        mark = ("● ", "green") if well else ("◌ ", "yellow")
        part = Text.assemble(mark, (name if state == "runs" else f"{name} ({state})", "" if well else "yellow"))
        if lines[-1].cell_len + 2 + part.cell_len > width:
            lines.append(Text(" " * len(title)))
        lines[-1].append("  ").append_text(part)
    return Text("\n").join(lines)


def _lines(view: View, width: int) -> int:
    return _parts(view, width).plain.count("\n") + 1 if view.parts else 0
