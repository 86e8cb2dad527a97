"""The items of a page, with their positions, and how the pages of several instances become one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from services.query.store import Position

if TYPE_CHECKING:
    from collections.abc import Sequence

P = TypeVar("P", str, Position)


class PageItems(NamedTuple, Generic[P]):
    """Answers with their positions, in order and complete up to `after`; None if there are no further keys.

    The position of a key is the key itself; that of a silent key is its event time and the key.
    """

    items: Sequence[tuple[P, bytes]]
    after: P | None


def merge_pages(found: Sequence[PageItems[P]], limit: int) -> PageItems[P]:
    """The first keys of all pages, up to the position to which every page is complete."""
    bound = min((one.after for one in found if one.after is not None), default=None)
    items = sorted(item for one in found for item in one.items if bound is None or item[0] <= bound)
    return PageItems(items[:limit], items[limit - 1][0] if len(items) > limit else bound)
