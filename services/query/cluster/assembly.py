"""Makes an instance one of the cluster, from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.named_states import named
from services.query.cluster.announcements import KafkaAnnouncements
from services.query.cluster.cluster import Cluster, Links
from services.query.cluster.group import KafkaMembership
from services.query.cluster.instance import Instance
from services.query.cluster.leases import Terms

if TYPE_CHECKING:
    from contracts import Application
    from services.query.cluster.instance import Surroundings
    from services.query.cluster.membership import Identity
    from services.query.settings import QuerySettings

SILENCE = 1.25
"""Of a lease: others wait a quarter longer than it lasts, so that clocks may go a little apart."""
OFTEN = 4
"""Announcements in the time of a lease."""


def joined(settings: QuerySettings, application: Application, me: Identity, around: Surroundings) -> Cluster:
    """The cluster with this instance in it; it joins when it runs."""
    lease, group = settings.lease.total_seconds(), settings.group or f"{application.name}-query"
    membership = KafkaMembership(
        settings.client(),
        group=group,
        instance=me.instance,
        session=settings.session_timeout.total_seconds(),
        topics={state.topic: state.name for state in named(application).values()},
    )
    announcements = KafkaAnnouncements(
        settings.client(), topic=application.topics.instances, group=group, patience=lease
    )
    instance = Instance(me, Terms(lease, lease * SILENCE), around, settings.replicas)
    return Cluster(instance, Links(membership, announcements, around.following), lease / OFTEN)
