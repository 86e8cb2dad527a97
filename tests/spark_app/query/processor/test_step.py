"""A processor in the job's plan: the states of the merge, dead letters with their origins, and answers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import orjson
import pytest

from contracts import Emit, Processor
from contracts.errors import DeclarationError
from contracts.records.decode import Decoder
from contracts.records.fold import Fold, present
from contracts.records.record import RecordError
from contracts.wire import DeadLetter, Snapshot, decode_snapshot
from spark_app.errors import MissingPackageError
from spark_app.query.processor.handle import declared_variables
from spark_app.query.processor.step import PACKAGES, require_packages
from tests import processed
from tests.clicks import NOW, Pairs, application, click_record, hops, random_clicks
from tests.everything import EPOCH
from tests.processed import POISON, HopTallies, PairTallies, Tally, Visits
from tests.same import assert_same
from tests.spark_app.frames import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from contracts import Application
    from contracts.records.record import Record

pytestmark = pytest.mark.spark
tally = {"emit": Emit.BATCH, "processor": Processor(Tally)}


@pytest.mark.parametrize(
    ("merged", "app"),
    [
        (application(), processed.tallies),
        (application(Pairs, deduplicate=False), application(PairTallies, deduplicate=False, **tally)),
        (hops, application(HopTallies, **tally)),
    ],
    ids=["tumbling", "copies", "hopping"],
)
def test_a_processor_gives_the_states_of_the_reducers(
    spark: SparkSession, merged: Application, app: Application
) -> None:
    events = random_clicks(random.randrange(1_000), 1_200)
    fold, refused = folded(merged, events)
    snapshots, dead_letters = published(spark, app, events)
    assert {
        (dead_letter.topic, dead_letter.offset): (dead_letter.reason, dead_letter.detail)
        for dead_letter in dead_letters
    } == refused
    assert snapshots.keys() == fold.windows.keys()
    for window, partial in fold.windows.items():
        expected = present(merged, window, partial, EPOCH)
        assert_same(snapshots[window].model_dump(mode="json"), expected.model_dump(mode="json"))


def test_a_poisonous_record_is_a_dead_letter_with_its_origin(spark: SparkSession) -> None:
    clicks = [
        {"event_id": str(n), "click": str(n), "page": "p", "country": "de", "ts": NOW.isoformat(), "ms": ms}
        for n, ms in enumerate((1, POISON, 3))
    ]
    snapshots, (dead_letter,) = published(
        spark, processed.tallies, [click_record(click, offset) for offset, click in enumerate(clicks)]
    )
    (snapshot,) = snapshots.values()
    assert (snapshot.version, snapshot.state["ms"], snapshot.state["clicks"]) == (2, 4, 2)
    assert (dead_letter.reason, dead_letter.detail) == ("processor_failed", "ValueError: a poisonous click")
    assert (dead_letter.topic, dead_letter.partition, dead_letter.offset, dead_letter.epoch) == ("events", 0, 1, EPOCH)
    assert dead_letter.timestamp == NOW
    assert orjson.loads(dead_letter.head or "")["ms"] == POISON


@pytest.mark.usefixtures("spark")
def test_the_variables_of_a_processor_are_known_before_it_runs() -> None:
    variables = declared_variables(Tally)
    assert {name: [schema.simpleString() for schema in schemas] for name, schemas in variables.items()} == {
        "sums": ["struct<clicks:bigint,timed:bigint,ms:bigint,slowest:bigint,last:bigint>"],
        "timed": ["struct<ts:bigint,ms:bigint>"],
        "countries": ["struct<country:string>", "struct<clicks:bigint>"],
    }


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("name", "schema", "problem"),
    [("stateloop", "n BIGINT", "taken"), ("page", "n BIGINT", "taken"), ("at", "t ARRAY<TIMESTAMP>", "timestamp")],
)
def test_a_variable_that_cannot_be_stored_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, schema: str, problem: str
) -> None:
    declare = Visits.init

    def init(self: Visits, handle: object) -> None:
        declare(self, handle)  # type: ignore[arg-type]
        self.handle.getValueState(name, schema)

    monkeypatch.setattr(Visits, "init", init)
    with pytest.raises(DeclarationError, match=problem):
        declared_variables(Visits)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    require_packages()
    monkeypatch.setitem(PACKAGES, "no.such.module", "no-such-package")
    with pytest.raises(MissingPackageError, match=r"no-such-package: pip install 'stateloop\[processor\]'"):
        require_packages()


def folded(app: Application, events: list[Record]) -> tuple[Fold, dict[tuple[str, int], tuple[str, str | None]]]:
    """The windows of the plain fold, and the refused records."""
    decoder, fold = Decoder(app), Fold(app, EPOCH)
    refused = {}
    for record in events:
        try:
            for delta in decoder.event(record):
                fold.add(delta)
        except RecordError as error:
            refused[record.topic, record.offset] = error.reason.value, error.detail
    return fold, refused


def published(
    spark: SparkSession, app: Application, events: list[Record]
) -> tuple[dict[tuple[str, object], Snapshot], list[DeadLetter]]:
    """The snapshots by window, and the dead letters."""
    rows = run(spark, app, events)
    snapshots = [decode_snapshot(value) for topic, _, value in rows if topic == app.topics.snapshots]
    refused = [DeadLetter.model_validate_json(value) for topic, _, value in rows if topic == app.topics.dead_letters]
    return {snapshot.window: snapshot for snapshot in snapshots}, refused
