"""The test of a rule with the client, at an instance of the query service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.client import Client, RejectedError, RuleTestResult
from services.query.http import rule_test_routes
from services.query.http.table_routes import tables_of
from tests.services.derive.alerted import Limit
from tests.services.query.alerting import SUITE, sensors
from tests.services.query.http.instance import Instance

if TYPE_CHECKING:
    from pathlib import Path


async def test_the_pages_of_a_test_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_test_routes, "WITHIN_S", 0)
    monkeypatch.setattr(rule_test_routes, "SLICE", 10)
    with sensors(tmp_path) as (dependencies, written):
        written.put("rule", Limit(high=90, low=90))
        for number in range(100):
            written.measure(f"s/{number:02}", number)
        instance = Instance(dependencies, hot=True, tables=tables_of(SUITE))
        async with instance.server.serving() as port, Client(f"http://127.0.0.1:{port}", discover=False) as states:
            (lower,) = await states.test_rule("limits", "rule", Limit(high=50, low=50))
            (higher,) = await states.test_rule("limits", "rule", {"high": 98, "low": 98})
            with pytest.raises(RejectedError, match="high"):
                await states.test_rule("limits", "rule", {"low": 4})
    first = tuple(f"s/{number}" for number in range(50, 70))
    assert lower == RuleTestResult("too_high", 100, 50, 0, 40, first, 0, (), 0, None)
    closing = tuple(f"s/{number}" for number in range(90, 98))
    assert higher == RuleTestResult("too_high", 100, 2, 0, 0, (), 8, closing, 0, None)
