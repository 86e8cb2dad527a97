"""What the follower's thread hands to the event loop: many things at a time, in order, and never more than it takes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from services.query.ingest.ingestion import Listener
    from services.query.store.entry import Change

MOST = 50_000
"""How many changes may wait for the event loop, before the thread waits for it."""
PATIENCE_S = 0.1


class Outbox:
    """Written by the thread, emptied by the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, listener: Listener, stopping: Callable[[], bool]) -> None:
        self._loop = loop
        self._listener = listener
        self._stopping = stopping
        self._lock = threading.Lock()
        self._changes: list[Change] = []
        self._taken = threading.Event()
        self._told = threading.Event()
        self._told.set()

    def add(self, changes: list[Change]) -> None:
        """Readers see these now. Waits while the event loop is far behind, and a little while it tells of others.

        Both at once would take turns with the interpreter, and a thousand who watch one key would be told later.
        """
        if not changes:
            return
        with self._lock:
            called = bool(self._changes)
            self._changes += changes
            full = len(self._changes) > MOST
            self._taken.clear()
        if not called:
            self._loop.call_soon_threadsafe(self._hand_over)
        self._told.wait(PATIENCE_S)
        if full:
            self._wait(self._taken)

    def ask(self, done: Callable[[], None]) -> bool:
        """Have this done in the event loop, after what was handed over before; False when it stops meanwhile.

        Raises what it raises.
        """
        answered = threading.Event()
        failed: list[Exception] = []

        def do() -> None:
            try:
                done()
            except Exception as error:  # noqa: BLE001 (the thread that waits is told, and ends of it)
                failed.append(error)
            answered.set()

        self._loop.call_soon_threadsafe(do)
        there = self._wait(answered)
        if failed:
            raise failed[0]
        return there

    def _hand_over(self) -> None:
        with self._lock:
            changes, self._changes = self._changes, []
        self._taken.set()
        self._told.clear()
        try:
            self._listener.changed(changes)
        finally:
            self._told.set()

    def _wait(self, event: threading.Event) -> bool:
        while not event.wait(PATIENCE_S):
            if self._stopping():
                return False
        return True
