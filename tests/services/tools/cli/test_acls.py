"""The rights of the parts, and the commands that grant them. `tests/security` proves them on a broker."""

from __future__ import annotations

import shlex

import pytest

from contracts import Application, Suite, Topics
from examples.vitals.application import suite as vitals
from services.tools.cli.__main__ import main
from services.tools.cli.acls import Acl, Part, acls, commands
from tests.security.application import Car, Seen, app

SUITE = Suite(app)
READER_GROUPS = Acl("Describe", "group", "stateloop", is_prefix=True)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_APPLICATION", "tests.security.application:app")
    monkeypatch.setenv("STATELOOP_SINK_URL", "redis://:secret-of-the-store@host")


def of(part: Part, operation: str, kind: str = "topic", suite: Suite = SUITE) -> set[str]:
    return {acl.name for acl in acls(part, suite) if acl[:2] == (operation, kind) and not acl.is_prefix}


def test_only_the_writer_of_a_topic_may_write_it() -> None:
    writers = {part: of(part, "Write") for part in Part}
    assert writers == {
        Part.TOPICS: set(),
        Part.JOB: {"snapshots", "feedback", "dead_letters"},
        Part.WORKER: {"feedback", "dead_letters"},
        Part.DERIVE: {"plates", "often", "dead_letters"},
        Part.SINK: {"dead_letters"},
        Part.QUERY: {"limits", "query_instances"},
        Part.TABLE: {"limits"},
        Part.REDRIVE: {"events", "feedback"},
    }


def test_no_part_has_a_right_to_change_or_to_delete() -> None:
    rights = {acl for part in Part for acl in acls(part, SUITE)}
    assert {acl.operation for acl in rights} == {"Create", "Describe", "DescribeConfigs", "Read", "Write"}
    assert [part for part in Part if of(part, "Create")] == [Part.TOPICS]
    assert {acl for acl in rights if acl.is_prefix} == {READER_GROUPS}
    catalogue = {topic.name for topic in SUITE.catalogue()}
    assert {acl.name for acl in rights if acl.kind == "topic"} == catalogue


def test_a_member_has_its_own_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(Part.WORKER, "Read", "group") == {"cars-enrichment", "cars-often-webhook"}
    assert of(Part.DERIVE, "Read", "group") == {"cars-derive"}
    assert of(Part.SINK, "Read", "group") == {f"sink-redis-{name}" for name in ("cars", "plates", "often", "limits")}
    assert of(Part.QUERY, "Read", "group") == {"cars-query"}
    assert of(Part.JOB, "Read", "group") == {"stateloop.owners", "stateloop.progress"}
    monkeypatch.setenv("STATELOOP_GROUP", "fleet")
    assert of(Part.WORKER, "Read", "group") == {"fleet", "fleet-often"}


def test_a_right_that_another_implies_is_left_out() -> None:
    rights = set(acls(Part.WORKER, SUITE))
    assert Acl("Read", "topic", "snapshots") in rights
    assert Acl("Describe", "topic", "snapshots") not in rights
    assert Acl("Describe", "topic", "plates") in rights


def test_a_replay_has_no_heartbeats() -> None:
    replay = Application(name="replay", event=Seen, state=Car, topics=Topics(replay=True), enrichments=app.enrichments)
    assert of(Part.JOB, "Write", suite=Suite(replay)) == {"snapshots", "dead_letters"}


def test_the_job_decodes_raw_sources() -> None:
    ((application, raw),) = vitals.raw_sources()
    assert raw.topic in of(Part.JOB, "Read", suite=vitals) & of(Part.JOB, "DescribeConfigs", suite=vitals)
    assert application.topics.events in of(Part.JOB, "Write", suite=vitals)


def test_a_command_grants_all_topics_of_an_operation() -> None:
    printed = [shlex.split(line) for line in commands(Part.TABLE, SUITE, "broker:9093", "User:CN=the table")]
    start = ["kafka-acls.sh", "--bootstrap-server", "broker:9093", "--command-config", "admin.properties", "--add"]
    principal = ["--allow-principal", "User:CN=the table", "--operation"]
    assert [*start, *principal, "Write", "--topic", "limits"] in printed
    assert [*start, *principal, "Describe", "--resource-pattern-type", "prefixed", "--group", "stateloop"] in printed


def test_the_command_prints_each_part(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["acls"]) == 0
    printed = capsys.readouterr().out
    assert [line[2:] for line in printed.splitlines() if line.startswith("#")] == list(Part)
    assert "User:stateloop-job" in printed
    assert "secret-of-the-store" not in printed
    monkeypatch.delenv("STATELOOP_SINK_URL")
    assert main(["acls"]) == 0
    assert "# sink" not in capsys.readouterr().out
    assert main(["acls", "job", "--principal", "User:CN={part}"]) == 0
    assert set(shlex.split(capsys.readouterr().out)) >= {"User:CN=job"}
