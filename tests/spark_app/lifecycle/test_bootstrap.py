"""`stateloop bootstrap`: flights of two days from files, interrupted in between, and then the job on the live topic."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from unittest.mock import patch

import orjson
import pytest
from typing_extensions import override

from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.records.record import Record, timestamp_ms
from contracts.wire import DeadLetter, Snapshot, decode_snapshot
from examples.flights.stream import stream
from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.checkpoint.generations import activate
from spark_app.checkpoint.identity import identity
from spark_app.checkpoint.identity import write as write_identity
from spark_app.errors import HistoryWriteError
from spark_app.lifecycle.bootstrap import Bootstrap
from spark_app.lifecycle.errors import NoHistoryError, StateExistsError
from spark_app.lifecycle.history import history_files
from spark_app.lifecycle.history_writer import HistoryPosition, HistoryWriter
from spark_app.lifecycle.rebuild import Rebuild
from spark_app.settings import JobSettings
from spark_app.topics.times import RETENTION, STAMP, TopicTimes
from tests.same import assert_same
from tests.spark_app.batches import SHORT
from tests.spark_app.departing import application
from tests.spark_app.folding import is_heartbeat
from tests.spark_app.hosted import CRASHED, Crash, HostedJob, done
from tests.spark_app.running import Topics, everything, until

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from examples.flights.event import FlightEvent
    from tests.services.tools.broker.embedded import EmbeddedBroker

    Window = tuple[str, datetime]

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

DAYS = 2
BAD = [b"{", b'{"kind": "departed"}']


@pytest.fixture
def topics(broker: EmbeddedBroker, topics_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Topics of this test, stamped by the broker."""
    monkeypatch.setenv("DEPARTING_PREFIX", topics_prefix)
    return Topics(broker.bootstrap, application())


@pytest.fixture
def job(spark: SparkSession, topics: Topics, tmp_path: Path) -> HostedJob:
    """Give the job, not yet started."""
    environment = SHORT | {"DEPARTING_PREFIX": topics.names.prefix}
    return HostedJob(spark, topics.kafka, tmp_path, "tests.spark_app.departing:app", environment)


