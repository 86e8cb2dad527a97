"""A command with a wrong address of the brokers ends soon, and names what to set. None of these needs a broker."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

import pytest

from contracts.settings import KafkaSettings
from services.runtime.errors import NoBrokerError
from services.runtime.kafka import broker_check
from services.runtime.kafka.broker_check import answers, require_broker
from services.tools.cli.__main__ import main
from services.tools.topics.settings import TopicsSettings

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

NOWHERE = "127.0.0.1:1"
LIMIT_S = 40.0
COMMANDS = [
    "archive snapshots",
    "bootstrap events.parquet",
    "rebuild",
    "redrive back",
    "redrive list",
    "savepoint restore savepoint",
    "state get N1",
    "table get limits N1",
    "table put limits N1 {}",
    "verify --no-query",
]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("STATELOOP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STATELOOP_APPLICATION", "tests.services.tools.cli.limited:app")
    monkeypatch.setenv("STATELOOP_KAFKA", NOWHERE)
    return monkeypatch


def test_the_wait_is_short() -> None:
    began = time.monotonic()
    with pytest.raises(NoBrokerError, match=rf"at {NOWHERE} .*refused.*STATELOOP_KAFKA"):
        require_broker(KafkaSettings(kafka=NOWHERE), 1.0)
    assert time.monotonic() - began < LIMIT_S
    assert broker_check.WITHIN_S + broker_check.TRY_S <= 10
    assert TopicsSettings(application="").patience.total_seconds() <= 10


@pytest.mark.kafka
def test_a_broker_that_answers_is_enough(broker: EmbeddedBroker) -> None:
    require_broker(KafkaSettings(kafka=broker.bootstrap))
    assert answers(broker.bootstrap, "test")


def test_no_broker_answers_on_an_unused_port() -> None:
    assert not answers(NOWHERE, "test")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_address_and_the_setting_before_it_starts_spark(
    command: str, environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError(command)

    environment.setattr("services.runtime.kafka.broker_check.TRY_S", 0.5)
    environment.setattr(require_broker, "__defaults__", (0.5, print))
    environment.setattr("services.tools.cli.spark.open_session", opened)
    began = time.monotonic()
    assert main(command.split()) == 1
    assert time.monotonic() - began < LIMIT_S
    *_, last = capsys.readouterr().err.splitlines()
    assert re.search(rf"no broker answers at {NOWHERE} within 0.5 s \(.*STATELOOP_KAFKA", last)


@pytest.mark.slow
def test_the_topics_command_ends_soon(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    del environment
    began = time.monotonic()
    assert main(["topics"]) == 1
    assert time.monotonic() - began < LIMIT_S + 2
    assert re.search(rf"no broker answers at {NOWHERE} .*STATELOOP_KAFKA", capsys.readouterr().err)
