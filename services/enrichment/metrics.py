"""Every figure of the worker: one catalogue of names, and the object that counts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A figure's name, whether it only grows, what it means, and the name of the label that divides it."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    label: str | None = None


SNAPSHOTS = Metric("snapshots", "counter", "Snapshots read.")
PASSED = Metric("passed", "counter", "Snapshots dropped because a later version was seen before.")
REJECTED = Metric("rejected", "counter", "Records of the snapshots topic that are no snapshots.")
PLANNED = Metric("planned", "counter", "Requests begun.")
SPARED = Metric("spared", "counter", "Requests not begun because one alike is under way or was answered.")
CALLS = Metric("calls", "counter", "Calls to APIs by outcome: result, absence, retryable, permanent.", "outcome")
ANSWERS = Metric("answers", "counter", "Requests answered by status: result, absence, failure.", "status")
DEAD_LETTERS = Metric("dead_letters", "counter", "Records written to the dead letters.")
ABANDONED = Metric("abandoned", "counter", "Requests given up because their partition went to another worker.")
COMMITS = Metric("commits", "counter", "Commits that the broker confirmed.")
KAFKA_ERRORS = Metric("kafka_errors", "counter", "Errors of Kafka that were survived.")
IN_FLIGHT = Metric("in_flight", "gauge", "Requests under way.")
WAITING = Metric("waiting", "gauge", "Snapshots read and not looked at yet.")
PAUSED = Metric("paused", "gauge", "Whether reading is paused because too much is under way.")
PARTITIONS = Metric("partitions", "gauge", "Partitions assigned.")
UNCOMMITTED = Metric("uncommitted", "gauge", "Offsets read beyond the contiguous prefix of finished work.")
LAG = Metric("lag", "gauge", "Snapshots in the topic that were not read yet, in the partitions assigned.")

CATALOGUE = (
    SNAPSHOTS,
    PASSED,
    REJECTED,
    PLANNED,
    SPARED,
    CALLS,
    ANSWERS,
    DEAD_LETTERS,
    ABANDONED,
    COMMITS,
    KAFKA_ERRORS,
    IN_FLIGHT,
    WAITING,
    PAUSED,
    PARTITIONS,
    UNCOMMITTED,
    LAG,
)


class Metrics:
    """The values of the catalogue in one worker. Written by the event loop's thread only."""

    def __init__(self) -> None:
        self._values: defaultdict[tuple[Metric, str], int] = defaultdict(int)

    def add(self, metric: Metric, label: str = "", by: int = 1) -> None:
        """Count."""
        self._values[metric, label] += by

    def set(self, metric: Metric, value: int) -> None:
        """Say what a gauge stands at."""
        self._values[metric, ""] = value

    def get(self, metric: Metric, label: str = "") -> int:
        """One value; 0 if it was never touched."""
        return self._values.get((metric, label), 0)

    def values(self) -> dict[str, int | dict[str, int]]:
        """All values by name, in the catalogue's order; those with a label as a mapping."""
        return {metric.name: self._labelled(metric) if metric.label else self.get(metric) for metric in CATALOGUE}

    def _labelled(self, metric: Metric) -> dict[str, int]:
        return {label: value for (one, label), value in sorted(self._values.items(), key=str) if one is metric}
