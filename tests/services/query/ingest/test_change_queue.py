"""The changes that the ingest thread passes to the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.query.ingest import change_queue
from services.query.ingest.change_queue import ChangeQueue
from services.query.store import Change
from services.query.store.errors import StoreDamagedError
from tests.services.query.ingest.ingesting import WAIT_S, RecordingListener, until

if TYPE_CHECKING:
    from collections.abc import Sequence


class Counting(RecordingListener):
    """Stores the number of changes of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def changed(self, changes: Sequence[Change]) -> None:
        super().changed(changes)
        self.sizes.append(len(changes))


def changes(*keys: str) -> list[Change]:
    return [Change("flights", key, None) for key in keys]


def a_queue(listener: RecordingListener, *, stopping: threading.Event | None = None) -> ChangeQueue:
    return ChangeQueue(asyncio.get_running_loop(), listener, (stopping or threading.Event()).is_set)


async def test_changes_while_the_loop_is_busy_are_delivered_together_and_in_order() -> None:
    listener = Counting()
    queue = a_queue(listener)
    for key in "abc":
        queue.put(changes(key))
    queue.put([])
    await until(lambda: bool(listener.sizes))
    assert listener.sizes == [3]
    assert [change.key for change in listener.changes] == ["a", "b", "c"]
    queue.put(changes("d"))
    await until(lambda: len(listener.changes) == 4)
    assert listener.sizes == [3, 1]


async def test_a_call_follows_the_changes_queued_before_it_and_is_awaited() -> None:
    listener, order = Counting(), []
    queue = a_queue(listener)

    def call() -> None:
        queue.put(changes("a"))
        assert queue.call(lambda: order.append([change.key for change in listener.changes]))
        order.append(["answered"])

    await asyncio.to_thread(call)
    assert order == [["a"], ["answered"]]


class Slow(Counting):
    """Blocks in `changed` until a test lets it continue."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.go_on = threading.Event(), threading.Event()

    def changed(self, changes: Sequence[Change]) -> None:
        self.called.set()
        assert self.go_on.wait(WAIT_S)
        super().changed(changes)


async def test_the_thread_continues_when_the_loop_has_delivered_the_earlier_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop is blocked in the listener, so only a thread can observe the queue."""
    monkeypatch.setattr(change_queue, "WAIT_S", WAIT_S)
    listener, order = Slow(), list[str]()
    queue = a_queue(listener)

    def observe() -> None:
        threading.Thread(target=queue.put, args=[changes("a")]).start()  # it may wait for the listener, too
        assert listener.called.wait(WAIT_S)
        other = threading.Thread(target=add)
        other.start()
        other.join(0.05)
        order.append("released")
        listener.go_on.set()
        other.join(WAIT_S)

    def add() -> None:
        queue.put(changes("b"))
        order.append("added")

    await asyncio.to_thread(observe)
    assert order == ["released", "added"]
    await until(lambda: len(listener.changes) == 2)


async def test_the_thread_does_not_wait_for_a_listener_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_queue, "WAIT_S", WAIT_S)
    listener, failed = Counting(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, facts: failed.append(facts["exception"]))
    queue = a_queue(listener)
    monkeypatch.setattr(listener, "changed", None)
    queue.put(changes("a"))
    await until(lambda: bool(failed))
    began = time.monotonic()
    queue.put(changes("b"))
    assert time.monotonic() - began < WAIT_S / 2
    await until(lambda: len(failed) == 2)


async def test_the_thread_waits_for_a_loop_that_is_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_queue, "CAPACITY", 2)
    listener = Counting()
    queue = a_queue(listener)
    for number in (1, 2):  # and does so again after the loop has caught up
        added = threading.Event()

        def add(done: threading.Event = added) -> None:
            queue.put(changes("a", "b", "c"))
            done.set()

        thread = threading.Thread(target=add)
        thread.start()
        # the loop is blocked here, so it takes no changes
        assert not added.wait(0.2)
        await until(added.is_set)
        thread.join(WAIT_S)
        assert listener.sizes == [3] * number


async def test_a_stopping_thread_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_queue, "CAPACITY", 0)
    stopping = threading.Event()
    stopping.set()
    listener = Counting()
    queue = a_queue(listener, stopping=stopping)
    thread = threading.Thread(target=lambda: queue.put(changes("a")))
    thread.start()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(queue.call(lambda: None)))
    thread.start()
    thread.join(WAIT_S)
    assert answers == [False]


async def test_an_error_of_a_call_is_raised_at_once() -> None:
    queue = a_queue(Counting())

    def fail() -> None:
        raise StoreDamagedError(Path("folder"), "cut off")

    with pytest.raises(StoreDamagedError, match="delete it"):
        async with asyncio.timeout(WAIT_S):
            await asyncio.to_thread(queue.call, fail)
