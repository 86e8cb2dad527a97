from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.metrics import CATALOGUE
from tests.compose.configured import configured

FOLDER = Path(__file__).parents[3] / "deploy" / "observability"
DASHBOARD = json.loads((FOLDER / "grafana" / "dashboards" / "loop.json").read_text(encoding="utf-8"))
PARTS_OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")
PROMISED = ("records", "lag", "call_seconds", "breaker", "pause_seconds", "state_keys", "state_bytes", "dead_letters")


def read(path: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / path).read_text(encoding="utf-8"))
    return found


def queried() -> set[str]:
    """The metrics that the dashboard asks for."""
    expressions = (target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    return {name for expression in expressions for name in re.findall(r"stateloop_\w+", expression)}


def exported() -> set[str]:
    """Every name that the parts export."""
    plain = {metric.exported for metric in CATALOGUE}
    return plain | {f"{metric.family}{part}" for metric in CATALOGUE if metric.buckets for part in PARTS_OF_A_HISTOGRAM}


def test_every_figure_of_the_dashboard_is_in_the_catalogue() -> None:
    assert queried()
    assert queried() - exported() == set()


@pytest.mark.parametrize("figure", PROMISED)
def test_the_dashboard_has_each_documented_figure(figure: str) -> None:
    assert [name for name in queried() if figure in name] != []


def test_labels_that_divide_a_figure_are_those_of_the_catalogue() -> None:
    labels = {metric.exported: {*metric.labels, "le"} for metric in CATALOGUE}
    labels |= {f"{metric.family}_bucket": {*metric.labels, "le"} for metric in CATALOGUE if metric.buckets}
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    divided = [
        (name, by)
        for expression in expressions
        for by in re.findall(r"by \(([^)]+)\)", expression)
        for name in re.findall(r"stateloop_\w+", expression)
    ]
    assert divided
    assert [(name, by) for name, by in divided if not set(by.split(", ")) <= labels[name]] == []


def test_panels_ask_the_datasource_that_is_provisioned_and_do_not_overlap() -> None:
    (datasource,) = read("grafana/datasources/prometheus.yaml")["datasources"]
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {datasource["uid"]}
    positions = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(positions) == len(set(positions))


def test_prometheus_asks_where_the_parts_answer() -> None:
    services = configured("compose.observability.yaml")
    jobs = {job["job_name"]: job for job in read("prometheus.yml")["scrape_configs"]}
    port = int(services["enrichment"]["environment"]["STATELOOP_HTTP_PORT"])
    assert jobs["enrichment"]["dns_sd_configs"][0]["names"] == ["enrichment"]
    assert jobs["enrichment"]["dns_sd_configs"][0]["port"] == port
    job = services["job"]["environment"]["STATELOOP_HTTP_PORT"]
    assert jobs["job"]["static_configs"] == [{"targets": [f"job:{job}"]}]
    (datasource,) = read("grafana/datasources/prometheus.yaml")["datasources"]
    assert datasource["url"] == "http://prometheus:9090"


def test_grafana_finds_the_mounted_files() -> None:
    grafana = configured("compose.observability.yaml")["grafana"]
    mounts = {mount["target"]: mount for mount in grafana["volumes"]}
    (provider,) = read("grafana/providers/stateloop.yaml")["providers"]
    assert mounts[provider["options"]["path"]]["source"].endswith("deploy/observability/grafana/dashboards")
    assert "/etc/grafana/provisioning/dashboards" in mounts
    assert "/etc/grafana/provisioning/datasources" in mounts
