"""Requests that wait for a version or for an event: the fast path and aiohttp return the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from contracts.wire.partition import partition
from services.query.store import Change
from tests.services.query.http.flights import FLIGHTS, store
from tests.services.query.http.instance import answering
from tests.services.query.in_memory import NOW, a_state, dependencies_of, until

if TYPE_CHECKING:
    from tests.services.query.http.instance import Instance

OF_UA1 = partition(b"UA1", FLIGHTS.partitions)


async def test_min_version_waits_for_the_version(instance: Instance) -> None:
    store(instance).put("UA1", version=1)
    behind = await instance.ask("/v1/states/flights/UA1?min_version=2")
    assert (behind.status, behind.kind, behind.json["latest"]) == (503, "behind", f"{NOW}.0.1")
    assert (await instance.ask("/v1/states/flights/UA1?min_version=2&wait=0.05")).status == 503
    waiting = asyncio.create_task(instance.ask(f"/v1/states/flights/UA1?min_version={NOW}.0.2&wait=9"))
    await until(lambda: instance.waits.waiting == 1)
    entry = store(instance).put("UA1", version=2)
    instance.waits.changed([Change("flights", "UA2", entry), Change("flights", "UA1", entry)])
    assert (await waiting).json["version"] == 2
    assert instance.waits.waiting == 0


async def test_min_offset_waits_for_the_event(instance: Instance) -> None:
    path = f"/v1/states/flights/UA1?min_offset={OF_UA1}:12"
    behind = await instance.ask(path)
    assert (behind.status, behind.kind) == (503, "behind")
    assert (behind.json["latest"], behind.json["latest_offset"]) == (None, None)
    store(instance).put("UA1", version=1, value=b'{"event_offset":11}')
    behind = await instance.ask(path)
    assert (behind.json["latest"], behind.json["latest_offset"]) == (f"{NOW}.0.1", 11)
    assert "offset 11" in behind.json["detail"]
    waiting = asyncio.create_task(instance.ask(f"{path}&wait=9"))
    await until(lambda: instance.waits.waiting == 1)
    feedback = store(instance).put("UA1", version=2, value=b'{"event_offset":11}')
    instance.waits.changed([Change("flights", "UA1", feedback)])
    entry = store(instance).put("UA1", version=3, value=b'{"event_offset":12}')
    instance.waits.changed([Change("flights", "UA1", entry)])
    response = await waiting
    assert (response.status, response.json["version"]) == (200, 3)
    assert (await instance.ask(f"{path}&min_version=4")).status == 503


@pytest.mark.parametrize(("offset", "status"), [(12, 200), (13, 503)])
async def test_a_newer_window_has_merged_an_event_only_up_to_its_own_offset(
    instance: Instance, offset: int, status: int
) -> None:
    store(instance).put("UA1", version=9, value=b'{"event_offset":11}')
    store(instance).put("UA1", window_start=NOW + 1, version=1, value=b'{"event_offset":12}')
    response = await instance.ask(f"/v1/states/flights/UA1?min_offset={OF_UA1}:{offset}")
    assert response.status == status


@pytest.mark.parametrize("value", [b"{}", b'{"event_offset":null}', b'{"event_offset":"12"}', b'{"event_offset":1e9}'])
async def test_a_state_without_event_offset_has_merged_no_event(instance: Instance, value: bytes) -> None:
    store(instance).put("UA1", value=value)
    response = await instance.ask(f"/v1/states/flights/UA1?min_offset={OF_UA1}:0")
    assert (response.status, response.kind, response.json["latest_offset"]) == (503, "behind", None)


async def test_min_offset_in_the_wrong_partition_is_rejected(instance: Instance) -> None:
    store(instance).put("UA1", value=b'{"event_offset":12}')
    other = (OF_UA1 + 1) % 4
    response = await instance.ask(f"/v1/states/flights/UA1?min_offset={other}:12")
    assert (response.status, response.kind) == (400, "bad_request")
    assert f"in partition {OF_UA1} (murmur2), not in {other}" in response.json["detail"]


async def test_min_offset_is_rejected_if_records_have_no_event_offset() -> None:
    async with answering(dependencies_of(a_state()), hot=True) as instance:
        response = await instance.ask(f"/v1/states/flights/UA1?min_offset={OF_UA1}:12&wait=9")
    assert (response.status, response.kind) == (400, "bad_request")
    assert "the records of 'flights' have no offset of an event. Write min_version" in response.json["detail"]


async def test_if_none_match_with_wait_returns_the_next_version(instance: Instance) -> None:
    store(instance).put("UA1", version=1)
    has = {"If-None-Match": f'"{NOW}.0.1"'}
    assert (await instance.ask("/v1/states/flights/UA1?wait=0.05", headers=has)).status == 304
    waiting = asyncio.create_task(instance.ask("/v1/states/flights/UA1?wait=9", headers=has))
    await until(lambda: instance.waits.waiting == 1)
    instance.waits.changed([Change("flights", "UA1", store(instance).put("UA1", version=2))])
    assert (await waiting).json["version"] == 2
