"""Placement: which instances have a replica of a partition, and which of those that are ready answers. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from services.query.store import StatePartition


def rank_instances(partition: StatePartition, instances: Iterable[str]) -> list[str]:
    """Return the instances in their order of preference for the partition, by rendezvous hashing.

    An instance that joins or leaves changes only the ranks that it gets or had. Source: Thaler and Ravishankar, 1998.
    """
    return sorted(instances, key=lambda name: (_weight(partition, name), name), reverse=True)


def select_standbys(
    partition: StatePartition, owner: str | None, instances: Collection[str], replicas: int
) -> list[str]:
    """Return the instances that replicate a partition; `replicas` is their number, the owner included."""
    return rank_instances(partition, (name for name in instances if name != owner))[: replicas - 1]


def select_owner(partition: StatePartition, ready: Collection[str], assigned: Collection[str]) -> str | None:
    """Return the ready instance that should answer: the assigned one, or else the standby of the highest rank."""
    ready_and_assigned = [name for name in ready if name in assigned]
    return next(iter(rank_instances(partition, ready_and_assigned or ready)), None)


def _weight(partition: StatePartition, instance: str) -> bytes:
    return blake2b(f"{partition.state}\0{partition.number}\0{instance}".encode(), digest_size=8).digest()
