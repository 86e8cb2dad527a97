"""Dead letters of a real broker, and back into the loop."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from contracts import Application, Suite, Topics
from contracts.types.origin import PLACE
from contracts.wire import REDRIVEN, Answer, DeadLetter
from services.runtime.kafka.options import create_producer
from services.tools.broker.readiness import wait_until
from services.tools.cli.__main__ import main as stateloop
from services.tools.redrive.commands import LARGEST, limiter
from services.tools.redrive.dead_letters import StoredDeadLetter
from tests.deadline import DEADLINE_S
from tests.services.enrichment.calls.virtual import virtually
from tests.services.enrichment.cluster import KEPT, PARTITIONS, Cluster, condition
from tests.services.enrichment.fleet import START, application, snapshot
from tests.services.enrichment.registry import Registry
from tests.suites import three

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker


def main(arguments: list[str]) -> int:
    return stateloop(["redrive", *arguments])


WHOLE = json.dumps({"device_id": "d1", "event_id": "e1", "much": "x" * 5000}).encode()
"""Longer than the head in a dead letter."""


@pytest.fixture
def cluster(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(broker.bootstrap, topics_prefix, tmp_path)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (future,) = admin.create_topics([NewTopic(made.topics.events, PARTITIONS, 1, config=KEPT)]).values()
    future.result(DEADLINE_S)
    monkeypatch.setenv("STATELOOP_KAFKA", broker.bootstrap)
    monkeypatch.setenv("STATELOOP_APPLICATION", "tests.services.enrichment.fleet:app")
    monkeypatch.setattr("tests.services.enrichment.fleet.app", application(topics_prefix))
    return made


class Refused:
    """Events that the job refused, with its dead letters."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._producer = create_producer({"bootstrap.servers": cluster.bootstrap}, "test")

    def event(self, value: bytes, headers: dict[str, str | bytes | None] | None = None) -> None:
        placed: list[Message] = []
        topic = self._cluster.topics.events
        self._producer.produce(
            topic, value, "d1", headers=headers or {}, on_delivery=lambda _, message: placed.append(message)
        )
        assert self._producer.flush(DEADLINE_S) == 0
        self.dead_letter(topic, placed[0])

    def dead_letter(self, topic: str, origin: Message) -> None:
        """Write the dead letter of a record."""
        written = datetime.fromtimestamp(origin.timestamp()[1] / 1000, UTC)
        place = {"partition": origin.partition() or 0, "offset": origin.offset() or 0}
        facts = {"topic": topic, "timestamp": written, "head": "x", **place}
        dead_letter = DeadLetter.model_validate(facts | {"reason": "malformed", "detail": "no number"})
        self._producer.produce(self._cluster.topics.dead_letters, dead_letter.encode(), "d1")
        assert self._producer.flush(DEADLINE_S) == 0


def records(cluster: Cluster, topic: str, enough: Callable[[list[Message]], bool]) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: list[Message] = []

    def more() -> bool:
        found.extend(consumer.consume(1000, 0.05))
        return enough(found)

    wait_until(more, f"enough in {topic}", DEADLINE_S)
    consumer.close()
    return found


