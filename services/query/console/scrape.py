"""Asks the parts of the loop for their figures: all at once, each within a deadline and a size."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Collection
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout
from yarl import URL

from services.query.console.samples import Samples, samples

if TYPE_CHECKING:
    from collections.abc import Iterable

WITHIN = ClientTimeout(total=2.0)
LARGEST = 4 * 1024 * 1024
"""Bytes of an answer. A job's is the longest, with some 100 KB."""
OK = 200


class Address(NamedTuple):
    """Where a part answers, and what kind of part it is: job, enrichment, query, derive."""

    kind: str
    url: str


Hosts = Callable[[str, int], Awaitable[Collection[str]]]
"""The IP addresses of a host."""


class Scraped(NamedTuple):
    """What a part told, or why it did not."""

    address: Address
    samples: Samples | None
    why: str | None = None


async def addresses_of(host: str, port: int) -> Collection[str]:
    """Those that this machine's resolver knows, in a fixed order."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return sorted({str(one[4][0]) for one in found})


async def instances(address: Address, hosts: Hosts) -> list[Address]:
    """As many addresses as the host has: a name may stand for all instances of a service, as in compose.

    A name with an address of each family, such as localhost, is one instance.
    """
    url = URL(address.url)
    if url.scheme != "http" or url.host is None or url.port is None:
        return [address]
    try:
        found = await hosts(url.host, url.port)
    except OSError:  # the question itself tells why
        return [address]
    family = max({ip_address(one).version for one in found}, key=lambda version: _count(found, version), default=4)
    same = [one for one in found if ip_address(one).version == family]
    return [Address(address.kind, str(url.with_host(one))) for one in same] if len(same) > 1 else [address]


def _count(found: Collection[str], version: int) -> int:
    return sum(ip_address(one).version == version for one in found)


async def scrape(
    session: ClientSession, addresses: Iterable[Address], hosts: Hosts = addresses_of
) -> tuple[Scraped, ...]:
    """What each part tells now, in the order of the addresses. Raises nothing: a part that is away is told as such."""
    spread = await asyncio.gather(*(instances(address, hosts) for address in addresses))
    return tuple(await asyncio.gather(*(_one(session, address) for found in spread for address in found)))


async def _one(session: ClientSession, address: Address) -> Scraped:
    try:
        text = await _text(session, f"{address.url.rstrip('/')}/metrics")
        return Scraped(address, await asyncio.to_thread(samples, text))
    except TimeoutError:
        return Scraped(address, None, f"no answer within {WITHIN.total:g} s")
    except (ClientError, OSError) as error:
        return Scraped(address, None, _told(error))
    except ValueError as error:
        return Scraped(address, None, f"answers, but not with figures: {_told(error)}")


async def _text(session: ClientSession, url: str) -> str:
    async with session.get(url, timeout=WITHIN, allow_redirects=False) as response:
        if response.status != OK:
            raise ValueError(f"status {response.status}")
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > LARGEST:
                raise ValueError(f"more than {LARGEST} bytes")
        return body.decode()


def _told(error: Exception) -> str:
    if isinstance(error, ClientConnectorError):  # its own words repeat the address, twice
        cause = error.os_error
        number = cause.errno or 0  # that of an unknown name is negative, and of another list
        return os.strerror(number) if number > 0 else cause.strerror or str(cause)
    return str(error)[:200] or type(error).__name__
