"""Write the pictures of docs/examples: `PYTHONPATH=. python docs/images/example_pictures.py docs/images`."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from stateloop import Application, Suite

EXAMPLES = {
    "departures": "examples.departures.application:suite",
    "flights": "examples.flights.application:app",
    "scooters": "examples.scooters.application:app",
    "vitals": "examples.vitals.application:suite",
    "weather": "examples.weather.application:notifying",
}
LEFT, WIDTH, HEIGHT, GAP, COLUMN = 16, 240, 52, 14, 290
STYLE = """
svg { font: 13px system-ui, sans-serif; color-scheme: light dark }
rect, path { stroke: #4b5563; stroke-width: 1.4; fill: #fff } path { fill: none; marker-end: url(#tip) }
text { fill: #111827; text-anchor: middle } .title { font-weight: 600 } .small { font-size: 11px; fill: #4b5563 }
.topic { fill: #e0e7ff; rx: 14 } .state { fill: #fef3c7 } .api { stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) {
  rect { fill: #1f2937; stroke: #9ca3af } path { stroke: #9ca3af } text { fill: #f3f4f6 } .small { fill: #d1d5db }
  .topic { fill: #3730a3 } .state { fill: #422006 } #tip path { fill: #9ca3af }
}
"""
TIP = (
    '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" style="fill:#4b5563;stroke:none;marker-end:none"/></marker></defs>'
)


class Box(NamedTuple):
    """A box of a column, and the box of the column before it that leads to it."""

    kind: str
    title: str
    note: str
    source: str


def picture(name: str) -> str:
    """Return the SVG of an example."""
    module, _, attribute = EXAMPLES[name].partition(":")
    declared = getattr(import_module(module), attribute)
    applications = declared.applications if isinstance(declared, Suite) else (declared,)
    columns = [column for column in zip(*map(_columns, applications), strict=True) if any(column)]
    boxes = [list(dict.fromkeys(box for part in column for box in part)) for column in columns]
    rows = max(map(len, boxes))
    place: dict[str, tuple[int, float]] = {}
    drawn: list[str] = []
    for number, column in enumerate(boxes):
        step = rows / len(column)
        for row, box in enumerate(column):
            x, y = LEFT + number * COLUMN, LEFT + (row + step / 2 - 0.5 + row * (step - 1)) * (HEIGHT + GAP)
            drawn += _drawn(box, x, y, place.get(box.source))
            place[box.title] = x + WIDTH, y + HEIGHT / 2
    size = f"0 0 {2 * LEFT + (len(boxes) - 1) * COLUMN + WIDTH} {2 * LEFT + rows * (HEIGHT + GAP) - GAP}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img">'
    return (
        "\n".join([head, f"<title>The example {name}</title>", f"<style>{STYLE}</style>", TIP, *drawn, "</svg>"]) + "\n"
    )


def _columns(application: Application) -> tuple[list[Box], ...]:
    """Return the raw topics, the events, the state, and what reads its snapshots."""
    state, events = application.state, application.topics.events
    span = ("window" if state.is_windowed else "lifetime") + f" of {_spelled(state.lifetime)}"
    raw = [Box("topic", source.topic, "raw records", "") for source in application.raw]
    return (
        raw,
        [Box("topic", events, "topic of events", raw[0].title if raw else "")],
        [Box("state", f"state {application.name}", f"by {application.key_name}, {span}", events)],
        list(_readers(application)),
    )


def _spelled(span: timedelta) -> str:
    units = {"days": timedelta(days=1), "hours": timedelta(hours=1), "seconds": timedelta(seconds=1)}
    unit = next(name for name, size in units.items() if not span % size)
    return f"{span // units[unit]} {unit if span != units[unit] else unit[:-1]}"


def _readers(application: Application) -> Iterator[Box]:
    source = f"state {application.name}"
    for api in dict.fromkeys(enrichment.api for enrichment in application.enrichments):
        names = [enrichment.name for enrichment in application.enrichments if enrichment.api == api]
        note = ", ".join(names) if len(names) < 3 else f"{len(names)} enrichments"  # noqa: PLR2004
        yield Box("api", f"API {api}", note, source)
    for derived in application.derived:
        yield Box("topic", f"derived state {derived.name}", derived.model.__name__, source)
    for alerts in application.alerts:
        called = f", webhook {alerts.webhook.api}" if alerts.webhook else ""
        yield Box("topic", "alerts " + alerts.name, f"by {alerts.rules.name}{called}", source)


def _drawn(box: Box, x: float, y: float, source: tuple[Any, Any] | None) -> Iterator[str]:
    if source:
        yield f'<path d="M{source[0]} {source[1]:g} L{x} {y + HEIGHT / 2:g}"/>'
    yield f'<rect class="{box.kind}" x="{x}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
    yield f'<text class="title" x="{x + WIDTH / 2:g}" y="{y + 22:g}">{box.title}</text>'
    yield f'<text class="small" x="{x + WIDTH / 2:g}" y="{y + 40:g}">{box.note}</text>'


if __name__ == "__main__":
    for example in EXAMPLES:
        (Path(sys.argv[1]) / f"example-{example}.svg").write_text(picture(example), encoding="utf-8")
