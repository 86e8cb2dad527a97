"""Checks the commands of the state as docs/how-to/deploy.md gives them, in the middle of a day."""

from __future__ import annotations

import json
import re
from datetime import date

from tests.compose.lab.checks import Checks
from tests.compose.lab.errors import CommandFailedError, StackError
from tests.examples.flights.oracle import expected

SPEED = "200"
"""A day of seven minutes: the commands take four of them."""
APPLICATIONS = ("flights", "departures", "carriers")
RUN = "run --rm job stateloop"
CREATE = f"{RUN} savepoint create /var/lib/stateloop/savepoints"
LIST = f"{RUN} savepoint list /var/lib/stateloop/savepoints"
STOP = "stop job"
REMOVE = "run --rm job rm -r /var/lib/stateloop/checkpoint/flights"
RESTORE = f"{RUN} savepoint restore /var/lib/stateloop/savepoints/SAVEPOINT"
START = "start job"
REBUILD = f"{RUN} rebuild"
GET = f"{RUN} state get KEY"
VERIFY = "run --rm -e STATELOOP_URL=http://query:8080 -e STATELOOP_TOKEN job stateloop verify"
TOPICS = "run --rm enrichment stateloop topics"
DOCUMENTED = (CREATE, LIST, STOP, REMOVE, RESTORE, START, REBUILD, GET, VERIFY, TOPICS)
"""What follows `docker compose` in the page."""
SAVE_AFTER, RESTORE_AFTER, REBUILD_AFTER = 1_000, 2_000, 4_000
"""How many snapshots were published before each; there are some 8,400."""
WITHOUT_SPARK = "use the image stateloop-spark"


class StateCommands(Checks):
    """The checks. Each raises StackError, or CommandFailedError, when it does not hold."""

    def run(self) -> None:
        """All of it."""
        with self._steps.step("docker compose up, from nothing"):
            self._stack.up()
        with self._steps.step(f"stateloop savepoint create and list, after {SAVE_AFTER} snapshots"):
            self._court.seen(SAVE_AFTER)
            savepoint, epoch = self.saved()
        with self._steps.step(f"stateloop savepoint restore, after {RESTORE_AFTER} snapshots: the job goes on from it"):
            self._court.seen(RESTORE_AFTER)
            for command in (STOP, REMOVE, RESTORE.replace("SAVEPOINT", savepoint), START):
                self.command(command)
            epoch = self.verified(since=epoch)
        with self._steps.step(f"stateloop rebuild, after {REBUILD_AFTER} snapshots: the job goes on with it"):
            self._court.seen(REBUILD_AFTER)
            restarts = self._stack.container("job")["RestartCount"]
            self._steps.report(last_line(self.command(REBUILD)))
            self._stack.await_restart("job", restarts)
            self.verified(since=epoch)
        with self._steps.step("every flight of the day is as in the tables"):
            self._court.agree(republished=True)
        with self._steps.step("stateloop state get and topics, and state get in the image without Spark"):
            self.require_state()
            self.command(TOPICS)
            self.require_refusal(GET.replace("job", "enrichment"))
        with self._steps.step("docker compose down --volumes leaves nothing"):
            self._stack.remove()

    def saved(self) -> tuple[str, int]:
        """Make a savepoint of each application; give the name and the epoch of that of the flights."""
        made = self.command(CREATE).splitlines()
        listed = self.command(LIST).splitlines()
        for line in listed:
            self._steps.report(line)
        if made != listed or len(made) != len(APPLICATIONS):
            raise StackError(f"savepoints were made and others are listed: {made}, {listed}")
        return made[0].split()[0].rpartition("/")[2], int(one(r"epoch (\d+)", made[0]))

    def verified(self, since: int) -> int:
        """Find no difference between checkpoint, topic and query service; give the epoch of the flights, a new one."""
        self._stack.await_well("job", "query")
        output = self.command(VERIFY)
        for line in re.findall(r"^\w+: .* keys.*", output, re.MULTILINE):
            self._steps.report(line)
        epoch = int(one(r"^flights: .* of epoch (\d+)", output))
        if epoch <= since:
            raise StackError(f"the job publishes in epoch {epoch}, which is not after {since}")
        return epoch

    def require_state(self) -> None:
        """The command gives the state of a flight."""
        key = min(expected(date.fromisoformat(self._stack.commands.environment["REPLAY_FROM"])))
        found = json.loads(last_line(self.command(GET.replace("KEY", key))))
        self._steps.report(f"{found['key']}: {found['state']['status']}, version {found['version']}")
        if found["key"] != key:
            raise StackError(f"the state of {key} is that of {found['key']}")

    def require_refusal(self, command: str) -> None:
        """The image without Spark names the one that has it."""
        try:
            self.command(command)
        except CommandFailedError as error:
            if WITHOUT_SPARK not in error.tail:
                raise
            self._steps.report(last_line(error.tail))
        else:
            raise StackError(f"docker compose {command}: the image without Spark has read the state")


def last_line(output: str) -> str:
    """Return the last line."""
    return output.splitlines()[-1]


def one(pattern: str, text: str) -> str:
    """Return what a pattern finds. Raises StackError."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise StackError(f"{pattern} is not in {text}")
    return found[1]
