"""The owners of topics, on a real broker."""

from __future__ import annotations

import json
import os
from functools import partial
from itertools import count
from time import sleep
from typing import TYPE_CHECKING, NoReturn

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from services.runtime import topic_owners
from services.runtime.errors import ForeignTopicsError, KafkaRequestError, OlderCheckpointError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.options import create_producer
from services.runtime.topic_owners import TopicOwner, TopicOwners, outputs
from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.forked import Forked
from tests.services.runtime.rivals import rival
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import everything

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

ROLES = {"snapshots": "snapshots", "feedback": "feedback", "dead_letters": "dead_letters", "sites": "derived"}
PROCESSES = {
    "services.enrichment": {"STATELOOP_APIS": '{"registry": "http://127.0.0.1:1"}'},
    "services.derive": {},
    "services.query": {"STATELOOP_HTTP_PORT": "0"},
}


class Rivals:
    """Two applications, `first` and `second`, with the same output topics on a broker."""

    def __init__(self, kafka: str, prefix: str, folder: Path) -> None:
        self.kafka, self.prefix, self.folder = kafka, prefix, folder
        self.admin = AdminClient({"bootstrap.servers": kafka})
        self.warnings: list[str] = []
        self._numbers = count()

    def owners(self, name: str = "first", *, pauses: Iterable[Callable[[], object]] = ()) -> TopicOwners:
        """The claims of one of them, from this process. Its first pauses are calls instead, one of each."""
        calls = iter(pauses)
        admin = KafkaAdmin({"bootstrap.servers": self.kafka}, "topic-owners")

        def pause(pause_s: float) -> None:
            next(calls, partial(sleep, pause_s))()

        return TopicOwners(rival(name, self.prefix), admin, self.warnings.append, pause)

    def create(self, *names: str) -> None:
        """Create output topics that no application claims."""
        topics = [f"{self.prefix}{name}" for name in names or ROLES]
        for future in self.admin.create_topics([NewTopic(topic, 2, 1) for topic in topics]).values():
            future.result(DEADLINE_S)
        wait_until(lambda: {*topics} <= self.listed(), f"{topics} are listed", DEADLINE_S)

    def delete(self, name: str) -> None:
        """Delete a topic."""
        topic = f"{self.prefix}{name}"
        self.admin.delete_topics([topic])[topic].result(DEADLINE_S)
        wait_until(lambda: topic not in self.listed(), f"{topic} is deleted", DEADLINE_S)

    def listed(self) -> set[str]:
        """The topics of both."""
        return {topic for topic in self.admin.list_topics(timeout=DEADLINE_S).topics if topic.startswith(self.prefix)}

    def environment(self, name: str, **more: str) -> dict[str, str]:
        """The settings of a process of one of them."""
        own = {
            "RIVALS_NAME": name,
            "RIVALS_PREFIX": self.prefix,
            "STATELOOP_APPLICATION": "tests.services.runtime.rivals:app",
            "STATELOOP_KAFKA": self.kafka,
            "STATELOOP_QUERY_DATA": str(self.folder / "query"),
        }
        return os.environ | own | more

    def make(self, name: str, **more: str) -> None:
        """Create the topics of one of them, which claims them without a warning."""
        code, output = self.run("services.tools.topics", name, STATELOOP_REPLICATION="1", **more)
        assert code == 0, output
        assert "stateloop topics: " not in output

    def run(self, module: str, name: str, **more: str) -> tuple[int, str]:
        """Run a process of one of them to its end. Return its exit code and its output."""
        log = self.folder / f"{next(self._numbers)}.log"
        code = Forked.module(module, self.environment(name, **more), log).wait(DEADLINE_S)
        return code, log.read_text(encoding="utf-8")


@pytest.fixture
def rivals(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Rivals:
    """Two applications with the same topics."""
    return Rivals(broker.bootstrap, topics_prefix, tmp_path)


def test_outputs_are_owned_and_events_are_not() -> None:
    found = outputs(rival("first", "a."))
    assert found == {f"a.{topic}": TopicOwner("first", role) for topic, role in ROLES.items()}
    assert outputs(rival("first", "a.", "shared")) == found


@pytest.mark.parametrize("owner", [TopicOwner("first", "snapshots"), TopicOwner("a name", "derived")])
def test_an_owner_is_read_as_it_is_stored(owner: TopicOwner) -> None:
    assert TopicOwner.parse(str(owner)) == owner


@pytest.mark.slow
def test_without_a_broker_the_application_goes_on_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_owners, "ANSWER_S", 0.5)
    warnings: list[str] = []
    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"}, "topic-owners")
    owners = TopicOwners(rival("first", ""), admin, warnings.append)
    owners.check()
    owners.claim()
    assert owners.recorded_epoch() == 0
    (line,) = warnings
    assert line.startswith("the owners of the topics are unknown, and are not checked (")


