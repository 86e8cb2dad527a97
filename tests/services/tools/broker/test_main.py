from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from services.tools.broker.__main__ import jvm_command
from services.tools.broker.settings import BrokerSettings
from tests.services.tools.broker.embedded import run_broker

if TYPE_CHECKING:
    import subprocess


def test_the_command_has_heap_and_properties() -> None:
    command = jvm_command(Path("java"), "jars/*", "512m", Path("server.properties"))
    assert command[0] == "java"
    assert "-Xmx512m" in command
    assert command[-4:] == ["-cp", "jars/*", "kafka.Kafka", "server.properties"]


def test_the_controller_has_the_port_after_the_brokers() -> None:
    settings = BrokerSettings(broker_port=20_000)
    assert (settings.controller_port, settings.bootstrap) == (20_001, "127.0.0.1:20000")


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


def test_missing_jars_are_one_line(tmp_path: Path) -> None:
    assert "run stateloop jars" in one_line(
        run_broker(STATELOOP_JARS=str(tmp_path), STATELOOP_BROKER_DATA=str(tmp_path))
    )


def test_a_missing_java_is_one_line(tmp_path: Path) -> None:
    assert "Java is missing: install it with: " in one_line(run_broker(JAVA_HOME=str(tmp_path)))


def test_a_wrong_port_is_one_line() -> None:
    assert "STATELOOP_BROKER_PORT: " in one_line(run_broker(STATELOOP_BROKER_PORT="kafka"))
