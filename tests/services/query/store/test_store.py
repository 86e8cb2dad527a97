"""Behaviour of the store that test_any_sequence does not check: its size, its limits, its readers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.model.named_state import QueryOptions
from services.query.store.buckets import SLOTS, clock_watermark, time_buckets
from services.query.store.environment import MIN_MAP_SIZE
from services.query.store.errors import NotIndexedError
from services.query.store.scan import MAX_SKIPPED, Position, Scan
from services.query.store.store import WATERMARK_SAVE_MS, Store
from services.query.store.write_batch import CLEAR_SIZE
from tests.services.query.store.declared import named, removal, update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lmdb import Transaction

    from services.query.store import Entry

CLOSED = """
import sys, threading
from pathlib import Path
from services.query.store.environment import MIN_MAP_SIZE
from services.query.store.errors import StoreClosedError
from services.query.store.store import Store
from tests.services.query.store.declared import named, update
store = Store(Path(sys.argv[1]), named(), "boot")
begun = threading.Event()
def write():
    try:
        for version in range(1, 10_000):
            store.apply([update(str(key), version, version) for key in range(200)], {0: version})
            begun.set()
    except StoreClosedError as error:
        print(type(error).__name__, flush=True)
writer = threading.Thread(target=write)
writer.start()
begun.wait()
store.close()
writer.join()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give an empty store."""
    made = Store(tmp_path, named(), "boot")
    yield made
    made.close()


def sizes(store: Store) -> tuple[int, int, int]:
    """Return the numbers of entries, earlier entries and index entries."""
    with store._begin() as txn:  # noqa: SLF001
        slots = store._databases.slots  # noqa: SLF001
        counts = [[txn.stat(database)["entries"] for database in slot.databases] for slot in slots]
    first, second, third = (sum(kind) for kind in zip(*counts, strict=True))
    return first, second, third


def clear(store: Store, partition: int) -> int:
    """Clear the partition; return the number of steps."""
    pieces = 1
    while not store.clear_partition(partition):
        assert store.is_clear_pending(partition)
        assert store.position(partition) is None
        pieces += 1
    assert not store.is_clear_pending(partition)
    return pieces


def test_removed_and_expired_keys_leave_no_entries(store: Store) -> None:
    for version in range(1, 10):
        store.apply([update("a", 40, version, status=str(version), gate="B2")], {})
    assert sizes(store) == (1, 2, 2)
    store.apply([update("a", 200, 1, status="new")], {})
    assert sizes(store) == (1, 0, 1)
    store.apply([removal("a")], {})
    assert sizes(store) == (0, 0, 0)
    store.apply([update("a", 40, 9, status="x"), update("a", 200, 2, status="x"), update("a", 200, 3)], {0: 1})
    assert sizes(store) == (1, 1, 0)
    clear(store, 0)
    assert sizes(store) == (0, 0, 0)
    store.apply([update("a", 200, version, status="x") for version in (1, 2)], {})
    store.apply([update("b", 2000, 1)], {})
    assert sizes(store) == (1, 0, 0)


def test_a_tombstone_of_one_window_leaves_another(store: Store) -> None:
    store.apply([update("a", 200, 1), removal("a", window_start=40)], {})
    assert sizes(store)[0] == 1
    store.apply([removal("a", window_start=200)], {})
    assert sizes(store)[0] == 0


def test_a_large_partition_is_cleared_in_steps(store: Store) -> None:
    store.apply([update(f"{key:06}", 1, 1, partition=key % 2) for key in range(25_001)], {0: 1, 1: 1})
    assert clear(store, 0) > 5
    assert store.key_count() == 12_500
    assert store.get("000001") is not None
    assert store.get("000002") is None
    assert (store.position(0), store.position(1)) == (None, 1)


def test_a_half_cleared_partition_is_completed_after_a_restart(tmp_path: Path) -> None:
    first = Store(tmp_path, named(), "boot")
    first.apply([update(f"{key:06}", 1, 1, partition=key % 2) for key in range(3 * CLEAR_SIZE)], {0: 1, 1: 1})
    assert not first.is_clear_pending(0)
    assert not first.clear_partition(0)
    assert first.key_count() > 2 * CLEAR_SIZE
    first.close()
    again = Store(tmp_path, named(), "boot")
    assert [again.is_clear_pending(one) for one in (0, 1)] == [True, False]
    assert [again.position(one) for one in (0, 1)] == [None, 1]
    clear(again, 0)
    assert sizes(again) == (3 * CLEAR_SIZE // 2, 0, 0)
    again.close()


def test_other_partitions_are_written_while_one_is_cleared(store: Store) -> None:
    store.apply([update(f"{key:06}", 1, 1, partition=key % 2) for key in range(2 * CLEAR_SIZE)], {0: 1, 1: 1})
    at = 2
    while not store.clear_partition(0):
        store.apply([update("000001", 1, at, partition=1), update(f"x{at}", 40 * at, 1, partition=1)], {1: at})
        at += 1
    assert at > 3
    assert (store.position(0), store.position(1)) == (None, at - 1)
    page = store.scan(Scan((0,), 9))
    while not page.items and page.after:
        page = store.scan(Scan((0,), 9, after=page.after))
    assert page.items == []


def test_closing_waits_for_a_write_in_progress(tmp_path: Path) -> None:
    """In its own process, which would crash without a message."""
    for number in range(5):
        command = [sys.executable, "-c", CLOSED, str(tmp_path / str(number))]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout) == (0, "StoreClosedError\n"), ended.stderr


def test_a_filter_requires_an_index(store: Store) -> None:
    with pytest.raises(NotIndexedError, match=r"take one of state\.status, state\.gate"):
        store.scan(Scan((0,), 1, where={"state.tail": "x"}))


def test_objects_and_lists_of_any_depth_are_stored_and_not_indexed(store: Store) -> None:
    value = b'{"version":1,"state":{"status":' + b"[" * 900 + b"]" * 900 + b"}}"
    one = update("deep", 1, 1)
    assert one.entry is not None
    assert store.apply([one._replace(entry=one.entry._replace(value=value)), update("flat", 1, 1, status={})], {0: 1})
    assert store.get("deep") is not None
    for text in ("{}", "[]"):
        assert not store.scan(Scan((0,), 9, where={"state.status": text})).items


def test_a_page_stops_after_a_number_of_keys_that_do_not_match(store: Store) -> None:
    store.apply([update(f"{key:06}", 1, 1, partition=key // MAX_SKIPPED) for key in range(MAX_SKIPPED + 5)], {})
    first = store.scan(Scan((1,), 10))
    assert (first.items, first.after) == ([], Position(0, f"{MAX_SKIPPED - 1:06}"))
    second = store.scan(Scan((1,), 10, after=first.after))
    assert (len(second.items), second.after) == (5, None)


def test_a_key_that_no_record_can_have_is_absent(store: Store) -> None:
    assert [store.get(key) for key in ("", "x" * 512, "\ud800")] == [None] * 3
    store.apply([update("a", 1, 1)], {})
    for key in ("", "x" * 512, "\ud800"):
        assert store.get_many(["a", key]) == [store.get("a"), None]
    assert store.versions("") == []
    assert store.scan(Scan((0,), 1, prefix="\ud800", after=Position(0, "x" * 9999))).items == []


def test_versions_of_any_size_keep_their_order(store: Store) -> None:
    versions = [-(1 << 63), -1, (1 << 63) - 1]
    store.apply([update("a", 1, version) for version in versions], {})
    assert [one.version for one in store.versions("a")] == versions


def test_earlier_versions_are_those_from_an_order_on_as_many_as_have_the_size(tmp_path: Path) -> None:
    store = Store(tmp_path, named(history=30), "boot")
    store.apply([update(key, 1, version) for version in range(-5, 15) for key in ("a", "b")], {})
    *earlier, present = store.versions("a")
    assert (len(earlier), present.version) == (19, 14)
    for at, entry in enumerate(earlier):
        assert store.earlier_versions("a", entry.order, 1 << 20) == earlier[at:]
        assert store.earlier_versions("a", entry.order, 1) == earlier[at : at + 1]
    assert store.earlier_versions("a", present.order, 1) == store.earlier_versions("absent", present.order, 1) == []
    before_all = earlier[0].order[0], 0, -9
    assert store.earlier_versions("a", before_all, 1) == earlier[:1], "that version is not kept"
    store.close()


def test_the_watermark_and_the_expiries_survive_a_restart(tmp_path: Path) -> None:
    first = Store(tmp_path, named(), "boot")
    first.advance_watermark(700)
    assert first.watermark() == 700
    first.apply([], {0: 1})
    first.close()
    again = Store(tmp_path, named(), "boot")
    assert again.watermark() == 700
    again.close()


def test_a_store_that_is_closed_keeps_the_watermarks_that_it_has_not_written(tmp_path: Path) -> None:
    """Else a key whose window has expired by another instance's clock would return with this instance."""
    first = Store(tmp_path, named(), "boot")
    first.advance_watermark(700)
    first.close_windows(600)
    first.close()
    for _ in range(2):
        again = Store(tmp_path, named(), "boot")
        assert (again.watermark(), again._complete) == (700, 600)  # noqa: SLF001
        again.close()


