"""The catalogue of topics: the one place that says their names, keys, models and how long they are kept."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from contracts.state import State

FOREVER = timedelta(milliseconds=-1)
PARTITIONER = "murmur2_random"
"""librdkafka's name for the Java clients' partitioner: a device is in one partition number throughout."""


class Stamp(StrEnum):
    """Whose clock stamps a record."""

    BROKER = "LogAppendTime"
    PRODUCER = "CreateTime"


@dataclass(frozen=True)
class Topic:
    """One topic. `model` is the JSON Schema of its values."""

    name: str
    key: str
    model: str
    cleanup: str
    retention: timedelta
    stamp: Stamp

    def config(self) -> dict[str, str]:
        """The topic's settings as Kafka spells them."""
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(round(self.retention.total_seconds() * 1000)),
            "message.timestamp.type": self.stamp.value,
        }


@dataclass(frozen=True)
class Topics:
    """The topics of one application. `prefix` tells applications on one broker apart.

    `outage` is how long an outage may last without a loss. A `replay` of old data carries its own times (and so
    nothing may be dropped by age, for all of it is old).
    """

    prefix: str = ""
    outage: timedelta = timedelta(days=7)
    replay: bool = False

    @property
    def events(self) -> str:
        """What devices sent."""
        return f"{self.prefix}events"

    @property
    def feedback(self) -> str:
        """Answers on their way back into the state."""
        return f"{self.prefix}feedback"

    @property
    def snapshots(self) -> str:
        """The whole state after each record."""
        return f"{self.prefix}snapshots"

    @property
    def dead_letters(self) -> str:
        """What could not be used."""
        return f"{self.prefix}dead_letters"

    def catalogue(self, state: type[State]) -> tuple[Topic, ...]:
        """All topics with their settings, for a state with this lifetime."""
        stamp = Stamp.PRODUCER if self.replay else Stamp.BROKER
        life = state.lifetime + state.grace
        inputs = FOREVER if self.replay else max(self.outage, life)
        return (
            Topic(self.events, "device_id", "event", "delete", inputs, stamp),
            Topic(self.feedback, "device_id", "feedback", "delete", inputs, stamp),
            Topic(
                self.snapshots, "device_id", "snapshot", "compact,delete", max(life, timedelta(days=1)), Stamp.BROKER
            ),
            Topic(self.dead_letters, "origin's key", "dead_letter", "delete", self.outage, Stamp.BROKER),
        )
