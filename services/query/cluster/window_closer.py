"""Closes windows by the recorded progress of the job.

Neither the clock nor a record shows that a window is over: the job may be down, or read a backlog. Its progress does,
when this instance has read the snapshots before the recorded offsets.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from services.query.store import StatePartition
from services.query.store.buckets import complete_watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contracts.model.named_state import NamedState
    from services.runtime.job_progress import Published

PROGRESS_S = 1.0
"""The pause between two looks at the progress of the job."""


class ClosableStore(Protocol):
    """The part of a store that closes windows."""

    def close_windows(self, watermark: int) -> None:
        """See `Store.close_windows`."""


class WindowCloser:
    """Closes the windows of these states. `read` returns the progress of the job of a state, by partition.

    `has_read` returns whether this instance has read the partitions that it follows up to these offsets. It waits for
    progress up to which it has not read, and takes no newer one until then: with a constant lag it would reach none.
    """

    def __init__(
        self,
        states: Iterable[NamedState],
        stores: Mapping[str, ClosableStore],
        read: Callable[[NamedState], Mapping[int, Published]],
        has_read: Callable[[Mapping[StatePartition, int]], bool],
    ) -> None:
        self._states = tuple(states)
        self._stores = stores
        self._read = read
        self._has_read = has_read
        self._pending: dict[str, Mapping[int, Published]] = {}

    async def run(self) -> None:
        """Follow the progress of the jobs until cancelled."""
        while True:
            for state in self._states:
                if state.name not in self._pending:
                    self.take(state, await asyncio.to_thread(self._read, state))
                self.close(state)
            await asyncio.sleep(PROGRESS_S)

    def take(self, state: NamedState, published: Mapping[int, Published]) -> None:
        """Wait for this progress, if it is of all partitions of the state."""
        if published.keys() >= set(range(state.partitions)):
            self._pending[state.name] = published

    def close(self, state: NamedState) -> None:
        """Close the windows that are over by the progress that is waited for, if this instance has read up to it."""
        published = self._pending.get(state.name, {})
        ends = {StatePartition(state.name, number): one.offset for number, one in published.items()}
        if published and self._has_read(ends):
            time = min(one.time for one in published.values())
            self._stores[state.name].close_windows(complete_watermark(state, int(time.timestamp() * 1000)))
            del self._pending[state.name]