def test_a_refusal_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> NoReturn:
        raise KafkaRequestError("read offsets", "GROUP_AUTHORIZATION_FAILED", "no")

    monkeypatch.setattr(KafkaAdmin, "committed", refused)
    warnings, pauses = list[str](), list[float]()
    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"}, "topic-owners")
    TopicOwners(rival("first", ""), admin, warnings.append, pauses.append).check()
    assert (len(warnings), pauses) == (1, [])


@pytest.mark.kafka
async def test_a_claimed_topic_is_refused_to_others_until_it_is_deleted(rivals: Rivals) -> None:
    rivals.create()
    rivals.owners().claim()
    rivals.owners().claim()
    rivals.owners().check()
    for refused in (rivals.owners("second").check, rivals.owners("second").claim):
        with pytest.raises(ForeignTopicsError, match=rf"'{rivals.prefix}snapshots' \(snapshots of 'first'\)"):
            refused()
    with pytest.raises(ForeignTopicsError, match=r"Topics\(prefix=…\).*STATELOOP_TAKE_OVER=true") as error:
        await rivals.owners("second").check_async()
    assert error.value.owners == {f"{rivals.prefix}{topic}": ("first", role) for topic, role in ROLES.items()}
    for topic in ROLES:
        rivals.delete(topic)
    rivals.create()
    await rivals.owners("second").check_async()
    rivals.owners("second").claim()
    assert not rivals.warnings


@pytest.mark.kafka
def test_a_topic_with_another_role_is_refused(rivals: Rivals) -> None:
    rivals.create()
    rivals.owners().claim()
    moved = TopicOwner("first", "derived")
    owners = rivals.owners()
    owners._outputs[f"{rivals.prefix}snapshots"] = moved  # noqa: SLF001
    with pytest.raises(ForeignTopicsError, match="snapshots of 'first'"):
        owners.check()


@pytest.mark.kafka
def test_a_newer_checkpoint_has_the_topics(rivals: Rivals) -> None:
    rivals.create()
    older, newer = rivals.owners(), rivals.owners()
    assert older.claim() == 0
    assert older.claim(1_000) == 1_000
    assert newer.claim() == 1_000
    newer.claim(2_000)
    for refused in (older, rivals.owners()):
        with pytest.raises(OlderCheckpointError, match="epoch 2000 to the epoch 1000"):
            refused.claim(1_000)
    assert rivals.owners().claim() == 2_000, "`stateloop topics` keeps the epoch"
    rivals.owners().check()
    newer.claim(2_000)


@pytest.mark.kafka
def test_the_recorded_epoch_is_read_without_a_claim(rivals: Rivals) -> None:
    rivals.create()
    assert rivals.owners("second").recorded_epoch() == 0
    rivals.owners().claim(1_000)
    assert rivals.owners().recorded_epoch() == 1_000
    rivals.owners().check()


@pytest.mark.kafka
def test_a_takeover_replaces_the_owner_who_notices_at_its_next_renewal(rivals: Rivals) -> None:
    rivals.create()
    first = rivals.owners()
    first.claim()
    rivals.owners("second").claim(take_over=True)
    with pytest.raises(ForeignTopicsError, match="snapshots of 'second'"):
        first.claim()


@pytest.mark.kafka
def test_a_takeover_wins_over_a_renewal_in_progress(rivals: Rivals) -> None:
    """The former owner's job has read that it owns the topics, and writes its renewal after the takeover."""
    rivals.create()
    renewals = iter([partial(rivals.owners().claim, take_over=True)])
    rivals.owners("second", pauses=renewals).claim(take_over=True)
    assert not [*renewals], "the renewal was written"
    rivals.owners("second").check()


