"""The whole loop as `make up` runs it, without the view: processes of their own, restarted by the launcher alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.services.tools.broker.embedded import free_port_pair, free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

CHECKOUT = Path(__file__).parents[2]
STOP_S = 300
REPLAYED = date(2013, 1, 1)
PARTS = 5
"""Query service, job, worker that derives and two workers: each answers at a port, from the first on."""


class Launched:
    """`stateloop up --headless` in a folder of its own, replaying one day, or with other `settings`."""

    def __init__(
        self,
        folder: Path,
        day: date = REPLAYED,
        speed: float = 1.0,
        *,
        catch_up: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        port = int((settings or {}).get("STATELOOP_BROKER_PORT", 0)) or free_port_pair()
        self.kafka = f"127.0.0.1:{port}"
        self.reference = free_port_pair()
        self.http = free_ports(PARTS)
        self._environment = {
            "STATELOOP_APPLICATION": "examples.flights.application:app",
            "STATELOOP_DATA": str(folder),
            "STATELOOP_JARS": str(CHECKOUT / ".stateloop" / "jars"),
            "STATELOOP_BROKER_PORT": str(port),
            "STATELOOP_REFERENCE_PORT": str(self.reference),
            "STATELOOP_HTTP_PORT": str(self.http),
            "STATELOOP_REPLAY_FROM": day.isoformat(),
            "STATELOOP_REPLAY_DAYS": "1",
            "STATELOOP_REPLAY_SPEED": str(speed),
            "STATELOOP_BATCH": "PT15S",
            "STATELOOP_CATCH_UP": str(catch_up),
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it, without waiting for anything."""
        with (self.folder / "launcher.log").open("ab") as log:
            command = [sys.executable, "-m", "services.tools.cli", "up", "--headless"]
            environment = os.environ | self._environment
            self._process = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it as Ctrl-C does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(STOP_S)

    @property
    def pid(self) -> int:
        """The id of the launcher that was started here."""
        assert self._process is not None
        return self._process.pid

    def alive(self) -> bool:
        """Return whether the launcher has not given up."""
        return self._process is not None and self._process.poll() is None

    def runs(self, part: str) -> int:
        """The id of a part's process."""
        return int((self.folder / "run" / f"{part}.pid").read_text(encoding="utf-8").split()[0])

    def launcher(self) -> int:
        """The id of the launcher that holds the data folder."""
        return int((self.folder / "run" / "lock").read_text(encoding="utf-8").split()[0])

    def kill(self, part: str) -> int:
        """Kill -9 a part, every process of it; gives the id that it had."""
        pid = self.runs(part)
        os.killpg(os.getpgid(pid), signal.SIGKILL)
        return pid

    def job(self, what: str) -> int:
        """Return how often the job, in all its processes, has reported this: started, batch, failed."""
        log = self.folder / "logs" / "job.log"
        return log.read_text(encoding="utf-8", errors="replace").count(f'{{"job": "{what}"') if log.exists() else 0

    def restarts(self) -> int:
        """Return how often the job's query was started again, in a new process or in the same."""
        return self.job("started") - 1 + self.job("failed")

    def calls(self) -> dict[str, Any]:
        """The reference APIs' ledger."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.reference}/calls") as answer:
            ledger: dict[str, Any] = json.load(answer)
        return ledger

    def retried(self) -> int:
        """Return how many calls the workers had to repeat, by the last figures of each; all of them after the end."""
        return self._counted("calls", "retryable")

    def shared(self) -> int:
        """Return how many answers took no call of their own, for a worker had one to the same question."""
        return self._counted("cache", "hit", "shared")

    def _counted(self, figure: str, *labels: str) -> int:
        logs = (log.read_text(encoding="utf-8").splitlines() for log in (self.folder / "logs").glob("worker-*.log"))
        last = [next(line for line in reversed(lines) if '"stats"' in line) for lines in logs]
        return sum(json.loads(line)[figure].get(label, 0) for line in last for label in labels)

    def tail(self) -> str:
        """The end of every log, for when a test fails; then the last reports of the job, which most others wait for."""
        logs = [self.folder / "launcher.log", *sorted((self.folder / "logs").glob("*.log"))]
        texts = {log.name: log.read_text(encoding="utf-8", errors="replace") for log in logs}
        reports = [line[:240] for line in texts.get("job.log", "").splitlines() if line.startswith('{"job"')]
        ends = [f"== {name}\n{text[-1500:]}" for name, text in texts.items()]
        return "\n".join([*ends, "== reports of the job", *reports[-6:]])
