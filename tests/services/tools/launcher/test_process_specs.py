from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.model.suite import load_suite
from services.query.console.components import unmonitored
from services.tools.launcher.folders import Folders
from services.tools.launcher.process_specs import process_specs
from services.tools.launcher.settings import LauncherSettings

ALL = ["broker", "topics", "reference", "job", "worker-1", "worker-2", "derive", "query", "replay", "live"]


def names(*, headless: bool = False, **own: object) -> list[str]:
    settings = LauncherSettings.model_validate(own)
    return [part.name for part in process_specs(settings, Folders(settings.data), headless=headless)]


def test_the_order_is_that_of_the_needs() -> None:
    assert names() == ALL


def test_without_a_terminal_there_is_no_view() -> None:
    assert names(headless=True) == ALL[:-1]


def test_another_broker_is_used_and_not_started() -> None:
    assert names(kafka="kafka:9092") == ALL[1:]


def test_an_application_without_apis_and_data_of_its_own_brings_none() -> None:
    assert names(application="bench.yardstick.application:app", workers=1) == [
        "broker",
        "topics",
        "job",
        "worker-1",
        "query",
        "live",
    ]


def test_a_suite_brings_the_apis_and_the_data_of_its_applications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere.py").write_text(
        "from contracts import Application, Suite, Topics\nfrom examples.flights.application import app\n"
        "from tests.contracts.model.test_suite import Days, Ping\n"
        "days = Application(name='days', event=Ping, state=Days, topics=Topics(prefix='days.'))\n"
        "suite = Suite(days, app)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert names(application="elsewhere:suite") == ALL
    settings = LauncherSettings(application="elsewhere:suite")
    by_name = {part.name: part for part in process_specs(settings, Folders(settings.data), headless=False)}
    assert by_name["reference"].command[-1] == "examples.flights.reference"
    assert by_name["derive"].env["STATELOOP_APPLICATION"] == "elsewhere:suite"


def test_an_application_brings_a_source_of_records() -> None:
    settings = LauncherSettings(application="examples.vitals.application:suite", broker_port=19092)
    by_name = {part.name: part for part in process_specs(settings, Folders(settings.data), headless=True)}
    assert [*by_name][-1] == "source"
    assert by_name["source"].command[-1] == "examples.vitals.source"
    assert by_name["source"].env["STATELOOP_KAFKA"] == "127.0.0.1:19092"
    assert by_name["reference"].command[-1] == "examples.vitals.reference"


def test_every_port_and_folder_is_the_settings() -> None:
    settings = LauncherSettings(data=Path("/data"), broker_port=19092, reference_port=18081)
    by_name = {part.name: part for part in process_specs(settings, Folders(settings.data), headless=False)}
    assert by_name["broker"].env["STATELOOP_BROKER_PORT"] == "19092"
    assert by_name["broker"].env["STATELOOP_BROKER_DATA"] == "/data/broker"
    assert by_name["reference"].env == {"STATELOOP_REFERENCE_PORT": "18081"}
    assert by_name["worker-1"].env["STATELOOP_APIS"] == '{"reference": "http://127.0.0.1:18081"}'
    assert by_name["worker-1"].env["STATELOOP_ALLOWED_NETWORKS"] == '["127.0.0.0/8"]', "or it may not call them"
    assert by_name["job"].env["STATELOOP_CHECKPOINT"] == "/data/checkpoint"
    assert by_name["job"].env["STATELOOP_BATCH"] == "PT15S"
    clients = ("topics", "job", "worker-1", "worker-2", "replay")
    assert {by_name[name].env["STATELOOP_KAFKA"] for name in clients} == {"127.0.0.1:19092"}
    assert "/data/replay.json" in by_name["replay"].command


def test_the_apis_of_the_environment_are_those_of_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_APPLICATION", "examples.scooters.application:app")
    monkeypatch.setenv("STATELOOP_APIS", '{"city": "http://10.1.0.7:8000"}')
    monkeypatch.setenv("STATELOOP_ALLOWED_NETWORKS", '["10.1.0.0/16"]')
    settings = LauncherSettings()
    worker = next(
        part for part in process_specs(settings, Folders(settings.data), headless=True) if "worker" in part.name
    )
    apis = {"reference": "http://127.0.0.1:8081", "city": "http://10.1.0.7:8000"}
    assert json.loads(worker.env["STATELOOP_APIS"]) == apis
    assert json.loads(worker.env["STATELOOP_ALLOWED_NETWORKS"]) == ["127.0.0.0/8", "10.1.0.0/16"]


def test_processes_and_launcher_share_the_names_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_BATCH", "PT5S")
    monkeypatch.setenv("STATELOOP_JARS", "/jars")
    settings = LauncherSettings()
    by_name = {part.name: part for part in process_specs(settings, Folders(settings.data), headless=True)}
    assert by_name["job"].env["STATELOOP_BATCH"] == "PT5S"
    assert {by_name[name].env["STATELOOP_JARS"] for name in ("broker", "job")} == {"/jars"}


def test_each_part_that_is_watched_has_a_port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_HTTP_PORT", "9100")
    settings = LauncherSettings()
    specs = {part.name: part for part in process_specs(settings, Folders(settings.data), headless=False)}
    ports = {name: part.env["STATELOOP_HTTP_PORT"] for name, part in specs.items() if "STATELOOP_HTTP_PORT" in part.env}
    assert ports == {"query": "9100", "job": "9101", "derive": "9102", "worker-1": "9103", "worker-2": "9104"}
    watched = json.loads(specs["query"].env["STATELOOP_SCRAPE_TARGETS"])
    assert watched == {
        "job": ["http://127.0.0.1:9101"],
        "enrichment": ["http://127.0.0.1:9103", "http://127.0.0.1:9104"],
        "derive": ["http://127.0.0.1:9102"],
    }
    assert unmonitored(load_suite(settings.application).applications[0], watched) == ()
    assert specs["query"].page == specs["live"].env["STATELOOP_URL"] == "http://127.0.0.1:9100"


def test_only_the_state_is_forgotten(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.prepare()
    for folder in (folders.broker, folders.checkpoint, folders.query, tmp_path / "jars"):
        folder.mkdir()
    folders.position.write_text("{}")
    assert folders.state() == [folders.broker, folders.checkpoint, folders.position, folders.query]
    folders.forget()
    assert folders.state() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jars", "logs", "run", "scratch"]


@pytest.mark.parametrize("wrong", [{"workers": -1}, {"broker_port": 65535}, {"replay_speed": 0}])
def test_wrong_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LauncherSettings.model_validate(wrong)
