from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from examples.flights.reference.server import application
from examples.flights.reference.settings import ReferenceSettings

Client = TestClient[Any, Any]

ROUTE = "/route?from_lat=40.6925&from_lon=-74.168667&to_lat=29.984433&to_lon=-95.341442"
PERFORMANCE = "/performance?block_minutes=253.0&air_minutes=227&distance_miles=1398.4&bearing_deg=244.7&seats=149"


@asynccontextmanager
async def serve(clock: Callable[[], float] = lambda: 0.0, **settings: float) -> AsyncIterator[Client]:
    async with TestClient(TestServer(application(ReferenceSettings.model_validate(settings), clock))) as client:
        yield client


async def get(client: Client, path: str) -> tuple[int, Any]:
    async with client.get(path) as response:
        return response.status, await response.json()


async def test_health() -> None:
    async with serve(failure_rate=0.999) as client:
        assert await get(client, "/healthz") == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/airlines/UA", {"carrier": "UA", "name": "United Air Lines Inc."}),
        (ROUTE, {"distance_miles": 1398.4, "bearing_deg": 244.7}),
        (
            PERFORMANCE + "&wind_mph=12.65858&wind_deg=260&cruise_mph=500",
            {
                "block_minutes": 253,
                "ground_minutes": 26,
                "ground_speed_mph": 369.6,
                "seat_miles_per_hour": 55070.4,
                "cruise_share": 0.739,
                "headwind_mph": 12.2,
            },
        ),
    ],
)
async def test_answers(path: str, answer: dict[str, Any]) -> None:
    async with serve() as client:
        assert await get(client, path) == (200, answer)


async def test_missing_values_of_the_tables_are_left_out() -> None:
    async with serve() as client:
        _, aircraft = await get(client, "/aircraft/N14228")
        _, performance = await get(client, PERFORMANCE)
    assert aircraft["seats"] == 149
    assert "cruise_mph" not in aircraft
    assert "headwind_mph" not in performance


@pytest.mark.parametrize(
    "path",
    [
        "/aircraft/N3ALAA",
        "/aircraft/%2e%2e",
        "/airports/SJU",
        "/airlines/XX",
        "/weather/EWR",
        "/weather/EWR?hour=x",
        "/no",
    ],
)
async def test_unknown_is_404(path: str) -> None:
    async with serve() as client:
        assert (await get(client, path))[0] == 404


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/route?from_lat=91&from_lon=0&to_lat=0&to_lon=0", "from_lat"),
        ("/route?from_lat=nan&from_lon=0&to_lat=0&to_lon=0", "from_lat"),
        ("/route", "to_lon: Field required"),
        (PERFORMANCE.replace("air_minutes=227", "air_minutes=0"), "air_minutes"),
        (PERFORMANCE + "&winds=1", "winds"),
    ],
)
async def test_wrong_queries_are_400(path: str, reason: str) -> None:
    async with serve() as client:
        status, answer = await get(client, path)
    assert status == 400
    assert reason in answer["error"]


async def test_calls_beyond_the_rate_are_429_until_there_is_room() -> None:
    now = [0.0]
    async with serve(lambda: now[0], rate_limit=2) as client:
        assert [(await get(client, "/airlines/UA"))[0] for _ in range(3)] == [200, 200, 429]
        async with client.get("/airlines/UA") as refused:
            assert refused.headers["Retry-After"] == "1"
        now[0] = 0.5
        assert [(await get(client, "/airlines/UA"))[0] for _ in range(2)] == [200, 429]


async def test_the_same_calls_fail_in_each_run() -> None:
    runs = []
    for _ in range(2):
        async with serve(failure_rate=0.3, seed=7) as client:
            runs.append([(await get(client, f"/airlines/UA?n={n % 20}"))[0] for n in range(200)])
    assert runs[0] == runs[1]
    assert 30 <= runs[0].count(503) <= 90


async def test_the_ledger_counts_requests_and_answers() -> None:
    async with serve() as client:
        for path in ("/airlines/UA", "/airlines/UA", "/airports/SJU", "/no"):
            await get(client, path)
        _, report = await get(client, "/calls")
        assert report["by_path"] == {"/airlines/UA": 2, "/airports/SJU": 1, "/no": 1}
        assert report["by_status"] == {"200": 2, "404": 2}
        assert report["answers"]["/airlines/UA"] == {"200": 2}
        async with client.delete("/calls") as response:
            assert response.status == 204
        assert (await get(client, "/calls"))[1]["calls"] == 0


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_REFERENCE_LATENCY_MS", "20")
    assert ReferenceSettings().latency_ms == 20
