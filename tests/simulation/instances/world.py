"""Runs a script: a model broker, a model of the job, real instances of the query service, and readers of all keys."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import ExitStack
from contextvars import Context
from functools import partial
from math import ceil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

from contracts import Suite
from services.query.ingest import partition_counts
from services.query.limits import WatchLimits
from services.query.store import StatePartition, scan, store, write_batch
from services.runtime.kafka.values import NewTopic, Partition
from tests.simulation.instances.client_reader import ClientReader
from tests.simulation.instances.clients import SimulatedClient
from tests.simulation.instances.compaction import RETENTION_S, compact
from tests.simulation.instances.connections import NOTED_S, MonotonicTime
from tests.simulation.instances.followers import followers
from tests.simulation.instances.growth import NAME as GROWTH
from tests.simulation.instances.growth import Growth, Layout
from tests.simulation.instances.instance import SimulatedInstance, Surroundings, causes
from tests.simulation.instances.job import APPLICATIONS, Job, KeyHistory, state_of
from tests.simulation.instances.ledgers import Ledgers
from tests.simulation.instances.reader import Answers, KeyReader
from tests.simulation.instances.reads import Reads
from tests.simulation.instances.requests import Requests
from tests.simulation.instances.script import CLIENTS, READ_S, Fault, Written
from tests.simulation.instances.watchers import Watcher, watch_filters
from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.kafka.network import Network
from tests.simulation.loop import SimulationLoop
from tests.simulation.network import WatchedBroker
from tests.simulation.script import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from services.client.watch import WatchFilter
    from tests.simulation.instances.followers import Follower
    from tests.simulation.instances.script import Script
    from tests.simulation.kafka.log import PartitionLog

REPEAT_S = 0.3
"""Between two records that the job writes once more."""
SMALL = (
    (store, "BULK_SIZE", 2),
    (write_batch, "CLEAR_SIZE", 2),
    (scan, "MAX_SKIPPED", 2),
)
"""Limits that no script would reach."""
WAITING_KEYS, WAITING_WINDOWS = 3, 12
"""The names that may wait for a client: the windows of one key have room, and all keys of one instance do not."""
PROGRESS_S = 1.0
"""Between two batches of the job."""
NOTICED_S = 3.0
"""The time after which an instance without another fault has noticed that the topic is empty."""


class World:
    """One run of a script."""

    def __init__(self, script: Script, folder: Path) -> None:
        self._script = script
        self.loop = SimulationLoop()  # type: ignore[abstract]  # it has what asyncio's tasks and futures need
        self.loop.thread_s = partial(Random(f"{script.seed} threads").uniform, 0.0, 0.05)
        self.broker = WatchedBroker(self.loop, START, Random(f"{script.seed} broker"))
        application = APPLICATIONS[script.application]
        self._topics = {
            topic.name: NewTopic(topic.name, script.partitions, 1, topic.config()) for topic in application.catalogue()
        }
        for topic in self._topics.values():
            self.broker.topics.create(topic)
        self._snapshots = application.topics.snapshots
        network = Network(self.loop, Random(f"{script.seed} job"))
        self.job = Job(script.application, script.partitions, self.broker, ModelAdmin(self.broker, network))
        self.requests = Requests(
            self.loop, Random(f"{script.seed} requests"), script.loss, script.slowest_s, script.room
        )
        self._growth = Growth(application, self.broker, self.loop, script.seed, self._resume)
        self._layouts = [Layout(0.0, 0.0, script.partitions)]
        self.around = Surroundings(
            script.seed,
            self.loop,
            self.broker,
            self.requests,
            Suite(application),
            state_of(script.application),
            round(RETENTION_S * 1000),
            script.replicas,
            script.batch,
            script.broker_s,
            WatchLimits(
                waiting_keys=WAITING_WINDOWS if self.job.has_windows else WAITING_KEYS,
                remembered=2 if script.is_small else WatchLimits.remembered,
            ),
        )
        for name in "abcd"[: script.instances]:
            random = Random(f"{script.seed} {name}")
            self.requests.instances[name] = SimulatedInstance(name, folder / name, self.around, random)
        self.answers = Answers(self.job)
        self._waiting: list[Written] = []
        """What the job writes when the broker is back."""
        self._filters: dict[str, WatchFilter] = {}
        """What each client watches."""
        self._followers: list[Follower] = []
        self._outages = self._leaderless = 0
        self._disturbed = dict.fromkeys(self.requests.instances, 0.0)
        """The end of the last fault of each instance."""
        self._refilled_at = 0.0
        """The time at which the topic has its records again, after a recreation."""

    def run(self) -> Ledgers:
        """Run the script to its end."""
        self.loop.run_until_complete(self._play())
        states = {key: history.states for key, history in self.job.histories.items()}
        errors = [*self.around.errors, *map(repr, (*self.loop.errors, *self._growth.errors))]
        times = {key: history.times for key, history in self.job.histories.items()}
        windows = {key: history.windows_then for key, history in self.job.histories.items()}
        found = Ledgers(
            self.answers.list,
            self.answers.of_windows,
            self.answers.watched,
            self.answers.marked,
            list(self._filters),
            [following for follower in self._followers for following in follower.followings],
            states,
            times,
            {key: history.offsets for key, history in self.job.histories.items()},
            windows,
            self.job.last_versions,
            self.job.expiry,
            self._layouts,
            errors,
            [*self._unready()],
        )
        self.loop.run_until_complete(self._unwind())
        return found

    async def _play(self) -> None:
        random = Random(f"{self._script.seed} readers")
        for instance in self.requests.instances.values():
            self._at(random.uniform(0.0, 3.0), instance.start)
        for step in sorted(self._script.steps, key=lambda step: step.at):
            self._at(step.at, partial(self._take, step))
        keys = sorted({step.key for step in self._script.steps if isinstance(step, Written)})
        self.job.histories |= {key: KeyHistory(self.loop.time, has_windows=self.job.has_windows) for key in keys}
        self._note_metadata()
        await asyncio.sleep(3.0)
        self._record_progress()
        reads = Reads(self.around.state.name, keys, random, has_windows=self.job.has_windows)
        readers = [KeyReader(key, reads, self.requests, self.answers, random).run() for key in keys]
        watchers = [watcher.run() for watcher in self._watchers(keys)]
        through_client = [self._client_reader(keys).run()] if keys else []
        self._followers = [*followers(self._script, self.around.state.name, keys, self.requests)]
        following = [follower.run() for follower in self._followers]
        reading = [asyncio.ensure_future(work) for work in (*readers, *watchers, *through_client, *following)]
        await asyncio.sleep(self._script.quiet_at + READ_S - self.loop.time())
        for task in reading:
            task.cancel()
        ended = await asyncio.gather(*reading, return_exceptions=True)
        self.around.errors.extend(causes(error) for error in ended if isinstance(error, Exception))
        await self._replicate()

    async def _replicate(self) -> None:
        """Wait for replicas that answer nobody, as long as a lost store needs to read everything, record by record."""
        records = sum(log.end for log in self.broker.topics.topic(self._snapshots).logs)
        for _ in range(ceil(records * self._script.broker_s / PROGRESS_S)):
            if any(self._unready()):
                await asyncio.sleep(PROGRESS_S)

    def _client_reader(self, keys: Sequence[str]) -> ClientReader:
        random = Random(f"{self._script.seed} client")
        client = SimulatedClient(self.requests, random)
        return ClientReader(client, self.around.state, keys, self.answers, random, self._script.quiet_at)

    def _watchers(self, keys: Sequence[str]) -> Iterator[Watcher]:
        seed, has_windows = self._script.seed, self.job.has_windows
        self._filters = watch_filters(self.around.state.name, keys, seed, has_windows=has_windows)
        for name, wanted in self._filters.items():
            random = Random(f"{self._script.seed} watcher {name}")
            yield Watcher(name, [wanted], self.requests, self.answers, random)

    def _unready(self) -> Iterator[str]:
        """Yield what the instances lack: each partition has a lease, and replicas that have read everything.

        The group assigns a partition that was added to nobody for a while, so there is one replica less of it.
        """
        if self._growth.is_running:
            yield "the growth has not ended"
        running = [one for one in self.requests.instances.values() if one.cluster is not None]
        for number, log in enumerate(self.broker.topics.topic(self._snapshots).logs):
            partition = StatePartition(self.around.state.name, number)
            ready = [one for one in running if one.has_replica(partition, log.end)]
            leases = [one.name for one in running if one.answers_for(partition)]
            replicas = max(1, self._script.replicas - (number >= self._script.partitions))
            if len(leases) != 1 or len(ready) < min(replicas, len(self.requests.instances)):
                yield f"{[one.name for one in ready]} have {partition}, and {leases} answer for it in the end"

    async def _unwind(self) -> None:
        """Let the code of all processes clean up, so that nothing is left of the run."""
        processes = [process for one in self.requests.instances.values() for process in one.processes]
        processes += self._growth.processes
        for instance in self.requests.instances.values():
            instance.close()
        for process in processes:
            self.loop.unwind(process)
        if tasks := [task for process in processes for task in process.tasks]:
            await asyncio.wait(tasks)

    # Steps

    def _take(self, step: Written | Fault) -> None:
        if isinstance(step, Written):
            self._write(step)
        elif step.part in self.requests.instances:
            self._break(self.requests.instances[step.part], step)
        elif step.kind == "away":
            self._lose_broker(step)
        elif step.kind == "leaderless":
            number = self._script.leaderless(step)
            self._lose_leader(self.broker.topics.log(Partition(self._snapshots, number)), step.lasts)
        elif step.kind == "compact":
            compact(self.broker, self._snapshots)
        elif step.part == GROWTH:
            self._growth.break_off(step)
        elif step.kind == "grow":
            self._grow(round(step.amount))
        elif step.kind == "rebuild" and not self._is_job_waiting:
            self.job.rebuild()
        elif step.kind == "recreate" and not self._is_job_waiting:
            self._recreate()

    def _write(self, step: Written) -> None:
        if self._is_job_waiting:
            self._waiting.append(step)
        elif step.kind == "again":
            for number, repeat in enumerate(self.job.repeats(step)):
                self._at(self.loop.time() + number * REPEAT_S, repeat)
        else:
            self.job.write(step)

    def _break(self, instance: SimulatedInstance, fault: Fault) -> None:
        end = fault.at + fault.lasts
        if fault.kind != "clock":
            self._disturb([instance.name], end)
        match fault.kind:
            case "crash":
                instance.kill(fault.lasts)
            case "wipe":
                instance.kill(fault.lasts, loses="folder")
            case "power":
                instance.kill(fault.lasts, loses="unsynced")
            case "stop":
                instance.stop(fault.lasts)
            case "freeze":
                process, requests_first = instance.process, fault.amount > 0
                instance.freeze()
                self._at(end, lambda: instance.thaw(process, requests_first=requests_first))
            case _:
                self._impair(instance, fault, end)

    def _impair(self, instance: SimulatedInstance, fault: Fault, end: float) -> None:
        """Disconnect an instance, or let it know something wrong."""
        match fault.kind:
            case "cut":
                client = CLIENTS[int(fault.amount)]
                instance.cut(client, 1)
                self._at(end, lambda: instance.cut(client, -1))
            case "apart":
                self.requests.apart.append(instance.name)
                self._at(end, lambda: self.requests.apart.remove(instance.name))
            case "late":
                instance.metadata.delay(1)
                self._at(end, lambda: instance.metadata.delay(-1))
            case "clock":
                instance.step_clock(fault.amount)
                self._at(end, lambda: instance.step_clock(-fault.amount))

    def _lose_broker(self, fault: Fault) -> None:
        end = fault.at + fault.lasts
        self._outages += 1
        self._disturb(self._disturbed, end)
        self._growth.lose_broker(is_away=True)
        for instance in self.requests.instances.values():
            instance.lose_broker(is_away=True)
        self._at(end, self._restore_broker)

    def _restore_broker(self) -> None:
        self._outages -= 1
        if self._outages:
            return
        self.broker.resume()
        self._growth.lose_broker(is_away=False)
        self._write_waiting()
        for instance in self.requests.instances.values():
            instance.lose_broker(is_away=False)

    def _lose_leader(self, log: PartitionLog, lasts: float) -> None:
        """Let a partition have no leader for a while. The job cannot end its batch then."""
        self._leaderless += 1
        log.leaderless += 1

        def back() -> None:
            self._leaderless -= 1
            log.leaderless -= 1
            self._write_waiting()

        self._at(self.loop.time() + lasts, back)

    @property
    def _is_job_waiting(self) -> bool:
        return self._outages > 0 or self._leaderless > 0 or self._growth.is_running

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for step in waiting:
            self._write(step)

    def _grow(self, partitions: int) -> None:
        """Stop the job and add partitions, when nothing else of this kind is under way."""
        now = self.loop.time()
        if self._growth.is_running or now < self._refilled_at:
            self._at(now + PROGRESS_S, partial(self._grow, partitions))
        elif partitions > self.job.partitions:
            self.job.finish_repeats()
            self.job.stop()
            self._growth.begin(partitions, is_broker_away=self._outages > 0)

    def _resume(self, partitions: int) -> None:
        """Start the job that uses the new partitions: it publishes each window once."""
        now = self.loop.time()
        self._layouts.append(Layout(self._growth.began, now, partitions))
        self.job.grow(partitions)
        if not self._outages:
            self._write_waiting()

    def _note_metadata(self) -> None:
        """Have the instances note the numbers of partitions, if one is to learn of them late."""
        if any(isinstance(step, Fault) and step.kind == "late" for step in self._script.steps):
            for instance in self.requests.instances.values():
                instance.metadata.note()
            self._at(self.loop.time() + NOTED_S, self._note_metadata)

    def _record_progress(self) -> None:
        """Have the job record its progress, again and again."""
        if not (self._outages or self._leaderless):
            self.job.record_progress()
        self._at(self.loop.time() + PROGRESS_S, self._record_progress)

    def _recreate(self) -> None:
        """Replace the topic by an empty one. The folders of instances that may not notice it are deleted."""
        began = self.loop.time()
        self.broker.delete_topic(self._snapshots)
        self.broker.topics.create(self._topics[self._snapshots]._replace(partitions=self.job.partitions))
        self.job.lose_topic()

        def fill() -> None:
            for name, instance in self.requests.instances.items():
                if self._disturbed[name] + 1.0 >= began or instance.stores_what_it_does_not_read():
                    instance.kill(1.0, loses="folder")
            self.job.rebuild()

        self._refilled_at = began + NOTICED_S
        self._at(self._refilled_at, fill)

    def _disturb(self, names: Iterable[str], until: float) -> None:
        for name in names:
            self._disturbed[name] = max(self._disturbed[name], until)

    def _at(self, time: float, act: Callable[[], object]) -> None:
        self.loop.call_at(time, act, context=Context())


def run(script: Script) -> Ledgers:
    """Run a script, and return what it has left."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for module, name, value in SMALL if script.is_small else ():
            stack.enter_context(patch.object(module, name, value))
        world = World(script, Path(folder))
        stack.enter_context(patch.object(partition_counts, "time", MonotonicTime(world.loop)))
        return world.run()
