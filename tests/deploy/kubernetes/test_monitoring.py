"""What Prometheus' operator scrapes of the manifests. Its own schemas were applied once, by hand."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.deploy.kubernetes.test_manifests import FOLDER, MANIFESTS, Manifest

MONITORING = FOLDER / "monitoring"
MONITORS: list[Manifest] = list(yaml.safe_load_all((MONITORING / "monitors.yaml").read_text(encoding="utf-8")))
PROMETHEUS = FOLDER.parent / "observability" / "prometheus.yml"
DRIVER = {"sparkoperator.k8s.io/app-name": "stateloop-job", "spark-role": "driver"}


def labels() -> dict[str, dict[str, str]]:
    """The labels of the pods with metrics, by their manifest."""
    pods = {name: one["spec"].get("template") for name, one in MANIFESTS.items() if one.get("spec")}
    found = {name: pod["metadata"]["labels"] for name, pod in pods.items() if pod}
    return found | {"job-cluster/SparkApplication": DRIVER}


def selects(monitor: Manifest, pod: dict[str, str]) -> bool:
    selector = monitor["spec"]["selector"]
    expressions = selector.get("matchExpressions", ())
    assert {one["operator"] for one in expressions} <= {"In"}
    return selector.get("matchLabels", {}).items() <= pod.items() and all(
        pod.get(one["key"]) in one["values"] for one in expressions
    )


def job_label(endpoint: dict[str, Any], pod: dict[str, str]) -> str:
    """Return the label job of the pod's metrics, as the relabelling sets it."""
    (relabelling,) = endpoint["relabelings"]
    assert relabelling["targetLabel"] == "job"
    if "sourceLabels" not in relabelling:
        return str(relabelling["replacement"])
    known = {f"__meta_kubernetes_pod_label_{re.sub(r'[^A-Za-z0-9]', '_', name)}": text for name, text in pod.items()}
    (source,) = relabelling["sourceLabels"]
    matched = re.fullmatch(relabelling["regex"], known[source])
    assert matched
    return matched[1]


def test_each_part_is_scraped_once_under_the_job_of_the_rules() -> None:
    jobs = {job["job_name"] for job in yaml.safe_load(PROMETHEUS.read_text(encoding="utf-8"))["scrape_configs"]}
    found = set()
    for name, pod in labels().items():
        (monitor,) = (monitor for monitor in MONITORS if selects(monitor, pod))
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        found.add(job_label(endpoint, pod))
        if pod is DRIVER:
            assert endpoint["portNumber"] == MANIFESTS["job-cluster/Service"]["spec"]["ports"][0]["targetPort"]
        else:
            (container,) = MANIFESTS[name]["spec"]["template"]["spec"]["containers"]
            assert endpoint["port"] in {port["name"] for port in container["ports"]}
        assert ("authorization" in endpoint) == (name == "query/StatefulSet")
    assert found == jobs - {"prometheus"}


def test_kustomize_lists_all_manifests() -> None:
    (listed,) = yaml.safe_load_all((MONITORING / "kustomization.yaml").read_text(encoding="utf-8"))
    assert set(listed["resources"]) == {path.name for path in MONITORING.glob("*.yaml")} - {"kustomization.yaml"}
