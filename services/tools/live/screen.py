"""Draws the live view: as a rich renderable for a terminal of any size, or as one line of text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.columns import Columns
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from services.tools.live.view import Json, LiveView

MARKS = {
    "result": ("✓", "green"),
    "absence": ("–", "yellow"),  # noqa: RUF001  # a dash, as in an empty cell of a table
    "failure": ("✗", "red"),
    "skipped": ("»", "dim"),
}
PENDING = ("·", "dim")
RUNNING = ("runs", "runs again", "done")
LAGS = (("job", "job"), ("worker", "workers"), ("query", "query"))
"""The prefix of each lag in the history, and its component."""
MAX_REASONS = 3
MARGIN = 2
FIELD_WIDTH = 10
BARS = " ▁▂▃▄▅▆▇█"
SPARKLINE = 30
WIDE = 100
"""Narrower terminals have no sparklines and no fields of the states."""


def screen(view: LiveView, width: int, height: int) -> RenderableType:
    """Return everything, cut to the size of the terminal."""
    if not view.loop:
        return Text(view.error, style="yellow")
    title = Text.assemble(("Stateloop  ", "bold"), view.loop["application"], "  ", health(view))
    title.append(f"   {view.url}", style=f"link {view.url}").append("   Ctrl-C stops it", style="dim")
    title.no_wrap, title.overflow = True, "ellipsis"
    above = Group(title, *_applications(view), _metrics(view, width), *_reasons(view), _processes(view))
    lines = len(Console(width=width, height=height).render_lines(above))
    return Group(above, Text(), _keys(view, width, max(1, height - lines - 3)))


def line(view: LiveView) -> str:
    """Return the metrics in one line of text."""
    if not view.loop or view.error:
        return view.error
    cells = [("health", health(view).plain, "", ""), *_cells(view)]
    return "   ".join(" ".join(filter(None, (name, value, detail))) for name, value, _, detail in cells)


def health(view: LiveView) -> Text:
    """Return the health of the loop."""
    if view.error:
        return Text("○ stale", style="yellow")
    reasons = view.loop["health"]["reasons"]
    if reasons and all(reason["kind"] == "job_starting" for reason in reasons):
        return Text("◌ starting", style="yellow")
    known = {True: ("● healthy", "green"), False: ("✗ unhealthy", "red"), None: ("? not all monitored", "yellow")}
    return Text.assemble(known[view.loop["health"]["healthy"]])


def _applications(view: LiveView) -> list[Text]:
    """Return a line of all applications; none for a single one."""
    applications = view.loop["applications"]
    if len(applications) <= 1:
        return []
    line = Text("applications", style="dim", no_wrap=True, overflow="ellipsis")
    for application in applications:
        name = application["name"]
        line.append(f"  {name}", style="bold" if name == view.loop["application"] else "not dim")
        if application["healthy"] is False:
            line.append(" ✗", style="red not dim")
    return [line.append("  --application NAME shows another one")]


def _cells(view: LiveView) -> list[list[str]]:
    """Return the metrics of the loop's components, each as (name, value, field of the history, detail)."""
    last: Json = view.history[-1] if view.history else {}
    topics, components = view.loop["topics"], view.loop["components"]
    rates = {name: _number(topic["rate"], 1) for name, topic in topics.items()}
    counts = {name: f"{_number(topic['end'])} records" for name, topic in topics.items()}
    lags = [f"{name} {_number(last.get(f'{name}_lag'))}" for name, component in LAGS if component in components]
    calls = _sums(api["calls"] for api in view.loop["apis"])
    results = _sums(node["rates"] for node in view.graph["nodes"])
    cells = (
        ("events", "events/s", rates["events"], "events", counts["events"]),
        ("snapshots", "snapshots/s", rates["snapshots"], "snapshots", counts["snapshots"]),
        ("workers", "calls/s", _number(last.get("calls"), 1), "calls", calls),
        ("feedback", "feedback/s", rates.get("feedback", ""), "feedback", results),
        ("dead_letters", "dead letters/s", rates["dead_letters"], "dead_letters", counts["dead_letters"]),
        ("job", "lag", _number(last.get("job_lag")), "job_lag", ", ".join(lags)),
        ("apis", "API call", "", "p95_ms", _latency(last.get("p50_ms"), last.get("p95_ms"))),
        ("feedback", "answer → state", "", "", _latency(*(view.latency_ms or (None, None)))),
    )
    return [cell for component, *cell in cells if component in components]


