"""The names of savepoints; tests/spark_app/lifecycle/test_savepoint.py makes and restores them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import MagicMock, Mock

import pytest

from examples.departures.application import carriers
from examples.flights.application import app
from services.tools.cli import savepoint
from services.tools.cli.__main__ import main
from spark_app.checkpoint.identity import identity
from spark_app.errors import BrokerUnreachableError, CheckpointInUseError
from spark_app.lifecycle.errors import UnreadableOffsetsError
from spark_app.lifecycle.savepoint import Savepoint
from spark_app.lifecycle.start_offsets import StartAt
from spark_app.settings import JobSettings
from spark_app.topics.identity import TopicIdentity
from spark_app.topics.record_times import RecordTimes
from tests.simulation.savepoints import MemoryFolder
from tests.spark_app.leasing import MemoryFiles

if TYPE_CHECKING:
    from pathlib import Path


def test_two_savepoints_within_one_second_have_different_names_in_the_order_of_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("spark_app.lifecycle.savepoint.create", Mock(return_value=Mock(offsets={}, last_times={})))
    monkeypatch.setattr(savepoint, "CheckpointFolder", Mock())
    monkeypatch.setattr(savepoint, "_line", lambda path, _: path)
    settings = JobSettings(application="")
    for _ in range(20):
        savepoint.create(cast("Any", None), app, settings, "copies/")
    made = capsys.readouterr().out.splitlines()
    assert len(set(made)) == 20
    assert sorted(made) == made
    assert all(re.fullmatch(r"copies/flights-\d{8}T\d{6}\.\d{6}Z", path) for path in made)


def test_partitions_whose_last_records_have_no_time_are_named() -> None:
    made = Mock(offsets={"events": {0: 7, 1: 5, 2: 0}, "feedback": {0: 3}}, last_times={"events": {0: 1_000}})
    assert savepoint.untimed(made, "events") == [1]


def test_the_list_names_a_savepoint_that_cannot_be_read_and_has_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its savepoint.json was truncated, or is of a later release."""
    monkeypatch.setenv("STATELOOP_APPLICATION", "examples.departures.application:suite")
    monkeypatch.setattr(savepoint, "spark_session", MagicMock())
    folders = {path: cast("Any", MemoryFolder(path)) for path in ("copies", "copies/a", "copies/b", "copies/c")}
    monkeypatch.setattr(savepoint, "CheckpointFolder", lambda _, path: folders[path])
    for name in "abc":
        folders["copies"].overwrite(name, "a folder")
        stored = Savepoint(
            format=1,
            application="carriers",
            created=datetime(2026, 5, 1, tzinfo=UTC),
            batch=1,
            epoch=1,
            identity=identity(carriers, [TopicIdentity("events", "id", 1)], 1),
            offsets={},
            files=0,
            bytes=0,
        )
        folders[f"copies/{name}"].overwrite("savepoint.json", "" if name == "b" else stored.model_dump_json())
    assert main(["savepoint", "list", "copies"]) == 1
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == ["copies/a", "copies/c"]
    (line,) = printed.err.splitlines()
    assert line.startswith("stateloop savepoint: copies/b is no complete savepoint that this release reads")
    folders["copies/b"].delete("savepoint.json")
    assert main(["savepoint", "list", "copies"]) == 0


def test_of_a_suite_the_application_is_restored_that_the_savepoint_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_APPLICATION", "examples.departures.application:suite")
    monkeypatch.setattr("spark_app.lifecycle.savepoint.read", Mock(return_value=Mock(application="carriers")))
    for name in ("CheckpointFolder", "require_broker", "spark_session"):
        monkeypatch.setattr(savepoint, name, MagicMock())
    restore = Mock()
    monkeypatch.setattr(savepoint, "restore", restore)
    assert main(["savepoint", "restore", "copies/one"]) == 0
    ((_, application, settings, path), _) = restore.call_args
    assert restore.call_count == 1
    assert (application, path) == (carriers, "copies/one")
    assert settings.checkpoint.endswith("/carriers")


