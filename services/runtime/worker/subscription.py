"""What a worker reads as a member of its group, and the options of a member."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

from services.runtime.kafka.interfaces import TopicSubscription
from services.runtime.topic_check import TopicCheck
from services.runtime.topic_owners import TopicOwners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from contracts.model.application import Application
    from contracts.settings import WorkerSettings
    from services.runtime.kafka.interfaces import Kafka

log = logging.getLogger(__name__)

GroupProtocol = Literal["classic", "consumer"]
SESSION, SESSION_MS = "session.timeout.ms", 10_000
"""The time after which the group takes the partitions of a killed worker; Kafka's default is 45 s."""
MEMBER: Mapping[GroupProtocol, Mapping[str, str]] = {
    "classic": {"partition.assignment.strategy": "cooperative-sticky", SESSION: str(SESSION_MS)},
    "consumer": {"group.protocol": "consumer"},
}
"""The options of a member, by the rebalance protocol of its group."""


def member_options(client: Mapping[str, str], protocol: GroupProtocol = "classic") -> dict[str, str]:
    """Return the options of a member. The user's, in `client`, replace the defaults."""
    return {**MEMBER[protocol], **client}


def fenced_member_options(client: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a member whose fence relies on its session: the user's session may only be longer."""
    given = client.get(SESSION, "")
    session_ms = max(SESSION_MS, int(given) if given.isdecimal() else 0)
    return {**client, **MEMBER["classic"], SESSION: str(session_ms)}


def subscription(  # noqa: PLR0913  # the parts of a subscription
    settings: WorkerSettings,
    kafka: Kafka,
    application: Application,
    *,
    group: str,
    topics: Sequence[str],
    drain: timedelta,
    options: Mapping[str, str],
) -> TopicSubscription:
    """Return a subscription to the first of these topics.

    All of them must exist, and no other application may own the output topics of this one.
    """
    owners = TopicOwners(application, kafka.admin("topic-owners"), log.warning)
    return TopicSubscription(
        group=group,
        topic=topics[0],
        batch=settings.max_poll_records,
        drain=drain,
        check=TopicCheck(topics, settings.kafka, owners.check),
        options=options,
    )
