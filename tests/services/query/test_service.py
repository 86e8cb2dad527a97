"""The service as a process: from a snapshot on the topic to its reader, with kills of the service and of the broker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from contracts.model.suite import Suite
from services.query.service import serve
from services.query.settings import QuerySettings
from services.runtime.kafka.clients import KafkaClients
from services.tools.broker.readiness import PAUSE_S, wait_until
from tests.deadline import DEADLINE_S
from tests.services.query.fleet import START, app, snapshot
from tests.services.query.running import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contracts.wire import Snapshot
    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.kills_broker]
WAIT_S = 20
CARS = [f"car/{number}" for number in range(500)]
OUTAGE_S = 8
"""Longer than lease and session."""
SECRET, PEERS = "a-secret-of-a-dashboard", "a-secret-of-instances"


@pytest.fixture
def fleet(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Fleet:
    return Fleet(broker.bootstrap, topics_prefix, tmp_path)


def test_a_published_record_can_be_read_with_its_source(fleet: Fleet) -> None:
    fleet.publish(*(snapshot("car/1", version, plate=f"P{version}") for version in (1, 2, 3, 4)))
    with fleet.running():
        fleet.until("/v1/states/cars/car%2F1?min_version=4&wait=20", 200)
        _until(lambda: b'stateloop_query_partitions{role="owner",state="cars"} 4.0' in fleet.ask("/metrics").body)
        response = fleet.ask("/v1/states/cars/car%2F1")
        assert (response.body["version"], response.body["value"]["state"]) == (4, {"plate": "P4"})
        assert (response.body["window_start"], response.body["event_time"]) == (
            "2026-01-01T00:00:00.000Z",
            "2026-01-01T00:00:04.000Z",
        )
        assert response.body["source"]["topic"] == fleet.topics.snapshots
        assert (response.body["role"], response.body["instance"], response.body["lag"]) == (
            "owner",
            "one",
            {"records": 0},
        )
        assert (response.headers["ETag"], response.headers["Cache-Control"]) == ('"1767225600000.0.4"', "max-age=1")
        assert fleet.ask("/v1/states/cars/car%2F1", **{"If-None-Match": response.headers["ETag"]}).status == 304
        assert fleet.ask("/v1/states/cars/car%2F1?as_of=3").body["value"]["state"] == {"plate": "P3"}
        versions = fleet.ask("/v1/states/cars/car%2F1/versions").body["versions"]
        assert [one["version"] for one in versions] == [2, 3, 4]
        assert [one["key"] for one in fleet.ask("/v1/states/cars?where=state.plate:P4").body["items"]] == ["car/1"]
        assert fleet.ask("/v1/states/cars/car%2F2").status == 404
        assert fleet.ask("/v1/states").body["states"][0]["keys"] == 1
        assert fleet.ask("/").status == 200, "the console"


def test_batches_pages_and_fields(fleet: Fleet) -> None:
    fleet.publish(*(snapshot(car, 1, plate=f"P{number % 2}") for number, car in enumerate(CARS[:20])))
    with fleet.running():
        fleet.until(f"/v1/states/cars/{quote(CARS[19], safe='')}?min_version=1&wait=20", 200)
        seen: list[str] = []
        after: str | None = ""
        while after is not None:
            page = fleet.ask(f"/v1/states/cars?prefix=car%2F1&limit=3&after={quote(after, safe='')}&fields=state")
            assert len(page.body["items"]) <= 3
            assert all(set(one["value"]) == {"state"} for one in page.body["items"])
            seen += [one["key"] for one in page.body["items"]]
            after = page.body["after"]
        assert seen == sorted(car for car in CARS[:20] if car.startswith("car/1"))
        assert fleet.ask("/v1/states/cars?where=state.tail:x").status == 400
        batch = {"keys": [CARS[7], "absent", CARS[3]], "fields": "state.plate"}
        answers = fleet.ask("/v1/states/cars:batchGet", body=json.dumps(batch)).body["answers"]
        assert [answer.get("type") or answer["value"] for answer in answers] == [
            {"state": {"plate": "P1"}}, "never_seen", {"state": {"plate": "P1"}},
        ]  # fmt: skip
        refused = fleet.ask("/v1/states/cars/absent", Host="evil.example")
        assert (refused.status, refused.body["type"]) == (403, "other_host")


def test_an_expired_window_differs_from_a_key_never_seen(fleet: Fleet) -> None:
    with fleet.running():
        fleet.publish(snapshot("old", 1), snapshot("back", 1))
        fleet.until("/v1/states/cars/old?min_version=1&wait=20", 200)
        fleet.publish(snapshot("new", 1, timedelta(minutes=90)), snapshot("back", 1, timedelta(minutes=90)))
        fleet.until("/v1/states/cars/old", 410)
        assert fleet.until("/v1/states/cars/back?min_version=1767231000000.1&wait=20", 200).body["version"] == 1
        never = fleet.ask("/v1/states/cars/never")
        assert (never.status, never.body["type"]) == (404, "never_seen")
        assert "remembered_since" in never.body


def test_a_waiting_request_is_answered_at_once(fleet: Fleet) -> None:
    with fleet.running():
        fleet.publish(snapshot("car", 1))
        fleet.until("/v1/states/cars/car?min_version=1&wait=20", 200)
        took: list[float] = []
        for version in range(2, 22):
            waiting = threading.Thread(target=_timed, args=(fleet, version, took))
            waiting.start()
            fleet.publish(snapshot("car", version))
            waiting.join(DEADLINE_S)
        assert len(took) == 20
        assert sorted(took)[10] < WAIT_S / 4, "a change wakes the request, not the end of its wait"


def test_a_killed_service_resumes_at_its_position(fleet: Fleet) -> None:
    fleet.publish(*(snapshot(car, 1) for car in CARS))
    process = fleet.start()
    try:
        fleet.ready(process)
        for version in (2, 3):
            fleet.publish(*(snapshot(car, version) for car in CARS))
            fleet.until(f"/v1/states/cars/car%2F{len(CARS) - 1}?min_version={version}&wait=20", 200)
            process.send_signal(signal.SIGKILL)
            process.wait(DEADLINE_S)
            process = fleet.start()
            assert fleet.until(f"/v1/states/cars/car%2F{len(CARS) - 1}", 200).body["version"] == version
        fleet.until("/readyz", 200)
        assert _read_since_start(fleet) < len(CARS), "it does not read records again"
        fleet.publish(snapshot("car/0", 4))
        assert fleet.until("/v1/states/cars/car%2F0?min_version=4&wait=20", 200).body["version"] == 4
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0


def test_the_service_answers_while_the_broker_is_down_and_continues_afterwards(
    fleet: Fleet, broker: EmbeddedBroker
) -> None:
    fleet.publish(snapshot("car", 1))
    with fleet.running() as process:
        fleet.until("/v1/states/cars/car?min_version=1&wait=20", 200)
        broker.kill()
        try:
            end = time.monotonic() + OUTAGE_S
            while time.monotonic() < end:
                assert fleet.ask("/v1/states/cars/car").status == 200
                time.sleep(PAUSE_S)
            assert fleet.ask("/healthz").status == 200, "no restart is requested"
        finally:
            broker.start()
        fleet.publish(snapshot("car", 1), snapshot("car", 2))
        assert fleet.until("/v1/states/cars/car?min_version=2&wait=20", 200).body["version"] == 2
        assert _read_since_start(fleet) == 3, "no record is read again"
        _until(lambda: fleet.ask("/v1/states/cars/car").body["lag"] == {"records": 0})
        assert process.poll() is None


def test_the_service_stops_after_partitions_were_added(fleet: Fleet, broker: EmbeddedBroker) -> None:
    fleet.publish(snapshot("car", 1))
    process = fleet.start()
    fleet.ready(process)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for topic in (fleet.topics.snapshots, fleet.topics.feedback):  # the last one to get its partitions
        admin.create_partitions([NewPartitions(topic, 7)])[topic].result(DEADLINE_S)
    assert process.wait(DEADLINE_S) == 1
    *_, last = fleet.log.read_text(encoding="utf-8").splitlines()
    assert "has 7 partitions, and had 4: start the service again" in last
    with fleet.running():
        for number in range(20):
            fleet.publish(snapshot(f"car{number}", 1))
            assert fleet.until(f"/v1/states/cars/car{number}?min_version=1&wait=20", 200).body["version"] == 1
        assert fleet.ask("/v1/states/cars/car").body["version"] == 1, "it owns all partitions"


def test_tokens_are_required_reloaded_and_never_printed(fleet: Fleet, tmp_path: Path) -> None:
    fleet.publish(snapshot("car", 1), snapshot("truck", 1))
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"tokens": [{"name": "dashboard", "token": SECRET, "keys": ["car"]}]}))
    bearer = {"Authorization": f"Bearer {SECRET}"}
    with fleet.running(STATELOOP_TOKENS=str(tokens), STATELOOP_PEER_TOKEN=PEERS):
        assert fleet.ask("/v1/states/cars/car").status == 401
        assert fleet.ask("/v1/states/cars/car?min_version=1&wait=20", **bearer).status == 200
        assert fleet.ask("/v1/states/cars/car", **bearer).status == 200
        assert fleet.ask("/v1/states/cars/truck", **bearer).body["type"] == "not_yours"
        watching = HTTPConnection("127.0.0.1", fleet.port, timeout=DEADLINE_S)
        watching.request("GET", "/v1/states/cars/car/watch", headers=bearer)
        stream = watching.getresponse()
        tokens.write_text("rubbish")
        assert fleet.ask("/v1/states/cars/car", **bearer).status == 200
        tokens.write_text(json.dumps({"tokens": [{"name": "other", "token": "another-secret-of-it"}]}))
        _until(lambda: fleet.ask("/v1/states/cars/car", **bearer).status == 401)
        with closing(watching):
            assert b"event: problem\n" in stream.read(), "the stream ends with its token"
    log = fleet.log.read_text(encoding="utf-8")
    assert SECRET not in log
    assert PEERS not in log
    assert '"application":' in log, "the settings are logged"


async def test_the_service_stops_at_once_while_it_waits_for_the_broker() -> None:
    """The service runs in this process, where the test sees when the signal handler is installed."""
    settings = QuerySettings(application="none:none", kafka="127.0.0.1:1", http_port=0)
    before = signal.getsignal(signal.SIGTERM)
    async with asyncio.timeout(DEADLINE_S):
        serving = asyncio.create_task(serve(settings, Suite(app), KafkaClients(settings.client())))
        while signal.getsignal(signal.SIGTERM) == before:  # noqa: ASYNC110 (no event reports it)
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        await serving


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"STATELOOP_HTTP_HOST": "0.0.0.0"}, "STATELOOP_TOKENS"),  # noqa: S104  # it refuses to
        ({"STATELOOP_TOKENS": "/nowhere"}, "No such file"),
        ({"STATELOOP_APPLICATION": "nowhere:app"}, "nowhere"),
        ({"STATELOOP_RATE": "fast"}, "STATELOOP_RATE"),
    ],
)
def test_a_start_that_fails_prints_one_line(tmp_path: Path, settings: dict[str, str], message: str) -> None:
    fleet = Fleet.__new__(Fleet)
    fleet.log = tmp_path / "query.log"
    fleet.environment = {"STATELOOP_APPLICATION": "tests.services.query.fleet:app", "STATELOOP_KAFKA": "127.0.0.1:1"}
    assert fleet.start(**settings).wait(DEADLINE_S) == 1
    *_, last = fleet.log.read_text(encoding="utf-8").splitlines()
    assert last.startswith("stateloop query: ")
    assert message in last


def _timed(fleet: Fleet, version: int, took: list[float]) -> None:
    began = time.monotonic()
    if fleet.ask(f"/v1/states/cars/car?min_version={version}&wait={WAIT_S}").status == 200:
        took.append(time.monotonic() - began)


def _read_since_start(fleet: Fleet) -> float:
    lines = fleet.ask("/metrics").body.decode().splitlines()
    (sample,) = [line for line in lines if line.startswith('stateloop_query_records_total{state="cars"}')]
    return float(sample.split()[-1])


def _until(condition: Callable[[], bool]) -> None:
    wait_until(condition, "the condition holds", DEADLINE_S)


def test_an_idle_car_expires_by_the_clock_and_its_watcher_is_notified(fleet: Fleet) -> None:
    """Nothing is written after the snapshot, so no other window advances the watermark."""
    kept = app.kept_for + app.skew
    began = datetime.now(UTC) - kept + timedelta(seconds=10)
    fleet.publish(snapshot("car/1", 1, after=began - START, plate="P1"))
    with fleet.running(FLEET_REPLAY="no"):
        with closing(HTTPConnection("127.0.0.1", fleet.port, timeout=DEADLINE_S)) as connection:
            connection.request("GET", "/v1/states/cars/car%2F1/watch")
            lines = iter(connection.getresponse().readline, b"")
            events = (line.split()[1].decode() for line in lines if line.startswith(b"event:"))
            assert next(event for event in events if event in ("expired", "never_seen")) == "expired"
        assert datetime.now(UTC) > began + kept, "not before it has expired"
        gone = fleet.ask("/v1/states/cars/car%2F1")
        assert (gone.status, gone.body["type"]) == (410, "expired")
        assert fleet.ask("/v1/states/cars").body["items"] == []
        assert fleet.ask("/v1/states/cars?where=state.plate:P1").body["items"] == []
    with fleet.running(FLEET_REPLAY="no"):
        assert fleet.ask("/v1/states/cars/car%2F1").status == 410, "also after a restart"


def test_a_newer_epoch_replaces_the_state(fleet: Fleet) -> None:
    def of(epoch: int, version: int, plate: str) -> Snapshot:
        return snapshot("car/1", version, plate=plate).model_copy(update={"epoch": epoch})

    fleet.publish(of(100, 61, "old"))
    with fleet.running():
        path = "/v1/states/cars/car%2F1"
        before = fleet.until(f"{path}?min_version=61&wait=20", 200)
        fleet.publish(of(200, 1, "new"), of(100, 62, "old"), of(200, 2, "newer"))
        after = fleet.until(f"{path}?min_version=1767225600000.200.2&wait=20", 200)
        assert (after.body["epoch"], after.body["version"]) == (200, 2)
        assert after.body["value"]["state"] == {"plate": "newer"}
        assert (before.headers["ETag"], after.headers["ETag"]) == ('"1767225600000.100.61"', '"1767225600000.200.2"')
        kept = fleet.ask(f"{path}/versions").body["versions"]
        assert [(one["epoch"], one["version"]) for one in kept] == [(100, 61), (200, 1), (200, 2)]
        assert fleet.ask(f"{path}?as_of=1767225600000.100.61").body["value"]["state"] == {"plate": "old"}
