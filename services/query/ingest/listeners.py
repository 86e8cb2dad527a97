"""Everybody who is told what the follower did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from services.query.ingest.ingestion import Part
    from services.query.store.entry import Change


class Listeners:
    """A Listener that tells others, in the order in which they were named."""

    def __init__(self) -> None:
        self.on_changed: list[Callable[[Sequence[Change]], None]] = []
        self.on_restarted: list[Callable[[Part], None]] = []

    def changed(self, changes: Sequence[Change]) -> None:
        """See `Listener.changed`."""
        for one in self.on_changed:
            one(changes)

    def restarted(self, part: Part) -> None:
        """See `Listener.restarted`."""
        for one in self.on_restarted:
            one(part)
