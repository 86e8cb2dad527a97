"""Scripts: what devices send, and what breaks when. They are data: a seed gives one, and a test can contain it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

START = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of day at which a script begins."""
ENDS_S = 3600.0
"""The length of a script, in seconds. Its faults end long before, so that everything can become quiet."""
FORGED = "forged"
"""The fingerprint of answers that no worker gave."""
OTHER_STATE = frozenset({"rebuild", "incomplete", "rollback", "growth", "restore"})
"""The faults of the job after which it begins with another state."""
FOLLOWED_S = 60.0
"""The time before the end from which on derive workers only follow the progress of the job."""


def time_at(seconds: float) -> datetime:
    """Return the time of day so many seconds after the begin."""
    return START + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Sent:
    """A device sends an event. Times are seconds after the begin; `event` is its id, `first_seen` starts the window."""

    at: float
    device: str
    event: str
    first_seen: float = 0.0
    ts: float = 0.0
    plate: str | None = None
    load: int | None = None
    partition: int | None = None
    """None for the partition of the device."""


@dataclass(frozen=True)
class Forged:
    """Somebody writes a record to one of the topics `events`, `feedback` and `snapshots`."""

    at: float
    topic: str
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Tombstone:
    """Somebody removes a window from the readers of snapshots; of windows of the clock, the one that begins before."""

    at: float
    device: str
    first_seen: float = 0.0


@dataclass(frozen=True)
class Row:
    """Somebody writes a row of the limits as JSON, one that their model may reject, or removes it."""

    at: float
    name: str
    value: str | None = None


@dataclass(frozen=True)
class Redrive:
    """Somebody runs `stateloop redrive`, again until it ends without an error."""

    at: float


@dataclass(frozen=True)
class Savepoint:
    """Somebody makes a savepoint of the job."""

    at: float


@dataclass(frozen=True)
class FormerJob:
    """Somebody starts the job of the checkpoint before the last rebuild, if there was one, beside the present job."""

    at: float


@dataclass(frozen=True)
class Compact:
    """The broker compacts a kind of topics: `snapshots`, or `derived`, which are the derived states and the alerts."""

    at: float
    topics: str


@dataclass(frozen=True)
class Fault:
    """A part breaks, for so many seconds.

    The parts are `job`, `worker-0` and so on, `sink-0`, `derive-0`, `webhook-0`, `broker`, `store`, and the APIs.

    Of the part of a process: `crash` (kill -9, and started again), `stop` (SIGTERM, and started again), `freeze`,
    `interrupted` and `suspended` (a crash, and a freeze, as soon as the broker has carried out its `amount`-th request
    to write or to commit, before the answer; none if that is after the end), `cut` (no connection to the broker),
    `clock` (is ahead by `amount` seconds), `unacknowledged` (`amount` requests to write have no answer), `leaderless`
    (nothing arrives of what it writes, while it reads and commits); of the job also `lag` (it does not read partition
    `amount` of the events), `rebuild` (it is started again with an empty state, of a later epoch), `incomplete` (with
    one that reads no event again but the last), `rollback` (with the state before), `restore` (with the state of the
    last savepoint), and `growth` (with an empty one, and its topics get more partitions, until they have `amount`; the
    command that adds them is the part `growth`), `start` (an operator starts it before that), and `again` (runs the
    command once more).
    Of the broker: `away`. Of the store: `loss` of everything, `rollback` (in the end it has again what it had at the
    beginning), and the faults of `StoreServer`. Of an API: the faults of `ApiStub`, in this share (`amount`) of its
    calls.
    """

    at: float
    kind: str
    part: str
    lasts: float = 0.0
    amount: float = 1.0


Step = Sent | Forged | Tombstone | Row | Redrive | Savepoint | FormerJob | Compact | Fault


@dataclass(frozen=True)
class Script:
    """The steps of a run, and the size of the loop. `seed` decides latencies and interleavings."""

    seed: int
    steps: tuple[Step, ...]
    application: str = "cars"
    partitions: int = 2
    workers: int = 1
    sinks: int = 0
    derivers: int = 0
    """The number of derive workers."""
    batch_s: float = 60.0
    """The length of a batch of the job: the interval of its commits."""
    backlog: int = 1000
    """The number of unread records from which on the job reads them in one batch when it starts."""
    unfinished: int = 20_000
    """The number of unfinished requests at which a worker stops reading."""
    deferred: int = 1_000_000
    """The number of deferred requests at which a worker stops reading."""
    uncommitted: int = 1_000_000
    """The number of offsets beyond the first unfinished one at which a worker stops reading a partition."""
    failures: int = 1000
    """The number of failed requests in a row at which a worker suspends an API."""
    in_flight: int = 1000
    """The number of requests of an API that a worker runs at once."""
    slowest_s: float = 0.2
    """The longest time of a call without a fault."""
    sink_batch: int = 1000
    """The number of records that a sink writes at once."""
    refused: int = 0
    """The number of sightings of snapshots whose rows the store of the sinks refuses; 0 for none."""

    SIMPLEST: ClassVar[tuple[tuple[str, float], ...]] = (
        ("workers", 1),
        ("sinks", 0),
        ("derivers", 1),
        ("derivers", 0),
        ("partitions", 1),
        ("backlog", 1000),
        ("batch_s", 60.0),
        ("unfinished", 20_000),
        ("deferred", 1_000_000),
        ("uncommitted", 1_000_000),
        ("failures", 1000),
        ("in_flight", 1000),
        ("slowest_s", 0.2),
        ("sink_batch", 1000),
        ("refused", 0),
    )
    """The values with which a script is the easiest to understand, in the order in which they are tried."""

    @property
    def grows(self) -> bool:
        """Whether topics get more partitions."""
        return any(fault.kind == "growth" for fault in self.faults)

    @property
    def replaces_state(self) -> bool:
        """Whether a job begins with another state."""
        return any(fault.part == "job" and fault.kind in OTHER_STATE for fault in self.faults)

    @property
    def faults(self) -> list[Fault]:
        """The faults, in their order."""
        return [step for step in self.steps if isinstance(step, Fault)]
