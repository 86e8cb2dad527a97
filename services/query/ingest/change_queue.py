"""Passes changes from the ingest thread to the event loop: in batches, in order, with backpressure."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from services.query.ingest.ingestion import ChangeListener
    from services.query.store import Change

CAPACITY = 50_000
"""The number of changes that may wait for the event loop before the thread waits for it."""
WAIT_S = 0.1


class ChangeQueue:
    """Filled by the thread, emptied by the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, listener: ChangeListener, stopping: Callable[[], bool]) -> None:
        self._loop = loop
        self._listener = listener
        self._stopping = stopping
        self._lock = threading.Lock()
        self._changes: list[Change] = []
        self._taken = threading.Event()
        self._notified = threading.Event()
        self._notified.set()

    def put(self, changes: list[Change]) -> None:
        """Add changes that readers see now. Waits while the queue is full, and briefly while the listener runs.

        Thread and listener would otherwise take turns with the interpreter, and a thousand watchers of one key would
        be notified later.
        """
        if not changes:
            return
        with self._lock:
            scheduled = bool(self._changes)
            self._changes += changes
            full = len(self._changes) > CAPACITY
            self._taken.clear()
        if not scheduled:
            self._loop.call_soon_threadsafe(self._notify)
        self._notified.wait(WAIT_S)
        if full:
            self._wait(self._taken)

    def call(self, function: Callable[[], None]) -> bool:
        """Call the function on the event loop, after the changes that were put before; False if the service stops.

        Raises what the function raises.
        """
        returned = threading.Event()
        failed: list[Exception] = []

        def run() -> None:
            try:
                function()
            except Exception as error:  # noqa: BLE001 (raised again in the thread that waits)
                failed.append(error)
            returned.set()

        self._loop.call_soon_threadsafe(run)
        completed = self._wait(returned)
        if failed:
            raise failed[0]
        return completed

    def _notify(self) -> None:
        with self._lock:
            changes, self._changes = self._changes, []
        self._taken.set()
        self._notified.clear()
        try:
            self._listener.changed(changes)
        finally:
            self._notified.set()

    def _wait(self, event: threading.Event) -> bool:
        while not event.wait(WAIT_S):
            if self._stopping():
                return False
        return True
