"""The store: the entries of each named state, in an embedded LMDB database on this machine.

Ingest writes to a `Store`, and lookups read from it. Each named state has one, with an environment of its own and
databases for each time bucket. All content can be read from the topics again.
"""

from services.query.store.entry import Change, Entry, EntryOrder, StatePartition, Update
from services.query.store.errors import StoreError
from services.query.store.scan import Page, Position, Scan, Seconds
from services.query.store.store import Store

__all__ = [
    "Change",
    "Entry",
    "EntryOrder",
    "Page",
    "Position",
    "Scan",
    "Seconds",
    "StatePartition",
    "Store",
    "StoreError",
    "Update",
]
