from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from services.live.lag import behind
from services.live.surroundings import calls, parts

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def stats(ago_s: float, **counted: int) -> str:
    facts = {"ts": (NOW - timedelta(seconds=ago_s)).isoformat(), "message": "stats", "calls": counted}
    return json.dumps(facts, separators=(",", ":")) + "\n"


def test_calls_per_second_are_those_between_the_last_counts_of_all_workers(tmp_path: Path) -> None:
    (tmp_path / "worker-1.log").write_text(stats(11, result=1) + stats(6, result=10) + "{}\n" + stats(1, result=60))
    (tmp_path / "worker-2.log").write_text(stats(6, result=10) + stats(1, result=20, absence=5))
    assert calls(tmp_path, NOW) == {"result": 12.0, "absence": 1.0}


def test_a_worker_that_was_started_again_counts_from_its_second_line_on(tmp_path: Path) -> None:
    log = tmp_path / "worker-1.log"
    log.write_text(stats(6, result=100) + stats(1, result=5))
    assert calls(tmp_path, NOW) == {}


def test_a_worker_that_says_nothing_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "worker-1.log").write_text(stats(60, result=1) + stats(55, result=2))
    assert calls(tmp_path, NOW) is None
    assert calls(None, NOW) is None


def test_broken_lines_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "worker-1.log").write_text('"calls":{\n{"calls":{}}\n' + stats(6, result=0) + stats(1, result=5))
    assert calls(tmp_path, NOW) == {"result": 1.0}


def test_the_parts_are_what_the_launcher_wrote(tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    assert parts(status) == parts(None) == {}
    status.write_text('{"broker": "runs"}')
    assert parts(status) == {"broker": "runs"}
    status.write_text('{"bro')
    assert parts(status) == {}


def test_lag_is_what_is_not_committed() -> None:
    assert behind({0: 90, 1: 5}, {0: (0, 100), 1: (10, 30), 2: (7, 9)}) == 10 + 20 + 2
    assert behind({0: 120}, {0: (0, 100)}) == 0
