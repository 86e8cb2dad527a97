"""Runs `stateloop redrive` with the clients of a simulation."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from contracts.errors import StateloopError
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from services.enrichment.calls.assembly import Runtime
from services.enrichment.settings import ApiSettings
from services.runtime.broker_clock import BrokerClock
from services.runtime.worker.bounded import run_bounded
from services.tools.redrive.commands import newest_input_ms
from services.tools.redrive.dead_letters import DeadLetterFilter
from services.tools.redrive.redrive import RedriveHandler, RedriveRun
from services.tools.redrive.webhooks import Webhooks
from tests.simulation.api import StubTransport
from tests.simulation.application import WEBHOOK
from tests.simulation.kafka.admin import ModelAdmin
from tests.simulation.kafka.clients import ModelKafka

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime
    from random import Random

    from contracts import Application, Policy
    from tests.simulation.api import ApiStub
    from tests.simulation.network import ProcessNetwork, WatchedBroker

AGAIN_S = 5.0
"""The pause before somebody starts it again after an error."""


@dataclass(frozen=True)
class RedriveContext:
    """The parts of a redrive. `now` is its clock."""

    application: Application
    broker: WatchedBroker
    network: ProcessNetwork
    api: ApiStub
    now: Callable[[], datetime]
    random: Random


async def run_redrive(context: RedriveContext) -> AsyncIterator[None]:
    """Redrive all dead letters, again until there is no error. Yield when a run begins."""
    is_complete = False
    while not is_complete:
        yield
        try:
            await _run(context)
            is_complete = True
        except StateloopError:
            await asyncio.sleep(AGAIN_S)


async def _run(context: RedriveContext) -> None:
    application, kafka = context.application, ModelKafka(context.broker, context.network)
    loop_time = asyncio.get_running_loop().time
    runtime = Runtime(clock=loop_time, now=context.now, draw=context.random.uniform)

    def connect(_: ApiSettings, api: str, __: Policy) -> nullcontext[StubTransport]:
        return nullcontext(StubTransport(context.api, api, "redrive"))

    async with AsyncExitStack() as stack:
        producer = kafka.producer("redrive")
        stack.push_async_callback(producer.close)
        broker_clock = BrokerClock(loop_time)
        broker_clock.note(newest_input_ms(ModelAdmin(context.broker, context.network), [application]))
        run = RedriveRun(kafka.reader("redrive"), producer, context.now, broker_clock, _at_once, lambda _: None)
        webhooks = Webhooks(_settings(), application, stack, connect=connect, given=runtime)
        handler = RedriveHandler(application, DeadLetterFilter(), run, webhooks)
        await run_bounded(handler, kafka.reader("redrive"), application.topics.dead_letters, Counts(CATALOGUE))


@cache
def _settings() -> ApiSettings:
    return ApiSettings.model_validate({"application": "simulated", "apis": {WEBHOOK.api: "http://pager"}})


async def _at_once() -> None:
    """Wait for nothing: the rate is not limited."""
