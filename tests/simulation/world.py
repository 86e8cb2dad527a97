"""Runs a script: a model broker, a model of the job, the real code of workers, and a stub of the APIs."""

from __future__ import annotations

import asyncio
from contextvars import Context
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from services.runtime.errors import OlderCheckpointError
from services.runtime.job_progress import JobProgress
from services.runtime.kafka.values import NewTopic, Partition
from tests.simulation.api import ApiStub
from tests.simulation.application import HEAVY, WEBHOOK, application_of
from tests.simulation.derive import POLLS, DeriveContext, run_derive
from tests.simulation.growth import Growth
from tests.simulation.inputs import Inputs
from tests.simulation.job import JobModel
from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.kafka.network import Network
from tests.simulation.loop import SimulationLoop
from tests.simulation.network import NO_POLLS, WatchedBroker
from tests.simulation.parts import Part
from tests.simulation.query import Checkpoint, JobContext
from tests.simulation.quiet import quiet_times
from tests.simulation.recorded import Ledgers
from tests.simulation.redrive import RedriveContext, run_redrive
from tests.simulation.script import (
    ENDS_S,
    FOLLOWED_S,
    START,
    Compact,
    Fault,
    FormerJob,
    Redrive,
    Savepoint,
)
from tests.simulation.sink import SinkContext, StoreServer, run_sink
from tests.simulation.sizes import small_sizes
from tests.simulation.states import EPOCH, JobStates
from tests.simulation.worker import WorkerContext, run_webhook, run_worker, worker_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts import Application
    from tests.simulation.network import ProcessNetwork
    from tests.simulation.parts import Main, OnStop
    from tests.simulation.script import Script, Step