def test_an_earlier_watermark_changes_nothing(store: Store) -> None:
    for watermark in (9 * 1000, 1000):
        store.advance_watermark(watermark)
    assert store.watermark() == 9 * 1000


def test_finishing_a_bulk_load_shrinks_the_file_and_keeps_all_data(tmp_path: Path) -> None:
    rebuilt = Store(tmp_path, named(history=1), "boot")
    file = tmp_path / "data.mdb"
    rebuilt.apply([update(str(key), 1, 1) for key in range(2000)], {0: 1})
    rebuilt.advance_watermark(50)
    assert file.stat().st_size >= MIN_MAP_SIZE
    rebuilt.finish_bulk_load()
    assert file.stat().st_size < 1 << 21
    rebuilt.apply([update("7", 1, 2)], {0: 2})
    rebuilt.finish_bulk_load()
    known = rebuilt.get("7")
    assert known is not None
    assert (known.version, rebuilt.key_count(), rebuilt.position(0), rebuilt.watermark()) == (2, 2000, 2, 50)
    rebuilt.close()
    rebuilt.finish_bulk_load()
    again = Store(tmp_path, named(history=1), "boot")
    assert again.key_count() == 2000
    assert file.stat().st_size < 1 << 21
    again.close()


def test_readers_see_whole_batches_and_never_an_older_one(store: Store) -> None:
    keys = [str(number) for number in range(50)]
    store.apply([update(key, 0, 0) for key in keys], {})
    failed: list[BaseException] = []

    def write() -> None:
        try:
            for round_ in range(1, 200):
                # windows change buckets all the time, and buckets are dropped
                store.apply([update(key, round_ * 30, round_) for key in keys], {})
        except BaseException as error:  # noqa: BLE001 (asserted below)
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    last, looked = 0, 0
    while writer.is_alive() or not looked:
        seen = {_version(entry) for entry in store.get_many(keys)}
        assert len(seen) == 1
        (version,) = seen
        assert version >= last
        last, looked = version, looked + 1
        page = store.scan(Scan((0,), 99))
        assert len(page.items) == len({position.key for position, _ in page.items}) == len(keys)
        assert len({_version(entry) for _, entry in page.items}) == 1
    writer.join()
    assert failed == []


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.get("a"),
        lambda store: store.get_many(["a"])[0],
        lambda store: next(iter(store.versions("a")), None),
    ],
    ids=["get", "get_many", "versions"],
)
def test_a_read_during_a_rotation_of_buckets_returns_no_older_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Store], Entry | None]
) -> None:
    """The slot that has the oldest window in the snapshot of the read has the newest bucket a moment later."""
    state = replace(named(lifetime=80), window=timedelta(milliseconds=80))
    store = Store(tmp_path, state, "boot")
    width = time_buckets(state).width
    starts = [width - 1, width, SLOTS * width]  # the last window takes the slot of the first
    for start in starts[:2]:
        store.apply([update("a", start, 1)], {})
    begin, rotated = store._begin, False  # noqa: SLF001

    def begin_before_rotation() -> Transaction[bytes]:
        nonlocal rotated
        transaction = begin()
        if not rotated:
            rotated = True
            store.apply([update("b", starts[2], 1)], {})
        return transaction

    monkeypatch.setattr(store, "_begin", begin_before_rotation)
    found = read(store)
    assert rotated
    assert found is not None
    assert found.window_start == starts[1]
    store.close()


