from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.errors import InvalidSettingsError, StateloopError
from contracts.settings import Duration, KafkaSettings, read

SECRET = "hunter2"  # noqa: S105  # looked for where it must not be


class Oven(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="BAKERY_", frozen=True)

    name: str
    heat: int = Field(default=180, ge=0)
    shelves: dict[str, int] = {}
    breads: tuple[str, ...] = Field(default=(), examples=[["rye"]])
    bakes: Duration = timedelta(minutes=40)


def problems(model: type[BaseSettings]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSettingsError, match="in the environment") as refused:
        read(model)
    assert isinstance(refused.value, StateloopError)
    return list(refused.value.problems)


def test_settings_are_named_as_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKERY_HEAT", "-1")
    (name, missing), (heat, wrong) = problems(Oven)
    assert (name, missing) == ("BAKERY_NAME", "Field required")
    assert heat == "BAKERY_HEAT"
    assert "greater than or equal to 0" in wrong


def test_invalid_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKERY_SHELVES", "{")
    assert problems(Oven) == [("BAKERY_SHELVES", "write it as JSON")]


def test_invalid_json_is_refused_with_the_example_of_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKERY_BREADS", "rye")
    assert problems(Oven) == [("BAKERY_BREADS", """write it as JSON, such as '["rye"]'""")]


def test_valid_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKERY_NAME", "big")
    assert read(Oven) == Oven(name="big")


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("0.5", 0.5), ("PT1M30S", 90)])
def test_a_duration_is_seconds_or_iso(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    monkeypatch.setenv("BAKERY_NAME", "big")
    monkeypatch.setenv("BAKERY_BAKES", text)
    assert read(Oven).bakes == timedelta(seconds=seconds)


def test_a_negative_duration_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKERY_NAME", "big")
    monkeypatch.setenv("BAKERY_BAKES", "-1")
    assert [name for name, _ in problems(Oven)] == ["BAKERY_BAKES"]


@pytest.mark.parametrize("text", ["soon", "30s", "nan", ""])
def test_a_malformed_duration_is_refused_with_examples(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("BAKERY_NAME", "big")
    monkeypatch.setenv("BAKERY_BAKES", text)
    ((name, problem),) = problems(Oven)
    assert name == "BAKERY_BAKES"
    assert "such as 30," in problem
    assert "such as PT30S" in problem


def test_options_reach_the_clients_and_secrets_no_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_KAFKA_OPTIONS", f'{{"sasl.password": "{SECRET}"}}')
    settings = read(KafkaSettings)
    assert settings.client() == {"bootstrap.servers": "127.0.0.1:9092", "sasl.password": SECRET}
    assert SECRET not in f"{settings} {settings!r} {settings.model_dump()} {settings.model_dump_json()}"
