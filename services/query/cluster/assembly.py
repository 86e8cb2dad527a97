"""Builds the cluster with this instance in it, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.records.named_states import named_in
from services.query.cluster.announcements import KafkaAnnouncements
from services.query.cluster.cluster import Cluster, ClusterDependencies
from services.query.cluster.group import KafkaGroupMember
from services.query.cluster.instance import Instance
from services.query.cluster.leases import LeaseTiming

if TYPE_CHECKING:
    from contracts import Suite
    from services.query.cluster.instance import InstanceDependencies
    from services.query.cluster.membership import InstanceIdentity
    from services.query.settings import QuerySettings
    from services.runtime.kafka.interfaces import Kafka

SILENCE_PER_LEASE = 1.25
"""Others wait a quarter longer than a lease lasts, so that clocks may drift a little."""
ANNOUNCEMENTS_PER_LEASE = 4


def group_name(settings: QuerySettings, suite: Suite) -> str:
    """Return the consumer group of the instances."""
    return settings.group or f"{'-'.join(one.name for one in suite.applications)}-query"


def build_cluster(
    settings: QuerySettings, suite: Suite, me: InstanceIdentity, dependencies: InstanceDependencies, kafka: Kafka
) -> Cluster:
    """Return the cluster with this instance in it, which joins when it runs. An event loop runs already.

    The instances of a suite announce themselves in the topic of its first application.
    """
    lease, group = settings.lease.total_seconds(), group_name(settings, suite)
    member = KafkaGroupMember(
        kafka,
        group=group,
        instance=me.instance,
        session=settings.session_timeout.total_seconds(),
        topics={state.topic: state.name for state in named_in(suite).values()},
    )
    announcements = KafkaAnnouncements(kafka, topic=suite.applications[0].topics.instances, group=group, timeout=lease)
    instance = Instance(me, LeaseTiming(lease, lease * SILENCE_PER_LEASE), dependencies, settings.replicas)
    clients = ClusterDependencies(member, announcements, dependencies.ingestion)
    return Cluster(instance, clients, lease / ANNOUNCEMENTS_PER_LEASE)
