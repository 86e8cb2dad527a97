"""Blocking calls of an event loop, in a thread of their own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from services.runtime.call_thread import CallThread
from tests.deadline import DEADLINE_S


async def test_calls_run_one_after_the_other_and_return_or_raise() -> None:
    thread, names = CallThread("caller"), list[str]()

    def fail() -> None:
        names.append(threading.current_thread().name)
        raise ValueError("no")

    def succeed() -> int:
        names.append(threading.current_thread().name)
        return 7

    results = await asyncio.gather(thread.call(fail), thread.call(succeed), return_exceptions=True)
    assert (str(results[0]), results[1], names) == ("no", 7, ["caller", "caller"])
    thread.close()


async def test_a_cancelled_call_goes_on_and_its_result_is_lost() -> None:
    thread, going, ended = CallThread("caller"), threading.Event(), threading.Event()

    def wait() -> None:
        going.set()
        assert ended.wait(DEADLINE_S)

    call = thread.call(wait)
    await asyncio.to_thread(going.wait, DEADLINE_S)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    ended.set()
    async with asyncio.timeout(DEADLINE_S):
        assert await thread.call(lambda: 8) == 8
    thread.close()


def test_a_call_that_blocks_does_not_delay_the_end_of_the_process() -> None:
    code = """
import asyncio, threading
from services.runtime.call_thread import CallThread

async def main():
    CallThread("caller").call(threading.Event().wait)

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=DEADLINE_S)
