"""The loop in memory: it folds events to snapshots, makes the requests of the plan, and folds the answers in."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from contracts.errors import AbsentError, CallError, DeclarationError, PermanentCallError, RetryableCallError
from contracts.model.application import Application
from contracts.model.enrichment import Api
from contracts.model.event import BaseEvent
from contracts.planning.admission import LastRequest, admit
from contracts.planning.plan import wanted
from contracts.planning.request import Request
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.record import Delta, Record, timestamp_ms
from contracts.types.key import composite_key
from contracts.wire import Feedback, Snapshot, decode_snapshot

MOST_ANSWERS = 10_000


class Loop:
    """An application with its APIs by name, and the time as a worker and the broker have it.

    The state, the plan and the wire are the real ones; only brokers, Spark and HTTP are missing. `calls` has the name
    of the enrichment for each request that was called for, `under_way` the requests that wait for `settle`. Raises
    DeclarationError for an application with a processor, and for what a test writes wrongly.
    """

    def __init__(self, application: Application, apis: Mapping[str, Api], clock: Callable[[], datetime]) -> None:
        if not isinstance(application, Application):
            problem = f"{type(application).__name__} is no Application"
            raise DeclarationError("Loop", problem, "Write a Loop(application, …) for each application of a suite")
        if application.processor is not None:
            problem = f"{application.processor.of.__name__} computes the state, and the loop merges deltas"
            raise DeclarationError("Loop", problem, "Test the class with PySpark's TwsTester")
        self.calls: list[str] = []
        self.under_way: dict[Any, Request] = {}
        self.stopped = 0
        """The number of requests that the budget stopped."""
        self._application = application
        self._apis = apis
        self._clock = _checked_clock(clock)
        self._fold = Fold(application)
        self._decoder = Decoder(application) if application.topics.replay else Decoder(application, clock=clock)
        self._latest: dict[str, dict[datetime, Snapshot]] = defaultdict(dict)
        """The latest snapshots, by key and start of the window."""
        self._begun: dict[tuple[Any, str], LastRequest] = {}

    def send(self, event: BaseEvent) -> Snapshot:
        """Return the snapshot after one event, as on the wire; its requests wait. Raises RecordError as the job does.

        If the event is in several windows, it is the snapshot of the newest. An event sent twice gives the latest
        snapshot again, and so does one that the state's filter excludes. Raises KeyError if that is the key's first.
        """
        if not isinstance(event, self._application.event):
            kind = self._application.event.__name__
            raise DeclarationError("send", f"{type(event).__name__} is no {kind}", f"Write send({kind}(…))")
        time = event.ts if self._application.topics.replay else self._clock()
        key = composite_key(*(getattr(event, name) for name in self._application.state.keys))
        deltas = self._decoder.event(_record(key, event.model_dump_json(exclude_none=True).encode(), time))
        return [self._add(delta) for delta in deltas][-1] if deltas else self.snapshot(key)

    async def settle(self) -> None:
        """Answer the waiting requests, and those that follow from the answers, until none is left.

        Any error of an enrichment's function, except an error of a call, is raised here; a worker would answer with a
        failure.
        """
        for _ in range(MOST_ANSWERS):
            if not self.under_way:
                return
            request = self.under_way.pop(next(iter(self.under_way)))
            self._add(self._decoder.feedback(await self._answer(request)))
        raise RuntimeError(f"still requesting after {MOST_ANSWERS} answers: send fewer events before you let it settle")

    def snapshot(self, key: str, window_start: datetime | None = None) -> Snapshot:
        """The latest snapshot of a key, of its newest window or of this one. Raises KeyError where there is none."""
        windows = dict(self._latest)[key]
        return windows[max(windows) if window_start is None else window_start]

    def statuses(self, key: str, window_start: datetime | None = None) -> dict[str, str]:
        """The status of each slot of a key that has one."""
        return {name: answer.status for name, answer in self.snapshot(key, window_start).enrichments.items()}

    def result(self, key: str, enrichment: str, window_start: datetime | None = None) -> dict[str, Any] | None:
        """Return an enrichment's result for a key; None without one. Raises DeclarationError for a wrong name."""
        if enrichment not in self._application.by_name:
            write = f"Name one of these: {', '.join(self._application.by_name) or 'there are none'}"
            raise DeclarationError(f"result(…, {enrichment!r})", "there is no enrichment of this name", write)
        answer = self.snapshot(key, window_start).enrichments.get(enrichment)
        return answer.result if answer else None

    def _add(self, delta: Delta) -> Snapshot:
        folded = self._fold.add(delta)
        windows = self._latest[delta.device_id]
        if folded is None:
            return windows[delta.first_seen]
        snapshot = windows[delta.first_seen] = decode_snapshot(folded.encode())
        self._plan(snapshot)
        return snapshot

    def _plan(self, snapshot: Snapshot) -> None:
        called_for = wanted(self._application, snapshot, self._clock(), self._clock())
        new = [request for request in called_for if request.identity not in self.under_way]
        keys = {name: (snapshot.window, name) for name in self._application.by_name}
        begun = {name: self._begun[key] for name, key in keys.items() if key in self._begun}
        admission = admit(self._application, snapshot, self._clock(), new, begun)
        self.stopped += len(admission.over_budget)
        for request in admission.admitted:
            self.under_way[request.identity] = request
            if request.skipped is None:
                self.calls.append(request.enrichment)
                self._begun[snapshot.window, request.enrichment] = LastRequest(self._clock(), request.spent or 0)

    async def _answer(self, request: Request) -> Record:
        facts = await self._outcome(request)
        request = request.charged(self._application.budget, self._clock())
        answer = Feedback(
            device_id=request.device_id,
            first_seen=request.first_seen,
            enrichment=request.recorded_as,
            epoch=request.epoch,
            version=request.version,
            ts=self._clock(),
            fingerprint=request.fingerprint,
            spent=request.spent,
            **facts,
        )
        time = request.as_of if self._application.topics.replay else self._clock()
        return _record(answer.device_id, answer.encode(), time)

    async def _outcome(self, request: Request) -> dict[str, Any]:
        if request.skipped is not None:
            return {"status": "skipped", "reason": request.skipped}
        try:
            return {"status": "result", "result": {request.recorded_as: await self._call(request)}}
        except AbsentError as absent:
            return {"status": "absence", "reason": str(absent) or None}
        except (RetryableCallError, PermanentCallError) as failure:
            return {"status": "failure", "reason": failure.reason}

    async def _call(self, request: Request) -> dict[str, Any]:
        """The result, with the attempts of the API's policy, without its pauses."""
        enrichment = self._application.by_name[request.enrichment]
        inputs = enrichment.typed(request.inputs)
        if enrichment.api not in self._apis:
            write = f"Write apis={{{enrichment.api!r}: FakeApi({{…}}), …}}"
            raise DeclarationError("Loop", f"{enrichment.name} calls {enrichment.api!r}, which has no fake", write)
        last: CallError | None = None
        for _ in range(self._application.apis[enrichment.api].attempts):
            try:
                result = await enrichment(self._apis[enrichment.api], **inputs)
            except RetryableCallError as failure:
                last = failure
            else:
                return enrichment.written(enrichment.checked(result))
        raise last or PermanentCallError("no attempt is allowed")


def _checked_clock(clock: Callable[[], datetime]) -> Callable[[], datetime]:
    """Return the clock. Raises DeclarationError for one without timezone-aware times."""
    try:
        now: object = clock()
    except TypeError:  # it is no function, or one with arguments
        now = None
    if not isinstance(now, datetime) or now.tzinfo is None:
        write = "Write clock=Clock(datetime(2026, 1, 1, tzinfo=UTC))"
        raise DeclarationError("Loop(clock=…)", f"{clock!r} returns no time with a timezone", write)
    return clock


def _record(key: str, value: bytes, time: datetime) -> Record:
    return Record("", 0, 0, timestamp_ms(time), key.encode(), value)
