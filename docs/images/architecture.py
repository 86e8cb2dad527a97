"""Write the pictures of docs/architecture.md, beside this file: `python docs/images/architecture.py`."""

from pathlib import Path
from typing import NamedTuple

STYLE = """
svg { font: 13px system-ui, sans-serif; color-scheme: light dark }
rect, path { stroke: #4b5563; stroke-width: 1.4; fill: #fff } path { fill: none; marker-end: url(#tip) }
text { fill: #111827 }
.topic { fill: #e0e7ff; rx: 14 } .outside { stroke-dasharray: 4 3 } .title { font-weight: 600 }
.small { font-size: 11px; fill: #4b5563 }
@media (prefers-color-scheme: dark) {
  rect { fill: #1f2937; stroke: #9ca3af } path { stroke: #9ca3af } text { fill: #f3f4f6 } .topic { fill: #3730a3 }
  .small { fill: #d1d5db } #tip path { fill: #9ca3af }
}
"""
Boxes = list[tuple[int, int, int, int, str, str, list[str]]]
"""The x, y, width, height, class, title and lines of each."""
Arrows = list[tuple[str, str, int, int]]
"""The path and label of each, with the place of the label."""


class Picture(NamedTuple):
    """Boxes, and arrows between them."""

    title: str
    width: int
    height: int
    boxes: Boxes
    arrows: Arrows


ARCHITECTURE_BOXES: Boxes = [
    (20, 130, 120, 60, "outside", "device", ["sends events"]),
    (180, 136, 110, 48, "topic", "events", []),
    (
        330,
        60,
        200,
        160,
        "part",
        "job (spark_app)",
        [
            "pipeline, kafka",
            "decode: check the record",
            "lift: record to delta",
            "merge: deltas to state",
            "state_model: columns",
        ],
    ),
    (590, 116, 120, 48, "topic", "snapshots", []),
    (
        770,
        40,
        240,
        130,
        "part",
        "worker (services/enrichment)",
        [
            "consumer, worker: read",
            "partition_state: plan and order",
            "dispatcher: limits",
            "feedback, producer: write",
        ],
    ),
    (
        770,
        250,
        240,
        110,
        "part",
        "call path (…/calls)",
        ["retrier, permits, circuit_breaker", "response_cache", "api_client, transport, session"],
    ),
    (830, 420, 120, 56, "outside", "external API", ["HTTP/1.1"]),
    (370, 266, 120, 48, "topic", "feedback", []),
    (
        540,
        266,
        190,
        150,
        "part",
        "query service",
        [
            "ingest: follow the topic",
            "store: LMDB",
            "cluster: owners and leases",
            "lookup: decide",
            "http, push: answer",
        ],
    ),
    (330, 420, 120, 56, "outside", "client", ["GET, watch"]),
    (20, 266, 150, 48, "topic", "dead_letters", []),
]
ARCHITECTURE_ARROWS: Arrows = [
    ("M140 160 H180", "", 0, 0),
    ("M290 160 H330", "", 0, 0),
    ("M530 140 H590", "", 0, 0),
    ("M710 130 H770", "", 0, 0),
    ("M870 170 V250", "call", 876, 215),
    ("M890 360 V420", "", 0, 0),
    ("M910 250 V170", "result", 916, 215),
    ("M770 165 L748 195 V240 H515 V290 H490", "answers", 590, 234),
    ("M430 266 V220", "", 0, 0),
    ("M650 164 V266", "", 0, 0),
    ("M450 448 H520 L560 416", "GET", 478, 440),
    ("M360 220 L170 280", "rejected records", 190, 240),
]
QUERY_BOXES: Boxes = [
    (20, 60, 120, 56, "outside", "client", ["GET, pages, watch"]),
    (20, 290, 120, 56, "outside", "other instances", ["own other partitions"]),
    (
        230,
        30,
        200,
        130,
        "part",
        "http",
        [
            "connection: fast path, aiohttp",
            "request_guard: host, token, rate",
            "key_routes, page_routes",
            "forwarding: one hop",
        ],
    ),
    (520, 40, 200, 110, "part", "lookup", ["state_reader: entry and role", "decision", "answer_encoder"]),
    (810, 40, 210, 110, "part", "cluster", ["role of each partition", "leases, by announcements"]),
    (520, 230, 200, 110, "part", "store", ["entries, history, index", "positions, watermark", "LMDB"]),
    (
        810,
        220,
        210,
        130,
        "part",
        "ingest",
        ["partition_reader: batches", "decode: record to update", "write, then pass the changes on"],
    ),
    (860, 410, 110, 48, "topic", "snapshots", []),
    (
        230,
        210,
        200,
        150,
        "part",
        "push",
        [
            "commands, subscriptions",
            "present values from the store",
            "changes to subscriptions",
            "one stream for each client",
        ],
    ),
]
QUERY_ARROWS: Arrows = [
    ("M140 72 H230", "request", 160, 66),
    ("M230 104 H140", "response", 160, 98),
    ("M430 70 H520", "key, query", 446, 64),
    ("M520 110 H430", "answer", 456, 126),
    ("M810 95 H720", "role", 754, 89),
    ("M620 230 V150", "entries", 628, 194),
    ("M915 410 V350", "records", 922, 384),
    ("M810 280 H720", "batch", 750, 274),
    ("M870 350 V385 H330 V360", "changes, on the event loop", 520, 402),
    ("M520 290 H430", "values", 456, 284),
    ("M290 160 V210", "watches", 240, 190),
    ("M370 210 V160", "messages", 378, 190),
    ("M230 140 H80 V290", "requests", 90, 230),
    ("M140 330 H230", "their changes", 148, 346),
]

PICTURES = {
    "architecture": Picture(
        "An event from the topic to the API and back", 1040, 500, ARCHITECTURE_BOXES, ARCHITECTURE_ARROWS
    ),
    "query": Picture("The read path of the query service, and its push", 1040, 480, QUERY_BOXES, QUERY_ARROWS),
}


def svg(picture: Picture) -> str:
    """Return the picture as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {picture.width} {picture.height}" role="img">',
        f"<style>{STYLE}</style>",
    ]
    parts.append(f"<title>{picture.title}</title>")
    parts.append(
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" style="fill:#4b5563;stroke:none;marker-end:none"/></marker></defs>'
    )
    for path, label, x, y in picture.arrows:
        parts.append(f'<path d="{path}"/>')
        if label:
            parts.append(f'<text class="small" x="{x}" y="{y}">{label}</text>')
    for x, y, width, height, kind, title, lines in picture.boxes:
        parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')
        top = y + (height - 18 * len(lines)) / 2 + (4 if not lines else 0)
        parts.append(f'<text class="title" x="{x + width / 2}" y="{top}" text-anchor="middle">{title}</text>')
        for number, line in enumerate(lines, 1):
            parts.append(
                f'<text class="small" x="{x + width / 2}" y="{top + 18 * number}" text-anchor="middle">{line}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def path(name: str) -> Path:
    """Return the file of a picture."""
    return Path(__file__).with_name(f"{name}.svg")


if __name__ == "__main__":
    for name, picture in PICTURES.items():
        path(name).write_text(svg(picture), encoding="utf-8")
