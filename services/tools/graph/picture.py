"""The graph as a picture: SVG, for light and dark pages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from contracts.model.graph import steps
from services.tools.graph.layout import Layout, Line, layout
from services.tools.graph.notes import limit, notes

if TYPE_CHECKING:
    from contracts import Application, Enrichment

BOX, PILL, BETWEEN = 190.0, 132.0, 74.0
NAME_HEIGHT, NOTE_HEIGHT, PILL_HEIGHT = 46.0, 16.0, 28.0
MARGIN, HEAD = 28.0, 64.0
LONGEST = 30
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #0f172a }
  .page { fill: #ffffff } .title { font-size: 18px; font-weight: 700 } .name { font-weight: 600 }
  .small { font-size: 11.5px; fill: #64748b } .note { font-size: 11.5px; fill: #4f46e5 }
  .box { fill: #eef2ff; stroke: #6366f1; stroke-width: 1.5 } .field { fill: #fef3c7; stroke: #d97706 }
  .line { fill: none; stroke: #94a3b8; stroke-width: 1.6 } .tip { fill: #94a3b8 }
  .optional { stroke-dasharray: 5 4 } .own { stroke: #0d9488; stroke-width: 1.8 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e2e8f0 } .page { fill: #0f172a } .small { fill: #94a3b8 } .note { fill: #a5b4fc }
    .box { fill: #1e1b4b; stroke: #818cf8 } .field { fill: #422006; stroke: #f59e0b }
    .line { stroke: #64748b } .tip { fill: #64748b } .own { stroke: #2dd4bf }
  }"""
TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="tip" d="M0,0.5 L8,4 L0,7.5 z"/></marker>'
)


def picture(application: Application) -> str:
    """The SVG: fields of the state as pills, enrichments as boxes, each to the right of all that it needs."""
    graph_layout = _laid_out(application)
    lefts, width = _lefts(application, graph_layout)
    top = {name: y + HEAD + MARGIN for name, y in graph_layout.middle.items()}
    by_name = application.by_name
    drawn = [_line(line, graph_layout, application, lefts, top) for line in graph_layout.paths]
    for column, names in enumerate(graph_layout.columns):
        for name in (name for name in names if "→" not in name):
            enrichment, left = by_name.get(name), lefts[column]
            if enrichment:
                drawn.append(_box(enrichment, left, top[name]))
            else:
                drawn.append(_pill(name, left + _widest(names, by_name), top[name]))
    bottom = max((top[name] + _height(by_name.get(name)) / 2 for name in top), default=HEAD)
    return _page(application, width, bottom + MARGIN, drawn)


def _laid_out(application: Application) -> Layout:
    """A field stands just before the first enrichment that needs it."""
    column_of = steps(application.enrichments)
    lines: list[Line] = []
    fields: dict[str, int] = {}
    for enrichment in application.enrichments:
        for need in enrichment.needs:
            if need.name not in column_of:
                fields[need.name] = min(fields.get(need.name, column_of[enrichment.name]), column_of[enrichment.name])
            if need.name != enrichment.name:
                lines.append((need.name, enrichment.name))
    column_of = {name: column - 1 for name, column in fields.items()} | column_of
    heights = {name: _height(application.by_name.get(name)) for name in column_of}
    return layout(column_of, heights, lines)


def _height(enrichment: Enrichment | None) -> float:
    return PILL_HEIGHT if enrichment is None else NAME_HEIGHT + NOTE_HEIGHT * len(notes(enrichment))


def _widest(names: list[str], by_name: dict[str, Enrichment]) -> float:
    return BOX if any(name in by_name for name in names) else PILL


def _lefts(application: Application, graph_layout: Layout) -> tuple[list[float], float]:
    """The left side of each column, and the width of all."""
    lefts, x = [], MARGIN
    for names in graph_layout.columns:
        lefts.append(x)
        x += _widest(names, application.by_name) + BETWEEN
    return lefts, max(x - BETWEEN + MARGIN, 420.0)


def _line(line: Line, graph_layout: Layout, application: Application, lefts: list[float], top: dict[str, float]) -> str:
    """Return a curve through the points, horizontal at its ends."""
    begin, end = line
    by_name = application.by_name
    column_of = {name: i for i, names in enumerate(graph_layout.columns) for name in names}
    rights = [left + _widest(names, by_name) for left, names in zip(lefts, graph_layout.columns, strict=True)]
    path = f"M{rights[column_of[begin]]:.1f},{top[begin]:.1f}"
    x, y = rights[column_of[begin]], top[begin]
    for place in graph_layout.paths[line][1:]:
        left, right = lefts[column_of[place]], rights[column_of[place]]
        half = (x + left) / 2
        path += f" C{half:.1f},{y:.1f} {half:.1f},{top[place]:.1f} {left:.1f},{top[place]:.1f}"
        path += f" L{right:.1f},{top[place]:.1f}" if place != end else ""
        x, y = right, top[place]
    optional = next(need.optional for need in by_name[end].needs if need.name == begin)
    return f'<path class="line{" optional" if optional else ""}" d="{path}" marker-end="url(#tip)"/>'


def _box(enrichment: Enrichment, left: float, middle: float) -> str:
    height = _height(enrichment)
    top = middle - height / 2
    parts = [
        f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{BOX:.0f}" height="{height:.0f}" rx="9"/>',
        _text("name", left + 12, top + 19, enrichment.name),
        _text("small", left + 12, top + 36, f"{enrichment.api} → {enrichment.result.__name__}"),
    ]
    parts += [
        _text("note", left + 12, top + 36 + NOTE_HEIGHT * number, note)
        for number, note in enumerate(notes(enrichment), start=1)
    ]
    if enrichment.rounds:
        begin, end = left + BOX - 46, left + BOX - 20
        loop = f"M{begin:.1f},{top:.1f} C{begin:.1f},{top - 22:.1f} {end:.1f},{top - 22:.1f} {end:.1f},{top:.1f}"
        parts.append(f'<path class="line own" d="{loop}" marker-end="url(#tip)"/>')
    return "".join(parts)


def _pill(name: str, right: float, middle: float) -> str:
    top, left = middle - PILL_HEIGHT / 2, right - PILL
    shape = f'<rect class="field" x="{left:.1f}" y="{top:.1f}" width="{PILL:.0f}" height="{PILL_HEIGHT:.0f}" rx="14"/>'
    return shape + _text("", left + PILL / 2, middle + 4.5, name, anchor="middle")


def _text(kind: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    short = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(short)}</text>'


def _page(application: Application, width: float, height: float, drawn: list[str]) -> str:
    under = limit(application) or f"{len(application.enrichments)} enrichments; a dashed line is an optional need"
    size = f"{width:.0f} {height:.0f}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{width:.0f}" role="img">',
            f"<title>The enrichments of {escape(application.name)}</title>",
            f"<style>{STYLE}\n</style><defs>{TIP}</defs>",
            f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/>',
            _text("title", MARGIN, 36, application.name),
            f'<text class="small" x="{MARGIN}" y="56">{escape(under)}</text>',
            *drawn,
            "</svg>\n",
        ]
    )
