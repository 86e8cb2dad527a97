"""The settings of all Kafka clients."""

from __future__ import annotations

import ast
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Message

from contracts.errors import InvalidSettingsError
from contracts.records.record import Record
from services.runtime.kafka import options
from services.runtime.kafka.options import create_admin_client, create_consumer, create_producer, record_of
from tests.deadline import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKOUT = Path(__file__).parents[4]
USER = {"bootstrap.servers": "127.0.0.1:1"}
FACTORY = "services/runtime/kafka/options.py"
TEMPLATE = "template"
"""The folder of a project of one's own, whose source has a producer."""


class Configs(list[dict[str, Any]]):
    """Takes the configurations of clients in the place of their classes."""

    def __call__(self, config: dict[str, Any], logger: logging.Logger | None = None) -> None:
        self.append(config | {"logger": logger})


@pytest.fixture
def configs(monkeypatch: pytest.MonkeyPatch) -> Configs:
    found = Configs()
    for name in ("Consumer", "Producer", "AdminClient"):
        monkeypatch.setattr(options, name, found)
    return found


def test_options_of_a_part_replace_those_of_the_user_which_replace_the_common_ones(configs: Configs) -> None:
    user = USER | {"client.id": "mine", "reconnect.backoff.max.ms": 5, "linger.ms": 7, "partitioner": "random"}
    create_producer(user, "tool", {"linger.ms": 1})
    create_producer(USER, "tool")
    first, second = configs
    assert (first["client.id"], first["reconnect.backoff.max.ms"], first["linger.ms"]) == ("mine", 5, 1)
    assert second["client.id"] == "stateloop-tool"
    assert [config["partitioner"] for config in configs] == ["murmur2_random"] * 2, "keys stay in their partitions"


@pytest.mark.parametrize(
    "create",
    [
        lambda client: create_admin_client(client, "tool"),
        lambda client: create_producer(client, "tool", log=logging.getLogger("tool")),
        lambda client: create_consumer(client, "tool", "group"),
    ],
    ids=["admin", "producer", "consumer"],
)
def test_options_that_the_client_does_not_accept_are_wrong_settings(create: Callable[[dict[str, str]], object]) -> None:
    with pytest.raises(InvalidSettingsError, match=r"STATELOOP_KAFKA_OPTIONS: .*nonsense"):
        create(USER | {"nonsense": "1"})


def test_no_consumer_commits_by_itself_or_reads_aborted_records(configs: Configs) -> None:
    wrong = {"enable.auto.commit": True, "isolation.level": "read_uncommitted", "group.id": "another"}
    create_consumer(USER | wrong, "tool", "group", wrong)
    (config,) = configs
    assert [config[name] for name in wrong] == [False, "read_committed", "group"]


def test_a_client_without_a_logger_is_silent(configs: Configs) -> None:
    create_admin_client(USER, "tool")
    create_consumer(USER, "tool", "group", log=logging.getLogger("tool"))
    silent, logged = configs
    assert (silent["log_level"], "error_cb" in silent) == (0, False)
    assert ("log_level" in logged, logged["logger"].name) == (False, "tool")


@pytest.mark.parametrize(
    "create",
    [
        lambda log: create_consumer(USER, "tool", "group", log=log),
        lambda log: create_producer(USER, "tool", log=log),
    ],
)
def test_errors_are_logged_with_the_name_of_the_client(
    create: Callable[[logging.Logger], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "tool")
    client, found = create(logging.getLogger("tool")), list[dict[str, str]]()
    deadline = time.monotonic() + DEADLINE_S
    while not found and time.monotonic() < deadline:
        client.poll(0.1)
        found = [record.__dict__["facts"] for record in caplog.records if record.message == "kafka"]
    facts = found[0]
    assert facts["client"] == "tool"
    assert facts["code"] in {"_TRANSPORT", "_ALL_BROKERS_DOWN"}


def test_only_this_module_creates_clients() -> None:
    found = {
        str(path.relative_to(CHECKOUT))
        for part in ("services", "spark_app")
        for path in (CHECKOUT / part).rglob("*.py")
        if TEMPLATE not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Consumer", "Producer", "AdminClient"}
    }
    assert found == {FACTORY}


def test_a_message_is_a_record() -> None:
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("a", None)]
    message = Message("events", 3, 77, b"k", None, headers, timestamp=(1, 1_767_225_600_123))
    record = record_of(message)
    assert record == Record("events", 3, 77, 1_767_225_600_123, b"k", None, (("a", b"1"), ("a", None)))
    assert isinstance(record, Record)
    assert record_of(Message("events", 3, 77, timestamp=(0, -1))) == Record("events", 3, 77, -1, None, None)
