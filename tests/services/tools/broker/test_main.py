from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from services.tools.broker.__main__ import jvm_command
from services.tools.broker.settings import BrokerSettings
from tests.services.tools.broker.embedded import CHECKOUT


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "services.tools.broker"],
        cwd=CHECKOUT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


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
    assert "run make jars" in one_line(run(STATELOOP_JARS=str(tmp_path), STATELOOP_BROKER_DATA=str(tmp_path)))


def test_a_missing_java_is_one_line(tmp_path: Path) -> None:
    assert "Java is missing: install it with: " in one_line(run(JAVA_HOME=str(tmp_path)))


def test_a_wrong_port_is_one_line() -> None:
    assert "STATELOOP_BROKER_PORT: " in one_line(run(STATELOOP_BROKER_PORT="kafka"))
