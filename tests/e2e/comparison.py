"""The published snapshots so far, compared with the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.examples.flights.agreement import differences

if TYPE_CHECKING:
    from tests.e2e.reader import Reader


class Comparison:
    """Which flights are as the oracle has them, and which not yet."""

    def __init__(self, reader: Reader, oracle: dict[str, dict[str, Any]]) -> None:
        self.reader, self.oracle = reader, oracle
        self.open = set(oracle)
        self.right: set[str] = set()

    def agrees(self) -> bool:
        """Read on; whether every flight is now as it should be. A flight that was right may not become wrong."""
        self.reader.read()
        latest = {snapshot.device_id: snapshot for snapshot in self.reader.latest.values()}
        self.open = {
            device for device, what in self.oracle.items() if device not in latest or differences(what, latest[device])
        }
        spoilt = self.right & self.open
        assert not spoilt, f"{len(spoilt)} flights were right and became wrong"
        self.right = set(self.oracle) - self.open
        return not self.open

    def require_order(self) -> None:
        """Each version was published, and each after the one below it."""
        assert not self.reader.published.incomplete(), "a version of these windows was never published"
        assert not self.reader.published.skips(), "in these windows a version came too early"

    def first_differences(self) -> str:
        """Describe the differences of the first flights that differ."""
        latest = {snapshot.device_id: snapshot for snapshot in self.reader.latest.values()}
        first = sorted(self.open)[:5]
        differing = [f"{d}: {differences(self.oracle[d], latest[d]) if d in latest else 'no snapshot'}" for d in first]
        return f"{len(self.open)} flights differ: {'; '.join(differing)}"
