from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.metrics import CATALOGUE
from tests.compose.configured import ROOT, Service, configured, query_token

FOLDER = ROOT / "deploy" / "observability"
LAYERS = sorted(path.name for path in ROOT.glob("compose.*.yaml"))
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


def test_the_dashboard_has_panels_of_every_part() -> None:
    assert {name.split("_")[1] for name in queried()} == {metric.part for metric in CATALOGUE}


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


def test_prometheus_scrapes_every_part_of_all_layers() -> None:
    parts = {
        f"{name}:{service['environment']['STATELOOP_HTTP_PORT']}"
        for name, service in configured(*LAYERS).items()
        if "STATELOOP_HTTP_PORT" in service.get("environment", {}) or is_part(service)
    }
    assert {address.partition(":")[0] for address in parts} >= {"job", "enrichment", "derive", "query", "sink-redis"}
    assert scraped() - {"localhost:9090"} == parts


def is_part(service: Service) -> bool:
    """Whether a service runs a command of the product until it is stopped."""
    return "stateloop" in (service.get("command") or [])[:1] and service["restart"] != "no"


def scraped() -> set[str]:
    """The addresses that Prometheus scrapes."""
    jobs = read("prometheus.yml")["scrape_configs"]
    named = (found for job in jobs for found in job.get("dns_sd_configs", ()))
    fixed = (target for job in jobs for found in job.get("static_configs", ()) for target in found["targets"])
    return {*fixed, *(f"{name}:{found['port']}" for found in named for name in found["names"])}


def test_the_rules_on_processes_name_every_part() -> None:
    parts = [job["job_name"] for job in read("prometheus.yml")["scrape_configs"] if job["job_name"] != "prometheus"]
    named = re.findall(r'job=~"([^"]*)"', (FOLDER / "rules.yml").read_text(encoding="utf-8"))
    assert named
    assert {*named} == {"|".join(parts)}


def test_prometheus_has_a_token_of_the_query_service_and_the_mounted_files() -> None:
    prometheus = configured("compose.observability.yaml")["prometheus"]
    (job,) = (job for job in read("prometheus.yml")["scrape_configs"] if job["job_name"] == "query")
    (secret,) = prometheus["secrets"]
    assert job["authorization"] == {"credentials_file": f"/run/secrets/{secret['source']}"}
    assert (ROOT / "deploy" / "query" / "token").read_text(encoding="utf-8").strip() == query_token()
    mounts = {mount["target"]: Path(mount["source"]) for mount in prometheus["volumes"]}
    for file in ("prometheus.yml", *read("prometheus.yml")["rule_files"]):
        assert mounts[f"/etc/prometheus/{file}"] == FOLDER / file


def test_grafana_reads_prometheus() -> None:
    (datasource,) = read("grafana/datasources/prometheus.yaml")["datasources"]
    assert datasource["url"] == "http://prometheus:9090"


def test_grafana_finds_the_mounted_files() -> None:
    grafana = configured("compose.observability.yaml")["grafana"]
    mounts = {mount["target"]: mount for mount in grafana["volumes"]}
    (provider,) = read("grafana/providers/stateloop.yaml")["providers"]
    assert mounts[provider["options"]["path"]]["source"].endswith("deploy/observability/grafana/dashboards")
    assert "/etc/grafana/provisioning/dashboards" in mounts
    assert "/etc/grafana/provisioning/datasources" in mounts
