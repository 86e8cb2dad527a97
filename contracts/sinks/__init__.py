"""The interface of a store of a sink, `SinkStore`, and the batches that a sink passes to it.

`stateloop.testing.stores` is the test kit of stores.
"""

from contracts.sinks.errors import (
    PositionConflictError,
    RefusedRow,
    RowsRefusedError,
    StoreMismatchError,
    StoreUnavailableError,
)
from contracts.sinks.store import Deletion, Move, Row, RowBatch, SinkStore, Step, StoreFactory, Target, Windows

__all__ = [
    "Deletion",
    "Move",
    "PositionConflictError",
    "RefusedRow",
    "Row",
    "RowBatch",
    "RowsRefusedError",
    "SinkStore",
    "Step",
    "StoreFactory",
    "StoreMismatchError",
    "StoreUnavailableError",
    "Target",
    "Windows",
]
