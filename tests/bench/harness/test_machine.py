from __future__ import annotations

import os

import pytest

from bench.harness.machine import wake_up_us


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no process can be kept on a core here")
def test_a_core_that_is_woken_takes_some_time_and_all_cores_are_ours_again() -> None:
    before = os.sched_getaffinity(0)
    wake_us = wake_up_us()
    assert wake_us is None if len(before) == 1 else wake_us is not None and 0.1 < wake_us < 1e6
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no process can be kept on a core here")
def test_where_there_is_one_core_there_is_none_to_wake() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert wake_up_us() is None
    finally:
        os.sched_setaffinity(0, before)
