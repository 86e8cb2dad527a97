"""A windowed state with an enrichment in real time: the job, a worker, an API and a broker."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import orjson
import pytest

from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import RecordError
from contracts.wire import DeadLetter, Snapshot, decode_snapshot
from contracts.wire.partition import partition
from contracts.wire.window_key import window_key
from services.runtime.kafka.options import record_of
from tests import clicks
from tests.e2e.loop import PARTITIONS, Loop
from tests.e2e.times import now
from tests.services.enrichment.registry import Registry
from tests.spark_app.hosted import HostedJob
from tests.spark_app.running import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.spark]

APPLICATION = "tests.clicks:owned"
PAGES = ("a", "b", "日本")
AGES = {0: 2, 10: 2, 20: 1, 40: 1, 50: 0, 200: 0}
"""Of the clicks, in minutes, with the number of their windows: they start 15 and 45 minutes before the test, and those
of 75 minutes before are over. So none ends while it runs."""


def offset() -> int:
    """Return the minutes of an hour at which windows start."""
    return (now().minute + 15) % 30


@pytest.fixture
def loop(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loop:
    """Give topics of which the broker stamps the records, as in production."""
    monkeypatch.setenv("CLICKS_PREFIX", topics_prefix)
    monkeypatch.setenv("CLICKS_REPLAY", "0")
    monkeypatch.setenv("CLICKS_OFFSET", str(offset()))
    return Loop(broker, topics_prefix, tmp_path, APPLICATION)


async def test_each_window_has_its_clicks_and_its_answer(spark: SparkSession, loop: Loop) -> None:
    for number, (page, age) in enumerate((page, age) for page in PAGES for age in AGES):
        click = {"click": "c", "event_id": str(number), "page": page, "country": "US"}
        times = {"ts": now() - timedelta(minutes=age)}
        loop.send("events", str(number), orjson.dumps(click | times))
    fold, late = folded(loop)
    assert (len(fold.windows), late) == (2 * len(PAGES), 2 * len(PAGES)), "as the ages are chosen"
    job = HostedJob(spark, loop.bootstrap, loop.folder, APPLICATION, loop.environment).start()
    try:
        async with Registry().serving() as registry:
            await asyncio.to_thread(answered, loop, job, registry.url, len(fold.windows))
            assert registry.calls.keys() == {f"/owners/{page}" for page in PAGES}
    finally:
        job.stop()
    letters = [DeadLetter.model_validate_json(message.value() or b"") for message in loop.records("dead_letters")]
    assert Counter(letter.reason for letter in letters) == {"late": late}
    records = loop.records("snapshots")
    snapshots = [decode_snapshot(record.value() or b"") for record in records]
    newest = {snapshot.window: snapshot for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.order)}
    assert newest.keys() == fold.windows.keys()
    for window, snapshot in newest.items():
        versions = sorted(each.version for each in snapshots if each.window == window)
        assert versions == list(range(1, snapshot.version + 1)), "one snapshot for each click, and for the answer"
        assert snapshot.state["clicks"] == fold.windows[window].version == snapshot.version - 1
        answer = snapshot.enrichments["owner"]
        assert (answer.status, (answer.result or {})["name"]) == ("result", f"owner of {snapshot.device_id}")
        assert snapshot.event_offset is None
    assert {record.key() for record in records} == {window_key(*window) for window in newest}
    assert all(record.partition() == home(decode_snapshot(record.value() or b"")) for record in records)


def home(snapshot: Snapshot) -> int:
    """The partition of a state's key."""
    return partition(snapshot.device_id.encode(), PARTITIONS)


def folded(loop: Loop) -> tuple[Fold, int]:
    """The fold of the clicks as the broker has stamped them, and how many are late."""
    application = clicks.owned_by(timedelta(minutes=offset()))
    decoder, fold = Decoder(application), Fold(application)
    late = 0
    for message in loop.records("events"):
        try:
            for delta in decoder.event(record_of(message)):
                fold.add(delta)
        except RecordError:
            late += 1
    return fold, late


def answered(loop: Loop, job: HostedJob, registry: str, windows: int) -> None:
    """Run a worker until each window has an answer."""

    def done() -> bool:
        assert not job.ended(), job.log.read_text(encoding="utf-8")[-3000:]
        snapshots = [decode_snapshot(message.value() or b"") for message in loop.records("snapshots")]
        return len({snapshot.window for snapshot in snapshots if snapshot.enrichments}) == windows

    with loop.worker(registry):
        until(done, f"answers for {windows} windows")
