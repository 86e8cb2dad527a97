"""Runs the stack of a new project, whose images are those of this checkout with its package: `stateloop new`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.compose.lab.checks import Checks
from tests.compose.lab.errors import StackError
from tests.compose.lab.hardening import require_hardened, require_labels
from tests.compose.lab.state import CREATE, REBUILD, REMOVE, RESTORE, START, STOP, VERIFY, last_line, one
from tests.packaging.built import build_wheel

if TYPE_CHECKING:
    from tests.compose.lab.commands import Commands
    from tests.compose.lab.court import Court
    from tests.compose.lab.stack import Stack
    from tests.compose.lab.steps import Steps

NAME = "cold_store"
VERSION = "0.1.0"
ROOT = Path(__file__).parents[3]
REQUIREMENT = "isodate==0.7.2"
"""A package in Python alone, which Stateloop does not have."""
USE = {
    "from pydantic import BaseModel\n": "import isodate\nfrom pydantic import BaseModel\n",
    "stale_after=timedelta(minutes=10)": 'stale_after=isodate.parse_duration("PT10M")',
}
"""What makes the application need the package."""
STAY = ("kafka", "job", "enrichment", "query", "reference", "source")
OURS = ("job", "enrichment", "query", "reference", "source")
KILLED = ("enrichment", "job", "query", "kafka")
MORE = 100
"""The readings that are counted between two faults: those of ten seconds."""
LATE = """
from datetime import UTC, datetime
from confluent_kafka import Producer
from cold_store import source
from stateloop.settings import KafkaSettings, read
source.DEVICES = {"late": "south"}
producer = Producer({**read(KafkaSettings).client(), "partitioner": "murmur2_random"})
source.send(producer, datetime.now(UTC))
producer.flush()
"""
"""Sends the first reading of a device, which needs a worker."""


def write(commands: Commands, folder: Path, steps: Steps) -> Path:
    """Write the project, as a reader does, with a package that it requires, and run its tests. Return its folder."""
    with steps.step("stateloop new, and make test in the project"):
        command = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "services.tools.cli", "new", NAME)
        commands.run(*command, cwd=folder)
        project = folder / NAME
        require_package(project)
        built = folder / "built"
        built.mkdir()
        wheel = ("env", "--unset=PYTHONPATH", f"STATELOOP_WHEEL={build_wheel(built)}")
        steps.report(last_line(commands.run(*wheel, "make", "test", cwd=project)))
    return project


def require_package(project: Path) -> None:
    """Have the application import a package that the images of Stateloop do not have."""
    with (project / "requirements.txt").open("a", encoding="utf-8") as requirements:
        requirements.write(f"{REQUIREMENT}\n")
    source = project / NAME / "application.py"
    text = source.read_text(encoding="utf-8")
    for before, after in USE.items():
        if before not in text:
            raise StackError(f"{source} has no {before!r}")
        text = text.replace(before, after)
    source.write_text(text, encoding="utf-8")


def build(stack: Stack, steps: Steps) -> None:
    """Build the images of the project."""
    with steps.step("docker compose build in the project"):
        stack.compose("build")
        for image in ("services", "spark"):
            labels = {"title": f"{NAME}-{image}", "version": VERSION}
            require_labels(stack.commands, f"{NAME}-{image}:latest", labels)


class Project(Checks):
    """The checks. Each raises StackError, or CommandFailedError, when it does not hold."""

    def __init__(self, stack: Stack, steps: Steps, court: Court) -> None:
        super().__init__(stack, steps, court)
        self._counted = 0

    def run(self) -> None:
        """All of it."""
        with self._steps.step("docker compose up of the project: enriched snapshots"):
            self._stack.up()
            self.await_readings()
        with self._steps.step("its containers are not root, and cannot write to their images"):
            self._stack.await_well(*STAY)
            require_hardened(self._stack, OURS)
        for service in KILLED:
            with self._steps.step(f"docker kill of {service}, and docker compose up: the counts go on"):
                self.kill(service)
        with self._steps.step("stateloop savepoint create and restore: the job goes on from it"):
            self.restore()
        with self._steps.step("stateloop rebuild: the job goes on with it"):
            restarts = self._stack.container("job")["RestartCount"]
            self._steps.report(last_line(self.command(REBUILD)))
            self._stack.await_restart("job", restarts)
            self.await_readings()
        with self._steps.step("the states count each reading once; checkpoint, topic and query service are equal"):
            self.require_each_once()
            self.command(VERIFY)
        with self._steps.step("docker compose down --volumes leaves nothing"):
            self._stack.remove()

    def kill(self, service: str) -> None:
        """Kill a container while readings come, and start it again. The worker misses the first one of a device."""
        container = self._stack.container(service)["Id"]
        self._stack.commands.run("docker", "kill", container)
        if self._stack.container(service)["State"]["Running"]:
            raise StackError(f"{service} still runs")
        if service == "enrichment":
            self._stack.compose("exec", "-T", "source", "python3", "-c", LATE)
        self._stack.up()
        self._stack.await_well(*STAY)
        self.await_readings()

    def restore(self) -> None:
        """Make a savepoint, and have the job continue from it when more readings have come."""
        path = one(r"^(\S+)", self.command(CREATE))
        self.await_readings()
        checkpoint = REMOVE.removesuffix("/flights")  # an application alone has no folder of its name
        for command in (STOP, checkpoint, RESTORE.replace("SAVEPOINT", path.rpartition("/")[2]), START):
            self.command(command)
        self.await_readings()

    def await_readings(self) -> None:
        """Wait until the states count more readings, and the query service serves each with its location."""
        self._count(self._counted + MORE)

    def require_each_once(self) -> None:
        """Stop the source, and find as many readings as it has sent, with that of the late device."""
        self._stack.compose("stop", "source")
        output = self._stack.output(self._stack.container("source")["Id"])
        end = json.loads(one(r'^stateloop source: (\{"sent".*)', output))
        if end["unacknowledged"]:
            raise StackError(f"the broker has not acknowledged all readings: {end}")
        self._steps.report(f"{end['sent'] + 1} readings were sent")
        self._count(end["sent"] + 1, "--exactly")

    def _count(self, least: int, *options: str) -> None:
        ports = self._stack.commands.environment
        where = (f"--kafka=127.0.0.1:{ports['KAFKA_PORT']}", f"--query={ports['QUERY_PORT']}", f"--at-least={least}")
        seen = json.loads(last_line(self._court.run_module("tests.compose.lab.readings", *where, *options)))
        self._counted = seen["readings"]
        self._steps.report(f"{seen['readings']} readings, {seen['snapshots']} snapshots")
