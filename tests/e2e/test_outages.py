"""Raw records and direct events while the job is killed, and is away for longer than the grace of its windows.

The quick twins are tests/spark_app/raw/test_backlog.py and tests/services/query/test_closed_windows.py.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from contracts import Emit
from contracts.wire import decode_snapshot
from tests.e2e.final_answers import FinalAnswers
from tests.e2e.loop import Loop
from tests.e2e.monitors import monitors
from tests.e2e.reader import Reader
from tests.e2e.recorded_progress import RecordedProgress
from tests.e2e.ward import PATIENTS, Ward, repeating
from tests.services.tools.broker.embedded import free_port_pair
from tests.spark_app.running import PATIENCE_S, Job, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.e2e.ward import WindowKey
    from tests.forked import Forked
    from tests.services.tools.broker.embedded import EmbeddedBroker

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.full]

SUITE = "tests.e2e.monitors:suite"
OUTAGE_S = 60
"""A window and its grace are half a minute. The job needs some time more to start."""
WORK_S = 10
"""The job works for less than this before it is killed."""


class Outages(Loop):
    """A ward, and a job that a test kills."""

    def __init__(self, broker: EmbeddedBroker, prefix: str, folder: Path, seed: int) -> None:
        super().__init__(broker, prefix, folder, SUITE)
        self._chance = random.Random(seed)
        self.ward = Ward(self, seed)
        self.job = Job(self.bootstrap, folder, SUITE, self.environment | {"STATELOOP_CATCH_UP": "true"})
        self.applications = monitors(prefix).applications
        self.readers = [Reader(self.bootstrap, application.topics.snapshots, 2) for application in self.applications]
        self.progress = [RecordedProgress(self.bootstrap, application) for application in self.applications]
        self._services: list[Forked] = []

    def work(self) -> None:
        """Start the job, and let it work for a while after its first snapshot."""
        seen, reader = self.readers[0].seen, self.readers[0]
        self.job.start()
        until(lambda: self.job.ended() or reader.read() > seen, "a snapshot")
        assert not self.job.ended(), self.job.log.read_text(encoding="utf-8")[-3000:]
        self.ward.goes_on(self._chance.uniform(0, WORK_S))

    def fail(self, outage_s: float) -> None:
        """Kill the job, and let the ward go on for a while."""
        self.job.kill()
        self.readers[0].read_to_end()
        self.ward.goes_on(outage_s)

    def serve(self, port: int, data: str) -> None:
        """Start a query service with the store of this name, and kill the one that runs."""
        self._kill_services()
        folder = str(self.folder / data)
        self._services.append(self.start("services.query", http_port=str(port), query_data=folder, rate="0"))

    def look(self) -> None:
        """Look at the progress that the job has recorded."""
        for progress in self.progress:
            progress.look()

    def is_final(self) -> bool:
        """Return whether all that was sent is final, by the recorded progress."""
        now = datetime.fromtimestamp(self.ward.second, UTC)
        return self.job.ended() or all(progress.is_final(now) for progress in self.progress)

    def close(self) -> None:
        """End all that runs here."""
        self._kill_services()
        for reader in self.readers:
            reader.close()
        for each in self.progress:
            each.close()

    def _kill_services(self) -> None:
        for service in self._services:
            service.kill()
            service.wait(PATIENCE_S)


@pytest.fixture
def loop(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, seed: int) -> Iterator[Outages]:
    """Give topics without a record."""
    made = Outages(broker, topics_prefix, tmp_path, seed)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("seed", "outages"), [(1, (OUTAGE_S, 0)), (2, (0, OUTAGE_S)), (3, (OUTAGE_S, 0))], ids=["1", "2", "3"]
)
def test_no_chunk_is_lost_or_counted_twice(loop: Outages, outages: tuple[int, ...]) -> None:
    with repeating(loop.look, 0.5):
        with repeating(loop.ward.send, 0.1):
            loop.work()
            for outage in outages:
                loop.fail(outage)
                loop.work()
        until(loop.is_final, "all windows to be final")
    assert loop.job.stop() == 0
    sent = loop.ward.states()
    log.info("%s chunks, %s notes, %s windows", loop.ward.chunks.total(), loop.ward.notes.total(), len(sent))
    for application, reader, progress in zip(loop.applications, loop.readers, loop.progress, strict=True):
        reader.read_to_end()
        states = {window: snapshot.state for window, snapshot in reader.latest.items()}
        assert _differences(sent, states) == {"lost": 0, "doubled": 0}
        assert states == sent
        snapshots = loop.records(f"{application.name}.snapshots")
        assert not progress.late(snapshots)
        if application.emit is Emit.CLOSE:
            published = (decode_snapshot(message.value() or b"") for message in snapshots)
            assert all(snapshot.state == sent[snapshot.window] for snapshot in published)
        assert not loop.records(f"{application.name}.dead_letters")
    assert sum(line["late"] for line in loop.job.lines("batch")) == 0


@pytest.mark.parametrize(("seed", "stores"), [(4, ["one"]), (5, ["one", "new"])], ids=["4", "5"])
def test_what_was_called_final_does_not_change(loop: Outages, stores: list[str]) -> None:
    port = free_port_pair()
    ward, names = loop.ward, [application.name for application in loop.applications]
    answers = FinalAnswers(port, names, PATIENTS, ward.begin)
    loop.serve(port, stores[0])
    with repeating(loop.look, 0.5), repeating(answers.ask, 0.1):
        with repeating(ward.send, 0.1):
            loop.work()
            until(lambda: len(answers.windows) > len(PATIENTS), "windows that are final")
            loop.fail(OUTAGE_S)
            log.info("in the outage: %s", answers)
            for store in stores[1:]:
                loop.serve(port, store)
            loop.work()
        until(loop.is_final, "all windows to be final")
        until(lambda: answers.final_until > ward.second, "all answers to be final")
    assert loop.job.stop() == 0
    log.info("at the end: %s", answers)
    assert not answers.changed, f"{len(answers.changed)} final answers have changed: {[*answers.changed.items()][:5]}"
    sent = {(name, *window): state for name in names for window, state in ward.states().items()}
    assert {window: answer.value["state"] for window, answer in answers.windows.items()} == sent
    assert (
        answers.seconds.items()
        >= {
            (name, patient, second): "data" if (patient, second) in ward.chunks else "gap"
            for name in names
            for patient in PATIENTS
            for second in range(ward.begin, ward.second)
        }.items()
    )


def _differences(
    sent: Mapping[WindowKey, dict[str, Any]], published: Mapping[WindowKey, dict[str, Any]]
) -> dict[str, int]:
    """Count the chunks that are missing in their windows, and those that are there too often."""
    sent_chunks, published_chunks = (
        Counter({window: state["chunks"] for window, state in states.items()}) for states in (sent, published)
    )
    return {"lost": (sent_chunks - published_chunks).total(), "doubled": (published_chunks - sent_chunks).total()}
