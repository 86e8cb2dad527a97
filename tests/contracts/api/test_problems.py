from __future__ import annotations

import re
from pathlib import Path

from contracts.api import ENDPOINTS
from contracts.api.problems import TITLES
from contracts.api.watch import WATCH_KEY, WATCH_MANY

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "query-api.md"


def test_the_page_lists_every_type_with_its_status() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("\n## Problems\n")[2].partition("\n## ")[0]
    described: dict[str, int] = {}
    for kinds, statuses in re.findall(r"^\| (`.+?) \| ([0-9, ]+) \|", section, re.MULTILINE):
        names, numbers = re.findall(r"`(\w+)`", kinds), [int(number) for number in statuses.split(", ")]
        described |= zip(names, numbers if len(numbers) == len(names) else numbers * len(names), strict=True)
    assert described == {kind: status for kind, (status, _) in TITLES.items()}


def test_the_problems_of_endpoints_have_titles() -> None:
    for endpoint in (*ENDPOINTS, WATCH_KEY, WATCH_MANY):
        assert TITLES.keys() >= {*endpoint.problems}, endpoint.path
