from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from contracts.model.suite import load_suite
from contracts.settings import read
from services.sink.settings import SinkSettings
from services.sink.stores import STORES
from spark_app.run.session import slots as needed_slots
from tests.compose.configured import ROOT, Service, configured, variables

LAYERS = sorted(path.name for path in ROOT.glob("compose.*.yaml"))


@pytest.fixture(scope="module", params=LAYERS)
def layered(request: pytest.FixtureRequest) -> dict[str, Service]:
    return configured(request.param)


@pytest.fixture(scope="module")
def cluster() -> dict[str, Service]:
    return configured("compose.cluster.yaml")


def test_there_are_layers() -> None:
    assert {"compose.cluster.yaml", "compose.sink.yaml"} <= {*LAYERS}


@pytest.mark.parametrize(("name", "store"), [("sink-redis", "redis"), ("sink-postgresql", "postgresql")])
def test_sinks_have_the_application_of_the_stack_and_a_store_of_the_layer(
    name: str, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = configured("compose.sink.yaml")
    given: dict[str, str] = services[name]["environment"]
    common = ("STATELOOP_APPLICATION", "STATELOOP_KAFKA")
    assert [given[one] for one in common] == [services["derive"]["environment"][one] for one in common]
    for variable, value in given.items():
        monkeypatch.setenv(variable, value.replace("/run/secrets", str(ROOT / "deploy" / "sink")))
    url = urlsplit(read(SinkSettings).url())
    assert url.hostname == store
    assert url.port == services[store]["ports"][0]["target"]
    password = (ROOT / "deploy" / "sink" / "postgresql_password").read_text().strip()
    assert url.password in {None, password}
    assert STORES[url.scheme].name == store


def test_every_layer_is_as_closed_as_the_stack(layered: dict[str, Service]) -> None:
    for name, service in layered.items():
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"]), name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service.get("read_only") or name == "kafka", name
        assert int(service["mem_limit"]) > 0, name
        assert float(service["cpus"]) > 0, name
        assert {port["host_ip"] for port in service.get("ports", ())} <= {"127.0.0.1"}, name


def test_every_layer_has_a_health_check_and_restarts(layered: dict[str, Service]) -> None:
    staying = {name: service for name, service in layered.items() if name not in {"topics", "replay"}}
    assert {name for name, service in staying.items() if "test" not in service.get("healthcheck", {})} == set()
    assert {service["restart"] for service in staying.values()} == {"unless-stopped"}


def test_nothing_is_built_twice(layered: dict[str, Service]) -> None:
    built = [service["image"] for service in layered.values() if "build" in service]
    assert len(built) == len(set(built))


def test_the_cluster_has_a_slot_for_every_task(cluster: dict[str, Service]) -> None:
    workers = cluster["spark-worker"]["deploy"]["replicas"]
    slots = workers * int(variables()["CLUSTER_WORKER_SLOTS"])
    assert workers == 2
    partitions = int(variables()["PARTITIONS"])
    suite = load_suite(cluster["job"]["environment"]["STATELOOP_APPLICATION"])
    assert slots >= sum(needed_slots(application, partitions, partitions) for application in suite.applications)


def test_driver_and_workers_share_the_checkpoint(cluster: dict[str, Service]) -> None:
    (driver,) = cluster["job"]["volumes"]
    assert driver in cluster["spark-worker"]["volumes"]
    assert cluster["job"]["environment"]["STATELOOP_CHECKPOINT"].startswith(driver["target"])
