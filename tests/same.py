"""Whether two JSON documents have the same content."""

import math
import re
from datetime import datetime
from typing import Any

from contracts.types.columns import RFC3339


def assert_same(found: Any, expected: Any, where: str = "") -> None:
    """Equal, numbers to 1e-9, times as instants; a missing field is a null one."""
    if isinstance(expected, dict):
        for key in expected.keys() | found.keys():
            assert_same(found.get(key), expected.get(key), f"{where}.{key}")
    elif isinstance(expected, list):
        assert found is not None, (where, expected)
        assert len(found) == len(expected), (where, found, expected)
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(expected, float) and found is not None:
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9), (where, found, expected)
    else:
        assert _instant(found) == _instant(expected), (where, found, expected)


def _instant(value: Any) -> Any:
    is_time = isinstance(value, str) and re.match(RFC3339, value)
    return datetime.fromisoformat(value) if is_time else value
