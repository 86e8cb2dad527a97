"""Asks the parts of the loop for their figures: all at once, each within a deadline and a size."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import ClientError, ClientSession, ClientTimeout

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


class Scraped(NamedTuple):
    """What a part told, or why it did not."""

    address: Address
    samples: Samples | None
    why: str | None = None


async def scrape(session: ClientSession, addresses: Iterable[Address]) -> tuple[Scraped, ...]:
    """What each part tells now, in the order of the addresses. Raises nothing: a part that is away is told as such."""
    return tuple(await asyncio.gather(*(_one(session, address) for address in addresses)))


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
    return str(error)[:200] or type(error).__name__
