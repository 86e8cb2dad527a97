from __future__ import annotations

import ast
import json
import re
import tomllib
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from contracts.model.suite import load_suite
from examples.flights.reference.settings import ReferenceSettings
from examples.flights.replay.settings import ReplaySettings
from services.derive.settings import DeriveSettings
from services.enrichment.settings import EnrichmentSettings
from services.query.console.components import unmonitored
from services.query.lookup.authentication import Authenticator
from services.query.settings import QuerySettings
from services.tools.broker.jars import IVY_XML
from services.tools.cli.command_table import COMMANDS
from services.tools.topics.settings import TopicsSettings
from spark_app.settings import JobSettings
from tests.compose.configured import ROOT, Service, configured, variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pydantic_settings import BaseSettings

SETTINGS: dict[str, type[BaseSettings]] = {
    "topics": TopicsSettings,
    "job": JobSettings,
    "enrichment": EnrichmentSettings,
    "derive": DeriveSettings,
    "query": QuerySettings,
    "reference": ReferenceSettings,
    "replay": ReplaySettings,
}
ONE_SHOT = {"topics", "replay"}
MAY_WRITE_ITS_ROOT = {"kafka"}
LEFT_OUT_OF_SERVICES = {"heartpy", "numpy", "pandas", "pyarrow", "sleepecg"}
"""Packages that the image of the services does not have."""
NOT_RUN_BY_SERVICES = {"contracts/types/packed.py", "examples/vitals/rates.py", "examples/vitals/recordings.py"}
"""The job decodes by numpy, which its image has. Source and API of an example are in no image."""


@pytest.fixture(scope="module")
def services() -> dict[str, Service]:
    return configured()


def offenders(services: dict[str, Service], is_met: Callable[[Service], bool]) -> set[str]:
    return {name for name, service in services.items() if not is_met(service)}


def environment(model: type[BaseSettings]) -> set[str]:
    prefix = model.model_config.get("env_prefix", "")
    return {f"{prefix}{field}".upper() for field in model.model_fields}


