"""Formats the result of a comparison for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contracts.wire import Snapshot
    from services.tools.verify.comparison import ComparisonResult, Difference

LISTED = 50
"""The largest number of differences in a table."""


def counts(comparisons: Sequence[ComparisonResult]) -> Table:
    """Return a table with a row for each pair of stores."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("read first, read later", no_wrap=True)
    for name in ("equal", "newer", "expired", "different"):
        table.add_column(name, justify="right")
    for comparison in comparisons:
        different = Text(f"{len(comparison.differences):,}", style="red" if comparison.differences else "green")
        numbers = (f"{number:,}" for number in (comparison.equal, comparison.newer, comparison.expired))
        table.add_row(f"{comparison.earlier}, {comparison.later}", *numbers, different)
    return table


def differences(listed: Sequence[Difference]) -> Table:
    """Return a table of the first differences: key, window, the version in each store, and the problem."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("key", no_wrap=True, style="bold")
    for name in ("window", "epoch.version", "problem"):
        table.add_column(name, overflow="fold")
    for difference in listed[:LISTED]:
        start = next(each.first_seen for each in difference.versions if each is not None)
        sources = (difference.earlier, difference.later)
        versions = (
            f"{source} {_version(version)}" for source, version in zip(sources, difference.versions, strict=True)
        )
        problem = Text(difference.problem, style="red")
        table.add_row(Text(difference.subject[0]), f"{start:%Y-%m-%d %H:%M:%S %Z}", ", ".join(versions), problem)
    return table


def _version(snapshot: Snapshot | None) -> str:
    return "none" if snapshot is None else f"{snapshot.epoch}.{snapshot.version}"
