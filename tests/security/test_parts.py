"""Every part on a broker with TLS, SCRAM and an authorizer, with its own rights, and what the parts write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from services.runtime.job_progress import GROUP as PROGRESS
from services.tools.broker.readiness import wait_until
from services.tools.cli.acls import Acl, Part
from tests.deadline import DEADLINE_S
from tests.security.api import FORBIDDEN, REPEATS, Registry, registry
from tests.security.broker import SecuredBroker, secured_broker
from tests.security.loop import RUNNING, SecuredLoop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.kafka
PAGES = ("/healthz", "/readyz", "/metrics")
CONSOLE = ("/", "/v1/states", "/v1/instances", "/v1/loop", "/v1/loop/graph", "/v1/loop/dead_letters", "/openapi.json")

ARGUMENTS = {
    Part.TABLE: ("table", "put", "limits", "all", '{"sightings": 2}'),
    Part.REDRIVE: ("redrive", "list"),
}
"""The commands of those parts that are no process of the loop."""


@pytest.fixture(scope="module")
def secured() -> SecuredBroker:
    return secured_broker()


@pytest.fixture
def api() -> Iterator[Registry]:
    with registry() as server:
        yield server


@pytest.fixture
def loop(secured: SecuredBroker, topics_prefix: str, tmp_path: Path, api: Registry) -> Iterator[SecuredLoop]:
    found = SecuredLoop(secured, topics_prefix, tmp_path, api)
    yield found
    found.stop()


@pytest.mark.parametrize(
    "certified", [(Part.DERIVE,), pytest.param(tuple(Part), marks=pytest.mark.full)], ids=["most by SCRAM", "by TLS"]
)
def test_each_part_works_with_its_rights_and_writes_no_secret(
    loop: SecuredLoop, spark: SparkSession, certified: tuple[Part, ...]
) -> None:
    loop.listeners |= dict.fromkeys(certified, "MUTUAL")
    loop.grant(*Part)
    assert loop.run(Part.TOPICS) == 0, loop.log(Part.TOPICS)
    assert loop.run(Part.TABLE, *ARGUMENTS[Part.TABLE]) == 0, loop.log(Part.TABLE)
    loop.start_job(spark)
    loop.start(*RUNNING)
    cars, prefix = f"{loop.prefix}cars", loop.prefix
    loop.see("d1", "P1", 1)
    loop.see("d1", "P1", 2)
    loop.see("d2", REPEATS)
    loop.see("d3", FORBIDDEN)
    loop.send("d4", '{"device_id": "d4", "ts": "never"}')
    loop.until(lambda: "owner of P1" in json.dumps(loop.state(cars, "d1")), "the answer is in the state")
    loop.until(lambda: loop.state("plates", "P1"), "the derived state is there")
    loop.until(lambda: loop.api.alerts, "the webhook has the alert")
    loop.until(lambda: loop.committed(f"sink-memory_store-{cars}", f"{prefix}snapshots"), "the sink has committed")
    loop.until(lambda: loop.committed(PROGRESS, f"{prefix}snapshots"), "the job has recorded its progress")
    loop.until(lambda: len(loop.records()[f"{prefix}dead_letters"]) >= 3, "three dead letters")
    loop.until(lambda: "enrichment_failed" in loop.ask(Part.QUERY, "/v1/loop/dead_letters")[1], "the console has them")
    assert loop.run(Part.REDRIVE, *ARGUMENTS[Part.REDRIVE]) == 0, loop.log(Part.REDRIVE)
    assert loop.run(Part.REDRIVE, "redrive", "back") == 0, loop.log(Part.REDRIVE)
    assert loop.run(Part.JOB, "doctor") == 0, loop.log(Part.JOB)
    require_no_secret(loop)
    warnings = {part: [line for line in loop.log(part).splitlines() if "AUTHORIZATION" in line] for part in RUNNING}
    assert warnings == {part: [] for part in RUNNING}


@pytest.mark.parametrize(
    ("listener", "problem"),
    [
        ("EXPIRED", "certificate has expired: renew it on the broker"),
        ("OTHERHOST", "certificate is not valid for '127.0.0.1': issue it for this name, or set STATELOOP_KAFKA"),
        ("SECURED", "invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
def test_each_part_ends_with_the_remedy_when_broker_and_client_do_not_accept_each_other(
    loop: SecuredLoop, listener: str, problem: str
) -> None:
    loop.listeners = dict.fromkeys(Part, listener)
    loop.secrets |= dict.fromkeys(Part, "canary-of-a-wrong-password")
    processes = {part: loop.process(part, *ARGUMENTS.get(part, ())) for part in Part}
    assert {part: process.wait(DEADLINE_S) for part, process in processes.items()} == dict.fromkeys(Part, 1)
    last = {part: loop.log(part).splitlines()[-1] for part in Part}
    assert {part: line for part, line in last.items() if problem not in line} == {}
    assert [part for part in Part if "canary" in loop.log(part)] == []


def test_a_part_without_one_of_its_rights_names_it(loop: SecuredLoop) -> None:
    missing = {
        Part.WORKER: (Acl("Read", "group", f"{loop.prefix}cars-enrichment"), "GROUP_AUTHORIZATION_FAILED"),
        Part.DERIVE: (Acl("Read", "group", f"{loop.prefix}cars-derive"), "GROUP_AUTHORIZATION_FAILED"),
        Part.SINK: (Acl("Read", "group", f"sink-memory_store-{loop.prefix}cars"), "GROUP_AUTHORIZATION_FAILED"),
        Part.QUERY: (Acl("Read", "topic", f"{loop.prefix}snapshots"), f"no topic '{loop.prefix}snapshots'"),
        Part.TABLE: (Acl("Write", "topic", f"{loop.prefix}limits"), "Cluster authorization failed"),
        Part.REDRIVE: (Acl("Read", "topic", f"{loop.prefix}dead_letters"), "dead_letters cannot be read"),
    }
    create = Acl("Create", "topic", f"{loop.prefix}events")
    loop.grant(*Part)
    loop.broker.revoke(loop.user(Part.TOPICS), create)
    assert loop.run(Part.TOPICS) == 1
    assert "grant this user Create, Describe and DescribeConfigs" in loop.log(Part.TOPICS)
    loop.broker.grant(loop.user(Part.TOPICS), [create])
    assert loop.run(Part.TOPICS) == 0
    for part, (acl, _) in missing.items():
        loop.broker.revoke(loop.user(part), acl)
    loop.processes = {part: loop.process(part, *ARGUMENTS.get(part, ())) for part in missing}
    for part, (_, problem) in missing.items():
        require_problem(loop, part, problem)


def require_problem(loop: SecuredLoop, part: Part, problem: str) -> None:
    """Wait until the log of a part names a problem, with which it ends or waits."""
    process = loop.processes[part]
    wait_until(lambda: process.poll() is not None or problem in loop.log(part), f"{part}: {problem}", DEADLINE_S)
    assert problem in loop.log(part)
    assert "Traceback" not in loop.log(part)
    assert process.poll() in (None, 1)


def require_no_secret(loop: SecuredLoop) -> None:
    """Search all that the parts have written and all that they answer."""
    written = {f"log of {path.name}": path.read_text("utf-8") for path in loop.folder.glob("*.log")}
    written |= {f"{part} {page}": loop.ask(part, page)[1] for part in RUNNING for page in PAGES}
    written |= {f"console {page}": loop.ask(Part.QUERY, page)[1] for page in CONSOLE}
    written |= {f"topic {topic}": "\n".join(records) for topic, records in loop.records().items()}
    assert loop.job is not None
    written |= {f"job {page}": loop.job.ask(page) for page in PAGES}
    empty = [place for place, text in written.items() if not text and "topic" not in place]
    assert empty == [], "everything was asked"
    found = [
        (place, name) for place, text in written.items() for name, secret in loop.secrets.items() if secret in text
    ]
    assert found == []
    assert f"Bearer {loop.secrets['api']}" in loop.api.authorizations, "the secret reached the API"
