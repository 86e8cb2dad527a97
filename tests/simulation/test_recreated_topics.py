"""Sinks whose topic is created again while they are stopped: its records are written, and the position goes back once.

The test writes the snapshots itself. A seed gives what it writes, and the faults of the sinks and of their store.
"""

from __future__ import annotations

import asyncio
import secrets
from contextvars import Context
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import orjson
import pytest

from contracts.wire.window_key import window_key
from services.runtime.kafka.values import NewTopic, Output, Partition
from tests.simulation.application import APPLICATIONS
from tests.simulation.kafka.partitioner import partition_of
from tests.simulation.loop import SimulationLoop
from tests.simulation.network import WatchedBroker
from tests.simulation.parts import Part
from tests.simulation.script import START, time_at
from tests.simulation.sink import SinkContext, StoreServer, order_of, run_sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from tests.simulation.network import ProcessNetwork
    from tests.simulation.parts import OnStop

APPLICATION = APPLICATIONS["cars"]
SNAPSHOTS = APPLICATION.topics.snapshots
LOAD_S, ENDS_S = 300.0, 900.0
"""The time at which the last record is written, and at which everything is quiet for long."""
STARTED_S = 0.001
"""The time after which a process has started."""
DEVICES = ("d0", "d1", "d2", "d3")
FIXED, FRESH = range(40), 40
FIRST_FRESH = secrets.randbelow(1 << 32)


