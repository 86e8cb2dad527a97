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
        self.right: set[str] = set()

    def agrees(self) -> bool:
        """Read on; whether every flight is now as it should be. A flight that was right may not become wrong."""
        changed = {window: self.reader.latest[window] for window in self.reader.changes() if window[0] in self.oracle}
        wrong = {device for (device, _), snapshot in changed.items() if differences(self.oracle[device], snapshot)}
        spoilt = self.right & wrong
        assert not spoilt, f"{len(spoilt)} flights were right and became wrong"
        self.right |= {device for device, _ in changed} - wrong
        return len(self.right) == len(self.oracle)

    def require_order(self) -> None:
        """Each version was published, and each after the one below it."""
        assert not self.reader.published.incomplete(), "a version of these windows was never published"
        assert not self.reader.published.skips(), "in these windows a version came too early"

    def first_differences(self) -> str:
        """Describe the differences of the first flights that differ."""
        latest = {snapshot.device_id: snapshot for snapshot in self.reader.latest.values()}
        wrong = sorted(self.oracle.keys() - self.right)
        first = {
            device: differences(self.oracle[device], latest[device]) if device in latest else "no snapshot"
            for device in wrong[:5]
        }
        return f"{len(wrong)} flights differ: {'; '.join(f'{device}: {what}' for device, what in first.items())}"
