"""The mode of each run of a query."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from contracts import Topics
from spark_app.checkpoint.damage import forget_batches
from spark_app.checkpoint.republish import request_republication
from spark_app.run.backlog import Backlog
from spark_app.run.start import Starter
from spark_app.settings import JobSettings
from tests.contracts.model.test_suite import of
from tests.simulation.savepoints import MemoryFolder
from tests.spark_app.checkpoint.test_republish import commit

if TYPE_CHECKING:
    from collections.abc import Sequence


class Query:
    """A query that starts at once."""

    def trigger(self, **_: object) -> Query:
        return self

    def start(self) -> Query:
        return self


@pytest.mark.parametrize(
    ("replay", "unread", "catches_up"),
    [
        (False, (1000, 400, 150), (True, True, True)),  # each pass leaves less than half
        (False, (1000, 900, 900), (True, False, True)),  # records come as fast as it reads: it is live for a while
        (False, (1000, 0), (True, False)),
        (True, (1000, 400), (True, False)),  # a replay is behind for ever
    ],
)
def test_a_job_catches_up_again_while_a_pass_shrinks_the_backlog(
    monkeypatch: pytest.MonkeyPatch, unread: Sequence[int], catches_up: Sequence[bool], *, replay: bool
) -> None:
    backlogs = iter([Backlog(records, is_first=False, is_long=records > 0) for records in unread])
    monkeypatch.setattr("spark_app.run.start.measure", lambda *_: next(backlogs))
    report = SimpleNamespace(catching_up=lambda _: None, live=lambda: None)
    checkpoint = SimpleNamespace(read=lambda _: None, names=lambda _: [])
    settings = JobSettings(application="", batch=timedelta(seconds=5))
    spark: Any = None
    arguments: tuple[Any, ...] = (checkpoint, Query(), report, None)
    starter = Starter(spark, settings, of("trips", Topics(replay=replay)), *arguments)
    assert [starter.start([]).is_catch_up for _ in unread] == list(catches_up)


def test_a_job_publishes_each_window_in_one_batch_after_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Any = MemoryFolder("a generation")
    for batch in range(6):
        commit(folder, batch)
    request_republication(folder)
    forget_batches(folder, 4)
    republished = [*range(4)]

    def republishing(*_: object) -> None:
        republished.append(len(republished))
        commit(folder, republished[-1])

    monkeypatch.setattr("spark_app.run.start.republishing", republishing)
    report = SimpleNamespace(republishing=lambda: None, live=lambda: None)
    heartbeat = SimpleNamespace(write=lambda: None)
    spark: Any = None
    arguments: tuple[Any, ...] = (folder, Query(), report, heartbeat)
    starter = Starter(spark, JobSettings(application="", catch_up=False), of("trips", Topics()), *arguments)
    assert [starter.start([]).is_catch_up for _ in range(2)] == [True, False]
    assert republished == [0, 1, 2, 3, 4]
