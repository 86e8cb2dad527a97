"""The watch routes in the OpenAPI document: every message and response matches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import orjson
import pytest
from aiohttp import ClientSession

from contracts.api.watch import CLIENT_COMMAND, MESSAGES
from contracts.model.named_state import QueryOptions
from services.query.openapi import document
from tests.services.query.in_memory import a_state
from tests.services.query.push.serving import QUICK, Instance, connected, watching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY, MANY = "/v1/states/{name}/{key}/watch", "/v1/watch"


@pytest.fixture
async def instance() -> AsyncIterator[Instance]:
    async with Instance(a_state(query=QueryOptions(indexes=("state.status",))), limits=QUICK).serving() as found:
        yield found


def described(path: str) -> dict[str, Any]:
    found: dict[str, Any] = document()["paths"][path]["get"]
    return found


async def test_every_message_of_a_web_socket_matches_its_model(instance: Instance) -> None:
    messages: list[dict[str, Any]] = []
    async with connected(instance) as client:
        for options in ({"key": "a"}, {"where": {"state.status": "landed"}}, {"where": {"no.index": "x"}}):
            messages.append(await client.subscribe("one" if "key" in options else "some", **options))
            messages += await client.until("mark")
        for status in ("landed", "flying"):
            instance.change("b", len(messages), {"state": {"status": status}})
            messages += await client.until("state" if status == "landed" else "left")
        instance.change("a", 1)
        messages += await client.until("state")
        instance.watching.changed([instance.remove("a")])
        messages += await client.until("removed")
        next(iter(instance.watching._streams)).reset()  # noqa: SLF001  # as if it were too slow
        instance.watching.refresh()
        messages += await client.until("reset")
        await client.send(type="unsubscribe", id="one")
        messages += await client.until("unsubscribed")
        await client.send(type="rubbish")
        messages += await client.until("error")
    models = {kind: model for model in MESSAGES for kind in get_args(model.model_fields["type"].annotation)}
    for message in messages:
        models[message["type"]].model_validate_json(orjson.dumps(message))
    kinds = {message["type"] for message in messages}
    usual = {
        "state",
        "left",
        "never_seen",
        "removed",
        "current",
        "mark",
        "reset",
        "subscribed",
        "unsubscribed",
        "error",
    }
    assert kinds == usual


def test_all_messages_are_named_in_the_document() -> None:
    schemas, messages = document()["components"]["schemas"], described(MANY)["x-messages"]
    names = {side: {one["$ref"].rpartition("/")[2] for one in messages[side]["oneOf"]} for side in messages}
    assert names["messages"] == {one.__name__ for one in MESSAGES}
    assert names["commands"] == {one["$ref"].rpartition("/")[2] for one in CLIENT_COMMAND.json_schema()["oneOf"]}
    assert schemas.keys() >= names["messages"] | names["commands"]


async def test_a_stream_matches_the_document(instance: Instance) -> None:
    instance.change("a", 1)
    async with watching(instance, "/v1/states/flights/a/watch") as events:
        (kind,) = described(KEY)["responses"]["200"]["content"]
        assert events.response.headers["Content-Type"] == kind


@pytest.mark.parametrize(
    ("path", "target", "headers"),
    [
        (KEY, "/v1/states/flights/a/watch?current=maybe", {}),
        (KEY, "/v1/states/flights/a/watch", {"Last-Event-ID": "x"}),
        (KEY, "/v1/states/none/a/watch", {}),
        (MANY, "/v1/watch", {}),
        (MANY, "/v1/watch", {"Upgrade": "websocket", "Origin": "https://other.example"}),
    ],
)
async def test_every_problem_matches_the_document(
    instance: Instance, path: str, target: str, headers: dict[str, str]
) -> None:
    async with ClientSession(instance.base) as session, session.get(target, headers=headers) as response:
        assert response.status >= 400
        assert response.content_type in described(path)["responses"][str(response.status)]["content"]


def test_the_document_has_all_parameters_of_a_stream() -> None:
    found = [one["name"] for one in described(KEY)["parameters"]]
    assert found == ["name", "key", "current", "window", "silent_for", "Last-Event-ID"]
