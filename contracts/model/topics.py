"""The catalogue of topics: their names, keys, models and retention."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Self

from contracts.errors import DeclarationError, TopicConfigError
from contracts.model.alerts import Alerts
from contracts.model.named_state import NO_TIME, Derived, QueryOptions
from contracts.model.state import State
from contracts.model.table import Table
from contracts.types.declaration import Declaration

NAME = re.compile("[a-zA-Z0-9._-]{1,249}")
FOREVER, FOREVER_MS = timedelta(milliseconds=-1), "-1"
PARTITIONER = "murmur2_random"
"""librdkafka's name for the Java clients' partitioner: a device has the same partition number in all topics."""

READ_COMMITTED = {"isolation.level": "read_committed"}
"""The isolation of every consumer: the default of librdkafka, but not of Java's clients."""
COMPACTION_LAG = "min.compaction.lag.ms"
RETENTION = "retention.ms"
MEANING = ("message.timestamp.type", "cleanup.policy")
"""The settings that change the meaning of a topic's records. The retention is the operator's choice."""


class Stamp(StrEnum):
    """The clock that stamps a record."""

    BROKER = "LogAppendTime"
    PRODUCER = "CreateTime"


@dataclass(frozen=True)
class Topic:
    """One topic. `model` is the JSON Schema of its values. No record is compacted before its age is `uncompacted`."""

    name: str
    key: str
    model: str
    cleanup: str
    retention: timedelta
    stamp: Stamp
    partitions: int
    uncompacted: timedelta = NO_TIME

    @property
    def grows(self) -> bool:
        """Whether it gets more partitions with the others. Tables and raw topics may have any number of them."""
        return self.model not in ("table", "raw")

    def config(self) -> dict[str, str]:
        """The topic's settings as Kafka spells them."""
        lag = {COMPACTION_LAG: _milliseconds(self.uncompacted)} if self.uncompacted else {}
        return {
            "cleanup.policy": self.cleanup,
            RETENTION: _milliseconds(self.retention),
            "message.timestamp.type": self.stamp.value,
            **lag,
        }

    def merged(self, other: Self) -> Self:
        """Return this topic with the longer retention of the two."""
        is_forever = FOREVER in (self.retention, other.retention)
        return replace(self, retention=FOREVER if is_forever else max(self.retention, other.retention))

    def require(self, actual: Mapping[str, str], kafka: str) -> None:
        """Compare with the settings that a broker has for this topic. Raises TopicConfigError."""
        wanted = self.config()
        wrong = {name: wanted[name] for name in MEANING if _listed(actual.get(name, "")) != _listed(wanted[name])}
        if self.uncompacted and int(actual.get(COMPACTION_LAG) or 0) < int(wanted[COMPACTION_LAG]):
            wrong[COMPACTION_LAG] = wanted[COMPACTION_LAG]
        if wrong:
            raise TopicConfigError(self.name, actual, wrong, kafka)

    def shorter_retention(self, actual: Mapping[str, str], kafka: str) -> TopicConfigError | None:
        """Return the error of a topic whose records a broker deletes sooner than this; None for any other.

        A topic has the retention of its creation, also when the application declares a longer one later.
        """
        wanted, found = self.config()[RETENTION], actual.get(RETENTION, FOREVER_MS)
        if "delete" not in self.cleanup or found == FOREVER_MS or (wanted != FOREVER_MS and int(found) >= int(wanted)):
            return None
        return TopicConfigError(self.name, actual, {RETENTION: wanted}, kafka)


