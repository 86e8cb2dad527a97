"""The rights that each part needs on the brokers, by the declaration of the applications: `stateloop acls`."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from contracts.records.named_states import named_in
from contracts.settings import read
from services.derive.settings import DeriveSettings
from services.derive.topics import names as derive_topics
from services.enrichment.settings import EnrichmentSettings
from services.query.cluster.cluster import group_name
from services.query.settings import QuerySettings
from services.runtime.job_progress import GROUP as PROGRESS
from services.runtime.topic_owners import GROUP as OWNERS
from services.runtime.topic_owners import outputs
from services.sink.service import groups as sink_groups
from services.sink.settings import SinkSettings
from spark_app.topics.identity import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from contracts import Application, Suite

OWN_GROUPS = "stateloop"
"""The beginning of the groups of Stateloop itself: those with metadata, and those of readers, which join none."""


class Part(StrEnum):
    """What has a login of its own."""

    TOPICS = "topics"
    JOB = "job"
    WORKER = "worker"
    DERIVE = "derive"
    SINK = "sink"
    QUERY = "query"
    TABLE = "table"
    REDRIVE = "redrive"


class Acl(NamedTuple):
    """A right to do one operation on one topic or group, or on all whose names begin so."""

    operation: str
    kind: str
    name: str
    is_prefix: bool = False


def acls(part: Part, suite: Suite) -> list[Acl]:
    """Return the rights of a part, each once. The settings of the part name its groups. Raises InvalidSettingsError.

    The rights to read and to write imply that to describe.
    """
    found = dict.fromkeys([Acl("Describe", "group", OWN_GROUPS, is_prefix=True), *RIGHTS[part](suite)])
    implied = {acl._replace(operation="Describe") for acl in found if acl.operation in ("Read", "Write")}
    return [acl for acl in found if acl not in implied]


def commands(part: Part, suite: Suite, kafka: str, principal: str) -> Iterator[str]:
    """Yield the commands of Kafka that grant the rights of a part: one for each operation on topics, or on groups."""
    granted: dict[tuple[str, str, bool], list[str]] = {}
    for acl in acls(part, suite):
        granted.setdefault((acl.kind, acl.operation, acl.is_prefix), []).append(acl.name)
    start = f"kafka-acls.sh --bootstrap-server {kafka} --command-config admin.properties --add"
    for (kind, operation, is_prefix), names in sorted(granted.items()):
        pattern = " --resource-pattern-type prefixed" * is_prefix
        listed = "".join(f" --{kind} {shlex.quote(name)}" for name in sorted(names))
        yield f"{start} --allow-principal {shlex.quote(principal)} --operation {operation}{pattern}{listed}"


def _topics(operation: str, *names: str) -> Iterator[Acl]:
    return (Acl(operation, "topic", name) for name in names)


def _groups(*names: str) -> Iterator[Acl]:
    return (Acl("Read", "group", name) for name in names)


def _creator(suite: Suite) -> Iterator[Acl]:
    """Creates the topics, and claims the outputs: a committed offset needs the right to read its topic."""
    names = [topic.name for topic in suite.catalogue()]
    for operation in ("Create", "Describe", "DescribeConfigs"):
        yield from _topics(operation, *names)
    for application in suite.applications:
        yield from _topics("Read", *outputs(application))
    yield from _groups(OWNERS)


def _job(suite: Suite) -> Iterator[Acl]:
    for application in suite.applications:
        topics, read_topics = application.topics, sources(application)
        yield from _topics("DescribeConfigs", *read_topics)
        yield from _topics("Read", *read_topics, *outputs(application))
        yield from _topics("Write", topics.snapshots, topics.dead_letters)
        if not topics.replay:
            yield from _topics("Write", read_topics[-1])  # heartbeats
    for application, raw in suite.raw_sources():
        for operation in ("Read", "DescribeConfigs"):
            yield from _topics(operation, raw.topic)
        yield from _topics("Write", application.topics.events, application.topics.dead_letters)
    yield from _groups(OWNERS, PROGRESS)


def _worker(suite: Suite) -> Iterator[Acl]:
    settings = read(EnrichmentSettings)
    for group, application in settings.groups(suite).items():
        topics = application.topics
        yield from _member(application, group, topics.snapshots)
        yield from _topics("Write", topics.feedback, topics.dead_letters)
    for group, (application, alerts, _) in settings.webhooks(suite).items():
        yield from _member(application, group, application.topics.derived(alerts.name))
        yield from _topics("Write", application.topics.dead_letters)


def _derive(suite: Suite) -> Iterator[Acl]:
    for group, application in read(DeriveSettings).groups(suite).items():
        topics = application.topics
        written = [topics.derived(name) for name in application.derived_names]
        yield from _member(application, group, topics.snapshots)
        yield from _topics("Write", *written, topics.dead_letters)
        if application.reads_tables:
            yield from _topics("Read", *derive_topics(application))


def _sink(suite: Suite) -> Iterator[Acl]:
    settings = read(SinkSettings)
    groups = sink_groups(settings, suite)
    for name, (application, state) in settings.states(suite).items():
        yield from _member(application, groups[name], state.topic)
        yield from _topics("Write", application.topics.dead_letters)


def _query(suite: Suite) -> Iterator[Acl]:
    announcements = suite.applications[0].topics.instances
    read_topics = [state.topic for state in named_in(suite).values()]
    yield from _topics("Describe", *(topic.name for topic in suite.catalogue()))
    yield from _topics("DescribeConfigs", *read_topics)
    yield from _topics("Read", *read_topics, announcements, *(one.topics.dead_letters for one in suite.applications))
    yield from _topics("Write", announcements, *_tables(suite))
    yield from _groups(group_name(read(QuerySettings), suite))


def _table(suite: Suite) -> Iterator[Acl]:
    for operation in ("Read", "Write"):
        yield from _topics(operation, *_tables(suite))
    for application in suite.applications:
        if application.tables:
            yield from _topics("Describe", *outputs(application))  # it checks their owners


def _redrive(suite: Suite) -> Iterator[Acl]:
    for application in suite.applications:
        topics = application.topics
        sent_again = [topics.events, topics.feedback, *(raw.topic for raw in application.raw)]
        alerts = [topics.derived(declared.name) for declared in application.alerts if declared.webhook]
        yield from _topics("Read", topics.dead_letters, *sent_again, *alerts)
        yield from _topics("Write", *sent_again)


def _member(application: Application, group: str, topic: str) -> Iterator[Acl]:
    """A member of a group, which also checks the owners of the outputs."""
    yield from _topics("Read", topic)
    yield from _topics("Describe", *outputs(application))
    yield from _groups(group)


def _tables(suite: Suite) -> list[str]:
    return [application.topics.table(table) for application in suite.applications for table in application.tables]


RIGHTS: Mapping[Part, Callable[[Suite], Iterator[Acl]]] = {
    Part.TOPICS: _creator,
    Part.JOB: _job,
    Part.WORKER: _worker,
    Part.DERIVE: _derive,
    Part.SINK: _sink,
    Part.QUERY: _query,
    Part.TABLE: _table,
    Part.REDRIVE: _redrive,
}
