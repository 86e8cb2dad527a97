"""The running loop: the launcher and all parts, the API, the sender and the readers of topics."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Self

from tests.e2e.launched import Launched
from tests.faults import application as applications
from tests.faults.api import ApiStub
from tests.faults.ledgers import TopicReader, Verdict, judge
from tests.faults.load import Load, Sender
from tests.faults.machine import BrokerLink, SystemClock, small_disk
from tests.faults.reader import MonotonicReader, read_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from contracts import Application
    from tests.faults.catalogue import Fault

START_S, PATIENCE_S, QUIET_S, AFTER_S = 300.0, 240.0, 2.0, 3.0
"""Until the loop has started; without progress, before all is right; how long it stays so; the load after a fault."""
SAMPLE = 200
"""The number of final states that are read."""
Needs = Literal["small disk", "clock", "link"] | None


class PersonNeededError(Exception):
    """The loop gave up, or a fault found what it must not find."""


class Stage:
    """A loop in a folder. It `needs` nothing, or a small file system, a clock or a link of its own."""

    def __init__(self, folder: Path, needs: Needs = None, application: str = "app") -> None:
        self.folder = folder.absolute()
        self._closing = ExitStack()
        self.needs = needs
        self._name, self._application = application, getattr(applications, application)
        self.api = ApiStub()
        self.runs = 0

    def __enter__(self) -> Self:
        """Start all parts from nothing, and return when there is a snapshot."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        settings = {
            "STATELOOP_APPLICATION": f"tests.faults.application:{self._name}",
            "STATELOOP_APIS": json.dumps({"registry": self.api.url}),
            "STATELOOP_BATCH": "PT10S",
            "STATELOOP_BROKER_SESSION": "PT10S",  # a busy machine is no fault
            "STATELOOP_DRIVER_MEMORY": "1g",
            "STATELOOP_RATE": "0",
        }
        launched = Launched(self.folder, catch_up=False, settings=settings | self._prepared())
        self.launched = self._closing.enter_context(launched)
        try:
            self.wait_for("the query service", lambda: read_state(self.launched.http, "nobody")[0], START_S)
            self.sender, self.topics = Sender(self.launched.kafka), TopicReader(self.launched.kafka)
            self.sender.send(Load("first", 0).event())
            self.wait_for("the first snapshot", lambda: self.topics.read().changes, START_S)
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.api.shutdown()
        self._closing.close()

    def run(self, fault: Fault, seed: int) -> Verdict:
        """Disturb the loop under load, and judge it when it is quiet."""
        self.runs += 1
        load = Load(f"{fault.number}.{self.runs}", seed, behind=fault.behind, hot=fault.hot, traffic=fault.traffic)
        is_over = threading.Event()
        thread = threading.Thread(target=self._send, args=(fault, load, is_over), daemon=True)
        self.load, self.reader = load, MonotonicReader(self.launched.http, load.meters)
        with self.reader as reader:
            thread.start()
            try:
                self.wait_for(
                    "states before the fault", lambda: len(self.topics.read().newest.keys() & load.meters) > 1
                )
                with fault.inject(self, load):
                    time.sleep(fault.hold_s)
                time.sleep(AFTER_S)
            finally:
                is_over.set()
                thread.join()
            for record in load.last():
                self.sender.send(record)
            self.sender.flush()
            sent_at = datetime.now(UTC)
            verdict = self._settle(load)
            self.wait_for("windows expire up to the last event", lambda: self.expired_until() > sent_at)
        return verdict._replace(
            repeated=sum(number for plate, number in self.api.repeated.items() if plate in load.plates),
            backwards=len(reader.backwards),
            stall_s=reader.stall_s,
        )

    def signal(self, part: str, number: int) -> None:
        """Send a signal to every process of a part; SIGTERM to the first one, as an operator does."""
        pid = self.launched.runs(part)
        if number == signal.SIGTERM:
            os.kill(pid, number)
        else:
            os.killpg(os.getpgid(pid), number)

    def expired_until(self) -> datetime:
        """Return the time up to which windows that are over are forgotten, by the job's last watermark.

        It is long ago before the first one.
        """
        log = (self.folder / "logs" / "job.log").read_text(encoding="utf-8", errors="replace")
        newest_first = reversed(log.split("\n")[:-1])
        batches = (json.loads(line) for line in newest_first if line.startswith('{"job": "batch"'))
        last = next((batch["watermark"] for batch in batches if batch["watermark"]), "1970-01-01T00:00:00+00:00")
        application: Application = self._application
        return datetime.fromisoformat(last) + application.kept_for + application.skew

    @contextmanager
    def without(self, part: str) -> Iterator[None]:
        """Kill a part, and keep the launcher from restarting it meanwhile."""
        os.kill(self.launched.pid, signal.SIGSTOP)
        try:
            self.launched.kill(part)
            yield
        finally:
            os.kill(self.launched.pid, signal.SIGCONT)

    def wait_for(self, what: str, condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
        """Wait for a condition. Raises PersonNeededError if it is late, or if the launcher has given up."""
        end = time.monotonic() + patience_s
        while not condition():
            self._require_launcher()
            if time.monotonic() > end:
                raise PersonNeededError(f"{what}: not within {patience_s:.0f} s")
            time.sleep(0.1)

    def _prepared(self) -> dict[str, str]:
        """Make what the fault needs, and return the settings for it."""
        if self.needs == "small disk":
            self._closing.enter_context(small_disk(self.folder))
        elif self.needs == "clock":
            self.clock = SystemClock(self.folder)
            return self.clock.environment
        elif self.needs == "link":
            self.link = BrokerLink(self.folder)
            return self.link.environment
        return {}

    def _send(self, fault: Fault, load: Load, is_over: threading.Event) -> None:
        for record in fault.spoil(load.random, load.events(is_over)):
            self.sender.send(record)

    def _settle(self, load: Load) -> Verdict:
        """Judge until all is right and stays so, or nothing changes any more."""
        quiet_since, changes = time.monotonic(), -1
        while True:
            self._require_launcher()
            published, now = self.topics.read(), time.monotonic()
            if published.changes != changes:
                quiet_since, changes = now, published.changes
            verdict = judge(load.meters, self.sender.refused, published, None)
            quiet_s = now - quiet_since
            if quiet_s > PATIENCE_S or (verdict.is_complete and quiet_s > QUIET_S):
                answers = {name: read_state(self.launched.http, name)[1] for name in list(load.meters)[:SAMPLE]}
                verdict = judge(load.meters, self.sender.refused, published, answers)
                if quiet_s > PATIENCE_S or verdict.is_complete:
                    return verdict._replace(people=int(not verdict.is_complete))
            time.sleep(0.2)

    def _require_launcher(self) -> None:
        if not self.launched.alive():
            raise PersonNeededError(self.launched.tail()[-3000:])
