"""Scrapes the metrics of all targets concurrently, within a timeout and a size limit."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Collection
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout
from yarl import URL

from services.query.console.samples import Sample, parse_samples

if TYPE_CHECKING:
    from collections.abc import Iterable

WITHIN = ClientTimeout(total=2.0)
LARGEST = 4 * 1024 * 1024
"""The size limit of a response, in bytes. The job's is the largest, with some 100 KB."""
OK = 200


class ScrapeTarget(NamedTuple):
    """The kind of a process (job, enrichment, query, derive) and its base URL."""

    kind: str
    url: str


Hosts = Callable[[str, int], Awaitable[Collection[str]]]
"""The IP targets of a host."""


class ScrapeResult(NamedTuple):
    """The samples of a target, or the error."""

    target: ScrapeTarget
    samples: tuple[Sample, ...] = ()
    error: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether the target answered with valid metrics."""
        return self.error is None

    def of_application(self, name: str) -> ScrapeResult:
        """Return the result with the samples that have the label of this application, or of none."""
        mine = (sample for sample in self.samples if sample.labels.get("application") in {None, name})
        return self._replace(samples=tuple(mine))


def parse_result(target: ScrapeTarget, text: str) -> ScrapeResult:
    """Return the result of a target that answers with this text. Raises ValueError for invalid text."""
    return ScrapeResult(target, parse_samples(text, *target))


async def addresses_of(host: str, port: int) -> Collection[str]:
    """Return the IP addresses of a host, sorted."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return sorted({str(one[4][0]) for one in found})


async def instances(target: ScrapeTarget, hosts: Hosts) -> list[ScrapeTarget]:
    """Return a target for each address of the host: a name may stand for all instances of a service, as in compose.

    A name with one address of each family, such as localhost, is one instance.
    """
    url = URL(target.url)
    if url.scheme != "http" or url.host is None or url.port is None:
        return [target]
    try:
        found = await hosts(url.host, url.port)
    except OSError:  # the scrape reports why
        return [target]
    family = max({ip_address(one).version for one in found}, key=lambda version: _count(found, version), default=4)
    same = [one for one in found if ip_address(one).version == family]
    return [ScrapeTarget(target.kind, str(url.with_host(one))) for one in same] if len(same) > 1 else [target]


def _count(found: Collection[str], version: int) -> int:
    return sum(ip_address(one).version == version for one in found)


async def scrape(
    session: ClientSession, targets: Iterable[ScrapeTarget], hosts: Hosts = addresses_of
) -> tuple[ScrapeResult, ...]:
    """The metrics of each target, in their order. Raises nothing: a target that does not respond is marked as such."""
    spread = await asyncio.gather(*(instances(target, hosts) for target in targets))
    return tuple(await asyncio.gather(*(_one(session, target) for found in spread for target in found)))


async def _one(session: ClientSession, target: ScrapeTarget) -> ScrapeResult:
    try:
        text = await _text(session, f"{target.url.rstrip('/')}/metrics")
        return await asyncio.to_thread(parse_result, target, text)
    except TimeoutError:
        return ScrapeResult(target, error=f"no response within {WITHIN.total:g} s")
    except (ClientError, OSError) as error:
        return ScrapeResult(target, error=_describe(error))
    except ValueError as error:
        return ScrapeResult(target, error=f"invalid metrics: {_describe(error)}")


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


def _describe(error: Exception) -> str:
    if isinstance(error, ClientConnectorError):  # its own words repeat the target, twice
        cause = error.os_error
        number = cause.errno or 0  # that of an unknown name is negative, and of another list
        return os.strerror(number) if number > 0 else cause.strerror or str(cause)
    return str(error)[:200] or type(error).__name__
