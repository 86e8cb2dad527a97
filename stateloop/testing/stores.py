"""The test kit of stores: what `stateloop.sinks.SinkStore` promises, on a real store.

Each check uses targets of its own, so one server serves all. `check_store` runs all checks.
"""

from contracts.testing.stores import (
    StoredRow,
    StoreHarness,
    check_conflict,
    check_emptying,
    check_expiry,
    check_newest_row,
    check_refusal,
    check_reopening,
    check_steps,
    check_store,
)

__all__ = [
    "StoreHarness",
    "StoredRow",
    "check_conflict",
    "check_emptying",
    "check_expiry",
    "check_newest_row",
    "check_refusal",
    "check_reopening",
    "check_steps",
    "check_store",
]