class World:
    """One run of a script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.application: Application = application_of(script)
        self.loop = SimulationLoop()  # type: ignore[abstract]  # it has what asyncio's tasks and futures need
        self.broker = WatchedBroker(self.loop, START, Random(f"{script.seed} broker"))
        self.api = ApiStub(Random(f"{script.seed} api"), script.slowest_s)
        self._create_topics()
        self._inputs = Inputs(self.application, self.broker)
        self._states = JobStates(self.application, self.broker, self.loop)
        self._lagging: list[Partition] = []
        self._is_broker_away = False
        self._redrives = self._former_jobs = 0
        self._committed: dict[float, dict[str, dict[int, int]]] = {}
        self.parts = {"job": Part("job", str(script.seed), self.loop, self.broker, self._run_job, NO_POLLS)}
        self.store = StoreServer(Random(f"{script.seed} store"), refused=script.refused)
        for number in range(script.sinks):
            name = f"sink-{number}"
            self.parts[name] = Part(name, str(script.seed), self.loop, self.broker, self._sink(name))
        for number in range(script.derivers):
            name = f"derive-{number}"
            self.parts[name] = Part(name, str(script.seed), self.loop, self.broker, self._run_derive, POLLS)
            if not script.grows:
                name = f"webhook-{number}"
                self.parts[name] = Part(name, str(script.seed), self.loop, self.broker, self._webhook(name))
        for number in range(script.workers if self.application.enrichments else 0):
            name = f"worker-{number}"
            self.parts[name] = Part(name, str(script.seed), self.loop, self.broker, self._worker(name))
        surroundings = self.application, self.broker, self.loop, self.parts
        self._growth = Growth(*surroundings, self._states.rebuild, Random(f"{script.seed} growth"))

    def run(self) -> Ledgers:
        """Run the script to its end."""
        self.loop.run_until_complete(self._play())
        ledgers = self._ledgers()
        self.loop.run_until_complete(self._unwind())
        return ledgers

    async def _play(self) -> None:
        for part in self.parts.values():
            part.start()
        for step in sorted(self._script.steps, key=lambda step: step.at):
            self._at(step.at, partial(self._take, step))
        for at in quiet_times(self._script):
            self._at(at, partial(self._note_offsets, at))
        await asyncio.sleep(ENDS_S - FOLLOWED_S)
        admin = ModelAdmin(self.broker, Network(self.loop, Random(0)))
        self._progress = (
            JobProgress(admin, self.application.topics.snapshots).read(range(self._states.partitions)) or {}
        )
        await asyncio.sleep(FOLLOWED_S)

    async def _unwind(self) -> None:
        """Let the code of all processes clean up, so that nothing is left of the run."""
        processes = [process for part in self.parts.values() for process in part.processes]
        for part in self.parts.values():
            part.cut(1)
        for process in processes:
            self.loop.unwind(process)
        tasks = [task for process in processes for task in process.tasks]
        await asyncio.wait(tasks)

    # Steps

    def _take(self, step: Step) -> None:
        if isinstance(step, Fault):
            self._begin(step)
        elif isinstance(step, Redrive):
            self._start_beside(f"redrive-{len(self.parts)}", self._run_redrive)
        elif isinstance(step, Savepoint):
            self._states.save()
        elif isinstance(step, FormerJob):
            if self._states.former is not None:
                self._start_beside(f"former-{len(self.parts)}", self._run_former)
        elif isinstance(step, Compact):
            self._compact(step)
        else:
            self._inputs.write(step)

    def _start_beside(self, name: str, main: Main) -> None:
        self.parts[name] = part = Part(name, str(self._script.seed), self.loop, self.broker, main)
        part.start()
        part.lose_broker(is_away=self._is_broker_away)

    def _compact(self, step: Compact) -> None:
        """Compact topics, but for those of alerts with a webhook: their records stay for an outage of it."""
        topics, application = self.application.topics, self.application
        delivered = [alerts.name for alerts in application.alerts if alerts.webhook]
        derived = [topics.derived(name) for name in application.derived_names if name not in delivered]
        for name in [topics.snapshots] if step.topics == "snapshots" else derived:
            for log in self.broker.topics.topic(name).logs:
                log.compact(log.end - 1, EPOCH)

    def _begin(self, fault: Fault) -> None:
        if fault.part == "broker":
            self._lose_broker(fault)
        elif fault.kind == "growth":
            self._grow(int(fault.amount))
        elif fault.kind == "start":
            self._start_beside(f"start-{len(self.parts)}", self._growth.start_job)
        elif fault.kind == "again":
            self._start_beside(f"again-{len(self.parts)}", self._growth.run_again)
        elif (part := self.parts.get(fault.part)) is not None:
            if fault.kind in {"interrupted", "suspended"}:
                part.interrupt(int(fault.amount), partial(self._interrupt, part, fault))
            else:
                self._break(part, fault)
        elif fault.part == "store":
            self._lose_store(fault)
        elif fault.part in {*self.application.apis, WEBHOOK.api}:
            self.api.faults[fault.part] = fault.kind, fault.amount
            self._at(fault.at + fault.lasts, lambda: self.api.faults.pop(fault.part, None))

    def _lose_store(self, fault: Fault) -> None:
        if fault.kind == "loss":
            self.store.lose_everything()
            return
        if fault.kind == "rollback":
            backup = self.store.backup()
            self._at(fault.at + fault.lasts, lambda: self.store.restore(backup))
            return
        self.store.fault = fault.kind
        self._at(fault.at + fault.lasts, lambda: setattr(self.store, "fault", ""))

    def _lose_broker(self, fault: Fault) -> None:
        def restore() -> None:
            self._is_broker_away = False
            self.broker.resume()
            for part in self.parts.values():
                part.lose_broker(is_away=False)

        self._is_broker_away = True
        for part in self.parts.values():
            part.lose_broker(is_away=True)
        self._at(fault.at + fault.lasts, restore)

    def _break(self, part: Part, fault: Fault) -> None:
        end = fault.at + fault.lasts
        match fault.kind:
            case "crash":
                part.crash(fault.lasts)
            case "stop":
                part.stop(fault.lasts)
            case "freeze":
                process = part.process
                part.freeze()
                self._at(end, lambda: part.thaw(process))
            case "cut":
                part.cut(1)
                self._at(end, lambda: part.cut(-1))
            case "leaderless":
                part.lose_leaders(1)
                self._at(end, lambda: part.lose_leaders(-1))
            case "clock":
                part.step_clock(fault.amount)
                self._at(end, lambda: part.step_clock(-fault.amount))
            case "rebuild" | "incomplete" | "rollback" | "restore":
                part.crash(fault.lasts)
                self._replace_state(fault.kind)
            case "lag":
                place = Partition(self.application.topics.events, int(fault.amount) % self._script.partitions)
                self._lagging.append(place)
                self._at(end, lambda: self._catch_up(part, place))
            case "unacknowledged":
                part.lose_acknowledgements(int(fault.amount))

    def _interrupt(self, part: Part, fault: Fault) -> None:
        """Kill or freeze a process until the end of a fault that has waited for a request."""
        at, end = self.loop.time(), fault.at + fault.lasts
        if at < end:
            kind = "crash" if fault.kind == "interrupted" else "freeze"
            self._break(part, replace(fault, kind=kind, at=at, lasts=end - at))

    def _catch_up(self, job: Part, place: Partition) -> None:
        """Let the job read a partition again."""
        self._lagging.remove(place)
        job.wake()

    def _replace_state(self, kind: str) -> None:
        """Replace the state of the job, unless topics grow, or the command reaches no broker."""
        if self._growth.is_running:
            return
        states = self._states
        if kind == "rebuild":
            states.rebuild()
        elif not self._is_broker_away:
            others = {"incomplete": states.rebuild_incomplete, "rollback": states.roll_back, "restore": states.restore}
            others[kind]()

    def _grow(self, partitions: int) -> None:
        if partitions > self._states.partitions and not self._growth.is_running:
            self._growth.begin(partitions)
            if (former := self.parts.get("growth")) is None:
                self._start_beside("growth", self._growth.run)
            else:
                former.crash(0.0)

    def _at(self, time: float, act: Callable[[], object]) -> None:
        self.loop.call_at(time, act, context=Context())

    # Parts

    async def _run_job(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it is only killed
        await self._job(self._states.checkpoint, network, now).run()

    async def _run_former(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it ends by itself
        assert self._states.former is not None
        self._former_jobs += 1
        try:
            await self._job(Checkpoint(self._states.former), network, now).run()
        except OlderCheckpointError:
            self._former_jobs -= 1
        await asyncio.Event().wait()

    def _job(self, checkpoint: Checkpoint, network: ProcessNetwork, now: Callable[[], datetime]) -> JobModel:
        script, random = self._script, Random(f"{self._script.seed} query {self.loop.time()}")
        sizes = self._states.partitions, script.batch_s, script.backlog
        context = JobContext(self.application, *sizes, checkpoint, self.broker, network, now, random, self._lagging)
        return JobModel(context)

    def _worker(self, name: str) -> Main:
        async def main(network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:
            await run_worker(self._worker_context(name, network, now), lambda worker: on_stop(worker.stop))

        return main

    def _webhook(self, name: str) -> Main:
        async def main(network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:
            context = self._worker_context(name, network, now)
            await run_webhook(context, HEAVY, WEBHOOK, lambda worker: on_stop(worker.stop))

        return main

    def _worker_context(self, name: str, network: ProcessNetwork, now: Callable[[], datetime]) -> WorkerContext:
        script, random = self._script, Random(f"{self._script.seed} {name} {self.loop.time()}")
        settings = worker_settings(
            script.unfinished, script.deferred, script.uncommitted, script.failures, script.in_flight
        )
        return WorkerContext(self.application, name, settings, self.loop, self.broker, network, self.api, now, random)

    def _sink(self, name: str) -> Main:
        async def main(network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:
            random = Random(f"{self._script.seed} {name} {self.loop.time()}")
            clients = self.loop, self.broker, network, self.store
            context = SinkContext(self.application, *clients, now, random, self._script.sink_batch)
            await run_sink(context, lambda sink: on_stop(sink.stop))

        return main

    async def _run_derive(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it has no clock
        context = DeriveContext(self.application, self.loop, self.broker, network)
        await run_derive(context, lambda worker: on_stop(worker.stop))

    async def _run_redrive(self, network: ProcessNetwork, now: Callable[[], datetime], on_stop: OnStop) -> None:  # noqa: ARG002  # it ends by itself
        random = Random(f"{self._script.seed} redrive {self.loop.time()}")
        context = RedriveContext(self.application, self.broker, network, self.api, now, random)
        async for _ in run_redrive(context):
            self._redrives += 1
        await asyncio.Event().wait()

    def _create_topics(self) -> None:
        for topic in self.application.catalogue():
            self.broker.topics.create(NewTopic(topic.name, self._script.partitions, 1, topic.config()))

    # Ledgers

    def _ledgers(self) -> Ledgers:
        application = self.application
        errors = [repr(error) for part in self.parts.values() for error in part.errors]
        return Ledgers(
            {topic.name: self.broker.written[topic.name] for topic in application.catalogue()},
            self.api.calls,
            self._committed,
            errors + [repr(error) for error in self.loop.errors],
            self._states.checkpoint.last,
            self.store,
            self._progress,
            self._redrives,
            self.api.deliveries,
            self._former_jobs,
            self._growth.times,
            self._states.savepoints.refusals,
            {topic.name: self.broker.topics.topic(topic.name).logs for topic in application.catalogue()},
        )

    def _note_offsets(self, at: float) -> None:
        self._committed[at] = {
            name: {number: offset.offset for (_, number), offset in sorted(group.offsets.items())}
            for name, group in self.broker.groups.by_name.items()
        }


def run(script: Script) -> Ledgers:
    """Run a script, and return what it has left."""
    with small_sizes():
        return World(script).run()
