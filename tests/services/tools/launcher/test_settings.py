from __future__ import annotations

import pytest

from contracts.errors import InvalidSettingsError
from contracts.settings import read
from services.tools.launcher.settings import LauncherSettings


def refused(monkeypatch: pytest.MonkeyPatch, **own: str) -> str:
    for name, value in own.items():
        monkeypatch.setenv(f"STATELOOP_{name.upper()}", value)
    with pytest.raises(InvalidSettingsError) as caught:
        read(LauncherSettings)
    return str(caught.value)


@pytest.mark.parametrize(
    "own",
    [
        {"http_port": "9092"},
        {"http_port": "9093"},
        {"http_port": "9090", "workers": "0"},
        {"http_port": "9088", "workers": "2"},
        {"reference_port": "8090"},
        {"reference_port": "8094"},
        {"reference_port": "9093"},
    ],
    ids=str,
)
def test_two_parts_cannot_take_one_port(monkeypatch: pytest.MonkeyPatch, own: dict[str, str]) -> None:
    assert "take the same port" in refused(monkeypatch, **own)


def test_the_error_names_both_settings_and_the_taken_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refused(monkeypatch, http_port="9088", workers="2")
    assert "STATELOOP_HTTP_PORT and STATELOOP_BROKER_PORT" in message
    assert "9088 to 9092 are taken" in message


@pytest.mark.parametrize(
    "own",
    [
        {"http_port": 9094},
        {"http_port": 9089, "workers": 0},
        {"http_port": 9088, "workers": 1},
        {"http_port": 9091, "kafka": "elsewhere:9092"},
        {"reference_port": 8095},
        {"reference_port": 8089},
    ],
    ids=str,
)
def test_ports_side_by_side_are_taken(own: dict[str, object]) -> None:
    LauncherSettings.model_validate(own)
