"""The store: the entries of each named state, in an embedded LMDB database on this machine.

`Store` is the interface that ingest writes to and lookups read from; `LmdbStore` implements it with one environment per
named state and one database per time bucket. `WindowStore` and `LmdbWindowStore` are those of windowed states. All
content can be read from the topics again.
"""

from services.query.store.entry import Change, Entry, EntryOrder, StatePartition
from services.query.store.errors import StoreError
from services.query.store.lmdb_store import LmdbStore
from services.query.store.store import (
    EntryPage,
    ScanPosition,
    SilentPage,
    SilentPageRequest,
    Store,
    Update,
    WindowPage,
    WindowPageRequest,
    WindowStore,
)
from services.query.store.window_store import LmdbWindowStore

__all__ = [
    "Change",
    "Entry",
    "EntryOrder",
    "EntryPage",
    "LmdbStore",
    "LmdbWindowStore",
    "ScanPosition",
    "SilentPage",
    "SilentPageRequest",
    "StatePartition",
    "Store",
    "StoreError",
    "Update",
    "WindowPage",
    "WindowPageRequest",
    "WindowStore",
]
