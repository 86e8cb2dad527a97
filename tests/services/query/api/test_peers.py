"""What instances show each other in place of the client's token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from contracts.errors import SettingsRefused
from contracts.settings import read
from services.query.api.access import PEER, Access
from services.query.api.gate import Gate
from services.query.api.problems import ProblemError
from services.query.settings import QuerySettings
from tests.services.query.in_memory import a_state, parts_of

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = "Bearer a-secret-of-a-dashboard"
INSTANCE = "Bearer a-secret-of-instances"


@pytest.fixture
def access(tmp_path: Path) -> Access:
    tokens = tmp_path / "tokens.json"
    token = {"name": "dashboard", "token": "a-secret-of-a-dashboard", "states": ["airports"]}
    tokens.write_text(json.dumps({"tokens": [token]}))
    return Access(tokens, SecretStr("a-secret-of-instances"))


def test_an_instance_reads_all_for_the_first_has_looked_at_the_scope(access: Access) -> None:
    assert access.holder(INSTANCE) is PEER
    assert PEER.reads_key("flights", "any")
    client = access.holder(CLIENT)
    assert client is not None
    assert not client.reads("flights")
    assert access.holder("Bearer another") is None


def test_without_peers_no_token_is_theirs(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"tokens":[]}')
    assert Access(tokens).holder(INSTANCE) is None


@pytest.mark.parametrize("token", ["", "short"])
def test_token_of_instances_must_be_long(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_PEER_TOKEN", token)
    with pytest.raises(SettingsRefused, match="PEER_TOKEN"):
        read(QuerySettings)


def test_empty_token_is_nobodys(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"tokens":[]}')
    assert Access(tokens, SecretStr("")).holder("Bearer \u00a0") is None


def test_what_is_handed_on_is_not_counted_twice(access: Access) -> None:
    gate = Gate(parts_of(a_state(), rate=1), access)
    assert all(gate.admitted(INSTANCE, "10.0.0.1") is PEER for _ in range(10))
    with pytest.raises(ProblemError, match="rate"):
        [gate.admitted(CLIENT, "10.0.0.1") for _ in range(10)]
