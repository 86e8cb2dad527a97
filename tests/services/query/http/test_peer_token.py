"""The token that instances send each other in place of the client's token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from contracts.errors import InvalidSettingsError
from contracts.settings import read
from services.query.http.request_guard import RequestGuard
from services.query.lookup.authentication import PEER, Authenticator
from services.query.lookup.problems import ProblemError
from services.query.settings import QuerySettings
from tests.services.query.in_memory import a_state, dependencies_of

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = "Bearer a-secret-of-a-dashboard"
INSTANCE = "Bearer a-secret-of-instances"


@pytest.fixture
def access(tmp_path: Path) -> Authenticator:
    tokens = tmp_path / "tokens.json"
    token = {"name": "dashboard", "token": "a-secret-of-a-dashboard", "states": ["airports"]}
    tokens.write_text(json.dumps({"tokens": [token]}))
    return Authenticator(tokens, SecretStr("a-secret-of-instances"))


def test_a_peer_reads_every_key(access: Authenticator) -> None:
    assert access.authenticate(INSTANCE) is PEER
    assert PEER.reads_key("flights", "any")
    client = access.authenticate(CLIENT)
    assert client is not None
    assert not client.reads("flights")
    assert access.authenticate("Bearer another") is None


def test_without_a_peer_token_no_token_is_a_peers(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"tokens":[]}')
    assert Authenticator(tokens).authenticate(INSTANCE) is None


@pytest.mark.parametrize("token", ["", "short"])
def test_token_of_instances_must_be_long(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_PEER_TOKEN", token)
    with pytest.raises(InvalidSettingsError, match="PEER_TOKEN"):
        read(QuerySettings)


def test_an_empty_token_is_invalid(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"tokens":[]}')
    assert Authenticator(tokens, SecretStr("")).authenticate("Bearer \u00a0") is None


def test_requests_of_peers_have_no_rate_limit(access: Authenticator) -> None:
    gate = RequestGuard(dependencies_of(a_state(), rate=1), access)
    assert all(gate.admit(INSTANCE, "10.0.0.1")[0] is PEER for _ in range(10))
    with pytest.raises(ProblemError, match="rate"):
        [gate.admit(CLIENT, "10.0.0.1") for _ in range(10)]
