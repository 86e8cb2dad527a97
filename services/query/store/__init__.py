"""The store: the entries of each named state, in an embedded LMDB database on this machine.

`Store` is the interface that ingest writes to and lookups read from, and `WindowStore` that of windowed states.
`LmdbStore` implements both, with one environment per named state and one database per time bucket. All content can be
read from the topics again.
"""

from services.query.store.entry import Change, Entry, EntryOrder, StatePartition
from services.query.store.errors import StoreError
from services.query.store.lmdb_store import LmdbStore
from services.query.store.scan import Page, Position, Scan, Seconds
from services.query.store.store import Store, Update, WindowStore

__all__ = [
    "Change",
    "Entry",
    "EntryOrder",
    "LmdbStore",
    "Page",
    "Position",
    "Scan",
    "Seconds",
    "StatePartition",
    "Store",
    "StoreError",
    "Update",
    "WindowStore",
]
