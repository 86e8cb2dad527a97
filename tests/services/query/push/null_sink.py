"""An outbox from which nothing goes, for tests that look at something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.query.push.notification import Notification
    from services.query.push.store_scanner import StoreScan
    from services.query.push.subscription import Subscription


class Nowhere:
    """Implements Outbox. It holds what was put."""

    def __init__(self) -> None:
        self.notices: list[Notification] = []

    def put(self, _: Subscription, notice: Notification) -> None:
        self.notices.append(notice)

    def put_first(self, _: Subscription, notices: Iterable[Notification]) -> None:
        self.notices += notices

    def begin(self, subscription: Subscription, reached: dict[int, int]) -> None:
        """Nobody is told."""

    def read(self, reading: StoreScan) -> None:
        """Nothing is read."""

    def lose(self) -> None:
        """Nobody is told."""