def _version(entry: Entry | None) -> int:
    assert entry is not None
    return entry.version


ORDERS = st.tuples(st.integers(1000, 1002), st.integers(0, 3), st.integers(1, 4))


@given(st.lists(ORDERS, min_size=1, max_size=12))
def test_the_greatest_window_epoch_and_version_stays_in_any_order(orders: list[tuple[int, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), named(), "boot")
        seen: list[tuple[int, int, int]] = []
        for window_start, epoch, version in orders:
            store.apply([update("a", window_start, version, epoch=epoch)], {})
            known = store.get("a")
            assert known is not None
            seen.append(known.order)
        store.close()
    assert seen == sorted(seen)
    assert seen[-1] == max(orders)


def test_a_newer_epoch_replaces_an_older_one_and_never_the_reverse(store: Store) -> None:
    store.apply([update("a", 1, 61, epoch=100)], {})
    assert len(store.apply([update("a", 1, 1, epoch=200, status="new")], {})) == 1
    assert store.apply([update("a", 1, 62, epoch=100)], {}) == []
    assert [version.order for version in store.versions("a")] == [(1, 100, 61), (1, 200, 1)]
    assert store.scan(Scan({0}, 9, where={"state.status": "new"})).items


def test_tags_of_different_epochs_differ(store: Store) -> None:
    store.apply([update("a", 1, 3, epoch=100, status="old")], {})
    before = store.get("a")
    store.apply([update("a", 1, 3, epoch=200, status="new")], {})
    after = store.get("a")
    assert before is not None
    assert after is not None
    assert before.value != after.value
    assert before.tag != after.tag


def test_an_idle_fleet_expires_by_the_clock_and_is_forgotten(tmp_path: Path) -> None:
    """Machines start at 6:00 and stop: by noon no record has arrived, and all of their windows are forgotten."""
    six, hour = 1_767_247_200_000, 3_600_000
    state = replace(
        named(lifetime=hour, indexes=("state.status",)), expires_by_clock=True, grace=timedelta(minutes=11),
        query=QueryOptions(history=3, indexes=("state.status",)),
    )  # fmt: skip
    store = Store(tmp_path, state, "boot")
    store.apply([update(str(number), six + number, 1, status="on") for number in range(500)], {0: 500})

    def at(now: int) -> tuple[int, int, int]:
        watermark = clock_watermark(state, now)
        assert watermark is not None
        store.advance_watermark(watermark)
        store.drop_expired()
        pages = [store.scan(Scan({0}, 1000, where=where)).items for where in ({}, {"state.status": "on"})]
        return len(pages[0]), len(pages[1]), store.key_count()

    assert at(six + hour) == (500, 500, 500)
    assert at(six + hour + 11 * 60_000) == (500, 500, 500), "within the grace"
    assert at(six + hour + 11 * 60_000 + 1000) == (0, 0, 500), "expired, and remembered"
    known = store.get("7")
    assert known is not None
    assert store.is_expired(known)
    assert at(six + 6 * hour) == (0, 0, 0)
    store.close()


def test_windows_expired_by_the_clock_stay_expired_after_a_restart_with_an_earlier_clock(tmp_path: Path) -> None:
    first = Store(tmp_path, named(), "boot")
    first.apply([update("a", 1, 1)], {0: 1})
    first.advance_watermark(WATERMARK_SAVE_MS + 1)
    first.drop_expired()
    first.close()
    again = Store(tmp_path, named(), "boot")
    assert (again.watermark(), again.get("a")) == (WATERMARK_SAVE_MS + 1, None)
    again.close()


@pytest.mark.parametrize("facts", [{"expires_by_clock": False}, {"lifetime": None}, {"window_start": None}])
def test_windows_of_a_replay_do_not_expire_by_the_clock(facts: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"lifetime": timedelta(hours=1), "expires_by_clock": True}
    assert clock_watermark(replace(named(), **(usual | facts)), 1_767_247_200_000) is None
