"""The measures of alerts, and their sizes."""

from dataclasses import dataclass

from bench.harness.load import Fleet

SWING = 14.0
"""A change that one event in twenty makes: the temperatures differ by 7 from one another (the standard deviation)."""
WARM_CHANGES = 2
"""The first changes of a rule, which are not measured."""


@dataclass(frozen=True)
class AlertStream:
    """Events at a steady rate, a second, and one rule: how late the alerts are that open and close."""

    name: str
    rate: int
    seconds: int
    warm_s: int = 30
    devices: int = 2_000

    def __str__(self) -> str:
        return f"{self.rate:,} events/s of {self.devices:,} devices for {self.seconds} s"

    def fleet(self) -> Fleet:
        """The devices, from their first turn."""
        return Fleet("d", self.devices)

    @property
    def estimate_s(self) -> float:
        """About how long a run takes, without the start."""
        return 2 * self.warm_s + self.seconds


@dataclass(frozen=True)
class RuleChanges:
    """A rule of all keys that is put and removed again and again, while no event comes: when its alerts are there.

    One state in a hundred breaks the rule.
    """

    name: str
    keys: int
    changes: int

    def __str__(self) -> str:
        return f"{self.keys:,} keys, {self.changes} changes of a rule that 1 in 100 breaks"

    @property
    def estimate_s(self) -> float:
        """About how long a run takes, without the start."""
        return self.keys / 20_000 + self.changes * (1 + self.keys / 100_000)


AlertMeasure = AlertStream | RuleChanges


def measures(scale: int) -> tuple[AlertMeasure, ...]:
    """All of them, of a size that is divided by so much."""
    return (
        AlertStream("alerts-1k", 1_000, 120 // scale, 30 // min(scale, 3)),
        RuleChanges("rules-100k", 100_000 // scale, 20 // min(scale, 4)),
        RuleChanges("rules-1m", 1_000_000 // scale, 5),
    )
