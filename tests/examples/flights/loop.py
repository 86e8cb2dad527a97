"""The reference server, called by the loop in memory."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from aiohttp.test_utils import TestClient
from pydantic import BaseModel

from contracts import AbsentError, Application, Batch, Event
from contracts.testing import Clock, Loop
from contracts.wire import Snapshot

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
            raise AbsentError(target)
        assert status == 200, (target, status, body)
        return model.model_validate_json(body)

    async def get_one(self, batch: Batch[M], key: str | int) -> M:
        return await self.get(batch.path, batch.model, **{batch.parameter: key})


async def run(application: Application, api: ServedApi, events: Iterable[Event]) -> dict[str, Snapshot]:
    """The last snapshot of each device, when all that each event called for was answered before the next."""
    loop, devices = Loop(application, {"reference": api}, Clock(NOW)), set()
    for event in events:
        devices.add(loop.send(event).device_id)
        await loop.settle()
    return {device: loop.snapshot(device) for device in devices}
