"""The settings of APIs, and what a worker logs of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from contracts.errors import InvalidSettingsError
from contracts.settings import read
from examples.weather.application import notifying
from services.enrichment import __main__ as worker
from services.enrichment.settings import EnrichmentSettings
from tests.services.enrichment.fleet import app as fleet

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from contracts import Application

NAMED = {
    "apis": {"reference": "http://a", "pagr": "http://b"},
    "api_headers": {"ciyt": {"X-Key": "secret"}},
    "webhook_secrets": {"pagr": "secret"},
}
PROBLEMS = [
    "STATELOOP_APIS: no API 'pagr'; this application calls reference",
    "STATELOOP_API_HEADERS: no API 'ciyt'; this application calls reference",
    "STATELOOP_WEBHOOK_SECRETS: no webhook 'pagr'; this application calls reference",
]


@pytest.mark.parametrize(
    ("application", "facts", "problems"),
    [
        (notifying, NAMED, PROBLEMS),
        (notifying, {"webhook_secrets": {"reference": "secret"}}, []),
        (fleet, {"apis": {"registry": "http://a", "reference": "http://b"}}, []),
        (
            fleet,
            {"webhook_secrets": {"registry": "secret"}},
            ["STATELOOP_WEBHOOK_SECRETS: no webhook 'registry'; this application calls none"],
        ),
    ],
)
def test_an_api_that_the_application_does_not_call_is_named(
    application: Application, facts: dict[str, Any], problems: list[str]
) -> None:
    settings = EnrichmentSettings.model_validate({"application": "a:b"} | facts)
    assert settings.uncalled_apis([application]) == problems


def test_a_worker_logs_an_api_that_the_application_does_not_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("STATELOOP_APPLICATION", "examples.weather.application:notifying")
    for name, value in NAMED.items():
        monkeypatch.setenv(f"STATELOOP_{name.upper()}", json.dumps(value))

    def run(serving: Coroutine[Any, Any, None]) -> None:
        serving.close()

    monkeypatch.setattr("uvloop.run", run)
    monkeypatch.setattr(worker, "accepted_clients", Mock())
    monkeypatch.setattr(worker, "tune_gc", Mock())
    monkeypatch.setattr("contracts.logs.to", Mock())
    worker.main()
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == PROBLEMS


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("pager.example", r"http\(s\)://host"),
        ("http://pager..example", "the host or the port is invalid"),
        ("http://pager.example:65536", "the host or the port is invalid"),
    ],
)
def test_a_wrong_address_is_refused_with_the_name_of_its_api(
    monkeypatch: pytest.MonkeyPatch, address: str, problem: str
) -> None:
    monkeypatch.setenv("STATELOOP_APPLICATION", "a:b")
    monkeypatch.setenv("STATELOOP_APIS", json.dumps({"city": "https://city.example", "pager": address}))
    with pytest.raises(InvalidSettingsError, match=rf"STATELOOP_APIS: pager: .*{problem}"):
        read(EnrichmentSettings)
