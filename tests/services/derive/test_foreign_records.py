"""Records of other programs in the topics of the worker: it goes on, and starts again after them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from contracts.types.key import LARGEST_KEY
from contracts.wire import LARGEST_COUNT
from contracts.wire.window_key import window_key
from services.runtime.job_progress import Published
from tests.services.derive.alert_steps import broker_with, publish
from tests.services.derive.alerted import Limit
from tests.services.derive.crashing import AT

if TYPE_CHECKING:
    from tests.services.derive.crashing import Broker

BEFORE_THE_YEAR_1, AFTER_THE_YEAR_9999 = "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"
FOREIGN = (
    {"device_id": ""},
    {"device_id": "x" * (LARGEST_KEY + 4)},
    {"epoch": LARGEST_COUNT + 1},
    {"version": LARGEST_COUNT + 1},
    {"first_seen": BEFORE_THE_YEAR_1},
    {"first_seen": AFTER_THE_YEAR_9999},
    {"first_seen": "0001-01-01T00:00:00Z"},
    {"first_seen": "9999-12-31T23:59:59Z"},
    {"as_of": BEFORE_THE_YEAR_1},
    {"as_of": AFTER_THE_YEAR_9999},
)


def _broker_with_an_alert() -> Broker:
    broker = broker_with(("r", Limit(high=5, low=5)))
    publish(broker, "a", 1, 7)
    broker.run()
    return broker


def _append_foreign(broker: Broker, topic: str, fields: dict[str, Any]) -> None:
    former = broker.topics[topic][-1]
    broker.append(topic, b"x", orjson.dumps(orjson.loads(former.value or b"") | fields))


def _goes_on(broker: Broker, *, is_live: bool) -> bool:
    """Publish a snapshot; return whether it opens an alert, and whether a worker that starts after it reads to the end.

    The job's progress is that of its first snapshot.
    """
    broker.published = Published(1, AT + timedelta(seconds=1), 0)
    publish(broker, "b", 1, 7)
    broker.run(is_live=is_live)
    broker.run(is_live=is_live)
    opened = window_key("b", AT.replace(minute=0)) in [record.key for record in broker.topics["too_high"]]
    return opened and broker.committed == len(broker.topics["snapshots"])


@pytest.mark.parametrize("is_live", [True, False])
@pytest.mark.parametrize("fields", FOREIGN)
def test_a_foreign_snapshot_stops_no_worker(fields: dict[str, Any], *, is_live: bool) -> None:
    broker = _broker_with_an_alert()
    _append_foreign(broker, "snapshots", fields)
    assert _goes_on(broker, is_live=is_live)


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"x",
        b"\xff@2026-05-01T12:00:00.000000Z",
        b"x@0001-01-01T00:00:00.0+01:00",
        b"x@9999-12-31T23:59:59.9-01:00",
        window_key("x" * 2_000, AT),
    ],
)
@pytest.mark.parametrize("topic", ["snapshots", "too_high"])
def test_a_foreign_tombstone_stops_no_worker(topic: str, key: bytes | None) -> None:
    broker = _broker_with_an_alert()
    broker.append(topic, key, None)
    assert _goes_on(broker, is_live=True)


@pytest.mark.parametrize("fields", FOREIGN)
def test_a_foreign_record_of_the_alerts_stops_no_worker(fields: dict[str, Any]) -> None:
    broker = _broker_with_an_alert()
    _append_foreign(broker, "too_high", fields)
    assert _goes_on(broker, is_live=True)
