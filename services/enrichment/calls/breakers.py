"""The breakers of all APIs: which of them may be called now, for those who begin requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.enrichment.calls.door import Door


class Breakers:
    """Says of each API whether a call would have to wait because the API is down."""

    def __init__(self, breakers: Mapping[str, Door]) -> None:
        self._breakers = breakers

    def is_available(self, api: str) -> bool:
        """Whether a call that began now would be made. A few are when an API may be back, to try it."""
        return not self._breakers[api].blocks

    async def wait_until_available(self, api: str) -> None:
        """Wait until a call that begins then would be made."""
        await self._breakers[api].unblocked()
