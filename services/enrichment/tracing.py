"""OpenTelemetry traces of the worker: one span per request and one per call.

The context comes from the snapshot, and calls and feedback carry it on: the next snapshot is part of the same trace.
The module is imported only if tracing is on, because its packages are optional.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from contracts.model.tracing import FIELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span

    from contracts.planning.request import Request
    from services.enrichment.calls.caller import Enricher, Outcome

W3C = TraceContextTextMapPropagator()
FIRST_ERROR = 400
"""The lowest HTTP status of an error."""


class Tracing:
    """The spans of one worker, named `service`. OpenTelemetry's variables (OTEL_…) set their destination."""

    def __init__(self, service: str, processor: SpanProcessor | None = None) -> None:
        detected = OTELResourceDetector().detect()
        self._provider = TracerProvider(
            resource=Resource({SERVICE_NAME: service}).merge(detected), shutdown_on_exit=False
        )
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("stateloop")

    def traced(self, caller: Enricher) -> Enricher:
        """Return a caller that opens a span for each request."""
        return _Traced(caller, self._tracer)

    @contextmanager
    def call(self, method: str, host: str) -> Iterator[_CallSpan]:
        """Open a span for one call. It has the host only, because path and query may identify a person."""
        facts = {"http.request.method": method, "server.address": host}
        with self._tracer.start_as_current_span(method, None, SpanKind.CLIENT, facts, record_exception=False) as span:
            try:
                yield _CallSpan(span)
            except BaseException as error:
                span.set_attribute("error.type", type(error.__cause__ or error).__name__)
                raise

    def close(self) -> None:
        """Export the remaining spans, within some seconds."""
        self._provider.shutdown()

    @staticmethod
    def trace_id() -> str | None:
        """Return the trace id of the running task."""
        context = trace.get_current_span().get_span_context()
        return trace.format_trace_id(context.trace_id) if context.is_valid else None


class _CallSpan:
    """The span of a call. Implements `CallSpan`."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.headers: dict[str, str] = {}
        W3C.inject(self.headers)

    def end(self, status: int) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if status >= FIRST_ERROR:
            self._span.set_status(Status(StatusCode.ERROR))


class _Traced:
    """Answers with a span that is current while the request's calls are made."""

    def __init__(self, caller: Enricher, tracer: trace.Tracer) -> None:
        self._caller = caller
        self._tracer = tracer

    async def answer(self, request: Request) -> Outcome:
        """See `Enricher`. The outcome has the span's context, which the feedback carries on."""
        parent = W3C.extract({FIELD: request.traceparent} if request.traceparent else {})
        facts: dict[str, str | int] = {
            "stateloop.enrichment": request.enrichment,
            "stateloop.version": request.version,
        }
        name = f"enrich {request.enrichment}"
        with self._tracer.start_as_current_span(name, parent, SpanKind.CONSUMER, facts) as span:
            outcome = await self._caller.answer(request)
            span.set_attribute("stateloop.status", outcome.status)
            if outcome.status == "failure":
                span.set_status(Status(StatusCode.ERROR, outcome.reason))
            carrier: dict[str, str] = {}
            W3C.inject(carrier)
            return replace(outcome, traceparent=carrier.get(FIELD))
