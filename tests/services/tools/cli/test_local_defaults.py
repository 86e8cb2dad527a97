"""The doctor after `stateloop up`, without a variable that names its set-up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from services.enrichment.settings import EnrichmentSettings
from services.tools.cli.local_defaults import local_defaults
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from pathlib import Path

DEPARTURES = "examples.departures.application:suite"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("STATELOOP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STATELOOP_DATA", str(tmp_path))
    return monkeypatch


def test_without_an_application_the_settings_are_those_of_the_launcher(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment.setenv("STATELOOP_BROKER_PORT", "19092")
    for name, value in local_defaults(os.environ).items():
        environment.setenv(name, value)
    job, worker = JobSettings(), EnrichmentSettings()
    assert (job.application, job.kafka, job.checkpoint) == (DEPARTURES, "127.0.0.1:19092", f"{tmp_path}/checkpoint")
    assert worker.apis == {"reference": "http://127.0.0.1:8081"}
    assert [str(network) for network in worker.allowed_networks] == ["127.0.0.0/8"]
    assert job.http_port is None, "that is one process's"


def test_what_the_environment_sets_is_kept_in_a_folder_of_the_launcher(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment.setenv("STATELOOP_APPLICATION", "mine.application:suite")
    environment.setenv("STATELOOP_APIS", '{"city": "https://city.example"}')
    environment.setenv("STATELOOP_CHECKPOINT", "/elsewhere")
    assert local_defaults(os.environ) == {}, "nothing has run here"
    (tmp_path / "run").mkdir()
    defaults = local_defaults(os.environ)
    assert defaults["STATELOOP_KAFKA"] == "127.0.0.1:9092"
    assert defaults["STATELOOP_APIS"] == '{"reference": "http://127.0.0.1:8081", "city": "https://city.example"}'
    assert defaults.keys().isdisjoint({"STATELOOP_APPLICATION", "STATELOOP_CHECKPOINT"})


def test_a_set_up_with_its_own_application_and_brokers_gets_nothing(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    environment.setenv("STATELOOP_APPLICATION", "mine.application:suite")
    environment.setenv("STATELOOP_KAFKA", "kafka:9092")
    assert local_defaults(os.environ) == {}
