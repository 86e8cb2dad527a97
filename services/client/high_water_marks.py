"""The last version returned for each key and window: none written earlier follows, and no watch yields one twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cachetools import LRUCache

from services.client.answers import Found, Left, NeverSeen, NoWindow, Removed, milliseconds

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from services.client.answers import Answer, Order, Source, T, Update

    Place = tuple[str, str, datetime | None]
    """A state, a key, and the start of a window, None for the newest."""

MAX_YIELDED_KEYS = 100_000


class ReturnedVersion(NamedTuple):
    """A version that was returned, and the record that it was read from: None for the expiry of a window."""

    order: Order
    source: Source | None
    is_closed: bool = False

    def may_follow(self, former: ReturnedVersion) -> bool:
        """Whether this is the same version, or one that was written later.

        Offsets decide, as any version may follow a tombstone. Those of two epochs say nothing, for a topic may have
        been made anew, nor do those of two partitions: then the greater version is the later one.
        """
        own, other = self.source, former.source
        is_comparable = own is not None and other is not None and own[:2] == other[:2] and own != other
        if is_comparable and self.order[1] == former.order[1] and self.order != former.order:
            return self.offset > former.offset
        return self.order >= former.order

    def is_news(self, former: ReturnedVersion) -> bool:
        """Whether a watch that has yielded the former version yields this one."""
        if self.order == former.order:
            return self.is_closed and not former.is_closed
        return self.may_follow(former)

    @property
    def offset(self) -> int:
        """The offset of the record; -1 without one."""
        return -1 if self.source is None else self.source.offset


class HighWaterMarks:
    """The last returned versions of the most recent `keys` keys and windows. With `keys=0` it stores nothing."""

    def __init__(self, keys: int) -> None:
        self._last: LRUCache[Place, ReturnedVersion] = LRUCache(keys)

    def admits(self, answer: Answer[T], *, by_window: bool = False) -> bool:
        """Return whether the result may be returned, and store its version then. A removed key may start again.

        It is compared with the newest result of its key; with `by_window` with the newest result of its window, for
        the results of older windows. After the expiry of a window, none of its earlier versions is admitted.
        """
        if isinstance(answer, NoWindow):
            return True
        place = answer.state, answer.key, answer.window_start if by_window else None
        if isinstance(answer, NeverSeen):
            self._last.pop(place, None)
            return True
        if answer.order is None:
            return True
        new = ReturnedVersion(answer.order, answer.source if isinstance(answer, Found) else None)
        last = self._last.get(place)
        if last is not None and not new.may_follow(last):
            return False
        is_copy = last is not None and last.order == new.order and last.offset > new.offset
        if self._last.maxsize and not is_copy:
            self._last[place] = new
        return True

    def remove(self, removed: Removed, *, by_window: bool) -> None:
        """Forget what a tombstone has removed: its versions may start again.

        Without `by_window` a watch of the newest window has received it: the window before it may follow.
        """
        state, key, window_start = removed.state, removed.key, removed.window_start
        self._last.pop((state, key, window_start), None)
        newest = self._last.get((state, key, None))
        if newest is not None and (not by_window or newest.order[0] == milliseconds(window_start)):
            del self._last[state, key, None]


class YieldedVersions:
    """The last version that one watch has yielded of each key; of the states `by_window`, of each window of a key.

    The `high_water_marks` belong to the whole client.
    """

    def __init__(self, high_water_marks: HighWaterMarks, by_window: Collection[str] = ()) -> None:
        self._high_water_marks = high_water_marks
        self._by_window = by_window
        self._last: LRUCache[Place, ReturnedVersion | type] = LRUCache(MAX_YIELDED_KEYS)
        """Of a key that is gone, the kind of the update."""

    def admits(self, update: Update[T]) -> bool:
        """Return whether to yield the update: after a reconnect an instance may repeat updates."""
        by_window = update.state in self._by_window
        place = update.state, update.key, update.window_start if by_window else None
        last, new = self._last.get(place), _yielded(update)
        if isinstance(new, ReturnedVersion) and isinstance(last, ReturnedVersion):
            if not new.is_news(last):
                return False
        elif new == last:
            return False
        if isinstance(update, Removed):
            self._high_water_marks.remove(update, by_window=by_window)
        elif not isinstance(update, Left) and not self._high_water_marks.admits(update, by_window=by_window):
            return False
        self._last[place] = new
        return True


def _yielded(update: Update[T]) -> ReturnedVersion | type:
    if not isinstance(update, Found):
        return type(update)
    return ReturnedVersion(update.order, update.source, update.is_open is False)
