"""Orders the instances for a key, by their membership and ownership: pure functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from contracts.wire.partition import partition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


@dataclass(frozen=True)
class Directory:
    """The instances, and who owns which partition of a state. Addresses are as http://host:port."""

    members: tuple[str, ...] = ()
    partitions: Mapping[str, int] = field(default_factory=dict)
    owners: Mapping[tuple[str, int], str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """By address."""

    def owner(self, state: str, key: str) -> str | None:
        """Where the key's owner is, as far as it is known."""
        partitions = self.partitions.get(state)
        return self.owners.get((state, partition(key.encode(), partitions))) if partitions else None

    def of_scheme(self, scheme: str) -> Directory:
        """Without the instances at addresses of another scheme: a token for https is not for http."""
        good = {url for url in self.members if urlsplit(url).scheme == scheme}
        owners = {place: url for place, url in self.owners.items() if url in good}
        return Directory(tuple(url for url in self.members if url in good), self.partitions, owners, self.names)


def candidates(
    directory: Directory, seeds: Sequence[str], suspects: Collection[str], place: tuple[str, str] | None
) -> list[str]:
    """The addresses to try, the best first: the owner, the others, those that were given; suspects after all others."""
    owner = directory.owner(*place) if place else None
    first = [owner] if owner else []
    known = dict.fromkeys([*first, *seeds, *directory.members] if not owner else [*first, *directory.members, *seeds])
    return sorted(known, key=lambda url: url in suspects)


def directory(body: Mapping[str, Any]) -> Directory:
    """What GET /v1/instances tells. Raises KeyError, TypeError or ValueError for anything else."""
    members = tuple(_address(one["url"]) for one in body["instances"])
    owners = {
        (state, number): _address(one["url"])
        for one in body["instances"]
        for state, numbers in one["owns"].items()
        for number in numbers
    }
    names = {_address(one["url"]): str(one["instance"]) for one in body["instances"]}
    return Directory(members, {state: int(count) for state, count in body["partitions"].items()}, owners, names)


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no address of an instance")
    return url.rstrip("/")
