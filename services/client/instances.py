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
    """The instances, and the owner of each partition. Addresses are as http://host:port."""

    members: tuple[str, ...] = ()
    partitions: Mapping[str, int] = field(default_factory=dict)
    owners: Mapping[tuple[str, int], str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """By address."""

    def owner(self, state: str, key: str) -> str | None:
        """Return the address of the key's owner, if known."""
        partitions = self.partitions.get(state)
        return self.owners.get((state, partition(key.encode(), partitions))) if partitions else None

    def of_scheme(self, scheme: str) -> Directory:
        """Return the directory without addresses of other schemes: a token for https must not go to http."""
        good = {url for url in self.members if urlsplit(url).scheme == scheme}
        owners = {place: url for place, url in self.owners.items() if url in good}
        return Directory(tuple(url for url in self.members if url in good), self.partitions, owners, self.names)


def candidates(
    directory: Directory, seeds: Sequence[str], suspects: Collection[str], place: tuple[str, str] | None
) -> list[str]:
    """Return the addresses to try: the owner, the members, the given ones; suspects come last."""
    owner = directory.owner(*place) if place else None
    first = [owner] if owner else []
    known = dict.fromkeys([*first, *seeds, *directory.members] if not owner else [*first, *directory.members, *seeds])
    return sorted(known, key=lambda url: url in suspects)


def directory(body: Mapping[str, Any]) -> Directory:
    """Return the directory of a response of /v1/instances. Raises KeyError, TypeError or ValueError for others."""
    members = tuple(_address(instance["url"]) for instance in body["instances"])
    owners = {
        (state, number): _address(instance["url"])
        for instance in body["instances"]
        for state, numbers in instance["owns"].items()
        for number in numbers
    }
    names = {_address(instance["url"]): str(instance["instance"]) for instance in body["instances"]}
    return Directory(members, {state: int(count) for state, count in body["partitions"].items()}, owners, names)


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no address of an instance")
    return url.rstrip("/")
