from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bench.enrichment.application import app
from bench.enrichment.snapshots import device, snapshots
from contracts.planning.plan import plan
from contracts.wire import decode_snapshot


@pytest.mark.parametrize(("answered", "calls"), [(False, 1), (True, 0)])
def test_each_snapshot_calls_for_one_request_or_for_none(answered: bool, calls: int) -> None:  # noqa: FBT001
    load = list(snapshots(20, answered=answered))
    assert [key for key, _ in load] == [device(number) for number in range(20)]
    planned = [plan(app, decode_snapshot(value), datetime.now(UTC)) for _, value in load]
    assert [len(requests) for requests in planned] == [calls] * 20
    inputs = [request.inputs for requests in planned for request in requests]
    assert inputs == [{"cell": number} for number in range(20)][: 20 * calls]
