"""Requests for one key to one instance, with and without faults."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pydantic import BaseModel

from services.client import (
    AccessDeniedError,
    CatchingUpError,
    Client,
    Expired,
    Found,
    InvalidAddressError,
    InvalidResponseError,
    ModelMismatchError,
    NeverSeen,
    NoAnswerError,
    NotArrivedError,
    RejectedError,
    Source,
)
from tests.services.client.fake_service import (
    body_response,
    entry,
    hanging,
    late,
    problem,
    problem_response,
    resetting,
    shortest_attempt,
    until,
)

if TYPE_CHECKING:
    from tests.services.client.fake_service import Fake, Fault

KEY = "UA/1545/2013-01-01"
AWKWARD = ["a/b", "a b", "ä€😀", "..", ".", "100%", "%2F", "a?b#c", "a+b&c=d", '"', "\\", "a//b", "/", "x" * 200]


class Status(BaseModel):
    status: str


class Flight(BaseModel):
    device_id: str
    state: Status


async def test_a_found_state_has_all_metadata(fake: Fake) -> None:
    fake.put(entry(KEY, 7))
    async with Client(fake.url) as states:
        found = await states.get("flights", KEY)
    assert found == Found(
        state="flights",
        key=KEY,
        value={"device_id": KEY, "state": {"status": "landed"}},
        epoch=0,
        version=7,
        window_start=datetime(2026, 1, 1, 12, tzinfo=UTC),
        event_time=datetime(2026, 1, 1, 12, 34, 56, 789000, tzinfo=UTC),
        age=timedelta(milliseconds=1234),
        source=Source("snapshots", found.source.partition if isinstance(found, Found) else -1, 7),
        lag=3,
        role="owner",
        instance="q1",
    )


@pytest.mark.parametrize("key", AWKWARD)
async def test_any_key_is_quoted_correctly(fake: Fake, key: str) -> None:
    fake.put(entry(key, 1))
    async with Client(fake.url) as states:
        found = await states.get("flights", key)
    assert isinstance(found, Found)
    assert found.key == key


async def test_never_seen_and_expired_are_results(fake: Fake) -> None:
    fake.put({"state": "flights", "key": "old", **problem("expired", 410, ended="2026-01-01T13:00:00Z")})
    async with Client(fake.url) as states:
        never = await states.get("flights", "absent")
        old = await states.get("flights", "old")
    assert isinstance(never, NeverSeen)
    assert never.facts["detail"] == "it is never_seen"
    assert isinstance(old, Expired)
    assert old.facts["ended"] == "2026-01-01T13:00:00Z"


async def test_the_value_is_parsed_by_the_model(fake: Fake) -> None:
    fake.put(entry(KEY, 1))
    async with Client(fake.url) as states:
        found = await states.get("flights", KEY, model=Flight)
        assert isinstance(found, Found)
        assert found.value == Flight(device_id=KEY, state=Status(status="landed"))
        plain = await states.get("flights", KEY, model=dict)
        assert isinstance(plain, Found)
        assert plain.value == {"device_id": KEY, "state": {"status": "landed"}}
        with pytest.raises(
            ModelMismatchError, match=r"flights/UA/1545/2013-01-01 is no Status \(status: Field required\)"
        ):
            await states.get("flights", KEY, model=Status)


async def test_parameters_and_token_are_sent(fake: Fake) -> None:
    fake.put(entry("k", 1))
    async with Client(fake.url, token="s3cret") as states:  # noqa: S106
        await states.get("flights", "k", fields=["state.status", "state.a b"], min_version=3, wait=1.5)
        await states.get("flights", "k", as_of=2)
        await states.get("flights", "k", min_offset=(2, 1047), wait=5)
    assert fake.requests == [
        "/v1/states/flights/k?fields=state.status%2Cstate.a%20b&min_version=3&wait=1.5",
        "/v1/states/flights/k?as_of=2",
        "/v1/states/flights/k?min_offset=2%3A1047&wait=5",
    ]
    assert fake.tokens == {"Bearer s3cret"}


FAULTS: dict[str, Fault] = {
    "503": problem_response("catching_up", 503),
    "500": problem_response("failed", 500),
    "429": problem_response("too_many", 429, **{"Retry-After": "0"}),
    "proxy": body_response(b"<html>Bad Gateway</html>", 502),
    "reset": resetting,
    "421": problem_response("elsewhere", 421),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_transient_failure_is_retried(fake: Fake, fault: str) -> None:
    fake.put(entry("k", 1))
    fake.faults.extend([FAULTS[fault]] * 3)
    async with Client(fake.url) as states:
        assert isinstance(await states.get("flights", "k"), Found)
    assert len(fake.requests) == 4


async def test_the_client_waits_for_retry_after(fake: Fake) -> None:
    fake.put(entry("k", 1))
    fake.faults.append(problem_response("catching_up", 503, **{"Retry-After": "6"}))
    async with Client(fake.url) as states:
        with pytest.raises(CatchingUpError, match=r"no answer within 5 s and 1 try; .* 503 it is catching_up"):
            await states.get("flights", "k", deadline=5.0)
        fake.faults.append(problem_response("catching_up", 503, **{"Retry-After": "1"}))
        assert isinstance(await states.get("flights", "k", deadline=60.0), Found)


async def test_a_redirect_is_not_followed(fake: Fake) -> None:
    fake.put(entry("k", 1))
    fake.faults.append(problem_response("moved", 302, Location="/v1/states/flights/k"))
    async with Client(fake.url) as states:
        with pytest.raises(RejectedError, match="302"):
            await states.get("flights", "k")
    assert len(fake.requests) == 1


async def test_retries_stop_at_the_deadline(fake: Fake) -> None:
    fake.always = problem_response("catching_up", 503)
    async with Client(fake.url, deadline=2.0) as states:
        with shortest_attempt(1.0), pytest.raises(CatchingUpError, match="allow more time") as caught:
            await states.get("flights", "k")
    assert caught.value.tries == len(fake.requests) > 2


async def test_silence_times_out_at_the_deadline(fake: Fake) -> None:
    fake.always = hanging
    async with Client(fake.url, deadline=0.3) as states:
        with pytest.raises(NoAnswerError, match=r"took too long|[Tt]imeout") as caught:
            await states.get("flights", "k")
    assert type(caught.value) is NoAnswerError


async def test_no_reachable_instance_raises(fake: Fake) -> None:
    await fake.stop()
    async with Client(fake.url, deadline=0.3) as states:
        with pytest.raises(NoAnswerError, match="check that the query service runs"):
            await states.get("flights", "k")


REFUSALS: list[tuple[str, int, type[Exception]]] = [
    ("bad_request", 400, RejectedError),
    ("no_token", 401, AccessDeniedError),
    ("not_yours", 403, AccessDeniedError),
    ("unknown_state", 404, RejectedError),
    ("version_not_kept", 404, RejectedError),
    ("too_large", 413, RejectedError),
]


@pytest.mark.parametrize(("kind", "status", "error"), REFUSALS)
async def test_a_permanent_failure_is_not_retried(fake: Fake, kind: str, status: int, error: type[Exception]) -> None:
    fake.always = problem_response(kind, status)
    async with Client(fake.url) as states:
        with pytest.raises(error, match=rf"flights/k was refused \({status}\): it is {kind}"):
            await states.get("flights", "k")
    assert len(fake.requests) == 1


GARBAGE: list[bytes] = [
    b"<html>It works!</html>",
    b"",
    b"[]",
    b"null",
    b"{}",
    b'{"state": "flights", "key": "k"}',
    b'{"state":"flights","key":"k","version":true,"window_start":null,"event_time":"now","age_ms":1,"source":{}}',
]


@pytest.mark.parametrize("body", GARBAGE)
async def test_malformed_responses_are_rejected(fake: Fake, body: bytes) -> None:
    fake.always = body_response(body)
    async with Client(fake.url) as states:
        with pytest.raises(InvalidResponseError, match="check the address"):
            await states.get("flights", "k")


@pytest.mark.parametrize("wrong", [{"version": True}, {"version": 1.5}, {"value": 5}])
async def test_a_response_with_a_value_of_another_type_is_rejected(fake: Fake, wrong: dict[str, Any]) -> None:
    fake.always = body_response(orjson.dumps({**entry("k", 1), "role": "owner", "instance": "i", **wrong}))
    async with Client(fake.url) as states:
        with pytest.raises(InvalidResponseError, match=r"no whole number|no object"):
            await states.get("flights", "k")


async def test_a_response_for_another_key_is_rejected(fake: Fake) -> None:
    fake.put({**entry("other", 1), "key": "k"}, entry("k", 1))
    fake.entries["flights", "k"] = entry("other", 1)
    async with Client(fake.url) as states:
        with pytest.raises(InvalidResponseError, match="flights/other, asked for flights/k"):
            await states.get("flights", "k")


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://host", "http://", "http://host?a=b"])
def test_an_invalid_address_raises(url: str) -> None:
    with pytest.raises(InvalidAddressError, match=r"such as http://127\.0\.0\.1:8090"):
        Client(url)


async def test_a_version_that_has_not_arrived_raises(fake: Fake) -> None:
    fake.always = problem_response("behind", 503)
    async with Client(fake.url) as states:
        with pytest.raises(NotArrivedError, match=r"it is behind \(allow more time with wait=\)"):
            await states.get("flights", "k", min_version="1767268800000.0.9", wait=0.1)
    assert fake.requests == ["/v1/states/flights/k?min_version=1767268800000.0.9&wait=0.1"]


async def test_a_long_wait_makes_the_deadline_longer(fake: Fake) -> None:
    fake.put(entry("k", 1))
    fake.always = late
    async with Client(fake.url, deadline=0.1) as states:
        found = await states.get("flights", "k", min_version=1, wait=5.0)
    assert isinstance(found, Found)
    assert found.tag == "1767268800000.0.1"


async def test_reads_with_a_wait_take_no_connection_from_others(fake: Fake) -> None:
    fake.put(entry("k", 1))
    fake.faults.extend([hanging] * 3)
    async with Client(fake.url, connections=1, deadline=2) as states, asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(states.get("flights", "k", min_version=2, wait=60.0)) for _ in range(3)]
        await until(lambda: len(fake.requests) == len(waiting), "all wait")
        assert isinstance(await states.get("flights", "k"), Found)
        for one in waiting:
            one.cancel()


async def test_a_response_of_an_earlier_release_has_epoch_zero(fake: Fake) -> None:
    body = entry("k", 7)
    del body["epoch"]
    fake.put(body)
    async with Client(fake.url) as states:
        found = await states.get("flights", "k")
    assert isinstance(found, Found)
    assert found.order == (1_767_268_800_000, 0, 7)
