"""What the thread hands to the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.query.ingest import change_queue
from services.query.ingest.change_queue import Outbox
from services.query.store.entry import Change
from services.query.store.errors import Damaged
from tests.services.query.ingest.ingesting import WAIT_S, Told, until

if TYPE_CHECKING:
    from collections.abc import Sequence


class Counting(Told):
    """Keeps how many it was told of at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def changed(self, changes: Sequence[Change]) -> None:
        super().changed(changes)
        self.sizes.append(len(changes))


def changes(*keys: str) -> list[Change]:
    return [Change("flights", key, None) for key in keys]


def made(told: Told, *, stopping: threading.Event | None = None) -> Outbox:
    return Outbox(asyncio.get_running_loop(), told, (stopping or threading.Event()).is_set)


async def test_what_comes_while_the_loop_is_busy_comes_together_and_in_order() -> None:
    told = Counting()
    box = made(told)
    for key in "abc":
        box.add(changes(key))
    box.add([])
    await until(lambda: bool(told.sizes))
    assert told.sizes == [3]
    assert [one.key for one in told.changes] == ["a", "b", "c"]
    box.add(changes("d"))
    await until(lambda: len(told.changes) == 4)
    assert told.sizes == [3, 1]


async def test_a_question_comes_after_what_was_told_before_and_is_waited_for() -> None:
    told, order = Counting(), []
    box = made(told)

    def ask() -> None:
        box.add(changes("a"))
        assert box.ask(lambda: order.append([one.key for one in told.changes]))
        order.append(["answered"])

    await asyncio.to_thread(ask)
    assert order == [["a"], ["answered"]]


class Slow(Counting):
    """Has not told of the changes before a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.telling, self.go_on = threading.Event(), threading.Event()

    def changed(self, changes: Sequence[Change]) -> None:
        self.telling.set()
        assert self.go_on.wait(WAIT_S)
        super().changed(changes)


async def test_the_thread_goes_on_when_the_loop_has_told_of_the_changes_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop is busy with telling, so the thread alone can see whether it goes on."""
    monkeypatch.setattr(change_queue, "PATIENCE_S", WAIT_S)
    told, order = Slow(), list[str]()
    box = made(told)

    def follow() -> None:
        box.add(changes("a"))
        assert told.telling.wait(WAIT_S)
        other = threading.Thread(target=add)
        other.start()
        other.join(0.05)
        order.append("told")
        told.go_on.set()
        other.join(WAIT_S)

    def add() -> None:
        box.add(changes("b"))
        order.append("added")

    await asyncio.to_thread(follow)
    assert order == ["told", "added"]
    await until(lambda: len(told.changes) == 2)


async def test_the_thread_does_not_wait_for_a_telling_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_queue, "PATIENCE_S", WAIT_S)
    told, failed = Counting(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, facts: failed.append(facts["exception"]))
    box = made(told)
    monkeypatch.setattr(told, "changed", None)
    box.add(changes("a"))
    await until(lambda: bool(failed))
    began = time.monotonic()
    box.add(changes("b"))
    assert time.monotonic() - began < WAIT_S / 2
    await until(lambda: len(failed) == 2)


async def test_the_thread_waits_for_a_loop_that_is_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_queue, "MOST", 2)
    told = Counting()
    box = made(told)
    added = threading.Event()

    def add() -> None:
        box.add(changes("a", "b", "c"))
        added.set()

    thread = threading.Thread(target=add)
    thread.start()
    # the loop stands still here, so nobody takes them
    assert not added.wait(0.3)
    await until(added.is_set)
    thread.join(WAIT_S)
    assert told.sizes == [3]


async def test_who_stops_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_queue, "MOST", 0)
    stopping = threading.Event()
    stopping.set()
    told = Counting()
    box = made(told, stopping=stopping)
    thread = threading.Thread(target=lambda: box.add(changes("a")))
    thread.start()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(box.ask(lambda: None)))
    thread.start()
    thread.join(WAIT_S)
    assert answers == [False]


async def test_who_asks_for_what_fails_is_told_at_once() -> None:
    box = made(Counting())

    def fail() -> None:
        raise Damaged(Path("folder"), "cut off")

    with pytest.raises(Damaged, match="delete it"):
        async with asyncio.timeout(WAIT_S):
            await asyncio.to_thread(box.ask, fail)
