"""Two processes and a broker: a client of one misses nothing while the other is killed and restarted."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from aiohttp import ClientSession, WSMsgType

from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.query.fleet import snapshot
from tests.services.query.running import Fleet
from tests.services.tools.broker.embedded import free_port_pair

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import ClientWebSocketResponse

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.kafka
CARS = [f"car/{number}" for number in range(40)]
START_S = 3.0


async def test_a_watch_misses_nothing_and_receives_nothing_older_when_the_owner_is_killed(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    fleet = Fleet(broker.bootstrap, topics_prefix, tmp_path)
    port, folder = free_port_pair(), str(tmp_path / "two")
    second = {"STATELOOP_HTTP_PORT": str(port), "STATELOOP_QUERY_DATA": folder, "STATELOOP_INSTANCE": "two"}
    one, two = fleet.start(), fleet.start(**second)
    try:
        await asyncio.to_thread(fleet.ready, one)
        await asyncio.to_thread(_wait_for_two_owners, fleet)
        async with (
            ClientSession(f"http://127.0.0.1:{fleet.port}") as session,
            session.ws_connect("/v1/watch") as socket,
        ):
            for name in ("cars", "plates"):
                command: dict[str, Any] = {"type": "subscribe", "id": name, "state": "cars", "prefix": "car/"}
                await socket.send_str(orjson.dumps(command | {"current": name == "cars"}).decode())
            watcher = Watcher(socket)
            version = await watcher.wait_until_started(fleet)
            two.send_signal(signal.SIGKILL)
            two.wait(DEADLINE_S)
            await watcher.until(fleet, version + 1)
            two = fleet.start(**second)
            watcher.instances.clear()
            version += 2
            while watcher.instances != {"one", "two"}:  # until it has its partitions back
                await watcher.until(fleet, version)
                version += 1
    finally:
        for process in (one, two):
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_S)


class Watcher:
    """Checks that no subscription receives an older version, or the same again."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._versions: dict[tuple[str, str], int] = {}
        self.instances: set[str] = set()

    async def until(self, fleet: Fleet, version: int, within_s: float = DEADLINE_S) -> None:
        """Publish this version of all cars, and wait until both subscriptions have all of them. Raises TimeoutError."""
        await asyncio.to_thread(fleet.publish, *(snapshot(car, version) for car in CARS))
        try:
            async with asyncio.timeout(within_s):
                while self._behind(version):
                    self._take(await self._socket.receive())
        except TimeoutError as error:
            lacking = f"the watches lack version {version}, and have {self._behind(version)}, see {fleet.log}"
            raise TimeoutError(f"within {within_s:.0f} s {lacking}") from error

    def _behind(self, version: int) -> dict[str, int | None]:
        """Return the version of each car of a subscription that has another one than this."""
        had = {f"{name} {car}": self._versions.get((name, car)) for name in ("cars", "plates") for car in CARS}
        return {place: one for place, one in had.items() if one != version}

    async def wait_until_started(self, fleet: Fleet) -> int:
        """Publish versions until both subscriptions have one of all cars from both instances; return that version.

        Nothing reports when a subscription without present values has reached the other instance. The first one may own
        all partitions until the group has assigned some to the other.
        """
        end = time.monotonic() + DEADLINE_S
        for version in count(1):
            self.instances.clear()
            with suppress(TimeoutError):
                await self.until(fleet, version, within_s=START_S)
                if self.instances == {"one", "two"}:
                    return version
            if time.monotonic() > end:
                break
        raise AssertionError(f"the subscriptions do not start: {self.instances} have sent, see {fleet.log}")

    def _take(self, message: Any) -> None:
        assert message.type is WSMsgType.TEXT, message
        body = orjson.loads(message.data)
        assert body["type"] not in ("error", "reset", "left", "removed", "expired"), body
        for name in body["ids"] if body["type"] == "state" else ():
            place, version = (name, body["answer"]["key"]), body["answer"]["version"]
            assert version > self._versions.get(place, 0), "an older version, or the same again"
            self._versions[place] = version
            self.instances.add(body["answer"]["instance"])


def _wait_for_two_owners(fleet: Fleet) -> None:
    """Wait until both instances own partitions."""

    def both() -> bool:
        owns = [one["owns"].get("cars") for one in fleet.until("/v1/instances", 200).body["instances"]]
        return len(owns) == 2 and all(owns)

    wait_until(both, "two owners", DEADLINE_S)
