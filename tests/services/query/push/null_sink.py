"""A sink that sends nothing, for tests of other dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.query.push.notification import Notification
    from services.query.push.subscription import StoreScan, Subscription


class NullSink:
    """Implements NotificationSink. It stores the notifications."""

    def __init__(self) -> None:
        self.notifications: list[Notification] = []

    def put(self, _: Subscription, notification: Notification) -> None:
        self.notifications.append(notification)

    def put_first(self, _: Subscription, notifications: Iterable[Notification]) -> None:
        self.notifications += notifications

    def start(self, subscription: Subscription, offsets: dict[int, int]) -> None:
        """Do nothing."""

    def scan(self, scan: StoreScan) -> None:
        """Do nothing."""

    def reset(self) -> None:
        """Do nothing."""
