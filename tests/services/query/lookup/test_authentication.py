"""Authentication: the token file, scopes, and reload."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from services.query.cluster import PartitionStatus, Role
from services.query.errors import ExposedError, TokensUnreadableError
from services.query.http.retry import PATIENCE_S
from services.query.lookup.authentication import ANONYMOUS, Authenticator, reload_tokens
from services.query.settings import QuerySettings
from tests.services.query.http.instance import Instance, answering
from tests.services.query.in_memory import MemoryRouting, ScratchStore, a_state, dependencies_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.query.http.instance import Response

SECRET = "a-secret-of-a-dashboard"  # noqa: S105  # opens nothing
DIGEST = "a50ae1f1b29ca8dd25dc67e8a0ad05b9c3bff0aa3d2dcfa5b4e3cbf0b9bdd7a5"
BEARER = {"Authorization": f"Bearer {SECRET}"}


def written(path: Path, *tokens: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"tokens": tokens}))
    return path


def corrupt(path: Path) -> None:
    path.write_text("rubbish")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    scoped = {"name": "dashboard", "token": SECRET, "states": ["flights"], "keys": ["UA/", "DL/"]}
    return written(tmp_path / "tokens.json", scoped, {"name": "audit", "sha256": DIGEST})


def test_a_token_is_declared_by_its_text_or_its_digest(tokens: Path) -> None:
    access = Authenticator(tokens)
    found = access.authenticate(f"bearer {SECRET}")
    assert found is not None
    assert (found.name, found.is_unbounded) == ("dashboard", False)
    for wrong in (None, "", "Bearer", "Bearer ", f"Basic {SECRET}", SECRET, f"Bearer {SECRET}x", f"Bearer {DIGEST}"):
        assert access.authenticate(wrong) is None
    assert Authenticator(None).authenticate(None) is ANONYMOUS


def test_every_token_is_compared_in_constant_time(tokens: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bool] = []

    def noted(known: bytes, given: bytes) -> bool:
        compared.append(hmac.compare_digest(known, given))
        return compared[-1]

    monkeypatch.setattr("services.query.lookup.authentication.hmac", SimpleNamespace(compare_digest=noted))
    access = Authenticator(tokens)
    for given, expected in ((SECRET, [True, False]), (SECRET + "x", [False, False]), ("x", [False, False])):
        compared.clear()
        access.authenticate(f"Bearer {given}")
        assert compared == expected


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([{"name": "a"}], "either token or sha256"),
        ([{"name": "a", "token": SECRET, "sha256": DIGEST}], "either token or sha256"),
        ([{"name": "a", "token": "short-secret"}], "at least 16"),
        ([{"name": "a", "token": SECRET, "state": "x"}], "state"),
        ([{"name": "", "token": SECRET}], "name"),
        ([{"name": "a", "sha256": "x"}], "sha256"),
    ],
)
def test_an_invalid_file_is_reported_without_its_secrets(
    tmp_path: Path, tokens: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(TokensUnreadableError, match=message) as error:
        Authenticator(written(tmp_path / "tokens.json", *tokens))
    assert "secret" not in str(error.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TokensUnreadableError, match="STATELOOP_TOKENS"):
        Authenticator(tmp_path / "nowhere")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])  # noqa: S104  # it refuses to
def test_a_public_address_requires_tokens(host: str, tmp_path: Path) -> None:
    with pytest.raises(ExposedError, match="STATELOOP_TOKENS"):
        QuerySettings(application="a:b", http_host=host).check_exposure()
    QuerySettings(application="a:b", http_host=host, tokens=tmp_path).check_exposure()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_a_loopback_address_requires_no_tokens(host: str) -> None:
    QuerySettings(application="a:b", http_host=host).check_exposure()


@pytest.mark.parametrize("hot", [True, False])
async def test_a_token_reads_only_its_scope(tokens: Path, hot: bool) -> None:  # noqa: FBT001  # a parameter
    dependencies = dependencies_of(a_state(), a_state("planes"), tokens=tokens)
    store = dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    for key in ("UA/1", "AA/1"):
        store.put(key)
    async with answering(dependencies, hot=hot) as instance:
        assert await _statuses(instance) == {
            "/v1/states/flights/UA%2F1": 200,
            "/v1/states/flights/AA%2F1": 403,
            "/v1/states/flights/AA%2F1/versions": 403,
            "/v1/states/planes/UA%2F1": 403,
            "/v1/states/flights?prefix=UA/": 200,
            "/v1/states/flights?prefix=U": 403,
            "/v1/states/flights": 403,
            "/v1/states/planes?prefix=UA/": 403,
        }
        (state,) = (await instance.ask("/v1/states", headers=BEARER)).json["states"]
        assert state["name"] == "flights"
        body = json.dumps({"keys": ["UA/1", "AA/1"]}).encode()
        response = await instance.ask("/v1/states/flights:batchGet", "POST", BEARER, body)
        assert [one.get("version") or one["type"] for one in response.json["answers"]] == [1, "not_yours"]
        assert (await instance.ask("/v1/states/planes:batchGet", "POST", BEARER, body)).status == 403
        assert (await instance.ask("/v1/states/flights/UA%2F1")).status == 401


async def test_a_revoked_token_is_rejected_and_an_invalid_file_is_ignored(
    tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dependencies = dependencies_of(a_state(), tokens=tokens)
    store = dependencies.stores["flights"]
    assert isinstance(store, ScratchStore)
    store.put("UA/1")
    async with answering(dependencies, hot=True) as instance:
        assert instance.hot is not None
        assert (await instance.ask("/v1/states/flights/UA%2F1", headers=BEARER)).status == 200
        corrupt(tokens)
        with caplog.at_level(logging.INFO):
            reload_tokens(instance.access, instance.hot.forget_callers)
        assert (await instance.ask("/v1/states/flights/UA%2F1", headers=BEARER)).status == 200
        assert [record.levelname for record in caplog.records if record.message == "tokens"] == ["WARNING"]
        written(tokens, {"name": "other", "token": "another-secret-of-it"})
        os.utime(tokens, ns=(1, 1))
        reload_tokens(instance.access, instance.hot.forget_callers)
        assert (await instance.ask("/v1/states/flights/UA%2F1", headers=BEARER)).status == 401


@pytest.mark.parametrize("hot", [True, False])
async def test_the_rate_counts_keys(hot: bool) -> None:  # noqa: FBT001  # a parameter
    dependencies = dependencies_of(a_state(), rate=10)
    async with answering(dependencies, hot=hot) as instance:
        body = json.dumps({"keys": ["x"] * 100}).encode()
        first = await instance.ask("/v1/states/flights:batchGet", "POST", body=body)
        second = await instance.ask("/v1/states/flights/x")
        assert (first.status, second.status, second.kind) == (200, 429, "too_many")
        assert int(second.headers["Retry-After"]) > 5


@pytest.mark.parametrize("hot", [True, False])
@pytest.mark.parametrize("path", ["/v1/states/flights/x", "batch"])
async def test_a_request_is_charged_once_on_either_path(hot: bool, path: str) -> None:  # noqa: FBT001
    """Also a request that the fast path passes to aiohttp, because another instance owns the key."""
    dependencies = replace(dependencies_of(a_state(), rate=8), clock=lambda: 1000.0)
    assert isinstance(dependencies.routing, MemoryRouting)
    dependencies.routing.own = PartitionStatus(Role.ELSEWHERE, 0)
    async with answering(dependencies, hot=hot) as instance:
        responses = [await _key_of_another(instance, path) for _ in range(20)]
        assert [response.status != 429 for response in responses].count(True) == 9, (
            "a second's worth, and the one that exceeds it"
        )


async def _key_of_another(instance: Instance, path: str) -> Response:
    if path != "batch":
        return await instance.ask(path)
    return await instance.ask("/v1/states/flights:batchGet", "POST", body=b'{"keys":["x"]}')


async def test_retries_are_not_charged() -> None:
    dependencies = dependencies_of(a_state(), rate=100)
    assert isinstance(dependencies.routing, MemoryRouting)
    dependencies.routing.own = PartitionStatus(Role.CATCHING_UP, 1)
    async with answering(dependencies, hot=False) as instance:
        pending = asyncio.ensure_future(instance.ask("/v1/states/flights?limit=90"))
        done, _ = await asyncio.wait([pending], timeout=PATIENCE_S / 2)
        assert not done, "it is retried"
        dependencies.routing.own = PartitionStatus(Role.OWNER, 0)
        assert (await pending).status == 200
        assert (await instance.ask("/v1/states/flights/x")).status == 404


@pytest.mark.parametrize("hot", [True, False])
async def test_requests_beyond_the_rate_do_not_read_the_store(
    hot: bool,  # noqa: FBT001  # a parameter
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dependencies = dependencies_of(a_state(), rate=1)
    looked: list[object] = []
    async with answering(dependencies, hot=hot) as instance:
        body = json.dumps({"keys": ["x"] * 100}).encode()
        assert (await instance.ask("/v1/states/flights:batchGet", "POST", body=body)).status == 200
        monkeypatch.setattr(dependencies.stores["flights"], "get", looked.append)
        assert (await instance.ask("/v1/states/flights:batchGet", "POST", body=body)).status == 429
        assert (await instance.ask("/v1/states/flights/x")).status == 429
        assert not looked


async def _statuses(instance: Instance) -> dict[str, int]:
    paths = (
        "/v1/states/flights/UA%2F1",
        "/v1/states/flights/AA%2F1",
        "/v1/states/flights/AA%2F1/versions",
        "/v1/states/planes/UA%2F1",
        "/v1/states/flights?prefix=UA/",
        "/v1/states/flights?prefix=U",
        "/v1/states/flights",
        "/v1/states/planes?prefix=UA/",
    )
    return {path: (await instance.ask(path, headers=BEARER)).status for path in paths}
