"""A producer in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.runtime.kafka.values import Output


class InMemoryProducer:
    """Passes each record to `write`. Implements Producer."""

    async def write(self, output: Output) -> None:
        """Write a record, and return when it is acknowledged."""
        raise NotImplementedError

    async def send(self, outputs: Sequence[Output]) -> Sequence[int]:
        """See `Producer.send`."""
        for output in outputs:
            await self.write(output)
        return [0] * len(outputs)

    def drop_unsent(self) -> None:
        """Have nothing that is not sent."""

    async def close(self) -> None:
        """Close nothing."""
