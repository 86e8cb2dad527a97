"""Windows in several buckets, and reads while the writer gives the slot of an expired bucket to a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.query.store.store import Store
from tests.services.query.store.declared import LIFETIME, named, update
from tests.services.query.store.test_any_windows import Windows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from services.query.store import Entry

    Read = Callable[[Store], Entry | None]

OLDEST, NEWEST, ROTATING = 120, 320, 480
"""The starts of windows; the last one is in a new bucket, which gets the slot of the first one's."""
READS: dict[str, Read] = {
    "get": lambda store: store.get("a"),
    "get_many": lambda store: store.get_many(["a"])[0],
    "versions": lambda store: store.versions("a")[-1],
}


@pytest.mark.parametrize("read", READS)
def test_a_read_from_before_a_rotation_finds_the_newest_window(
    read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, Windows.state, "boot")
    store.apply([update("a", OLDEST, 1), update("a", NEWEST, 2)], {0: 2})
    slots, begin = store._newest_first, store._begin  # noqa: SLF001

    def begin_before_a_rotation() -> object:
        snapshot = begin()
        store.apply([update("b", ROTATING, 3)], {0: 3})
        return snapshot

    monkeypatch.setattr(store, "_begin", begin_before_a_rotation)
    found = READS[read](store)
    assert store._newest_first[0] is slots[1], "the slot of the oldest bucket is that of the newest"  # noqa: SLF001
    assert found is not None
    assert found.window_start == NEWEST
    store.close()


def test_a_record_of_an_expired_window_is_not_stored(tmp_path: Path) -> None:
    store = Store(tmp_path, Windows.state, "boot")
    store.apply([update("a", ROTATING, 1)], {0: 1})
    assert store.apply([update("a", OLDEST, 2)], {0: 2}) == []
    assert [entry.window_start for entry in store.windows("a", start=None, end=None, newest_first=True, limit=9)] == [
        ROTATING
    ]
    store.close()


def test_a_record_of_an_older_bucket_replaces_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, named(), "boot")
    store.apply([update("a", LIFETIME, 1)], {0: 1})
    assert store.apply([update("a", LIFETIME // 4, 9)], {0: 2}) == []
    found = store.get("a")
    assert found is not None
    assert (found.window_start, store.key_count()) == (LIFETIME, 1)
    store.close()


def test_a_key_with_a_zero_byte_has_its_own_windows(tmp_path: Path) -> None:
    store = Store(tmp_path, Windows.state, "boot")
    keys = ["a", "a\0", "a\0\0", "a\0\xff"]
    store.apply([update(key, OLDEST + number, number) for number, key in enumerate(keys)], {0: 4})
    for number, key in enumerate(keys):
        found = store.windows(key, start=None, end=None, newest_first=True, limit=9)
        assert [entry.version for entry in found] == [number]
    store.close()
