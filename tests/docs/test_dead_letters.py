"""docs/reference/dead-letters.md lists each reason of a dead letter that a part writes, and no other."""

import re
from pathlib import Path

import pytest

from contracts.records.record import Reason

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/dead-letters.md").read_text(encoding="utf-8")
WRITERS = [
    path
    for part in ("contracts", "spark_app", "services")
    for path in (ROOT / part).rglob("*.py")
    if "services/tools/redrive" not in path.as_posix()
]
"""All modules but those that read dead letters."""


def listed() -> dict[str, list[str]]:
    """Return the further cells of the row of each reason."""
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| `.*$", PAGE, re.MULTILINE)]
    return {row[0].strip("`"): row[1:] for row in rows}


def written() -> set[str]:
    """Return the names of the reasons with which a module makes a dead letter or refuses a record."""
    return {name for path in WRITERS for name in re.findall(r"\bReason\.([A-Z_0-9]+)", path.read_text("utf-8"))}


def test_the_page_lists_each_reason_in_the_order_of_the_code() -> None:
    assert list(listed()) == [reason.value for reason in Reason]


def test_each_listed_reason_is_written_somewhere() -> None:
    assert {Reason[name].value for name in written()} == set(listed())


def test_no_dead_letter_has_a_reason_outside_the_list() -> None:
    """A literal text in place of a `Reason` would be missing on the page."""
    calls = [call for path in WRITERS for call in re.findall(r"DeadLetter\.of\(([^)]*)", path.read_text("utf-8"))]
    assert calls
    assert [call for call in calls if not re.search(r", (Reason\.|error\.reason\b)", call)] == []


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_has_writer_cause_cure_and_redrive(reason: Reason) -> None:
    cells = listed()[reason]
    assert len(cells) == 4
    assert all(cells)