def test_a_refused_record_is_sent_again_whole_with_each_redrive(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    Refused(cluster).event(WHOLE)
    assert main(["back", "--dry-run"]) == 0
    assert "1 dead letters, 1 sent again (dry run)" in capsys.readouterr().out
    assert main(["back", "--reason", "late"]) == 0
    assert main(["back"]) == 0
    assert "1 dead letters, 1 sent again\n" in capsys.readouterr().out
    first, again = records(cluster, cluster.topics.events, lambda found: len(found) >= 2)
    assert (again.key(), again.value()) == (b"d1", WHOLE)
    assert (again.partition(), again.timestamp()) == (first.partition(), first.timestamp())


def test_a_record_refused_again_goes_back_once(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    refused = Refused(cluster)
    refused.event(WHOLE)
    assert main(["back"]) == 0
    again = records(cluster, cluster.topics.events, lambda found: len(found) == 2)[1]
    refused.dead_letter(cluster.topics.events, again)
    capsys.readouterr()
    assert main(["back"]) == 0
    assert "2 dead letters, 1 sent again, 1 refused more than once" in capsys.readouterr().out
    third = records(cluster, cluster.topics.events, lambda found: len(found) == 3)[2]
    assert dict(third.headers() or []) == dict(again.headers() or [])
    assert PLACE in dict(third.headers() or [])


def test_deleted_records_are_counted(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    refused = Refused(cluster)
    refused.event(WHOLE)
    (old,) = records(cluster, cluster.topics.events, lambda found: len(found) == 1)
    refused.event(b"kept")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    until = TopicPartition(cluster.topics.events, old.partition() or 0, 1)
    admin.delete_records([until])[until].result()
    assert main(["back"]) == 0
    assert "2 dead letters, 1 not retained in their topics, 1 sent again" in capsys.readouterr().out


def test_the_list_has_counts_and_details(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    refused = Refused(cluster)
    for _ in range(3):
        refused.event(WHOLE)
    assert main(["list"]) == 0
    output = capsys.readouterr().out
    assert f"3  malformed {cluster.topics.events}" in output
    assert "no number" in output
    assert main(["list", "--since", "2999-01-01"]) == 0
    assert "0  in all" in capsys.readouterr().out


def stored(offset: int, reason: str = "malformed", **facts: str) -> StoredDeadLetter:
    placed = {"topic": "events", "partition": 0, "offset": offset, "timestamp": START, "reason": reason}
    return StoredDeadLetter(DeadLetter.model_validate(placed | facts), b"d1", START)


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three applications over one topic of events, two of which have dead letters; without a broker."""
    events = [stored(7, "delivery_failed", enrichment="high", idempotency_key=one) for one in ("opened", "closed")]
    letters = {
        "totals.dead_letters": [stored(5), stored(5), stored(6)],
        "bills.dead_letters": [stored(5), *events, *events, stored(-1, "late"), stored(-1, "late")],
    }
    monkeypatch.setenv("STATELOOP_APPLICATION", "tests.suites:suite")
    monkeypatch.setenv("STATELOOP_KAFKA", "nowhere:1")
    monkeypatch.setattr("tests.suites.suite", Suite(*three("")))
    monkeypatch.setattr("services.tools.redrive.commands.require_broker", lambda _: None)
    monkeypatch.setattr("services.tools.redrive.commands.dead_letters", lambda _, topic: iter(letters.get(topic, [])))


@pytest.mark.usefixtures("suite")
def test_the_list_has_each_origin_once_for_each_application(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = [line.split("  last ")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        *("totals", "2  malformed events", "2  in all"),
        *("newest", "0  in all"),
        *("bills", "2  delivery_failed high events", "2  late events", "1  malformed events", "5  in all"),
    ]


@pytest.mark.usefixtures("suite")
def test_the_list_has_no_control_characters_of_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = stored(5, "wrong_key", detail="the record's key is \x1b[2J\n        9  in all")
    monkeypatch.setattr("services.tools.redrive.commands.dead_letters", lambda *_: iter([hostile]))
    assert main(["list", "--application", "totals"]) == 0
    line, total = capsys.readouterr().out.splitlines()
    assert line.endswith(r"the record's key is \x1b[2J\x0a        9  in all")
    assert total.strip() == "1  in all"


@pytest.mark.usefixtures("suite")
def test_one_application_of_a_suite_is_selected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--application", "totals"]) == 0
    assert [line.split("  last ")[0].strip() for line in capsys.readouterr().out.splitlines()] == [
        "2  malformed events",
        "2  in all",
    ]
    assert main(["list", "--application", "other"]) == 1
    assert "Name one of these: totals, newest, bills" in capsys.readouterr().err


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    ("arguments", "warns"),
    [
        (["--reason", "delivery_failed"], False),
        (["--reason", "malformed"], True),
        (["--application", "bills"], True),
        (["--application", "other"], False),
    ],
)
def test_a_redrive_of_events_warns_that_they_may_count_twice(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, warns: bool
) -> None:
    """Also those of an application that reads the same events, and is not redriven."""

    async def nothing(*_: object, **__: object) -> str:
        return ""

    monkeypatch.setattr("services.tools.redrive.commands._redrive", nothing)
    totals, _, bills = three("")
    counting = Application(
        name="c",
        event=totals.event,
        state=totals.state,
        topics=Topics(prefix="c.", events="events", partitions=2),
        deduplicate=False,
    )
    other = Application(name="other", event=totals.event, state=totals.state, topics=Topics(prefix="other."))
    monkeypatch.setattr("tests.suites.suite", Suite(counting, bills, other))
    assert main(["back", *arguments]) == 0
    assert ("redrive a dead letter only once" in capsys.readouterr().err) == warns


@pytest.mark.usefixtures("cluster")
def test_a_topic_that_is_not_there_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.services.enrichment.fleet.app", application("nowhere."))
    assert main(["list"]) == 1
    assert "nowhere.dead_letters cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["back", "--rate", "0"], ["back", "--since", "soon"], ["back", "--reason", "bad"], []]
)
def test_wrong_arguments_are_refused(wrong: list[str]) -> None:
    assert main(wrong) == 2


def test_the_rate_holds_after_a_pause_too() -> None:
    async def starts() -> list[float]:
        loop, pace, began = asyncio.get_running_loop(), limiter(10), list[float]()
        for number in range(30):
            if number == 10:
                await asyncio.sleep(5)
            await pace.acquire()
            began.append(loop.time())
        return began

    began = virtually(starts())
    assert min(after - before for before, after in pairwise(began)) >= 0.1 - 1e-6
    assert began[-1] <= 5 + 3


def test_a_high_rate_is_reached() -> None:
    """Timers may be a millisecond late."""

    async def elapsed(count: int) -> float:
        loop, pace = asyncio.get_running_loop(), limiter(10_000)
        for _ in range(count):
            await pace.acquire()
        return loop.time()

    assert virtually(elapsed(20_100)) == pytest.approx(2, rel=0.01)
    assert limiter(10_000).max_rate == 100, "so many at once"


def test_a_large_record_can_be_written() -> None:
    """The client's own limit is a tenth of what a broker may be configured to take."""
    assert int(LARGEST["message.max.bytes"]) > 10 * 1024 * 1024


def test_ctrl_c_stops_a_redrive_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("STATELOOP_APPLICATION", "tests.services.enrichment.fleet:app")
    monkeypatch.setattr("services.tools.redrive.commands.require_broker", interrupted)
    assert main(["back"]) == 130
    assert capsys.readouterr().err.startswith("stateloop redrive: stopped;")


async def test_a_failed_request_is_repeated_when_the_api_is_repaired(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Registry().serving() as registry:
        cluster.publish(snapshot(1, "forbidden"))
        with cluster.worker(registry.url):
            failed = await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 2)
            await asyncio.to_thread(cluster.read, cluster.topics.dead_letters, bool)
            monkeypatch.setattr(registry, "forbidden", None)
            assert await asyncio.to_thread(main, ["back", "--enrichment", "owner"]) == 0
            feedback = await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 3)
            slots = {one.enrichment: one for one in failed} | {one.enrichment: one for one in feedback[2:]}
            assert slots["owner"].fingerprint == REDRIVEN
            answers = {
                name: Answer.model_validate(one.model_dump() | {"result": (one.result or {}).get(name)})
                for name, one in slots.items()
            }
            cluster.publish(snapshot(4, "forbidden").model_copy(update={"enrichments": answers}))
            await condition(lambda: registry.calls["/owners/forbidden"] == 2, "requested again")
            last = await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 4)
    assert [(one.enrichment, one.status, one.version) for one in last if one.version == 4] == [("owner", "result", 4)]
