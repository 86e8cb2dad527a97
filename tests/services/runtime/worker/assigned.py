"""A partition that is assigned to no worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from services.runtime.worker.backpressure import Backpressure
from services.runtime.worker.partition import AssignedPartition

if TYPE_CHECKING:
    from collections.abc import Coroutine


def assigned(backpressure: Backpressure | None = None) -> AssignedPartition:
    return AssignedPartition(0, backpressure or Backpressure(1000, 10**6, 1000), _create_task, lambda *_: None)


def _create_task(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)