class SinksAlone:
    """A broker, a store and sinks. The topic of the snapshots is created again once or twice."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = Random(seed)
        self._loop = SimulationLoop()  # type: ignore[abstract]  # it has what asyncio's tasks and futures need
        self._broker = WatchedBroker(self._loop, START, Random(f"{seed} broker"))
        self._store = StoreServer(Random(f"{seed} store"))
        self._partitions = self._random.choice([1, 1, 2])
        self._batch = self._random.choice([1, 2, 1000])
        self._versions = dict.fromkeys(DEVICES, 0)
        self._expected: dict[str, int | None] = {}
        """The last version of each device in the present topic; None if that is removed."""
        self._recreated = 0
        names = ["sink-0", "sink-1"][: self._random.choice([1, 1, 2])]
        self._sinks = [Part(name, str(seed), self._loop, self._broker, self._run_sink) for name in names]

    def problems(self) -> list[str]:
        """Play the script of the seed, and return what is wrong at its end."""
        self._loop.run_until_complete(self._play())
        found = list(self._judged())
        self._loop.run_until_complete(self._unwind())
        return found

    # The script

    async def _play(self) -> None:
        random = self._random
        for topic in APPLICATION.catalogue():
            self._broker.topics.create(NewTopic(topic.name, self._partitions, 1, topic.config()))
        for sink in self._sinks:
            sink.start()
        for at in sorted(random.uniform(40.0, 200.0) for _ in range(random.choice([1, 1, 2]))):
            lasts = random.uniform(0.5, 20.0)
            self._at(at, partial(self._recreate, lasts))
            for _ in range(random.choice([2, 10, 30])):
                self._at(at + random.uniform(0.0, lasts + 5.0), self._write)
            for _ in range(random.randint(0, 4)):
                self._at(at + random.uniform(0.0, lasts + 10.0), self._fault(random.uniform(1.0, 40.0)))
        for _ in range(random.randint(5, 30)):
            self._at(random.uniform(1.0, LOAD_S), self._write)
        await asyncio.sleep(ENDS_S)

    def _at(self, time: float, act: Callable[[], None]) -> None:
        self._loop.call_at(time, act, context=Context())

    def _write(self) -> None:
        """Write a snapshot of a device, or remove its window."""
        device, start = self._random.choice(DEVICES), time_at(0.0)
        value = None
        if self._random.random() < 0.8 or not self._versions[device]:
            self._versions[device] += 1
            order = {"epoch": 1, "version": self._versions[device]}
            value = orjson.dumps({"device_id": device, "first_seen": start, **order, "as_of": start, "state": {}})
        self._expected[device] = None if value is None else self._versions[device]
        place = Partition(SNAPSHOTS, partition_of(device.encode(), self._partitions))
        _ = self._broker.append(place, Output(SNAPSHOTS, window_key(device, start), value, place.number))

    def _recreate(self, lasts: float) -> None:
        """Stop the sinks for a while, and create the topic again."""
        for sink in self._sinks:
            down_s, interrupted_s = lasts * self._random.random(), self._random.uniform(1.0, 40.0)
            sink.crash(down_s)
            if self._random.random() < 0.7:
                self._at(self._loop.time() + down_s + STARTED_S, self._interruption(sink, interrupted_s))
        config = self._broker.topics.topic(SNAPSHOTS).config
        self._broker.delete_topic(SNAPSHOTS)
        self._broker.topics.create(NewTopic(SNAPSHOTS, self._partitions, 1, config))
        self._expected.clear()
        self._recreated += 1

    def _interruption(self, sink: Part, lasts: float) -> Callable[[], None]:
        """Kill or freeze a sink before it has the answer to one of its next requests to the broker."""
        amount, kills = self._random.randint(1, 20), self._random.random() < 0.5
        return lambda: sink.interrupt(amount, lambda: sink.crash(lasts) if kills else self._freeze(sink, lasts))

    def _fault(self, lasts: float) -> Callable[[], None]:
        sink = self._random.choice(self._sinks)
        faults: list[Callable[[], None]] = [
            self._interruption(sink, lasts),
            lambda: sink.crash(lasts),
            lambda: sink.stop(lasts),
            lambda: self._freeze(sink, lasts),
            lambda: self._lose_store(self._random.choice(["away", "hang", "unacknowledged"]), lasts),
        ]
        return self._random.choice(faults)

    def _freeze(self, sink: Part, lasts: float) -> None:
        process = sink.process
        sink.freeze()
        self._at(self._loop.time() + lasts, lambda: sink.thaw(process))

    def _lose_store(self, fault: str, lasts: float) -> None:
        self._store.fault = fault
        self._at(self._loop.time() + lasts, lambda: setattr(self._store, "fault", ""))

    async def _run_sink(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:
        random = Random(f"{self._seed} {self._loop.time()}")
        context = SinkContext(APPLICATION, self._loop, self._broker, network, self._store, now, random, self._batch)
        await run_sink(context, lambda sink: on_stop(sink.stop))

    async def _unwind(self) -> None:
        processes = [process for sink in self._sinks for process in sink.processes]
        for sink in self._sinks:
            sink.cut(1)
        for process in processes:
            self._loop.unwind(process)
        await asyncio.wait([task for process in processes for task in process.tasks])

    # Its end

    def _judged(self) -> Iterator[str]:
        yield from map(repr, [*self._loop.errors, *(error for sink in self._sinks for error in sink.errors)])
        if self._store.lowered > self._recreated * self._partitions:
            yield f"the sinks have moved a position back {self._store.lowered} times"
        logs = self._broker.topics.topic(SNAPSHOTS).logs
        ends = {number: log.end for number, log in enumerate(logs)}
        positions = self._store.state.positions
        if any(positions.get(number, 0) != end for number, end in ends.items() if end):
            yield f"the store is at {positions} of {ends}"
        rows = {key: order_of(row)[2] for (key, _), row in self._store.state.rows.items()}
        for device, version in self._expected.items():
            if rows.get(device) != version:
                yield f"the store has {rows.get(device)} of {device}, and {version} is the last"


@pytest.mark.parametrize("first", FIXED[::20])
def test_fixed_seeds_of_recreated_topics(first: int) -> None:
    found = {seed: SinksAlone(seed).problems() for seed in range(first, first + 20)}
    assert {seed: problems for seed, problems in found.items() if problems} == {}


def test_fresh_seeds_of_recreated_topics() -> None:
    found = {seed: SinksAlone(seed).problems() for seed in range(FIRST_FRESH, FIRST_FRESH + FRESH)}
    assert {seed: problems for seed, problems in found.items() if problems} == {}
