"""The figures of events through the loop, with a service that answers at once, or never."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import orjson
import pytest

from bench.harness import topics
from bench.harness.jobs import STATELOOP
from bench.harness.oracle import SnapshotDecoder
from bench.query.loop import NotServedError, VisibleEvent, measure_visibility, outside, published

if TYPE_CHECKING:
    from tests.services.broker.embedded import EmbeddedBroker


class Answers:
    """A store client of which each device has the requested number of events, and `more`."""

    def __init__(self, more: int) -> None:
        self.more = more
        self.requested = set[str]()

    def read(self, key: str) -> bytes:
        device, _, query = key.partition("?")
        self.requested.add(device)
        number = int(parse_qs(query)["min_version"][0])
        return orjson.dumps({"value": {"state": {"events": number + self.more}}})


def test_events_near_the_end_of_a_batch_are_counted_apart() -> None:
    events = [
        VisibleEvent("a", 1, 10.0, 0.02),
        VisibleEvent("a", 2, 19.5, 0.7),
        VisibleEvent("b", 1, 21.0, 0.5),
        VisibleEvent("b", 2, 40.0, 0.01),
    ]
    figures = outside(events, [20.0], {})
    assert figures["visible_max_ms"] == 20
    assert figures["max_ms"] == 700


def test_the_time_to_the_topic_and_the_time_from_there_are_measured_apart() -> None:
    events = [VisibleEvent("a", 1, 10.0, 0.5), VisibleEvent("a", 2, 11.0, 0.75)]
    received = [
        (10.125, b'{"device_id":"a","state":{"events":1}}'),
        (10.25, b"no snapshot"),
        (11.5, b'{"device_id":"a","state":{"events":2}}'),
        (11.625, b'{"device_id":"a","state":{"events":2}}'),
    ]
    figures = outside(events, [], published(received, SnapshotDecoder(STATELOOP)))
    assert (figures["snapshot_max_ms"], figures["shown_max_ms"]) == (500, 375)


@pytest.mark.kafka
def test_each_event_is_read(broker: EmbeddedBroker) -> None:
    topics.renew(broker.bootstrap, topics.INPUTS)
    store_client = Answers(0)
    found = measure_visibility(broker.bootstrap, store_client, 0.3)
    assert store_client.requested >= {"probe0", "probe1", "probe2"}
    with topics.Counter(broker.bootstrap, "events") as counter:
        assert counter.count() == len(found)


@pytest.mark.kafka
def test_an_answer_without_the_event_fails_the_run(broker: EmbeddedBroker) -> None:
    topics.renew(broker.bootstrap, topics.INPUTS)
    with pytest.raises(NotServedError, match="event 1 of probe0"):
        measure_visibility(broker.bootstrap, Answers(-1), 0.3)