def write(spark: SparkSession, folder: Path) -> list[FlightEvent]:
    """Write half of the days as Parquet; the rest as JSON lines, with bad rows and rows of the first half again."""
    days = [date(2013, 1, 1) + timedelta(days=number) for number in range(DAYS)]
    first, second = (list(stream(half)) for half in (days[: DAYS // 2], days[DAYS // 2 :]))
    folder.mkdir()
    rows = spark.read.json(spark.sparkContext.parallelize([event.model_dump_json() for event in first]))
    rows = rows.withColumns({name: rows[name].cast("timestamp") for name in ("ts", "first_seen", "departed_at")})
    rows.write.parquet(str(folder / "half-1"))
    lines = [event.model_dump_json().encode() for event in (*second, *first[:50])]
    (folder / "half-2.jsonl").write_bytes(b"\n".join([BAD[0], *lines, BAD[1]]) + b"\n")
    return [*first, *second]


def live(origin: str, now: datetime) -> list[Record]:
    """Events of the present."""
    own = {"kind": "departed", "carrier": "UA", "number": 1, "origin": origin, "dest": "IAH", "delay": 3}
    fields = {"device_id": "UA1", "first_seen": now, "ts": now}
    return [
        Record(
            "events", 0, 0, timestamp_ms(now), b"UA1", orjson.dumps(own | fields | {"event_id": f"{origin}/{number}"})
        )
        for number in range(5)
    ]


def folded(records: Iterable[tuple[bytes, datetime]]) -> dict[Window, Snapshot]:
    """Return the snapshot of each window of these events."""
    decoder, fold = Decoder(application()), Fold(application())
    for value, ts in records:
        for delta in decoder.event(Record("events", 0, 0, timestamp_ms(ts), None, value)):
            fold.add(delta)
    return {window: present(application(), window, merged) for window, merged in fold.windows.items()}


def newest(topics: Topics) -> dict[Window, Snapshot]:
    """The snapshot of each window that a reader would show."""
    snapshots = [
        decode_snapshot(message.value() or b"") for message in everything(topics.kafka, topics.names.snapshots)
    ]
    return {snapshot.window: snapshot for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.order)}


def test_a_job_continues_from_the_state_of_a_history(
    spark: SparkSession, topics: Topics, job: HostedJob, tmp_path: Path
) -> None:
    history = write(spark, tmp_path / "history")
    times = TopicTimes(JobSettings(application="", kafka=topics.kafka), topics.names.events)
    settings = times.current()
    commit = HistoryWriter.commit

    def crash_after_a_file(writer: HistoryWriter, position: HistoryPosition) -> None:
        if position.file == 1:
            raise Crash
        commit(writer, position)

    with patch.object(HistoryWriter, "commit", crash_after_a_file):
        printed = done(spark, job.environment, "bootstrap", str(tmp_path / "history"), code=CRASHED)
    assert int(printed.partition("file 1 of ")[2].split(",")[0]) >= 2
    assert times.current() == {STAMP: "CreateTime", RETENTION: "-1"}
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)
    meanwhile, after = live("LGA", now), live("JFK", now)
    topics.send(topics.names.events, meanwhile)
    done(spark, job.environment, "bootstrap", str(tmp_path / "history"))
    assert times.current() == settings
    stored = [message for message in everything(topics.kafka, topics.names.events) if not is_heartbeat(message)]
    assert len(stored) == len(history) + 50 + len(meanwhile), "no row is written twice"
    stamps = {round(time.timestamp() * 1000) for time in (now, *(event.ts for event in history))}
    assert {message.timestamp()[1] for message in stored} == stamps
    check_dead_letters(topics, tmp_path / "history")

    wanted = folded(
        [
            *((event.model_dump_json().encode(), event.ts) for event in history),
            *((message.value or b"", now) for message in (*meanwhile, *after)),
        ]
    )
    job.start()
    try:
        topics.send(topics.names.events, after)
        versions = {window: snapshot.version for window, snapshot in wanted.items()}
        until(
            lambda: {window: snapshot.version for window, snapshot in newest(topics).items()} == versions, "all windows"
        )
        published = newest(topics)
    finally:
        job.stop()
    for window, snapshot in wanted.items():
        assert_same(published[window].model_dump(mode="json")["state"], snapshot.model_dump(mode="json")["state"])


class LateTimes(TopicTimes):
    """The settings of a topic whose broker applies a change some time after it has answered."""

    looks = 0

    @override
    def current(self) -> dict[str, str]:
        self.looks += 1
        return super().current() if self.looks > 2 else {STAMP: "LogAppendTime", RETENTION: "60000"}


def test_a_change_of_times_returns_when_the_broker_has_applied_it(topics: Topics) -> None:
    times = LateTimes(JobSettings(application="", kafka=topics.kafka), topics.names.events)
    times.change({STAMP: "CreateTime"})
    assert times.looks > 2
    assert times.current()[STAMP] == "CreateTime"


def test_a_writer_takes_over_from_one_that_vanished_in_a_transaction(topics: Topics) -> None:
    settings, now = JobSettings(application="", kafka=topics.kafka), datetime.now(UTC)
    events = topics.names.events
    TopicTimes(settings, events).change({STAMP: "CreateTime"})
    first = HistoryWriter(settings, events)
    assert first.position() is None
    behind = HistoryPosition(files="digest", of=2, row=1)
    first.write(events, b"k", b"committed", round(now.timestamp() * 1000))
    first.commit(behind)
    first.write(events, b"k", b"open", round(now.timestamp() * 1000))
    second = HistoryWriter(settings, events)  # as after a kill: nothing has aborted the transaction
    assert second.position() == behind
    with pytest.raises(HistoryWriteError):
        first.commit(behind.model_copy(update={"row": 2}))
    second.write(events, b"k", b"repeated", round(now.timestamp() * 1000))
    second.commit(behind.model_copy(update={"row": 2}))
    for writer in (first, second):
        writer.close()
    assert [message.value() for message in everything(topics.kafka, events)] == [b"committed", b"repeated"]


def check_dead_letters(topics: Topics, folder: Path) -> None:
    """Each bad row is one dead letter."""
    dead_letters = [
        DeadLetter.model_validate_json(message.value() or b"")
        for message in everything(topics.kafka, topics.names.dead_letters)
    ]
    file = folder / "half-2.jsonl"
    last = len(file.read_bytes().splitlines()) - 1
    rows = sorted(
        (dead_letter.offset, dead_letter.topic, dead_letter.partition, dead_letter.head) for dead_letter in dead_letters
    )
    assert rows == [(0, str(file), -1, BAD[0].decode()), (last, str(file), -1, BAD[1].decode())]


def test_a_checkpoint_with_a_state_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    settings = JobSettings(application="", kafka="127.0.0.1:1", checkpoint=str(tmp_path))
    write_identity(CheckpointFolder(spark, str(tmp_path)), identity(application(), [], 1), 1)
    with pytest.raises(StateExistsError):
        Bootstrap(spark, application(), settings, [])


def test_a_checkpoint_with_the_state_of_the_same_files_is_done(spark: SparkSession, tmp_path: Path) -> None:
    settings = JobSettings(application="", kafka="127.0.0.1:1", checkpoint=str(tmp_path / "checkpoint"))
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("{}\n", encoding="utf-8")
    files, others = ([str(tmp_path / f"{name}.jsonl")] for name in "ab")
    bootstrap = Bootstrap(spark, application(), settings, files)
    assert not bootstrap.is_done
    checkpoint = CheckpointFolder(spark, settings.checkpoint)
    write_identity(checkpoint.below("generation-1"), identity(application(), [], 1), 1)
    with patch.object(Rebuild, "activate", lambda _, generation, now_ms: activate(checkpoint, generation, now_ms, 1)):
        bootstrap.activate(Rebuild.__new__(Rebuild), "generation-1", 2)
    assert Bootstrap(spark, application(), settings, files).is_done
    with pytest.raises(StateExistsError):
        Bootstrap(spark, application(), settings, others)


def test_a_path_without_events_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no events", encoding="utf-8")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "none.jsonl"):
        with pytest.raises(NoHistoryError):
            history_files(spark, [str(path)])


def test_files_have_an_order(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/2.json", "a/1.parquet", "a/_SUCCESS", "a/.1.parquet.crc", "_temporary/c.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}\n", encoding="utf-8")
    files = history_files(spark, [str(tmp_path / "b.jsonl"), f"{tmp_path}/"])
    names = [file.path.removeprefix(f"{tmp_path}/") for file in files]
    assert names == ["b.jsonl", "a/1.parquet", "a/2.json", "b.jsonl"]
    assert {file.size for file in files} == {3}