@pytest.mark.parametrize("function", ["savepoint.restore", "restore_onto"])
def test_a_restored_state_has_a_later_epoch_than_any_job(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """The clock of a job was ahead, after the savepoint: its epoch is recorded on the broker alone."""
    recorded = 1 << 50
    for name in ("CheckpointFolder", "identity", "offset_ranges", "former_ends", "partition_copies", "savepoint"):
        monkeypatch.setattr(savepoint, name, Mock())
    monkeypatch.setattr(savepoint, "identify", Mock(return_value=[TopicIdentity("events", "id", 1)]))
    monkeypatch.setattr(savepoint, "TopicOwners", Mock(return_value=Mock(recorded_epoch=lambda: recorded)))
    called = Mock(return_value=(None, Mock(losses=[], notes=[], offsets={})))
    monkeypatch.setattr(f"{savepoint.__name__}.{function}", called)
    target = (cast("Any", None), app, JobSettings(application=""), "copies/one")
    if function == "restore_onto":
        savepoint.restore_elsewhere(*target, StartAt.TIME, accepts_loss=False)
    else:
        called.return_value = Mock()
        savepoint.restore(*target)
    ((*_, epoch, _), _) = called.call_args
    assert epoch == recorded + 1


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_the_wait_for_the_lease_on_an_object_store_is_announced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_exclusive: bool
) -> None:
    files = MemoryFiles(is_exclusive=is_exclusive)
    monkeypatch.setattr(savepoint, "acquire", Mock(side_effect=CheckpointInUseError(files.path, "a job")))
    monkeypatch.setattr(savepoint, "this_job", Mock())
    with pytest.raises(CheckpointInUseError), savepoint.leased(Mock(), cast("Any", files)):
        pass
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in printed] == ([] if is_exclusive else ["waits 15 s before it copies"])


def test_a_savepoint_is_restored_onto_other_topics_from_a_time_or_from_the_offsets_of_a_file(tmp_path: Path) -> None:
    assert [savepoint.start_at(name) for name in ("time", "beginning")] == [StartAt.TIME, StartAt.BEGINNING]
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({"events": {"0": 7, "1": 0}, "feedback": {"0": 3}}), encoding="utf-8")
    assert savepoint.start_at(str(path)) == {("events", 0): 7, ("events", 1): 0, ("feedback", 0): 3}


@pytest.mark.parametrize("content", [None, "", "[]", '{"events": 5}', '{"events": {"0": -1}}', '{"events": {"a": 1}}'])
def test_a_file_without_offsets_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "offsets.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UnreadableOffsetsError, match="has no start offsets"):
        savepoint.start_at(str(path))


@pytest.mark.parametrize(("topic_id", "is_read"), [("id", True), ("other", False)])
def test_times_are_those_of_the_topics_that_the_checkpoint_has_read(
    monkeypatch: pytest.MonkeyPatch, topic_id: str, *, is_read: bool
) -> None:
    found = RecordTimes({("events", 0): 5})
    monkeypatch.setattr(savepoint, "record_times", Mock(return_value=found))
    monkeypatch.setattr(savepoint, "identify", Mock(return_value=[TopicIdentity("events", topic_id, 1)]))
    stored = identity(app, [TopicIdentity("events", "id", 1)], 1)
    times = savepoint.times(app, JobSettings(application=""), stored, {("events", 0): 7})
    assert times == (found if is_read else RecordTimes())


def test_a_savepoint_is_made_without_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savepoint, "identify", Mock(side_effect=BrokerUnreachableError("kafka:9092", "down")))
    stored = identity(app, [TopicIdentity("events", "id", 1)], 1)
    assert savepoint.times(app, JobSettings(application=""), stored, {("events", 0): 7}) == RecordTimes()
