"""Blocking calls in virtual time: others run while one waits, and a process that is stopped does not go on."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.simulation.blocking import ModelCalls
from tests.simulation.loop import Process, SimulationLoop
from tests.simulation.network import WORKER_POLLS, ProcessNetwork, WatchedBroker
from tests.simulation.script import START


class Calling:
    """A process that calls functions which wait."""

    def __init__(self) -> None:
        self.loop = SimulationLoop()  # type: ignore[abstract]  # it has what asyncio's tasks and futures need
        broker = WatchedBroker(self.loop, START, Random(0))
        self.network = ProcessNetwork(self.loop, Random(0), broker, WORKER_POLLS)
        self.process = Process("caller")
        self.log: list[tuple[str, int]] = []

    def wait(self, name: str, seconds: float) -> str:
        """Wait as a client does that blocks its thread."""
        self.note(f"{name} begins")
        self.network.time.sleep(seconds)
        self.note(f"{name} ends")
        return name

    def note(self, name: str) -> None:
        self.log.append((name, round(self.loop.time())))

    async def call_two(self) -> None:
        calls = ModelCalls(self.network)
        first, second = calls.call(lambda: self.wait("a", 10.0)), calls.call(lambda: self.wait("b", 1.0))
        await asyncio.sleep(5.0)
        self.note("beside")
        assert [await first, await second] == ["a", "b"]


def test_calls_follow_each_other_and_others_run_beside_them() -> None:
    calling = Calling()
    calling.loop.run_until_complete(calling.loop.start(calling.process, calling.call_two()))
    assert calling.log == [("a begins", 0), ("beside", 5), ("a ends", 10), ("b begins", 10), ("b ends", 11)]


def test_a_call_of_a_stopped_process_goes_on_when_it_is_resumed() -> None:
    calling = Calling()
    calling.loop.call_at(7.0, lambda: calling.loop.stop_process(calling.process))
    calling.loop.call_at(60.0, lambda: calling.loop.resume_process(calling.process))
    calling.loop.run_until_complete(calling.loop.start(calling.process, calling.call_two()))
    assert calling.log[2:] == [("a ends", 60), ("b begins", 60), ("b ends", 61)]


def test_the_error_of_a_call_is_raised_by_the_caller() -> None:
    calling = Calling()

    async def call() -> None:
        with pytest.raises(ZeroDivisionError):
            await ModelCalls(calling.network).call(lambda: 1 // 0)

    calling.loop.run_until_complete(calling.loop.start(calling.process, call()))
