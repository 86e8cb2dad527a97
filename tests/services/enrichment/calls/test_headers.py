"""Secret headers: from the environment or a file, and in no message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest
from pydantic import SecretStr

from services.enrichment.calls.headers import reveal, secrets
from services.enrichment.errors import HeaderUnreadableError
from services.enrichment.settings import EnrichmentSettings

if TYPE_CHECKING:
    from pathlib import Path


def test_a_value_or_a_file_with_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("Bearer canary\n")
    configured = {"Authorization": SecretStr(f"file:{tmp_path}/key"), "X-Key": SecretStr("canary")}
    assert reveal(configured) == {"Authorization": "Bearer canary", "X-Key": "canary"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Key", "file:/nowhere/canary-file"),
        ("X-Key", "canary\r\nHost: evil"),
        ("X-Key", "canärie"),
        ("X-Key", ""),
        ("X Key", "canary"),
        ("X-Key\n", "canary"),
    ],
)
def test_an_invalid_header_is_refused_without_its_value(name: str, value: str) -> None:
    with pytest.raises(HeaderUnreadableError, match="write one line of text, or file:/its/path") as refused:
        reveal({name: SecretStr(value)})
    assert "canary" not in str(refused.value).replace("/nowhere/canary-file", "")


def test_a_file_with_more_than_a_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"one\ntwo")
    with pytest.raises(HeaderUnreadableError, match="more than one line"):
        reveal({"X-Key": SecretStr(f"file:{tmp_path}/key")})


def test_the_settings_do_not_print_them() -> None:
    configured = EnrichmentSettings.model_validate({"application": "a:b", "api_headers": {"city": {"X-Key": "canary"}}})
    assert "X-Key" in configured.model_dump_json()
    assert "canary" not in configured.model_dump_json() + repr(configured) + str(configured)


@pytest.mark.parametrize("repeated", [b"Bearer canary/4711", b"canary/4711", b"canary\\/4711"])
def test_a_secret_is_known_without_its_scheme_and_as_json_escapes_it(repeated: bytes) -> None:
    assert any(secret in b'{"you":"' + repeated + b'"}' for secret in secrets({"Authorization": "Bearer canary/4711"}))


def test_a_secret_with_a_quote_is_known_as_json_escapes_it() -> None:
    configured = {"Authorization": 'Digest user="canary-4711"'}
    assert any(secret in orjson.dumps(configured) for secret in secrets(configured))


@pytest.mark.parametrize(
    ("name", "value"), [("Accept-Language", "en-US, german"), ("User-Agent", "fleet (of ours)"), ("X-Version", "v 2")]
)
def test_a_public_header_may_be_in_a_response(name: str, value: str) -> None:
    assert secrets({name: value}) == []
