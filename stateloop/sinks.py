"""The interface of a store of a sink, `SinkStore`, and the batches that a sink passes to it.

`stateloop.testing.stores` is the test kit of stores.
"""

from contracts.sinks import (
    Deletion,
    Move,
    PositionConflictError,
    RefusedRow,
    Row,
    RowBatch,
    RowsRefusedError,
    SinkStore,
    Step,
    StoreFactory,
    StoreMismatchError,
    StoreUnavailableError,
    Target,
    Windows,
)

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
