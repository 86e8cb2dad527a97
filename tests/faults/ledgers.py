"""The four ledgers of a run, and the verdict: what was sent, called, answered, and published or read."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.faults.application import PARTITIONS, app

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from confluent_kafka import Message

    from tests.faults.load import Meter, Place


class Verdict(NamedTuple):
    """What became of a run. Without a fault of the loop, all but the repeated calls and the stall are 0."""

    lost: int = 0
    """Events that no state has, refused records without a dead letter, and final states that a reader does not get."""
    twice: int = 0
    """Events that were counted more than once."""
    missing: int = 0
    """Answers that are missing, without a dead letter that has the reason."""
    repeated: int = 0
    """Calls that had an answer already."""
    backwards: int = 0
    """Reads of an older version than the one before."""
    stall_s: float = 0.0
    """The longest time without a newer state for the reader, while events were sent."""
    people: int = 0
    """Times that a person was needed: a loop that gave up, or was not right in time."""

    @property
    def is_complete(self) -> bool:
        """Return whether nothing is lost, counted twice or missing."""
        return not (self.lost or self.twice or self.missing)

    @property
    def is_right(self) -> bool:
        """Return whether all promises were kept."""
        return self.is_complete and not (self.backwards or self.people)


@dataclass
class Published:
    """The records of the topics of snapshots, feedback and dead letters."""

    newest: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The newest snapshot of each meter."""
    feedback: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of results, by meter and fingerprint."""
    results: list[tuple[bytes | None, bytes]] = field(default_factory=list)
    """The keys and values of all results."""
    refused: set[Place] = field(default_factory=set)
    """The records that have a dead letter of the job."""
    unanswered: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The beginnings of the snapshots whose requests became dead letters, by meter."""
    changes: int = 0
    """The number of snapshots that were newer."""

    def take(self, topic: str, key: bytes | None, value: bytes) -> dict[str, Any]:
        """Add a record, and return it."""
        record: dict[str, Any] = json.loads(value)
        if topic == app.topics.snapshots:
            former = self.newest.get(record["device_id"])
            if former is None or order(former) < order(record):
                self.newest[record["device_id"]] = record
                self.changes += 1
        elif topic == app.topics.feedback:
            if record["status"] == "result":
                self.feedback[record["device_id"], record["fingerprint"]] += 1
                self.results.append((key, value))
        elif record.get("enrichment"):
            self.unanswered[(key or b"").decode()].append(record["head"])
        else:
            self.refused.add((record["topic"], record["partition"], record["offset"]))
        return record


def order(snapshot: Mapping[str, Any]) -> tuple[int, int]:
    """Return the order of the snapshots of a window."""
    return snapshot.get("epoch", 0), snapshot["version"]


class TopicReader:
    """Reads the topics, on from where the last reading ended."""

    def __init__(self, kafka: str) -> None:
        self.published = Published()
        self._delays_ms: list[float] = []
        options = {"bootstrap.servers": kafka, "group.id": "faults", "enable.auto.commit": False, "log_level": 0}
        self._consumer = Consumer(options | {"auto.offset.reset": "earliest"})
        topics = app.topics.snapshots, app.topics.feedback, app.topics.dead_letters
        self._consumer.assign([TopicPartition(topic, number, 0) for topic in topics for number in range(PARTITIONS)])

    def read(self) -> Published:
        """Return all that was published."""
        try:
            while messages := self._consumer.consume(5000, 0.2):
                self._take(messages)
        except KafkaException:  # without a broker
            pass
        return self.published

    def taken_delays_ms(self) -> list[float]:
        """Return the times from each event or answer to its snapshot, of the snapshots since the last call."""
        delays, self._delays_ms = self._delays_ms, []
        return delays

    def _take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if message.error() is None and (value := message.value()) is not None:
                record = self.published.take(message.topic() or "", message.key(), value)
                if "as_of" in record:
                    as_of = datetime.fromisoformat(record["as_of"])
                    self._delays_ms.append(message.timestamp()[1] - as_of.timestamp() * 1000)


def judge(
    meters: Mapping[str, Meter], refused: set[Place], published: Published, answers: Mapping[str, Any] | None
) -> Verdict:
    """Compare with the fold. `answers`: the snapshots that a reader has got at the end, of some of the meters."""
    lost, twice, missing = len(refused - published.refused), 0, 0
    for name, meter in meters.items():
        snapshot = published.newest.get(name, {"state": {}})
        state = snapshot["state"]
        readings = state.get("readings", 0)
        lost += max(0, meter.readings - readings)
        twice += max(0, readings - meter.readings)
        is_other = readings == meter.readings and (state.get("total"), state.get("plate")) != (meter.total, meter.plate)
        lost, twice = lost + is_other, twice + is_other  # an event is there in another's place
        if meter.plate is not None and not _has_owner(snapshot, meter.plate, published.feedback):
            missing += not any(json.dumps(meter.plate) in head for head in published.unanswered.get(name, ()))
    for name, answer in (answers or {}).items():
        lost += answer != published.newest.get(name)
    return Verdict(lost, twice, missing)


def _has_owner(snapshot: Mapping[str, Any], plate: str, feedback: Mapping[tuple[str, str], int]) -> bool:
    answer = snapshot.get("enrichments", {}).get("owner", {})
    is_named = (answer.get("result") or {}).get("name") == f"owner of {plate}"
    return is_named and (snapshot["device_id"], answer["fingerprint"]) in feedback
