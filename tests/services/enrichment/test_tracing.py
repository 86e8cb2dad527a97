"""A trace through the whole loop: a device, the fold, the worker with real HTTP, and around again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typing_extensions import override

from contracts import Application, Topics
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from contracts.planning.request import Request
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Record, timestamp_ms
from services.enrichment.calls.assembly import assemble
from services.enrichment.calls.caller import Outcome
from services.enrichment.calls.transport import HttpTransport
from services.enrichment.errors import TracingMissingError
from services.enrichment.feedback import feedback
from services.enrichment.service import open_tracing
from services.enrichment.settings import EnrichmentSettings
from services.enrichment.tracing import Tracing
from tests.services.enrichment.calls.calling import BOUNDS
from tests.services.enrichment.fleet import QUICK, START, Car, Seen, owner, quote, street
from tests.services.enrichment.in_memory import Log, at_work, until
from tests.services.enrichment.registry import Registry
from tests.services.runtime.in_memory import InMemoryProducer
from tests.traced import context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from opentelemetry.sdk.trace import ReadableSpan

    from contracts.wire import Snapshot
    from services.enrichment.partition_state import PartitionState
    from services.runtime.kafka.values import Output
    from services.runtime.worker.worker import Worker

DEVICE = context(7)
"""A trace context of the device's own tracer."""
WANTED = ("enrich owner", "enrich quote", "enrich street")


class TracedSeen(Seen):
    traceparent: str | None = None


app = Application(
    name="fleet",
    event=TracedSeen,
    state=Car,
    enrichments=(owner, street, quote),
    apis={"registry": QUICK},
    topics=Topics(replay=True),
    traced=True,
)