@dataclass(frozen=True)
class Topics(Declaration):
    """The topics of one application, each with this number of `partitions`.

    Their names begin with `prefix`, which separates applications on one broker. The topics store events and feedback
    for `outage` at least, so that a job can catch up after it. With `replay`, the producer stamps events and feedback,
    in place of the broker, and the topics store them without limit of age: it is for history. `events` is the full name
    of the topic of events, which several applications may read; the others belong to one application each.
    """

    prefix: str = ""
    outage: timedelta = timedelta(days=7)
    replay: bool = False
    partitions: int = 4
    events: str = ""
    """The topic of events: `<prefix>events`, unless it is set."""

    def __post_init__(self) -> None:
        """Name the topic of events. Raises DeclarationError if that is an output, and for what Kafka refuses."""
        object.__setattr__(self, "events", self.events or f"{self.prefix}events")
        if self.partitions < 1:
            raise DeclarationError(f"Topics(partitions={self.partitions})", "has no partition", "Write partitions=4")
        for topic in (self.events, *self.written):
            check_topic("Topics", topic)
        if self.events in self.written:
            problem = f"events={self.events!r} is a topic that the application writes"
            raise DeclarationError("Topics", problem, "Name the topic that devices send to")

    @property
    def written(self) -> tuple[str, ...]:
        """The topics that every application writes."""
        return (self.feedback, self.snapshots, self.dead_letters, self.instances)

    @property
    def feedback(self) -> str:
        """The topic of feedback: answers on their way back into the state."""
        return f"{self.prefix}feedback"

    @property
    def snapshots(self) -> str:
        """The topic of snapshots: the whole state after each record."""
        return f"{self.prefix}snapshots"

    @property
    def dead_letters(self) -> str:
        """The topic of dead letters: records and requests that could not be processed."""
        return f"{self.prefix}dead_letters"

    @property
    def instances(self) -> str:
        """The topic of the announcements of query instances."""
        return f"{self.prefix}query_instances"

    def derived(self, name: str) -> str:
        """The topic of a derived state, or of alerts."""
        return f"{self.prefix}{name}"

    def table(self, table: Table) -> str:
        """The topic of a reference table."""
        return table.topic or f"{self.prefix}{table.name}"

    def table_topics(self, tables: Sequence[Table]) -> tuple[Topic, ...]:
        """The topics of reference tables, with their settings. They keep the last record of each key."""
        return tuple(
            Topic(self.table(table), "key", "table", "compact", FOREVER, Stamp.BROKER, self.partitions)
            for table in tables
        )

    def alert_topics(
        self, state: type[State], alerts: Sequence[Alerts], query: QueryOptions | None = None
    ) -> tuple[Topic, ...]:
        """The topics of alerts, with their settings. Their records have the retention of the snapshots.

        With a webhook, each of them is kept for `outage` at least: after an outage its worker delivers all of them.
        """
        kept = _outputs_kept(state, query)
        return tuple(
            Topic(
                self.derived(declared.name),
                "device_id and first_seen",
                "alerts",
                "compact,delete",
                max(kept, self.outage) if declared.webhook else kept,
                Stamp.BROKER,
                self.partitions,
                self.outage if declared.webhook else NO_TIME,
            )
            for declared in alerts
        )

    def query_topics(self, state: type[State], derived: Sequence[Derived]) -> tuple[Topic, ...]:
        """The topics that only queries need, with their settings: of the derived states, and of the instances."""
        topics = [self._derived(declared.name, declared.lifetime or state.lifetime) for declared in derived]
        kept = timedelta(days=1)
        instances = Topic(self.instances, "instance", "instance", "compact,delete", kept, Stamp.BROKER, self.partitions)
        return (*topics, instances)

    def _derived(self, name: str, lifetime: timedelta) -> Topic:
        """Return the topic of a derived state. Its records' keys have the window, so no window replaces another."""
        kept = max(2 * lifetime, timedelta(days=1))
        return Topic(
            self.derived(name),
            "key, device_id and first_seen",
            "derived",
            "compact,delete",
            kept,
            Stamp.BROKER,
            self.partitions,
        )

    def catalogue(
        self, state: type[State], query: QueryOptions | None = None, raw: Sequence[str] = ()
    ) -> tuple[Topic, ...]:
        """All topics with their settings, for a state with this lifetime that is queried with these options.

        Events that are decoded from `raw` topics have the timestamps of the raw records: a record that waited for the
        decoder is not late.
        """
        stamp = Stamp.PRODUCER if self.replay else Stamp.BROKER
        kept_for = state.lifetime + state.grace
        inputs = FOREVER if self.replay else max(self.outage, kept_for)
        outputs = _outputs_kept(state, query)
        count = self.partitions
        key = "any" if state.is_windowed else "device_id"
        return (
            *(Topic(name, "any", "raw", "delete", inputs, stamp, count) for name in raw),
            Topic(self.events, key, "event", "delete", inputs, Stamp.PRODUCER if raw else stamp, count),
            Topic(self.feedback, "device_id", "feedback", "delete", inputs, stamp, count),
            Topic(
                self.snapshots, "device_id and first_seen", "snapshot", "compact,delete", outputs, Stamp.BROKER, count
            ),
            Topic(self.dead_letters, "origin's key", "dead_letter", "delete", self.outage, Stamp.BROKER, count),
        )


def check_topic(where: str, name: str) -> None:
    """Raise DeclarationError for a name that Kafka refuses."""
    if not NAME.fullmatch(name):
        write = "Write letters of ASCII, digits, ., - and _, 249 at most"
        raise DeclarationError(where, f"{name!r} is no name of a topic", write)


def check_topics(topics: Topics, derived: Sequence[Derived | Alerts], tables: Sequence[Table]) -> None:
    """Raise DeclarationError for a derived state, alerts or a table without a topic of its own."""
    used = dict.fromkeys((topics.events, *topics.written), "the application")
    named = [(f"{type(each).__name__}({each.name!r})", topics.derived(each.name)) for each in derived]
    named += [(f"Table({table.name!r})", topics.table(table)) for table in tables]
    for where, topic in named:
        check_topic(where, topic)
        if topic in used:
            write = "Choose another name" + (", or Table(topic=…)" if where.startswith("Table") else "")
            raise DeclarationError(where, f"has the topic {topic!r} of {used[topic]}", write)
        used[topic] = where


def _outputs_kept(state: type[State], query: QueryOptions | None) -> timedelta:
    """Return the retention of a window's last record: until the window is forgotten."""
    closed = (query or QueryOptions()).closed_windows if state.is_windowed else NO_TIME
    return max(state.lifetime + state.grace + closed, timedelta(days=1))


def _milliseconds(time: timedelta) -> str:
    return str(round(time.total_seconds() * 1000))


def _listed(value: str) -> set[str]:
    """A setting may be a list, whose order has no meaning."""
    return {item.strip() for item in value.split(",")}
