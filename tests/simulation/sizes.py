"""The sizes of slices and batches in a simulation: so small that the few windows of a script need several of each."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from services.alerts import evaluator, sweep
from services.enrichment import deferred_queue

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = (
    (sweep, "SLICE", 3),
    (evaluator, "EXPIRED_AT_ONCE", 2),
    (deferred_queue, "BATCH_SIZE", 2),
    (deferred_queue, "BATCHES_PER_PARTITION", 2),
)


@contextmanager
def small_sizes() -> Iterator[None]:
    """Use small sizes until the end of the block."""
    with ExitStack() as stack:
        for module, name, size in SMALL:
            stack.enter_context(mock.patch.object(module, name, size))
        yield
