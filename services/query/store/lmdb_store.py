"""The store of a named state, in LMDB."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import lmdb

from services.query.store.buckets import SLOTS, buckets
from services.query.store.environment import Databases
from services.query.store.errors import NotIndexed
from services.query.store.field_index import Index
from services.query.store.folder import Folder
from services.query.store.history import History
from services.query.store.metadata import Facts
from services.query.store.packing import unpack
from services.query.store.paging import Pager, Wanted
from services.query.store.write_batch import AT_ONCE, Batch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from lmdb import Transaction

    from contracts.model.named_state import NamedState
    from services.query.store.buckets import Buckets
    from services.query.store.entry import Change, Entry
    from services.query.store.environment import Slot
    from services.query.store.store import Page, Update

MANY = 1000
"""So many updates are written in the order of their keys, for neighbours are on one page of the file."""
SAVE_MS = 10_000
"""A watermark that only the clock moves is written when it is so much later than the one that was written last."""
KEY = itemgetter(0)
BEGINNING, END = (0, b""), (SLOTS, b"")
"""Places in the walk of who forgets: a slot, and a key in it."""
NEVER = 1 << 63
"""Before every bucket, negated."""


class LmdbStore:
    """See `Store`. `boot` names the start of the machine. Raises StoreError: at its making, and whenever it writes."""

    def __init__(self, folder: Path, state: NamedState, boot: str) -> None:
        self._state = state
        self._buckets = buckets(state)
        self._paths = state.query.indexes
        self._folder = Folder(folder, _shape(state, self._buckets), boot)
        try:
            self._databases = Databases(folder, len(self._paths), history=state.query.history > 1)
        except BaseException:
            self._folder.release()
            raise
        self._index = Index(self._paths)
        self._history = History(state.query.history - 1)
        self._pager = Pager(self._paths, self._index)
        self._bind()
        with self._begin() as txn:
            self._seen = self._told = self._facts.watermark(txn)
            self._positions = self._facts.positions(txn)
            self._held = self._facts.buckets(txn)
            self._fresh = self._facts.fresh(txn)
            self._forgetting = dict.fromkeys(self._facts.forgetting(txn), BEGINNING)
        self._newest_first = self._ordered()

    def get(self, key: str) -> Entry | None:
        """See `Store`."""
        txn = self._begin()
        try:
            data, _ = self._find(txn, key)
        finally:
            txn.abort()
        return None if data is None else unpack(data, len(self._paths))

    def gets(self, keys: Sequence[str]) -> list[Entry | None]:
        """See `Store`."""
        txn, indexes = self._begin(), len(self._paths)
        try:
            found = self._in_newest(txn, keys)
            found = [self._find(txn, key)[0] if data is None else data for key, data in zip(keys, found, strict=True)]
        finally:
            txn.abort()
        return [None if data is None else unpack(data, indexes) for data in found]

    def versions(self, key: str) -> list[Entry]:
        """See `Store`."""
        with self._begin() as txn:
            data, slot = self._find(txn, key)
            if data is None or slot is None:
                return []
            held = [*self._history.all(txn, slot.history, key.encode()), data]
        return [unpack(one, len(self._paths)) for one in held]

    def page(
        self, *, prefix: str, after: str | None, limit: int, where: Mapping[str, str], partitions: Collection[int]
    ) -> Page:
        """See `Store`."""
        for path in where:
            if path not in self._paths:
                raise NotIndexed(self._state.name, path, self._paths)
        watermark = self.watermark()
        with self._begin() as txn:
            held = self._facts.buckets(txn)  # as they are in this transaction
            alive = [slot for slot, bucket in held.items() if not self._buckets.over(bucket, watermark)]
            return self._pager.page(
                txn,
                [self._databases.slots[slot] for slot in alive],
                Wanted(prefix, after, limit, where, partitions),
                lambda life: self._buckets.ended(life, watermark),
            )

    def keys(self) -> int:
        """See `Store`."""
        with self._begin() as txn:
            return sum(txn.stat(slot.entries)["entries"] for slot in self._newest_first)

    def watermark(self) -> int:
        """See `Store`."""
        return max(self._seen, self._told)

    def advance(self, watermark: int) -> None:
        """See `Store`."""
        self._told = max(self._told, watermark)

    def ended(self, entry: Entry) -> bool:
        """See `Store`."""
        return self._buckets.ended(entry.life, self.watermark())

    def living_since(self) -> int:
        """See `Store`."""
        return self._buckets.living_since(self.watermark())

    def position(self, partition: int) -> int | None:
        """See `Store`."""
        return self._positions.get(partition)

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> list[Change]:
        """See `Store`."""
        batch = list(updates)
        many = len(batch) >= MANY
        if many:
            batch.sort(key=KEY)
        lives = {entry.life for _, _, _, entry, _ in batch if entry is not None}
        watermark = max(self.watermark(), *lives) if lives else self.watermark()
        oldest = self._buckets.oldest(watermark)
        homes = {life: self._buckets.of(life) for life in lives}
        wanted = {bucket for bucket in homes.values() if bucket >= oldest}
        with self._databases.writing() as txn:
            held = self._make_room(txn, oldest, wanted)
            writing = self._batch(txn, held, many=many)
            for start in range(0, len(batch), AT_ONCE):
                updates = batch[start : start + AT_ONCE]
                self._databases.require(len(updates), _size(updates))
                for key, _, _, entry, life in updates:
                    if entry is None:
                        writing.remove(key, life)
                    elif (bucket := homes[entry.life]) >= oldest:
                        writing.put(key, entry, bucket)
            self._facts.write(txn, watermark=watermark, positions=positions, buckets=held)
        self._seen, self._held = watermark, held
        self._positions.update(positions)
        self._newest_first = self._ordered()
        return writing.changes

    def sweep(self) -> None:
        """See `Store`."""
        watermark = self.watermark()
        oldest = self._buckets.oldest(watermark)
        if watermark - self._seen >= SAVE_MS or any(bucket < oldest for bucket in self._held.values()):
            self.apply((), {})

    def fresh(self, partition: int) -> int | None:
        """See `Store`."""
        return self._fresh.get(partition)

    def freshen(self, times: Mapping[int, int]) -> None:
        """See `Store`."""
        with self._databases.writing() as txn:
            self._facts.freshen(txn, times)
        self._fresh.update(times)

    def half_forgotten(self, partition: int) -> bool:
        """See `Store`."""
        return partition in self._forgetting

    def forget(self, partition: int) -> bool:
        """See `Store`."""
        slot, start = self._forgetting.get(partition, BEGINNING)
        with self._databases.writing() as txn:
            writing = self._batch(txn, self._held, many=True)
            after = writing.forget(partition, self._databases.slots[slot], start, self._databases.require)
            place = (slot + 1, b"") if after is None else (slot, after)
            done = place == END
            self._facts.forget(txn, partition, half=not done)
        self._positions.pop(partition, None)
        self._fresh.pop(partition, None)
        self._forgetting[partition] = place
        if done:
            del self._forgetting[partition]
        return done

    def settle(self) -> None:
        """See `Store`."""
        if self._databases.settle():
            self._bind()
            self._newest_first = self._ordered()

    def close(self) -> None:
        """See `Store`."""
        self._databases.close()
        self._folder.close()

    def _bind(self) -> None:
        self._facts = Facts(self._databases.facts)
        self._begin = self._databases.environment.begin

    def _find(self, txn: Transaction[bytes], key: str) -> tuple[bytes | None, Slot | None]:
        try:
            name = key.encode()
            for slot in self._newest_first:
                data = txn.get(name, db=slot.entries)
                if data is not None:
                    return data, slot
        except (UnicodeEncodeError, lmdb.BadValsizeError):
            pass  # no record can have such a key
        return None, None

    def _in_newest(self, txn: Transaction[bytes], keys: Sequence[str]) -> Sequence[bytes | None]:
        """What the newest bucket has of them, where most are."""
        get, newest = txn.get, self._newest_first[0].entries
        try:
            return [get(key.encode(), None, newest) for key in keys]
        except (UnicodeEncodeError, lmdb.BadValsizeError):
            return [None] * len(keys)

    def _make_room(self, txn: Transaction[bytes], oldest: int, wanted: Collection[int]) -> dict[int, int]:
        """Drop what nobody remembers, and give each bucket its slot. Gives the buckets by slot."""
        for slot, bucket in self._held.items():
            if bucket < oldest:
                for database in self._databases.slots[slot].databases:
                    txn.drop(database, delete=False)
        held = {slot: bucket for slot, bucket in self._held.items() if bucket >= oldest}
        return held | {bucket % SLOTS: bucket for bucket in wanted}

    def _batch(self, txn: Transaction[bytes], held: Mapping[int, int], *, many: bool) -> Batch:
        slots = {bucket: self._databases.slots[slot] for slot, bucket in held.items()}
        return Batch(txn, slots, state=self._state.name, index=self._index, history=self._history, many=many)

    def _ordered(self) -> tuple[Slot, ...]:
        """All slots that may ever be used, the newest bucket's first: a reader may be ahead of what is known here."""
        used = SLOTS if self._buckets.remembered else 1
        order = sorted(range(used), key=lambda slot: -self._held.get(slot, -NEVER))
        return tuple(self._databases.slots[slot] for slot in order)


def _size(updates: Sequence[Update]) -> int:
    return sum([len(entry.value) for _, _, _, entry, _ in updates if entry is not None])


def _shape(state: NamedState, times: Buckets) -> dict[str, Any]:
    """What the contents of the file depend on."""
    return {
        "state": state.name,
        "topic": state.topic,
        "paths": [state.key, state.life, state.epoch, state.version, state.event_time],
        "indexes": list(state.query.indexes),
        "history": state.query.history > 1,
        "remembered_ms": times.remembered,
    }
