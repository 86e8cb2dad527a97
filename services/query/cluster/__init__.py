"""The cluster: which instance answers for which partition.

Each instance is a member of a Kafka consumer group, which assigns the partitions, and announces itself in a topic that
all instances read in one order. From these announcements each instance computes the same leases: the right to answer
for a partition. `Routing` is the interface for lookups; `build_cluster` returns its implementation.
"""

from services.query.cluster.cluster import Cluster, build_cluster
from services.query.cluster.identity import InstanceFolder
from services.query.cluster.instance import InstanceDependencies
from services.query.cluster.membership import InstanceIdentity
from services.query.cluster.routing import Member, PartitionStatus, Role, Routing, StateRoles, roles_of
from services.query.cluster.window_closer import WindowCloser

__all__ = [
    "Cluster",
    "InstanceDependencies",
    "InstanceFolder",
    "InstanceIdentity",
    "Member",
    "PartitionStatus",
    "Role",
    "Routing",
    "StateRoles",
    "WindowCloser",
    "build_cluster",
    "roles_of",
]
