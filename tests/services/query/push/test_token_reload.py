"""Tokens that are revoked or restricted while their principals watch."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import WSCloseCode, WSMsgType

from services.query.lookup.authentication import reload_tokens
from tests.services.query.in_memory import NOW, a_state
from tests.services.query.push.serving import Instance, connected, eventually, watching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SECRET, NEWER = "a-secret-of-a-dashboard", "a-newer-secret-of-it"
BEARER = {"Authorization": f"Bearer {SECRET}"}
WATCHED = "/v1/states/flights/a%2F1/watch"


class Guarded:
    """An instance with a token file."""

    def __init__(self, tokens: Path) -> None:
        self._tokens = tokens
        self._written = 0
        self.write(token=SECRET)
        self.instance = Instance(a_state(), a_state("gates"), tokens=tokens)

    def write(self, **token: Any) -> None:
        """Replace the tokens in the file by this one."""
        self._written += 1
        self._tokens.write_text(json.dumps({"tokens": [{"name": "dashboard", **token}]}))
        os.utime(self._tokens, ns=(self._written, self._written))

    def renew(self, **token: Any) -> None:
        self.write(**token)
        access = self.instance.access
        reload_tokens(access, partial(self.instance.watching.reauthenticate, access.reauthenticate))


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    found = Guarded(tmp_path / "tokens.json")
    async with found.instance.serving():
        yield found


async def test_revoking_the_token_closes_an_event_stream(guarded: Guarded) -> None:
    guarded.instance.change("a/1", 1)
    async with watching(guarded.instance, WATCHED, **BEARER) as events:
        assert (await events.next()).event == "state"
        guarded.renew(token=NEWER)
        guarded.instance.change("a/1", 2)
        event = await events.next()
        assert (event.event, event.id, event.data["type"], event.data["status"]) == ("problem", None, "no_token", 401)
        with pytest.raises(EOFError):
            await events.next()
    await eventually(lambda: guarded.instance.subscriptions() == 0)


async def test_revoking_the_token_closes_a_web_socket(guarded: Guarded) -> None:
    async with connected(guarded.instance, headers=BEARER) as client:
        await client.subscribe("all", prefix="", current=False)
        guarded.instance.change("a/1", 1)
        guarded.renew(token=NEWER)
        message = await client.next()
        if message["type"] == "state":  # it was written before the token was revoked
            message = await client.next()
        assert (message["type"], message["id"], message["problem"]["type"]) == ("error", None, "no_token")
        guarded.instance.change("a/1", 2)
        closed = await client.socket.receive()
        assert (closed.type, closed.data) == (WSMsgType.CLOSE, WSCloseCode.POLICY_VIOLATION)


async def test_an_event_stream_closes_when_its_key_is_out_of_scope(guarded: Guarded) -> None:
    guarded.instance.change("a/1", 1)
    async with watching(guarded.instance, WATCHED, **BEARER) as events:
        await events.next()
        guarded.renew(token=SECRET, keys=["b/"])
        guarded.instance.change("a/1", 2)
        event = await events.next()
        assert (event.event, event.data["type"]) == ("problem", "not_yours")
        with pytest.raises(EOFError):
            await events.next()


async def test_subscriptions_out_of_scope_are_denied_and_others_continue(guarded: Guarded) -> None:
    async with connected(guarded.instance, headers=BEARER) as client:
        filters: dict[str, dict[str, Any]] = {
            "all": {"prefix": ""},
            "mine": {"prefix": "a/"},
            "key": {"key": "b/1"},
            "gates": {"state": "gates", "prefix": "a/"},
        }
        for name, options in filters.items():
            await client.subscribe(name, current=False, **options)
        guarded.renew(token=SECRET, keys=["a/"], states=["flights"])
        messages = [await client.next() for _ in range(3)]
        assert {(message["type"], message["id"], message["problem"]["type"]) for message in messages} == {
            ("error", name, "not_yours") for name in ("all", "key", "gates")
        }
        guarded.instance.change("a/1", 1)
        assert (await client.next())["ids"] == ["mine"]
        assert (await client.subscribe("again", prefix="b/"))["problem"]["type"] == "not_yours"
        guarded.renew(token=SECRET)
        assert (await client.subscribe("again", prefix="b/"))["type"] == "subscribed"


async def test_principals_still_in_scope_continue(guarded: Guarded) -> None:
    guarded.instance.change("a/1", 1)
    async with watching(guarded.instance, WATCHED, **BEARER) as events:
        await events.next()
        guarded.renew(token=SECRET, states=["flights"], keys=["a/"])
        guarded.instance.change("a/1", 2)
        assert (await events.next()).id == f"{NOW}.0.2"
