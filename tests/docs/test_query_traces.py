"""docs/architecture.md and beside.toml list the files that run for a GET, a page and a watch, and no others.

Each is repeated, so that what happens to run beside one of them is not taken for a part of it: on a busy machine one
takes so long that some of what runs each second runs beside nearly all of them.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientSession

from contracts.model.suite import Suite
from services.query.service import serve
from services.query.settings import QuerySettings
from services.runtime.kafka.clients import KafkaClients
from tests.docs.test_architecture import all_files, occasional_files
from tests.docs.test_traces import Outside, running
from tests.docs.traced import Trace
from tests.services.query.fleet import application, snapshot
from tests.services.query.running import Fleet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker

TIMES = 10
MOST_TIMES = 100
KEY = "car/1"


class Requests:
    """Requests to an instance in this thread, which owns all partitions. Each has its own connection."""

    def __init__(self, fleet: Fleet, outside: Outside) -> None:
        self._fleet = fleet
        self._outside = outside
        self._numbers = count(1)

    async def change(self) -> int:
        """Write the next version of the key, as the job does, and return it."""
        version = next(self._numbers)
        await self._outside.call(lambda: self._fleet.publish(snapshot(KEY, version, plate="P")))
        return version

    async def get(self) -> None:
        """Read the key, as the first request with these headers: those of a second are parsed already."""
        async with (
            self._client() as client,
            client.get("/v1/states/cars/car%2F1", headers={"Test": str(next(self._numbers))}) as response,
        ):
            assert (await response.json())["role"] == "owner"

    async def page(self) -> None:
        async with self._client() as client, client.get("/v1/states/cars?where=state.plate:P") as response:
            assert [item["key"] for item in (await response.json())["items"]] == [KEY]

    async def watch(self) -> None:
        """Subscribe to the key on a WebSocket, and receive one change of it."""
        async with self._client() as client, client.ws_connect("/v1/watch", protocols=["stateloop.v1"]) as socket:
            await socket.send_json({"type": "subscribe", "id": "1", "state": "cars", "key": KEY})
            while (await socket.receive_json())["type"] != "current":
                pass
            version = await self.change()
            while (message := await socket.receive_json())["type"] != "state":
                pass
            assert message["answer"]["version"] == version

    def _client(self) -> AbstractAsyncContextManager[ClientSession]:
        return ClientSession(f"http://127.0.0.1:{self._fleet.port}")


@asynccontextmanager
async def traced_service(trace: Trace, fleet: Fleet, settings: QuerySettings, suite: Suite) -> AsyncIterator[Requests]:
    """Run the service, which has read a version of the key, under the trace."""
    outside = Outside()
    requests = Requests(fleet, outside)
    with trace.installed():
        async with running(serve(settings, suite, KafkaClients(settings.client()))):
            version = await requests.change()
            await outside.until(lambda: fleet.ask("/readyz").status == 200, "the service is ready")
            await outside.call(lambda: fleet.until(f"/v1/states/cars/car%2F1?min_version={version}&wait=20", 200))
            yield requests


@pytest.mark.kafka
async def test_the_page_lists_the_files_that_run_for_a_get_a_page_and_a_watch(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    fleet, trace, found = Fleet(broker.bootstrap, topics_prefix, tmp_path), Trace(), dict[str, set[str]]()
    names = ("KAFKA", "QUERY_DATA", "HTTP_PORT", "INSTANCE", "GROUP")
    values = {name.lower(): fleet.environment[f"STATELOOP_{name}"] for name in names}
    settings = QuerySettings.model_validate({"application": "cars", **values})
    async with traced_service(trace, fleet, settings, Suite(application(topics_prefix))) as requests:
        sections = {"One GET": requests.get, "One page": requests.page, "One watch": requests.watch}
        for section, request in sections.items():
            recorded = list[set[str]]()
            while len(recorded) < TIMES or (len(recorded) < MOST_TIMES and found[section] > {*all_files(section)}):
                with trace.recording():
                    await request()
                recorded.append(trace.take())
                found[section] = set.intersection(*recorded) - {*occasional_files(section)}
    for section, files in found.items():
        assert sorted(files) == sorted(all_files(section)), section
