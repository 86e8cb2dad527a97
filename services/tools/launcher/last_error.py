"""Finds the line of a process's output that explains why it exited."""

from __future__ import annotations

import json
import re

OWN = re.compile(r"^stateloop [a-z-]+: (?P<why>[^{].*)$")


def last_error(output: str) -> str:
    """Return the last line with a reason (`{"why": …}`, `stateloop broker: …`), or else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reasons = (_reason(line) for line in reversed(lines))
    return next(filter(None, reasons), lines[-1] if lines else "")


def _reason(line: str) -> str | None:
    if match := OWN.match(line):
        return match["why"]
    if not line.startswith("{"):
        return None
    try:
        why = json.loads(line).get("why")
    except ValueError:
        return None
    return why if isinstance(why, str) else None
