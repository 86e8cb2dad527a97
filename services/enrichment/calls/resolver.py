"""Resolves names to the addresses that may be called."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver, ResolveResult

from services.enrichment.calls.addresses import AddressRefusedError, may_be_called, parsed

if TYPE_CHECKING:
    from collections.abc import Collection

    from services.enrichment.calls.addresses import Network


class CheckedResolver(AbstractResolver):
    """Filters the addresses of another resolver. The connection uses one of these addresses without resolving again."""

    def __init__(self, resolver: AbstractResolver, allowed: Collection[Network]) -> None:
        self._resolver = resolver
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the allowed addresses of a host. Raises AddressRefusedError, or OSError if it has no address."""
        resolved = await self._resolver.resolve(host, port, family)
        if not resolved:
            raise OSError(f"{host} has no address")
        passed = [result for result in resolved if may_be_called(parsed(result["host"]), self._allowed)]
        if not passed:
            raise AddressRefusedError(resolved[0]["host"], host)
        return passed

    async def close(self) -> None:
        """Close the other resolver."""
        await self._resolver.close()
