"""The epochs of a rebuild, on folders in memory and without a query."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import pytest
from typing_extensions import override

from examples.flights.application import app
from spark_app.checkpoint.generations import activate
from spark_app.checkpoint.identity import identity, write
from spark_app.lifecycle import rebuild
from spark_app.lifecycle.rebuild import Rebuild, RebuildPlan
from spark_app.settings import JobSettings
from spark_app.topics.identity import TopicIdentity
from tests.simulation.savepoints import MemoryFolder

RECORDED = 5_000
"""The epoch that the broker has of a job whose clock was ahead."""
NOW_MS = 1_000
TOPICS = [TopicIdentity(name, "id", 4) for name in ("flights.events", "flights.feedback")]


class Folder(MemoryFolder):
    """The folder of a checkpoint, with folders of generations below it."""

    @override
    def __init__(self, path: str = "the checkpoint") -> None:
        super().__init__(path)
        self._folders: dict[str, Folder] = {}

    def below(self, name: str) -> Folder:
        """See `CheckpointFolder.below`."""
        return self._folders.setdefault(name, Folder(name))


@pytest.fixture
def checkpoint(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the folder of the checkpoint, to which no other process writes."""
    folder = Folder()
    monkeypatch.setattr(rebuild, "CheckpointFolder", Mock(return_value=folder))
    monkeypatch.setattr(rebuild, "identify", Mock(return_value=TOPICS))
    monkeypatch.setattr(rebuild, "TopicOwners", Mock(return_value=Mock(recorded_epoch=lambda: RECORDED)))
    monkeypatch.setattr(rebuild, "kept", lambda *_: nullcontext(lambda: None))
    for name in ("query_session", "this_job", "acquire", "take_over", "Handover", "require_whole_windows"):
        monkeypatch.setattr(rebuild, name, Mock())
    return folder


@pytest.fixture
def flights(checkpoint: Any) -> Rebuild:  # noqa: ARG001  # where it writes
    """Give the rebuild of an application."""
    return Rebuild(Mock(), app, JobSettings(application=""))


def test_an_activated_state_has_a_later_epoch_than_any_job(flights: Rebuild, checkpoint: Any) -> None:
    """The checkpoint is lost, or a job of another one has run since."""
    assert flights.activate("generation-1", NOW_MS)[0].epoch == RECORDED + 1
    write(checkpoint.below("generation-1"), identity(app, TOPICS, 1), 5)
    activate(checkpoint, "generation-2", RECORDED + 10, 0)
    assert flights.roll_back(flights.former(), NOW_MS)[0].epoch == RECORDED + 11


def test_a_build_merges_the_answers_of_each_job(flights: Rebuild, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers answer with the epoch of the snapshot: a build drops answers of later epochs than its own."""
    epochs = list[int]()

    def interrupted(_spark: object, _application: object, _settings: object, epoch: int, *_: object) -> None:
        epochs.append(epoch)
        raise KeyboardInterrupt

    monkeypatch.setattr(rebuild, "build", interrupted)
    plan = RebuildPlan([], "generation-1", is_begun=False, records=0, missing=[])
    with pytest.raises(KeyboardInterrupt):
        flights.build(plan, NOW_MS, print, print)
    assert epochs == [RECORDED + 1]
