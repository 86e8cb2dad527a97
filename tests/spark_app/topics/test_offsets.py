"""The records that show the broker's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contracts import Application, Topics
from contracts.settings import KafkaSettings
from services.runtime.kafka.values import OffsetAt, Partition
from spark_app.topics.identity import TopicIdentity, sources
from spark_app.topics.offsets import SourceOffsets
from tests import everything
from tests.contracts.model.test_suite import PINGS, TRIPS, of

if TYPE_CHECKING:
    from collections.abc import Mapping

NEWEST_MS = {"events": 9, "feedback": 5, "pings": 7}


class Newest:
    """An admin of a broker whose topics' newest records have these times."""

    def __init__(self, *_: object) -> None:
        pass

    def records(self, at: Mapping[Partition, int]) -> Mapping[Partition, OffsetAt]:
        return {partition: OffsetAt(0, NEWEST_MS[partition.topic]) for partition in at}


def enriched(*, replay: bool = False, **options: Any) -> Application:
    return Application(
        name="everything",
        event=everything.Thing,
        state=everything.Everything,
        enrichments=everything.app.enrichments,
        topics=Topics(replay=replay),
        **options,
    )


@pytest.mark.parametrize(
    ("declared", "by_its_topics", "by_its_raw_source"),
    [
        (TRIPS, 9, None),
        (enriched(), 9, None),
        (enriched(raw=(PINGS,)), 5, 7),
        (of("trips", Topics(), raw=(PINGS,)), None, None),
        (enriched(replay=True), None, None),
    ],
)
def test_only_records_that_the_broker_stamps_show_its_clock(
    monkeypatch: pytest.MonkeyPatch, declared: Application, by_its_topics: int | None, by_its_raw_source: int | None
) -> None:
    monkeypatch.setattr("spark_app.topics.offsets.KafkaAdmin", Newest)

    def newest_ms(topics: list[str]) -> int | None:
        found = [TopicIdentity(name, "id", 2) for name in topics]
        return SourceOffsets(KafkaSettings(), declared, found).newest_ms()

    assert newest_ms(sources(declared)) == by_its_topics
    assert newest_ms([raw.topic for raw in declared.raw]) == by_its_raw_source
