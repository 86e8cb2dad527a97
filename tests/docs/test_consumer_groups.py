"""The consumer groups that docs/reference/wire.md lists are the groups that the code uses."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from contracts import Suite
from contracts.records.named_states import named_in
from examples.flights.application import app as flights
from examples.weather.application import notifying
from services.derive.settings import DeriveSettings
from services.enrichment.settings import EnrichmentSettings
from services.query.cluster.cluster import group_name
from services.query.settings import QuerySettings
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.values import GroupOffset
from services.runtime.topic_owners import TopicOwners
from services.sink.service import groups as sink_groups
from services.sink.settings import SinkSettings
from spark_app.lifecycle import history_writer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from contracts.settings import KafkaSettings
    from services.runtime.kafka.interfaces import Admin
    from services.runtime.kafka.values import Partition

PAGE = (Path(__file__).parents[2] / "docs/reference/wire.md").read_text(encoding="utf-8")


class RecordingAdmin:
    """Notes the groups whose offsets are read or committed."""

    def __init__(self, *_: object) -> None:
        self.groups: set[str] = set()

    def committed(self, group: str, partitions: Collection[Partition], *_: object) -> Mapping[Partition, GroupOffset]:
        self.groups.add(group)
        return dict.fromkeys(partitions, GroupOffset(-1))

    def commit(self, group: str, *_: object) -> bool:
        self.groups.add(group)
        return True

    commit_async = commit

    def close(self) -> None: ...


def documented(column: int, suite: Suite) -> dict[str, set[str]]:
    """Return the groups of each process in a column of the table, for the applications of a suite."""
    (section,) = re.findall(r"^## Consumer groups\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    rows = [re.split(r" ?\| ?", line) for line in re.findall(r"^\| `.*", section, re.MULTILINE)]
    names = {
        "worker": [{"application": application.name} for application in suite.applications if application.enrichments],
        "worker, each webhook": [
            {"application": application.name, "alerts": alerts.name}
            for application in suite.applications
            for alerts in application.alerts
            if alerts.webhook
        ],
        "derive": [
            {"application": application.name} for application in suite.applications if application.derived_names
        ],
        "sink, each state": [{"store": "redis", "state": name} for name in named_in(suite)],
        "query": [{"applications": "-".join(application.name for application in suite.applications)}],
        "bootstrap": [{"events": application.topics.events} for application in suite.applications],
    }
    found: dict[str, set[str]] = {}
    for row in rows:
        process = re.sub(r"`|stateloop |\[|\]\(\S*\)", "", row[1])
        found[process] = {
            re.sub(r"<(\w+)>", lambda match, filled=filled: filled[match[1]], (row[column] or row[2]).strip("`"))
            for filled in names.get(process, [{}])
        }
    return found


def used(suite: Suite, group: str | None, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Return the groups of each process by its code, with this STATELOOP_GROUP."""
    progress, owners, history = (RecordingAdmin() for _ in range(3))
    JobProgress(cast("Admin", progress), "snapshots").record(datetime.now(UTC), 1, {0: 1})
    TopicOwners(suite.applications[0], cast("Admin", owners), print, lambda _: None).claim()
    monkeypatch.setattr(history_writer, "KafkaAdmin", lambda *_: history)
    monkeypatch.setattr(history_writer, "TransactionalKafkaProducer", lambda *_: type("", (), {"begin": print})())
    enrichment = EnrichmentSettings(application="", group=group)
    for application in suite.applications:
        history_writer.HistoryWriter(cast("KafkaSettings", enrichment), application.topics.events)
    sink = SinkSettings.model_validate({"application": "", "sink_url": "redis://host", "group": group})
    return {
        "worker": set(enrichment.groups(suite)),
        "worker, each webhook": set(enrichment.webhooks(suite)),
        "derive": set(DeriveSettings(application="", group=group).groups(suite)),
        "sink, each state": set(sink_groups(sink, suite).values()),
        "query": {group_name(QuerySettings(application="", group=group), suite)},
        "job": progress.groups,
        "topics, job": owners.groups,
        "bootstrap": history.groups,
    }


SINGLE, OF_WEBHOOK, SEVERAL = Suite(flights), Suite(notifying), Suite(flights, notifying)


@pytest.mark.parametrize(
    ("suite", "group", "column"),
    [
        (SINGLE, None, 2),
        (OF_WEBHOOK, None, 2),
        (SEVERAL, None, 2),
        (SINGLE, "G", 3),
        (OF_WEBHOOK, "G", 3),
        (SEVERAL, "G", 4),
    ],
)
def test_the_groups_of_the_table_are_those_of_the_code(
    suite: Suite, group: str | None, column: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert documented(column, suite) == used(suite, group, monkeypatch)
