"""Write the picture of docs/architecture.md: `python docs/images/architecture.py docs/images/architecture.svg`."""

import sys
from pathlib import Path

WIDTH, HEIGHT = 1040, 500
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
BOXES = [  # x, y, width, height, class, title, lines
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
ARROWS = [  # path, label, x, y
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


def picture() -> str:
    """Return the SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<style>{STYLE}</style>",
    ]
    parts.append("<title>An event from the topic to the API and back</title>")
    parts.append(
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" style="fill:#4b5563;stroke:none;marker-end:none"/></marker></defs>'
    )
    for path, label, x, y in ARROWS:
        parts.append(f'<path d="{path}"/>')
        if label:
            parts.append(f'<text class="small" x="{x}" y="{y}">{label}</text>')
    for x, y, width, height, kind, title, lines in BOXES:
        parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')
        top = y + (height - 18 * len(lines)) / 2 + (4 if not lines else 0)
        parts.append(f'<text class="title" x="{x + width / 2}" y="{top}" text-anchor="middle">{title}</text>')
        for number, line in enumerate(lines, 1):
            parts.append(
                f'<text class="small" x="{x + width / 2}" y="{top + 18 * number}" text-anchor="middle">{line}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
