"""The table command on a real broker."""

from __future__ import annotations

import sys
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

import orjson
import pytest

from contracts.records.named_states import named
from contracts.wire.partition import partition
from services.query.ingest import KafkaTables
from services.runtime.command_line import ExitCode
from services.runtime.kafka.clients import KafkaClients
from services.runtime.kafka.options import create_producer
from services.runtime.topic_owners import outputs
from services.tools.cli.__main__ import main
from tests.services.tools.cli.limited import app

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker

LIMITED = "tests.services.tools.cli.limited"


class Done(NamedTuple):
    code: int
    stdout: str
    stderr: str


class Commands:
    """`stateloop table` and `stateloop topics` with the application of `limited`, in this process."""

    def __init__(
        self, kafka: str, prefix: str, environment: pytest.MonkeyPatch, output: pytest.CaptureFixture[str]
    ) -> None:
        self.environment, self.output = environment, output
        environment.setenv("STATELOOP_APPLICATION", f"{LIMITED}:app")
        environment.setenv("STATELOOP_KAFKA", kafka)
        environment.setenv("STATELOOP_AUTHOR", "ann")
        environment.setenv("LIMITED_PREFIX", prefix)
        environment.delitem(sys.modules, LIMITED, raising=False)  # it reads the prefix when it is imported

    def table(self, *arguments: str, stdin: str = "") -> Done:
        self.environment.setattr("sys.stdin", StringIO(stdin))
        return self._done(main(["table", *arguments]))

    def topics(self) -> Done:
        return self._done(main(["topics"]))

    def _done(self, code: int) -> Done:
        return Done(code, *self.output.readouterr())


@pytest.fixture
def commands(
    broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Commands:
    return Commands(broker.bootstrap, topics_prefix, monkeypatch, capsys)


@pytest.mark.kafka
def test_rows_are_put_listed_and_removed(
    broker: EmbeddedBroker, topics_prefix: str, commands: Commands, tmp_path: Path
) -> None:
    missing = commands.table("list", "limits")
    assert missing.code == 1
    assert "stateloop topics" in missing.stderr
    made = commands.topics()
    assert f"{topics_prefix}limits" in made.stdout, made.stderr
    assert commands.table("put", "limits", "s1", '{"speed": 5}').code == 0
    file = tmp_path / "limit.json"
    file.write_text('{"speed": 7.5}')
    assert commands.table("put", "limits", "s2", f"@{file}").code == 0
    assert commands.table("put", "limits", "s1", "-", stdin='{"speed": 6}').code == 0
    refused = commands.table("put", "limits", "s1", '{"sped": 6}')
    assert refused.code == 1
    assert "sped: Extra inputs" in refused.stderr
    rows = {row["key"]: row for row in map(orjson.loads, commands.table("list", "limits").stdout.splitlines())}
    assert {key: (row["author"], row["value"]) for key, row in rows.items()} == {
        "s1": ("ann", {"speed": 6.0}),
        "s2": ("ann", {"speed": 7.5}),
    }
    producer = create_producer({"bootstrap.servers": broker.bootstrap}, "test")
    producer.produce(f"{topics_prefix}limits", key="s2", value=b"{}")
    assert not producer.flush(30)
    kept = commands.table("get", "limits", "s2")
    assert orjson.loads(kept.stdout) == rows["s2"], "a bad record leaves the former row"
    assert "is bad" in kept.stderr
    assert commands.table("remove", "limits", "s1").code == 0
    assert commands.table("get", "limits", "s1").code == ExitCode.ABSENT
    long = commands.table("remove", "limits", 501 * "s")
    assert (long.code, "the key has 501 bytes" in long.stderr) == (1, True)
    unknown = commands.table("list", "speeds")
    assert (unknown.code, "tables: limits" in unknown.stderr) == (1, True)


@pytest.mark.kafka
def test_rows_control_no_terminal(commands: Commands) -> None:
    commands.topics()
    assert "\x9b2J" in commands.table("put", "limits", "\x9b2J", '{"speed": 5}').stdout
    assert orjson.loads(commands.table("list", "limits").stdout)["key"] == "\x9b2J"
    commands.environment.setattr("sys.stdout.isatty", lambda: True)
    for arguments in (("list", "limits"), ("get", "limits", "\x9b2J")):
        assert r'"key":"\x9b2J"' in commands.table(*arguments).stdout


@pytest.mark.kafka
def test_the_query_service_compares_versions_and_writes(
    broker: EmbeddedBroker, topics_prefix: str, commands: Commands
) -> None:
    commands.topics()
    kafka, topic = KafkaClients({"bootstrap.servers": broker.bootstrap}), f"{topics_prefix}limits"
    tables = KafkaTables(kafka)
    assert tables.version(topic, "s1") is None
    versions = [tables.write(topic, "s1", b"{}", "ann") for _ in range(2)]
    assert tables.version(topic, "s1") == versions[-1] == versions[0] + 1
    tables.write(topic, "s1", None, "ann")
    assert tables.version(topic, "s1") is None
    assert tables.version(f"{topic}.not.there", "s1") is None


def test_a_table_is_an_owned_topic_and_a_named_state() -> None:
    assert outputs(app)["limits"].role == "table"
    assert "limits" in app.outputs
    (topic,) = (topic for topic in app.catalogue() if topic.name == "limits")
    assert (topic.config()["cleanup.policy"], topic.config()["retention.ms"]) == ("compact", "-1")
    state = named(app)["limits"]
    assert (state.key, state.version, state.lifetime, state.query.history) == (None, None, None, 4)
    assert state.schema["properties"]["value"]
    assert partition(b"s1", state.partitions) in range(state.partitions)
