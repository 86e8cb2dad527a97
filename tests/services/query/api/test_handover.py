"""A partition that goes from one instance to another: clients hardly notice."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

import pytest

from services.query.api.handover import NEAR, PATIENCE_S
from services.query.roles import Role, Standing
from tests.services.query.api.asking import Instance, answering
from tests.services.query.in_memory import MemoryRoles, MemoryStore, a_state, parts_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.services.query.api.asking import Told

KEY = "UA1"
NEARLY = Standing(Role.CATCHING_UP, NEAR - 1)


class Nobody:
    """A Proxy that must not be needed."""

    async def ask(self, *_: object) -> None:
        raise AssertionError


@pytest.fixture(params=[True, False], ids=["hot", "aiohttp"])
async def instance(request: pytest.FixtureRequest) -> AsyncIterator[Instance]:
    parts = parts_of(a_state())
    store = parts.stores["flights"]
    assert isinstance(store, MemoryStore)
    store.put(KEY)
    async with answering(parts, hot=request.param, proxy=Nobody()) as found:  # type: ignore[arg-type]
        yield found


def stands(instance: Instance, standing: Standing) -> None:
    roles = instance.parts.roles
    assert isinstance(roles, MemoryRoles)
    roles.own = standing


async def ask(instance: Instance, what: str, headers: dict[str, str] | None = None) -> Told:
    if what == "batch":
        body = json.dumps({"keys": [KEY, KEY]}).encode()
        return await instance.ask("/v1/states/flights:batchGet", "POST", headers, body)
    path = {
        "key": f"/v1/states/flights/{KEY}",
        "page": "/v1/states/flights",
        "versions": f"/v1/states/flights/{KEY}/versions",
    }
    return await instance.ask(path[what], headers=headers)


@pytest.mark.parametrize("what", ["key", "versions", "page", "batch"])
async def test_moments_are_waited_for(instance: Instance, what: str) -> None:
    stands(instance, NEARLY)
    asking = asyncio.ensure_future(ask(instance, what))
    done, _ = await asyncio.wait([asking], timeout=PATIENCE_S / 4)
    assert not done
    stands(instance, Standing(Role.OWNER, 0))
    told = await asking
    assert told.status == 200
    assert b'"version":1' in told.body
    assert b'"type"' not in told.body


@pytest.mark.parametrize("what", ["key", "batch"])
async def test_what_does_not_come_in_moments_is_told(instance: Instance, what: str) -> None:
    stands(instance, NEARLY)
    told = await ask(instance, what)
    assert b'"catching_up"' in told.body


@pytest.mark.parametrize("what", ["key", "versions"])
async def test_who_is_far_behind_says_so_at_once(instance: Instance, what: str) -> None:
    stands(instance, Standing(Role.CATCHING_UP, NEAR))
    began = time.monotonic()
    assert (await ask(instance, what)).kind == "catching_up"
    assert time.monotonic() - began < PATIENCE_S / 2


async def test_who_was_asked_by_another_instance_says_so_at_once(instance: Instance) -> None:
    stands(instance, NEARLY)
    began = time.monotonic()
    assert (await ask(instance, "key", {"Stateloop-Hop": "1"})).kind == "catching_up"
    assert time.monotonic() - began < PATIENCE_S / 2
