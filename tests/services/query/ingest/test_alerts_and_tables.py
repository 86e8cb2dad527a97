"""Records of alerts and of reference tables, as updates of their named states."""

from __future__ import annotations

from datetime import UTC, datetime

from contracts.alerts.evaluation import Evaluation, Rules
from contracts.records.named_states import named
from contracts.records.record import Record
from contracts.records.tables import TableRow, encode_row
from contracts.wire import Snapshot
from contracts.wire.window_key import window_key
from services.query.ingest.decode import UpdateDecoder
from tests.services.derive.alerted import APP, LIMITS, Limit

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)


def test_the_alerts_of_one_snapshot_are_in_the_order_of_their_records() -> None:
    """A changed rule writes another record for the same snapshot: the later offset is the newer version."""
    (alerts,), state = APP.alerts, named(APP)["too_high"]
    snapshot = Snapshot(device_id="a", first_seen=NOON, epoch=7, version=3, as_of=NOON, state={"value": 9})
    decoder, former, found = UpdateDecoder(state), None, []
    for version, high in ((4, 5), (6, 8)):
        rules = Rules({"r": TableRow(version, Limit(high=high, low=high), None, NOON)})
        former = Evaluation(alerts, rules, 11, lambda *_: None).evaluate(former, snapshot)
        assert former is not None
        record = Record("too_high", 1, 20 + version, NOON_MS, window_key("a", NOON), former.encode())
        found.append(decoder.decode(record))
    (first, second) = (update.entry for update in found if update is not None)
    assert first is not None
    assert second is not None
    assert (first.window_start, first.version, first.event_time) == (NOON_MS, 24, NOON_MS)
    assert second.order > first.order
    assert former is not None
    assert [alert.status for alert in former.alerts] == ["closed", "open"]


def test_a_row_has_its_offset_as_version_and_the_time_of_its_record() -> None:
    decoder = UpdateDecoder(named(APP)["limits"])
    value = encode_row(LIMITS, "r", Limit(high=5, low=5).model_dump_json(), "ann")
    update = decoder.decode(Record("limits", 1, 42, NOON_MS, b"r", value))
    assert update is not None
    assert update.entry is not None
    assert (update.key, update.entry.order, update.entry.event_time) == ("r", (0, 0, 42), NOON_MS)
    removed = decoder.decode(Record("limits", 1, 43, NOON_MS, b"r", None))
    assert removed is not None
    assert (removed.key, removed.entry) == ("r", None)
