"""Write the catalogue of metrics, as tables, between the two marks of a document."""

from __future__ import annotations

import sys
from pathlib import Path

from contracts.metrics import CATALOGUE, Metric

USAGE = "usage: python -m services.tools.catalogue document.md"
BEGIN, END = "<!-- metrics: python -m services.tools.catalogue -->\n", "<!-- end of metrics -->"


def tables() -> str:
    """Return a table for each part, with a row for each metric."""
    parts = dict.fromkeys(metric.part for metric in CATALOGUE)
    return "\n".join(_table([metric for metric in CATALOGUE if metric.part == part]) for part in parts)


def written(document: str) -> str:
    """Return the document with the current tables. Raises ValueError if it has no marks."""
    before, begin, tail = document.partition(BEGIN)
    _, end, after = tail.partition(END)
    if not (begin and end):
        raise ValueError(f"it has not both {BEGIN.strip()!r} and {END!r}")
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Write the document; 1, after one line with the reason, if that is not possible."""
    if len(arguments) != 1:
        print(USAGE, file=sys.stderr)
        return 1
    path = Path(arguments[0])
    try:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    print(f"wrote {len(CATALOGUE)} metrics to {path}")
    return 0


def _table(metrics: list[Metric]) -> str:
    rows = [
        f"| `{metric.exported}` | {metric.kind} | {', '.join(metric.labels)} | {metric.help} |" for metric in metrics
    ]
    head = [f"| {metrics[0].part} | kind | labels | meaning |", "|---|---|---|---|"]
    return "\n".join((*head, *rows, ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