def imported(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_every_service_is_known_here(services: dict[str, Service]) -> None:
    assert set(services) == {"kafka", *SETTINGS}


def test_no_container_runs_as_root(services: dict[str, Service]) -> None:
    user = re.compile(r"[1-9]\d*:[1-9]\d*")
    assert offenders(services, lambda service: bool(user.fullmatch(service.get("user", "")))) == set()


def test_no_container_gains_rights(services: dict[str, Service]) -> None:
    assert offenders(services, lambda service: service["cap_drop"] == ["ALL"]) == set()
    assert offenders(services, lambda service: "no-new-privileges:true" in service["security_opt"]) == set()
    assert offenders(services, lambda service: service.get("read_only", False)) == MAY_WRITE_ITS_ROOT
    assert offenders(services, lambda service: not service.get("privileged") and "cap_add" not in service) == set()


def test_memory_and_cpus_are_limited(services: dict[str, Service]) -> None:
    assert offenders(services, lambda service: int(service.get("mem_limit", 0)) > 0) == set()
    assert offenders(services, lambda service: float(service.get("cpus", 0)) > 0) == set()


def test_every_service_has_a_health_check_and_restarts(services: dict[str, Service]) -> None:
    assert offenders(services, lambda service: "test" in service.get("healthcheck", {})) == ONE_SHOT
    assert offenders(services, lambda service: service["restart"] == "unless-stopped") == ONE_SHOT
    assert {services[name]["restart"] for name in ONE_SHOT} <= {"no", "on-failure"}


def test_every_dependency_has_a_condition(services: dict[str, Service]) -> None:
    waits = [
        (on, how["condition"]) for service in services.values() for on, how in service.get("depends_on", {}).items()
    ]
    assert waits
    for on, condition in waits:
        assert condition == ("service_completed_successfully" if on in ONE_SHOT else "service_healthy")


def test_ports_are_published_on_loopback_only(services: dict[str, Service]) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert set(published) == {"kafka", "query"}
    assert {port["host_ip"] for ports in published.values() for port in ports} == {"127.0.0.1"}
    assert offenders(services, lambda service: service.get("network_mode") != "host") == set()


def test_clients_on_the_host_are_sent_to_the_published_port(services: dict[str, Service]) -> None:
    (port,) = services["kafka"]["ports"]
    advertised = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert f"HOST://127.0.0.1:{port['published']}" in advertised
    assert {f"INSIDE://{services[name]['environment'].get('STATELOOP_KAFKA')}" for name in ("job", "replay")} <= {
        *advertised
    }


def test_the_query_service_requires_a_token(services: dict[str, Service]) -> None:
    (secret,) = services["query"]["secrets"]
    assert services["query"]["environment"]["STATELOOP_TOKENS"] == f"/run/secrets/{secret['source']}"
    access = Authenticator(ROOT / "deploy" / "query" / "tokens.json")
    assert access.authenticate(None) is None
    assert access.authenticate("Bearer only-on-this-machine") is not None


def test_workers_can_be_scaled(services: dict[str, Service]) -> None:
    assert offenders(services, lambda service: "container_name" not in service) == set()
    assert not {"ports", "volumes", "hostname"} & set(services["enrichment"])


def test_images_are_pinned_and_built_once(services: dict[str, Service]) -> None:
    pinned = re.compile(r"[\w./-]+:[\w.-]*\d[\w.-]*")
    assert offenders(services, lambda service: bool(pinned.fullmatch(service["image"]))) == set()
    built = [service["image"] for service in services.values() if "build" in service]
    assert len(built) == len(set(built))
    assert {service["image"] for service in services.values()} - {*built} == {services["kafka"]["image"]}
    assert {service.get("pull_policy") for service in services.values() if service["image"] in built} == {"never"}


def test_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    broker = re.search(r'name="kafka_2\.13" rev="([^"]+)"', IVY_XML.read_text())
    assert variables()["STATELOOP_VERSION"] == project["version"]
    assert broker
    assert variables()["KAFKA_TAG"] == broker[1]


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_settings_exist_and_are_valid(
    services: dict[str, Service], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, str] = services[name]["environment"]
    assert set(given) <= environment(SETTINGS[name])
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    SETTINGS[name]()


def test_the_application_exists_and_has_all_its_apis(
    services: dict[str, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in services["enrichment"]["environment"].items():
        monkeypatch.setenv(variable, value)
    settings = EnrichmentSettings()
    reference = services["reference"]["environment"]["STATELOOP_REFERENCE_PORT"]
    assert settings.base_urls(load_suite(settings.application).applications) == {
        "reference": f"http://reference:{reference}"
    }


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_commands_exist(services: dict[str, Service], name: str) -> None:
    match services[name]["command"]:
        case ["stateloop", command]:
            assert not COMMANDS[command].takes_arguments
        case ["python3", "-m", module, *_]:
            assert find_spec(f"{module}.__main__")
        case other:
            pytest.fail(f"{name} runs {other}")


def test_no_variable_is_missing_or_unused() -> None:
    text = "".join(path.read_text() for path in ROOT.glob("compose*.yaml"))
    assert set(re.findall(r"\$\{?(\w+)", text)) == set(variables())


def test_code_of_the_services_needs_nothing_that_their_image_leaves_out() -> None:
    modules = [
        module for part in ("stateloop", "contracts", "services", "examples") for module in (ROOT / part).rglob("*.py")
    ]
    mentioned = re.compile("|".join(LEFT_OUT_OF_SERVICES))  # few modules mention one: only these are parsed
    needing = {
        module.relative_to(ROOT).as_posix()
        for module in modules
        if mentioned.search(module.read_text())
        and LEFT_OUT_OF_SERVICES & {name.split(".")[0] for name in imported(module)}
    }
    assert needing == NOT_RUN_BY_SERVICES


def test_both_images_have_the_command_and_spark_has_the_code_of_each_of_its_parts() -> None:
    base, services, spark = re.split(r"^FROM .* AS (?:services|spark)$", dockerfile(), flags=re.MULTILINE)
    assert "> /usr/local/bin/stateloop" in base.split("FROM python AS packages")[0]
    assert copied(services) == {"LICENSE", "stateloop", "contracts", "services", "examples"}
    assert copied(spark) >= copied(services) | {"spark_app"}
    assert "ENV STATELOOP_JARS=/opt/jars" in services
    assert "ENV STATELOOP_JARS=/opt/jars" in spark


def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()


def copied(stage: str) -> set[str]:
    """The folders of the checkout that a stage copies."""
    return set(re.findall(r"^COPY (?!--from)(\S+) /opt/stateloop", stage, re.MULTILINE))


def test_the_build_receives_only_the_files_of_the_dockerfile() -> None:
    copied = re.findall(r"^COPY (?!--from)(\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    seen = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    within = {next((name for name in seen if f"{path}/".startswith(f"{name}/")), path) for path in copied}
    assert set(seen) == within


def test_the_console_watches_every_component(services: dict[str, Service]) -> None:
    variables = services["query"]["environment"]
    assert all(
        unmonitored(application, json.loads(variables["STATELOOP_SCRAPE_TARGETS"])) == ()
        for application in load_suite(variables["STATELOOP_APPLICATION"]).applications
    )
