"""Who has copies of a partition, and who of those that could answer for it is first: pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from services.query.ingest.ingestion import Part


def ranked(part: Part, instances: Iterable[str]) -> list[str]:
    """The instances in the order in which they stand by for a partition: rendezvous hashing.

    Who leaves or joins changes only the places that it had or gets. Source: Thaler and Ravishankar, 1998.
    """
    return sorted(instances, key=lambda name: (_weight(part, name), name), reverse=True)


def standbys(part: Part, owner: str | None, instances: Collection[str], replicas: int) -> list[str]:
    """Who copies a partition, of which `replicas` instances have it, its owner among them."""
    return ranked(part, (name for name in instances if name != owner))[: replicas - 1]


def first(part: Part, ready: Collection[str], assigned: Collection[str]) -> str | None:
    """Of those who could answer for a partition the one that shall: the owner, or else the first standby."""
    of_group = [name for name in ready if name in assigned]
    return next(iter(ranked(part, of_group or ready)), None)


def _weight(part: Part, instance: str) -> bytes:
    return blake2b(f"{part.state}\0{part.partition}\0{instance}".encode(), digest_size=8).digest()