class Hearing(Registry):
    """Notes the context that comes with each call."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: dict[str, str | None] = {}

    @override
    def _log(self, request: web.Request) -> None:
        super()._log(request)
        self.heard[request.path] = request.headers.get("traceparent")


class Loop(InMemoryProducer):
    """Kafka and the job in memory: what the worker writes becomes its next snapshot."""

    def __init__(self) -> None:
        self.log = Log([])
        self.feedback: dict[str, str | None] = {}
        self._decoder, self._fold = Decoder(app), Fold(app)
        self._sent = 0

    def send_event(self, plate: str, traceparent: str | None) -> None:
        """An event, as a device sends it."""
        event = {"device_id": "d1", "event_id": "1", "first_seen": START.isoformat(), "ts": START.isoformat()}
        value = orjson.dumps(event | {"plate": plate, "traceparent": traceparent})
        (delta,) = self._decoder.event(self._record("events", value))
        self._publish(self._fold.add(delta))

    @override
    async def write(self, output: Output) -> None:
        assert output.timestamp_ms >= 0
        if output.topic == app.topics.feedback:
            value = output.value or b""
            answer = orjson.loads(value)
            self.feedback[answer["enrichment"]] = answer.get("traceparent")
            self._publish(self._fold.add(self._decoder.feedback(self._record(output.topic, value))))

    def _record(self, topic: str, value: bytes) -> Record:
        self._sent += 1
        return Record(topic, 0, self._sent, timestamp_ms(START) + 1000 * self._sent, b"d1", value)

    def _publish(self, snapshot: Snapshot | None) -> None:
        assert snapshot is not None
        self.log.values.append(snapshot.encode())


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@asynccontextmanager
async def working(url: str, loop: Loop, tracing: Tracing | None) -> AsyncIterator[Worker[PartitionState]]:
    """A worker of the application, with its real calling side."""
    async with HttpTransport(url, BOUNDS, clock=time.monotonic, span=tracing.call if tracing else None) as transport:
        calls = assemble(app, {"registry": transport}, Counts(CATALOGUE))
        caller = tracing.traced(calls.caller) if tracing else calls.caller
        async with at_work(
            app,
            loop.log,
            caller=caller,
            availability=calls.availability,
            producer=loop,
            counts=Counts(CATALOGUE),
            stop_within=0,
        ) as worker:
            yield worker
        calls.close()


def span_id(traceparent: str | None) -> str:
    return (traceparent or "").split("-")[2]


def own(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def parent(span: ReadableSpan) -> str:
    return f"{span.parent.span_id:016x}" if span.parent else "none"


async def test_one_trace_spans_the_device_and_the_loop(exporter: InMemorySpanExporter) -> None:
    loop, tracing = Loop(), Tracing("fleet", SimpleSpanProcessor(exporter))
    async with Hearing().serving() as registry:
        assert isinstance(registry, Hearing)
        async with working(registry.url, loop, tracing):
            loop.send_event("P1", DEVICE)
            await until(lambda: len(loop.feedback) == 3)
    spans = exporter.get_finished_spans()
    requests = {span.name: span for span in spans if span.name.startswith("enrich ")}
    calls = {parent(span): span for span in spans if span.name == "GET"}
    assert sorted(requests) == sorted(WANTED)
    # event → snapshot → request
    assert parent(requests["enrich owner"]) == parent(requests["enrich quote"]) == span_id(DEVICE)
    for name, path in (("owner", "/owners/P1"), ("quote", "/quotes/P1"), ("street", "/streets")):
        request = requests[f"enrich {name}"]
        # request → call → the API
        assert span_id(registry.heard[path]) == own(calls[own(request)])
        # request → feedback
        assert span_id(loop.feedback[name]) == own(request)
    # feedback → snapshot → the request that it made possible
    assert parent(requests["enrich street"]) == own(requests["enrich owner"])
    assert {f"{span.context.trace_id:032x}" for span in spans if span.context} == {DEVICE.split("-")[1]}
    assert (requests["enrich owner"].attributes or {})["stateloop.status"] == "result"


async def test_a_failed_call_and_its_retry_are_separate_spans(exporter: InMemorySpanExporter) -> None:
    loop, tracing = Loop(), Tracing("fleet", SimpleSpanProcessor(exporter))
    async with Hearing().serving() as registry, working(registry.url, loop, tracing):
        loop.send_event("down", DEVICE)
        await until(lambda: "owner" in loop.feedback)
    spans = exporter.get_finished_spans()
    (request,) = (span for span in spans if span.name == "enrich owner")
    calls = [span for span in spans if parent(span) == own(request)]
    assert [(span.attributes or {})["http.response.status_code"] for span in calls] == [503] * 4
    assert {span.status.status_code.name for span in (*calls, request)} == {"ERROR"}
    assert request.status.description == "status 503"
    assert "down" not in str([span.attributes for span in calls]), "a path may hold what identifies a person"


async def test_a_failed_connection_finishes_its_span(exporter: InMemorySpanExporter) -> None:
    loop, tracing = Loop(), Tracing("fleet", SimpleSpanProcessor(exporter))
    async with Hearing().serving() as registry:
        url = registry.url
    async with working(url, loop, tracing):
        loop.send_event("P1", None)
        await until(lambda: any(span.name == "GET" for span in exporter.get_finished_spans()))
    calls = [span for span in exporter.get_finished_spans() if span.name == "GET"]
    assert "ConnectionRefusedError" in {(span.attributes or {})["error.type"] for span in calls}


async def test_without_a_context_a_request_begins_a_trace(exporter: InMemorySpanExporter) -> None:
    loop, tracing = Loop(), Tracing("fleet", SimpleSpanProcessor(exporter))
    async with Hearing().serving() as registry, working(registry.url, loop, tracing):
        loop.send_event("P1", "nonsense")
        await until(lambda: len(loop.feedback) == 3)
    requests = {span.name: parent(span) for span in exporter.get_finished_spans() if span.name in WANTED[:2]}
    assert requests == {"enrich owner": "none", "enrich quote": "none"}


async def test_a_worker_without_traces_hands_the_context_on() -> None:
    loop = Loop()
    async with Hearing().serving() as registry:
        assert isinstance(registry, Hearing)
        async with working(registry.url, loop, None):
            loop.send_event("P1", DEVICE)
            await until(lambda: len(loop.feedback) == 3)
    assert set(loop.feedback.values()) == {DEVICE}
    assert set(registry.heard.values()) == {None}


def test_feedback_of_an_application_that_is_not_traced_has_no_context() -> None:
    request = Request("d1", START, "owner", "f", 1, START, {})
    assert b"traceparent" not in feedback(request, Outcome("absence"), START).encode()


def test_a_line_of_the_log_has_the_id_of_its_trace(exporter: InMemorySpanExporter) -> None:
    tracing = Tracing("fleet", SimpleSpanProcessor(exporter))
    assert tracing.trace_id() is None

    class QueryOptions:
        async def answer(self, _: Request) -> Outcome:
            return Outcome("absence", reason=tracing.trace_id())

    request = Request("d1", START, "owner", "f", 1, START, {}, traceparent=DEVICE)
    assert asyncio.run(tracing.traced(QueryOptions()).answer(request)).reason == DEVICE.split("-")[1]


def test_where_traces_are_off_nothing_of_them_is_imported() -> None:
    code = "import sys, services.enrichment.__main__; print([one for one in sys.modules if 'opentelemetry' in one])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_traces_without_their_packages_are_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "services.enrichment.tracing", None)
    assert open_tracing(EnrichmentSettings(application="fleet"), ["fleet-enrichment"]) is None
    with pytest.raises(TracingMissingError, match=r"pip install 'stateloop\[tracing\]'"):
        open_tracing(EnrichmentSettings(application="fleet", tracing=True), ["fleet-enrichment"])


async def test_spans_are_sent_to_the_collector_that_opentelemetrys_variables_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    received: list[bytes] = []

    async def receive(request: web.Request) -> web.Response:
        received.append(await request.read())
        return web.Response()

    class Silent:
        async def answer(self, _: Request) -> Outcome:
            return Outcome("absence")

    collector = web.Application()
    collector.router.add_post("/v1/traces", receive)
    async with TestServer(collector) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", str(server.make_url("")))
        tracing = open_tracing(EnrichmentSettings(application="fleet", tracing=True), ["fleet-enrichment"])
        assert tracing is not None
        await tracing.traced(Silent()).answer(Request("d1", START, "owner", "f", 1, START, {}))
        await asyncio.to_thread(tracing.close)
    assert [b"enrich owner" in body and b"fleet-enrichment" in body for body in received] == [True]
