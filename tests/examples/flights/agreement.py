"""The differences of a snapshot from the oracle."""

import math
from datetime import datetime
from typing import Any

from contracts.wire import Snapshot

TOLERANCE = 1e-9


def differences(expected: dict[str, Any], snapshot: Snapshot) -> list[str]:
    """The paths of all values that differ, with both. Empty when the snapshot is as expected."""
    wire = snapshot.model_dump(mode="json", exclude_none=True)
    answers = {
        name: {part: answer[part] for part in ("status", "result") if part in answer}
        for name, answer in wire["enrichments"].items()
    }
    return _differences("", expected, {"state": wire["state"], "enrichments": answers})


def _differences(path: str, expected: Any, found: Any) -> list[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        names = sorted(expected.keys() | found.keys())
        return [
            difference
            for name in names
            for difference in _differences(f"{path}/{name}", expected.get(name), found.get(name))
        ]
    return [] if _same(expected, found) else [f"{path}: expected {expected!r}, found {found!r}"]


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, float) or isinstance(found, float):
        return _number(expected) and _number(found) and math.isclose(expected, found, rel_tol=TOLERANCE)
    if isinstance(expected, str) and isinstance(found, str) and expected.endswith("Z"):
        return _instant(expected) == _instant(found)
    return bool(expected == found)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _instant(written: str) -> datetime | str:
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return written
