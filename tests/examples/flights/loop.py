"""The whole loop in one process and without a broker: events, fold, plan, calls, feedback."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from aiohttp.test_utils import TestClient
from pydantic import BaseModel, TypeAdapter

from contracts import Absent, Application, Batch, Event
from contracts.decode import Decoder
from contracts.fold import Fold
from contracts.plan import Request, plan
from contracts.record import Delta, Record
from contracts.wire import Feedback, Snapshot, decode_snapshot

M = TypeVar("M", bound=BaseModel)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class ServedApi:
    """Calls a server under test, once for each target."""

    def __init__(self, client: TestClient[Any, Any]) -> None:
        self._client = client
        self._answers: dict[str, tuple[int, bytes]] = {}

    async def get(self, path: str, model: type[M], /, **values: str | float) -> M:
        placed = {name: quote(str(value), safe="") for name, value in values.items() if f"{{{name}}}" in path}
        query = urlencode({name: value for name, value in values.items() if name not in placed})
        target = path.format_map(placed) + (f"?{query}" if query else "")
        if target not in self._answers:
            async with self._client.get(target) as response:
                self._answers[target] = response.status, await response.read()
        status, body = self._answers[target]
        if status == 404:
            raise Absent(target)
        assert status == 200, (target, status, body)
        return model.model_validate_json(body)

    async def get_one(self, batch: Batch[M], key: str | int) -> M:
        raise NotImplementedError


class Loop:
    """Feeds events to a fold, and the answers to what each snapshot calls for."""

    def __init__(self, application: Application, api: ServedApi) -> None:
        self.latest: dict[str, Snapshot] = {}
        self._application = application
        self._api = api
        self._fold = Fold(application)
        self._decoder = Decoder(application)

    async def run(self, events: Iterable[Event]) -> dict[str, Snapshot]:
        """The last snapshot of each device."""
        for event in events:
            record = _record(event.model_dump_json(exclude_none=True).encode(), event.ts)
            await self._take(self._decoder.event(record))
        return self.latest

    async def _take(self, delta: Delta) -> None:
        deltas = [delta]
        while deltas:
            folded = self._fold.add(deltas.pop())
            assert folded is not None
            snapshot = decode_snapshot(folded.encode())
            self.latest[snapshot.device_id] = snapshot
            if not deltas:
                requests = plan(self._application, snapshot, NOW)
                deltas = [self._decoder.feedback(await self._answer(request)) for request in requests]

    async def _answer(self, request: Request) -> Record:
        one = self._application.by_name[request.enrichment]
        if request.skipped is not None:
            return _record(_feedback(request, {"status": "skipped"}).encode(), request.as_of)
        inputs = {need.name: TypeAdapter(need.kind).validate_python(request.inputs[need.name]) for need in one.needs}
        facts: dict[str, Any] = {"status": "absence"}
        try:
            result = await one(self._api, **inputs)
            facts = {"status": "result", "result": {one.name: result.model_dump(mode="json", exclude_none=True)}}
        except Absent:
            pass
        return _record(_feedback(request, facts).encode(), request.as_of)


def _feedback(request: Request, facts: dict[str, Any]) -> Feedback:
    return Feedback(
        device_id=request.device_id,
        first_seen=request.first_seen,
        enrichment=request.enrichment,
        version=request.version,
        ts=NOW,
        fingerprint=request.fingerprint,
        **facts,
    )


def _record(value: bytes, timestamp: datetime) -> Record:
    return Record(topic="t", partition=0, offset=0, timestamp=timestamp, key=None, value=value)