@pytest.mark.kafka
def test_a_topic_that_was_created_just_now_is_waited_for(rivals: Rivals) -> None:
    rivals.owners(pauses=[rivals.create]).claim()
    assert not rivals.warnings
    with pytest.raises(ForeignTopicsError):
        rivals.owners("second").check()


@pytest.mark.kafka
def test_topics_of_another_application_are_refused_before_any_is_created(rivals: Rivals) -> None:
    rivals.create("snapshots", "feedback", "dead_letters", "sites")
    rivals.owners().claim()
    before = rivals.listed()
    code, output = rivals.run("services.tools.topics", "second")
    (line,) = output.splitlines()
    assert code == 1
    assert line.startswith("stateloop topics: the application 'second' cannot write to topics of another application")
    assert rivals.listed() == before


@pytest.mark.kafka
def test_the_topics_command_claims_and_takes_over(rivals: Rivals) -> None:
    for name, settings in (("first", {}), ("first", {}), ("second", {"STATELOOP_TAKE_OVER": "true"}), ("second", {})):
        rivals.make(name, **settings)
    code, _ = rivals.run("services.tools.topics", "first")
    assert code == 1


@pytest.mark.kafka
def test_applications_share_a_topic_of_events(rivals: Rivals) -> None:
    events = f"{rivals.prefix}shared"
    for name in ("first", "second"):
        own = {"RIVALS_PREFIX": f"{rivals.prefix}{name}.", "RIVALS_EVENTS": events}
        rivals.make(name, **own)
    assert {events, f"{rivals.prefix}first.snapshots", f"{rivals.prefix}second.snapshots"} <= rivals.listed()
    assert f"{rivals.prefix}first.events" not in rivals.listed()


@pytest.mark.kafka
@pytest.mark.parametrize("module", PROCESSES)
def test_a_process_of_another_application_exits_with_one_line(rivals: Rivals, module: str) -> None:
    rivals.make("first")
    code, output = rivals.run(module, "second", **PROCESSES[module])
    end = output.splitlines()[-1]
    name = module.removeprefix("services.").replace("enrichment", "worker")
    assert code == 1
    assert end.startswith(f"stateloop {name}: the application 'second' cannot write to topics of another application: ")
    assert "Traceback" not in output


@pytest.mark.e2e
@pytest.mark.kafka
def test_a_second_application_on_the_same_topics_is_refused_and_publishes_nothing(
    spark: SparkSession, rivals: Rivals
) -> None:
    """As a user meets it: both have the default prefix, and events arrive."""
    rivals.make("first")
    code, _ = rivals.run("services.tools.topics", "second", STATELOOP_REPLICATION="1")
    assert code == 1
    producer = create_producer({"bootstrap.servers": rivals.kafka}, "test")
    producer.produce(f"{rivals.prefix}events", b"{}", "machine-1")
    assert producer.flush(DEADLINE_S) == 0
    job = HostedJob(spark, rivals.kafka, rivals.folder, rival("second", rivals.prefix))
    assert job.start().wait() == 1
    (ended,) = job.lines("ended")
    assert "cannot write to topics of another application" in ended["why"]
    assert not (rivals.folder / "checkpoint").exists()
    for topic in ROLES:
        assert everything(rivals.kafka, f"{rivals.prefix}{topic}") == []


@pytest.mark.spark
@pytest.mark.kafka
def test_a_job_claims_its_topics_and_exits_after_a_takeover(spark: SparkSession, rivals: Rivals) -> None:
    """The topics were created by hand, so only the job claims them."""
    rivals.make("first")
    for topic in ROLES:
        rivals.delete(topic)
    feedback = NewTopic(f"{rivals.prefix}feedback", 2, 1, config={"message.timestamp.type": "LogAppendTime"})
    rivals.admin.create_topics([feedback])[feedback.topic].result(DEADLINE_S)
    rivals.create("snapshots", "dead_letters", "sites")
    job = HostedJob(spark, rivals.kafka, rivals.folder, rival("first", rivals.prefix))
    try:
        job.start().batches(1)
        with pytest.raises(ForeignTopicsError, match="snapshots of 'first'"):
            rivals.owners("second").check()
        rivals.owners("second").claim(take_over=True)
        assert job.wait() == 1
        assert "(snapshots of 'second')" in job.lines("ended")[-1]["why"]
    finally:
        job.stop()
    assert json.dumps(job.lines("warning")) == "[]"
