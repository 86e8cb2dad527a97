"""The addresses that a worker may call: those of the public internet, and the networks of its settings."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

Network = IPv4Network | IPv6Network

TRANSLATED = ip_network("64:ff9b::/96")
"""IPv6 addresses that a gateway makes an IPv4 address of, their last four bytes (RFC 6052)."""

SPECIAL = tuple(
    ip_network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20", "64:ff9b:1::/48")
)
"""Further networks that are not public: some of Python's versions omit the first and the last two (RFC 6890, RFC 9637,
RFC 8215: a gateway may take the IPv4 address from any of four places); a relay of 6to4 (RFC 7526); and the metadata
address of a cloud, which is public by its number."""


class AddressRefusedError(OSError):
    """A name led to an address that may not be called. An OSError, for that is what a failed connection is."""

    def __init__(self, address: str, host: str = "") -> None:
        network = parsed(address)
        super().__init__(
            f"the address {address}{' of ' * bool(host)}{host} is not public: to allow it, set "
            f"""STATELOOP_ALLOWED_NETWORKS='["{network}"]', or name a network that has it"""
        )
        self.address = address


def parsed(address: str) -> IPv4Address | IPv6Address:
    """An address as a resolver or a socket writes it, without the zone of a link-local one."""
    return ip_address(address.partition("%")[0])


def check(address: str, allowed: Collection[Network]) -> None:
    """Raise AddressRefusedError for an address that is neither public nor in a network that is allowed."""
    ip_address = parsed(address)
    if not may_be_called(ip_address, allowed):
        raise AddressRefusedError(str(ip_address))


def may_be_called(address: IPv4Address | IPv6Address, allowed: Collection[Network]) -> bool:
    """Return whether an address is public or allowed; for one that embeds an IPv4 address, whether that one is."""
    carried = _carried(address)
    if carried is not None:
        return may_be_called(carried, allowed)
    return _is_public(address) or any(address in network for network in allowed)


def _carried(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to an IPv6 address end at, if they do."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address in TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    """Private, shared (CGNAT), loopback, link-local, unique-local, documentation and unspecified are not global."""
    site_local = isinstance(address, IPv6Address) and address.is_site_local
    special = any(address in network for network in SPECIAL)
    return address.is_global and not (address.is_multicast or address.is_reserved or site_local or special)
