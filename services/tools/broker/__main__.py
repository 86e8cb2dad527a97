"""Runs the broker in the foreground: `stateloop broker`.

The command becomes the JVM (exec), so its process id is the broker's: SIGTERM and SIGINT stop it cleanly, and a kill -9
leaves nothing behind. All checks run before, and report a problem in one line.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from contracts.settings import read
from services.runtime.command_line import report, run
from services.tools.broker import jars, storage
from services.tools.broker.errors import DATA
from services.tools.broker.java import find_java
from services.tools.broker.preflight import require_disk, require_free_port, require_idle
from services.tools.broker.settings import BrokerSettings

LOG_CONFIG = Path(__file__).with_name("log4j2.properties")


def command(settings: BrokerSettings) -> list[str]:
    """Check everything, format the storage if it is new, and return the command of the broker."""
    data = settings.broker_data.absolute()
    java = find_java()
    classpath = jars.classpath(settings.jars, "broker")
    require_disk(data, storage.NEEDED_MB, DATA)
    require_idle(storage.log_dir(data))
    require_free_port(settings.broker_port)
    require_free_port(settings.controller_port)
    properties = storage.prepare(settings, data, java, classpath)
    return jvm_command(java, classpath, settings.broker_heap, properties)


def jvm_command(java: Path, classpath: str, heap: str, properties: Path) -> list[str]:
    """Return the command line of the broker's JVM."""
    memory = [f"-Xmx{heap}", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:+ExitOnOutOfMemoryError"]
    log = [f"-Dlog4j2.configurationFile={LOG_CONFIG}", "-Djava.awt.headless=true"]
    return [str(java), *memory, *log, "-cp", classpath, "kafka.Kafka", str(properties)]


def starting(settings: BrokerSettings) -> str:
    """Return the line that names both ports. A line of Kafka's own follows when the broker is ready."""
    ports = f"on {settings.bootstrap}, and on port {settings.controller_port} for its controller"
    return f"starts {ports}; Kafka reports when its server has started, and Ctrl-C stops it"


def main() -> NoReturn:
    """Become the broker. Raises StateloopError."""
    settings = read(BrokerSettings)
    jvm = command(settings)
    report("broker", settings.model_dump_json())
    report("broker", starting(settings))
    os.execv(jvm[0], jvm)  # noqa: S606 - there is no shell on purpose


if __name__ == "__main__":
    sys.exit(run("broker", main))
