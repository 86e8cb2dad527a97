"""The owner of each output topic, recorded in Kafka: metadata of a committed offset of the group `stateloop.owners`.

Kafka deletes a committed offset with its topic, so a topic that is created again has no owner. In a group without
members the offset also expires, after `offsets.retention.minutes` (7 days by default): the job renews its claims after
each batch. A topic without an owner is free, and so is every topic while the broker does not return the owners.

The committed offset is the epoch of the job's checkpoint. Of two checkpoints of one application the newer one has the
topics, because readers prefer its epoch: a job of the older one does not start, and one that runs ends.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from services.runtime.errors import ForeignTopicsError, KafkaRequestError, OlderCheckpointError
from services.runtime.kafka.values import GroupOffset, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contracts.model.application import Application
    from services.runtime.kafka.interfaces import Admin

GROUP = "stateloop.owners"
ANSWER_S = 10.0
"""The wait for the broker, which may not list a new topic yet, or not know the group's coordinator."""
TRY_S = 1.0
PAUSE_S = 0.1
TAKEOVERS = 3
RENEWAL_S = 0.5
"""A job writes its renewal within this time after it has read the owners."""
REFUSALS = ("AUTHORIZATION", "AUTHENTICATION", "TOO_LARGE")
"""Parts of the names of permanent errors."""
Result = TypeVar("Result")


class TopicOwner(NamedTuple):
    """The application that writes a topic, and what the topic is to it."""

    application: str
    role: str

    def __str__(self) -> str:
        """Return the metadata that Kafka stores."""
        return f"{self.application} {self.role}"

    @classmethod
    def parse(cls, metadata: str) -> TopicOwner:
        """Return the owner that this metadata names."""
        application, _, role = metadata.rpartition(" ")
        return cls(application or role, role)


class TopicClaim(NamedTuple):
    """The owner of a topic, and the epoch of its checkpoint; 0 before its job has recorded one."""

    owner: TopicOwner
    epoch: int


def outputs(application: Application) -> dict[str, TopicOwner]:
    """Return the topics that the application owns. Events are not among them: applications may share them."""
    topics = application.topics
    roles = {topics.snapshots: "snapshots", topics.feedback: "feedback", topics.dead_letters: "dead_letters"}
    roles |= {topics.derived(derived.name): "derived" for derived in application.derived}
    roles |= {topics.derived(alerts.name): "alerts" for alerts in application.alerts}
    roles |= {topics.table(name): "table" for name in application.tables}
    return {topic: TopicOwner(application.name, role) for topic, role in roles.items()}


class TopicOwners:
    """Claims and checks the output topics of one application.

    `warn` receives one line when the broker does not return or store the owners; the application then goes on.
    """

    def __init__(
        self,
        application: Application,
        admin: Admin,
        warn: Callable[[str], object],
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application = application.name
        self._outputs = outputs(application)
        self._admin = admin
        self._warn = warn
        self._sleep = sleep
        self._clock = clock
        self._warned = ""

    def check(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Read the owners. Raises ForeignTopicsError."""
        with self._group(is_stopping) as group:
            self._require(group.claims(list(self._outputs)))

    async def check_async(self) -> None:
        """Do what `check` does, in a thread that ends soon after a cancellation. Raises ForeignTopicsError."""
        cancelled = threading.Event()
        try:
            await asyncio.to_thread(self.check, cancelled.is_set)
        finally:
            cancelled.set()

    def claim(self, epoch: int = 0, *, take_over: bool = False) -> int:
        """Record this application as the owner, or renew that; `take_over` replaces others. Return the recorded epoch.

        `epoch` is the epoch of the job's checkpoint, and 0 keeps the recorded one. The owners are read again at the
        end: of two that claim at once, at most one goes on. Raises ForeignTopicsError and OlderCheckpointError.
        """
        recorded = epoch
        with self._group() as group:
            if take_over:
                self._take_over(group)
            else:
                recorded = self._require(group.claims(list(self._outputs)), epoch)
            group.record(self._outputs, recorded)
            self._require(group.claims(list(self._outputs)), epoch)
        return recorded

    def recorded_epoch(self) -> int:
        """Return the greatest epoch that a job has recorded for these topics; 0 without one, or if it is unknown."""
        claims: Mapping[str, TopicClaim] = {}
        with self._group() as group:
            claims = group.claims(list(self._outputs))
        return _newest(claims)

    def _take_over(self, group: _Group) -> None:
        """Replace the owner, again if a renewal by its running job was in progress: its next renewal fails."""
        for _ in range(TAKEOVERS):
            group.record(self._outputs, 0)
            self._sleep(RENEWAL_S)
            claims = group.claims(list(self._outputs))
            if {topic: claim.owner for topic, claim in claims.items()} == self._outputs:
                return

    @contextmanager
    def _group(self, is_stopping: Callable[[], bool] = lambda: False) -> Iterator[_Group]:
        try:
            yield _Group(self._admin, is_stopping, self._sleep, self._clock)
        except KafkaRequestError as error:
            self._report(f"the owners of the topics are unknown, and are not checked ({error.detail})")
        finally:
            self._admin.close()

    def _require(self, claims: Mapping[str, TopicClaim], epoch: int = 0) -> int:
        """Return the greatest recorded epoch, or this one where it is greater."""
        if foreign := {topic: claim.owner for topic, claim in claims.items() if claim.owner != self._outputs[topic]}:
            raise ForeignTopicsError(self._application, foreign)
        newest = _newest(claims)
        if 0 < epoch < newest:
            raise OlderCheckpointError(self._application, epoch, newest)
        return max(epoch, newest)

    def _report(self, problem: str) -> None:
        if problem != self._warned:
            self._warn(problem)
        self._warned = problem


def _newest(claims: Mapping[str, TopicClaim]) -> int:
    return max((claim.epoch for claim in claims.values()), default=0)


class _Group:
    """The committed offsets of the group, with their metadata. Its methods raise KafkaRequestError."""

    def __init__(
        self,
        admin: Admin,
        is_stopping: Callable[[], bool],
        sleep: Callable[[float], object],
        clock: Callable[[], float],
    ) -> None:
        self._admin = admin
        self._is_stopping = is_stopping
        self._sleep = sleep
        self._clock = clock
        self._deadline = clock() + ANSWER_S

    def claims(self, topics: Sequence[str]) -> dict[str, TopicClaim]:
        partitions = [Partition(topic, 0) for topic in topics]
        committed = self._repeated(lambda: self._admin.committed(GROUP, partitions, TRY_S))
        return {
            partition.topic: TopicClaim(TopicOwner.parse(commit.metadata), commit.offset)
            for partition, commit in committed.items()
            if commit.metadata
        }

    def record(self, owners: Mapping[str, TopicOwner], epoch: int) -> None:
        claims = {Partition(topic, 0): GroupOffset(epoch, str(owner)) for topic, owner in owners.items()}
        self._repeated(lambda: self._commit(claims))

    def _commit(self, claims: Mapping[Partition, GroupOffset]) -> None:
        if not self._admin.commit(GROUP, claims, TRY_S):
            raise KafkaRequestError(f"commit offsets of the group {GROUP}", "UNKNOWN_MEMBER_ID", "it has members")

    def _repeated(self, request: Callable[[], Result]) -> Result:
        while True:
            try:
                return request()
            except KafkaRequestError as error:
                is_final = any(word in error.code for word in REFUSALS)
                if is_final or self._is_stopping() or self._clock() >= self._deadline:
                    raise
            self._sleep(PAUSE_S)
