"""Scripts of query instances: what the job writes, and what breaks when. A seed gives one; a test can have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

FAULTS_S = 50.0
"""The time at which the load and the last fault begin at the latest."""
LONGEST_S = 24.0
"""The longest fault."""
BOUND_S = 16.0
"""The time after the last fault after which every key must be answered with its last value."""
READ_S = 6.0
"""The time for which it is read then."""
LATE_S = 2.0
"""The time within which an instance without a fault has read and answers a record, unless many come at once."""


@dataclass(frozen=True)
class Written:
    """The job writes records of a key.

    `version`: its next version; `window`: the first version of its next window; `removed`: the tombstone of its newest
    window; `again`: its last `count` records once more, one after the other, as after a crash of the job.
    """

    at: float
    key: str
    kind: str = "version"
    count: int = 1


@dataclass(frozen=True)
class Fault:
    """A part breaks, for so many seconds: an instance (`a` and so on), the `broker`, the `topic`, `job` or `growth`.

    Of an instance: `crash` (kill -9), `wipe` (the same, and its folder is lost), `power` (its machine goes down with
    what is not synced), `stop` (SIGTERM), each of them started again afterwards; `freeze`, `cut` (no connection of its
    client `amount` of CLIENTS to the broker, or of all), `apart` (no connection to other instances), `clock` (is ahead
    by `amount` seconds), `late` (the broker that it asks for the numbers of partitions knows the former ones).
    Of the broker: `away`. Of the topic: `compact`, `recreate`, `grow` (all topics get `amount` partitions; it `lasts`
    until the instances use them), `leaderless` (a partition has no leader). Of the job: `rebuild`. Of the `growth`,
    while its command runs: `crash` (it is killed, with `amount` after so many of its requests, and run again).
    """

    at: float
    kind: str
    part: str
    lasts: float = 0.0
    amount: float = 0.0


CLIENTS = ("all", "ingest", "cluster", "admin")
Step = Written | Fault


@dataclass(frozen=True)
class Script:
    """The steps of a run, and the instances. `seed` decides latencies and interleavings."""

    seed: int
    steps: tuple[Step, ...]
    application: str = "cars"
    partitions: int = 1
    instances: int = 2
    replicas: int = 2
    batch: int = 1000
    """The number of records that an instance reads of a partition at once."""
    loss: float = 0.0
    """The share of requests that are lost."""
    slowest_s: float = 0.02
    """The longest way of a request to an instance, and of its answer back."""
    room: int = 16_384
    """The number of characters that a client that watches takes unread."""
    is_small: bool = False
    """Whether batches, pages and memories of clients are so small that their limits matter."""
    broker_s: float = 0.02
    """The longest way of a request to the broker and back."""
    followed: bool = False
    """Whether clients watch only changes."""

    @property
    def quiet_at(self) -> float:
        """The time from which on every key must be answered with its last value."""
        ends = (step.at + (step.lasts if isinstance(step, Fault) else 0.0) for step in self.steps)
        return max(ends, default=0.0) + BOUND_S

    @property
    def late_s(self) -> float:
        """The time within which an instance without a fault has read and answers a record: a burst takes longer.

        Each request to the broker gives `batch` records.
        """
        written = [step for step in self.steps if isinstance(step, Written)]
        records = [(step.at, step.count if step.kind == "again" else 1) for step in written]
        bursts = [sum(count for at, count in records if begin <= at <= begin + LATE_S) for begin, _ in records]
        return LATE_S + self.broker_s * max(bursts, default=0) / self.batch

    def leaderless(self, fault: Fault) -> int:
        """Return the partition that has no leader: `amount`, or another one if a shrunk script has fewer."""
        return round(fault.amount) % self.partitions

    SIMPLEST: ClassVar[tuple[tuple[str, float], ...]] = (
        ("partitions", 1),
        ("instances", 2),
        ("replicas", 2),
        ("batch", 1000),
        ("loss", 0.0),
        ("slowest_s", 0.02),
        ("room", 16_384),
        ("is_small", False),
        ("broker_s", 0.02),
        ("followed", False),
    )
    """The values with which a script is the easiest to understand, in the order in which they are tried."""