def _metrics(view: LiveView, width: int) -> Table:
    table = Table.grid(padding=(0, MARGIN, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, min_width=7)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for name, value, field, detail in _cells(view):
        chart = _sparkline([point.get(field) for point in view.history]) if width >= WIDE else ""
        table.add_row(name, value, chart, Text(detail, style="dim" if value else ""))
    return table


def _sparkline(values: Sequence[float | None]) -> str:
    """Return the values as bars, the newest at the right; each bar is the mean of as many values."""
    size = max(1, len(values) // SPARKLINE)
    known = [value or 0.0 for value in values][-size * SPARKLINE :]
    means = [sum(known[at : at + size]) / size for at in range(0, len(known) - size + 1, size)]
    return "".join(BARS[round(mean / (max(means) or 1) * (len(BARS) - 1))] for mean in means).rjust(SPARKLINE)


def _reasons(view: LiveView) -> list[Text]:
    reasons = view.loop["health"]["reasons"][:MAX_REASONS]
    lines = [Text.assemble((f"✗ {reason['message']}", "red"), (f". {reason['action']}", "dim")) for reason in reasons]
    return [Text(view.error, style="yellow"), *lines] if view.error else lines


def _processes(view: LiveView) -> Columns:
    parts = [
        Text.assemble(("● ", "green"), name if state == "runs" else f"{name} ({state})")
        if state in RUNNING
        else Text(f"◌ {name} ({state})", style="yellow")
        for name, state in view.processes.items()
    ]
    return Columns(parts, padding=(0, MARGIN))


def _keys(view: LiveView, width: int, count: int) -> Table:
    """Return the table of the latest keys: some fields of the state, and a mark for each enrichment."""
    names, answers = [node["name"] for node in view.graph["nodes"]], list(view.keys.values())[:count]
    headings = ["-".join(word[:4] for word in name.split("_"))[:9] for name in names]
    room = width - max((len(answer["key"]) for answer in answers), default=0) - len("00") - 2 * MARGIN
    if sum(len(heading) + MARGIN for heading in headings) > room:
        headings = ["".join(name[0] for name in names)]
    room -= sum(len(heading) + MARGIN for heading in headings)
    fields = _fields(answers)[: max(0, room // (FIELD_WIDTH + MARGIN))] if width >= WIDE else []
    table = Table(box=None, padding=(0, MARGIN, 0, 0), header_style="dim")
    table.add_column("key", no_wrap=True)
    table.add_column("v", justify="right", no_wrap=True, style="dim", min_width=2)
    for name in fields:
        table.add_column(name, no_wrap=True, max_width=FIELD_WIDTH)
    for heading in headings:
        table.add_column(heading, justify="center", no_wrap=True, min_width=len(heading))
    now = datetime.now(UTC)
    for answer in answers:
        results, state = answer["value"].get("enrichments", {}), answer["value"].get("state", {})
        marks = [MARKS.get(results[name]["status"], PENDING) if name in results else PENDING for name in names]
        cells = [Text(*mark) for mark in marks] if len(headings) > 1 else [Text.assemble(*marks)]
        fresh = "bold" if (now - answer["received"]).total_seconds() < 1 else ""
        key = Text(answer["key"], style=fresh if PENDING in marks else "green")
        values = [Text("" if state.get(name) is None else str(state[name])) for name in fields]
        table.add_row(key, str(answer["version"]), *values, *cells)
    return table


def _fields(answers: Sequence[Json]) -> list[str]:
    """Return the fields of the states that are short text and not in the key already."""
    names: dict[str, None] = {}
    for answer in answers:
        state = answer["value"].get("state", {})
        texts = {name: value for name, value in state.items() if isinstance(value, str) and len(value) <= FIELD_WIDTH}
        names |= dict.fromkeys(name for name, value in texts.items() if value not in answer["key"])
    return list(names)


def _sums(rates: Iterable[Json]) -> str:
    total: dict[str, Any] = {}
    for by_name in rates:
        for name, rate in by_name.items():
            total[name] = total.get(name, 0.0) + rate
    return ", ".join(f"{name} {rate:.1f}" for name, rate in total.items() if rate)


def _number(number: float | None, digits: int = 0) -> str:
    return "?" if number is None else f"{number:,.{digits}f}"


def _latency(p50: float | None, p95: float | None) -> str:
    return "none yet" if p50 is None or p95 is None else f"{p50:,.0f} ms p50, {p95:,.0f} ms p95"
