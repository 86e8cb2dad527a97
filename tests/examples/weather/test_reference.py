"""The receiver of the example, with events as a worker sends them."""

from __future__ import annotations

from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from contracts.alerts.deliveries import deliveries
from examples.serving import ServerSettings
from examples.weather.reference.__main__ import application
from tests.services.enrichment.alerted import crossing


async def test_the_receiver_acts_on_each_event_once() -> None:
    opened, closed = (deliveries("too_high", record)[0] for record in crossing("JFK", 1))
    async with TestClient[Any, Any](TestServer(application(ServerSettings()))) as client:
        for one in (opened, opened, closed):
            headers = {"Idempotency-Key": one.fingerprint}
            async with client.post("/alerts", json=one.inputs, headers=headers) as response:
                assert response.status == 204
        async with client.post("/alerts", json=opened.inputs) as response:
            assert response.status == 400, "without a key"
        async with client.get("/alerts") as response:
            found = await response.json()
    assert (found["opened"], found["closed"], found["repeated"]) == (1, 1, 1)
    assert [one["event"] for one in found["last"]] == ["closed", "opened"]
