"""The manifests, checked by the schemas of Kubernetes and of Spark's operator. No small package has KEDA's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from contracts.model.suite import load_suite
from services.derive.settings import DeriveSettings
from services.enrichment.settings import EnrichmentSettings
from services.query.console.components import unmonitored
from services.query.settings import QuerySettings
from services.sink.settings import SinkSettings
from services.tools.cli.command_table import COMMANDS
from services.tools.new.project import TEMPLATE
from services.tools.topics.settings import TopicsSettings
from spark_app.run.session import slots
from spark_app.settings import JobSettings

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "kubernetes"
NEWEST, OLDEST = "1.34", "1.29"
COMPONENTS = FOLDER / "components"
BY_THEMSELVES = {"kustomization.yaml", "job-cluster.yaml", "volume.yaml"}
"""The files that no `kubectl apply -k` applies."""
OTHERS = {"Kustomization", "Component", "ScaledObject", "SparkApplication"}
SERVICES = (
    "job/StatefulSet",
    "enrichment/Deployment",
    "derive/Deployment",
    "query/StatefulSet",
    "sink/sink/Deployment",
)
OF_THE_JOB = {
    "commands/commands/CronJob",
    *(f"commands/commands/CronJob/stateloop-{name}" for name in ("archive", "rebuild", "restore")),
}
"""The commands on the checkpoint of the job."""
Manifest = dict[str, Any]


def manifests() -> dict[str, Manifest]:
    """The manifests of the base by file and kind, and those of a component by its folder too."""
    paths = [
        *((FOLDER, path) for path in FOLDER.glob("*.yaml")),
        *((COMPONENTS, path) for path in COMPONENTS.rglob("*.yaml")),
    ]
    files = [
        (path.relative_to(root).with_suffix("").as_posix(), path.read_text(encoding="utf-8"))
        for root, path in sorted(paths)
    ]
    documents = ((stem, one) for stem, text in files for one in yaml.safe_load_all(text))
    found = ((stem, one) for stem, document in documents for one in document.get("items", [document]))
    named: dict[str, Manifest] = {}
    for stem, one in found:  # the first of a file by its kind, a second of that kind by its name too
        kind = f"{stem}/{one['kind']}"
        named[f"{kind}/{one['metadata']['name']}" if kind in named else kind] = one
    return named


MANIFESTS = manifests()
APPLICATIONS = load_suite(MANIFESTS["settings/ConfigMap"]["data"]["STATELOOP_APPLICATION"]).applications
OWN_SCHEMA = sorted(name for name, one in MANIFESTS.items() if one["kind"] not in OTHERS)


def pods() -> dict[str, Manifest]:
    """The pods' specs."""
    owners = {name: one["spec"] for name, one in MANIFESTS.items() if "spec" in one}
    owners = {name: spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec for name, spec in owners.items()}
    return {name: spec["template"]["spec"] for name, spec in owners.items() if "template" in spec}


def test_only_an_unhealthy_process_is_restarted() -> None:
    """One that catches up is not ready for as long as its backlog demands: a restart would begin it again."""
    containers = [container for pod in pods().values() for container in pod["containers"]]
    found = {
        (container["name"], probe, container[probe]["httpGet"]["path"])
        for container in containers
        for probe in ("startupProbe", "livenessProbe")
        if probe in container
    }
    assert found
    assert {(name, probe) for name, probe, path in found if path == "/readyz"} == set()


def lost(written: Any, read: Any, path: str = "") -> list[str]:
    """Return the fields that a schema's model does not know."""
    if isinstance(written, dict):
        kept = read if isinstance(read, dict) else {}
        return [gone for key in written for gone in lost(written[key], kept.get(key), f"{path}/{key}")]
    if isinstance(written, list) and isinstance(read, list):
        return [gone for index, one in enumerate(written) for gone in lost(one, read[index], f"{path}/{index}")]
    return [] if read is not None else [path]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", OWN_SCHEMA)
def test_kubernetes_knows_every_field(name: str, version: str) -> None:
    kubernetes_validate.validate(MANIFESTS[name], version, strict=True)


def test_the_schemas_refuse_a_field_that_is_misspelled() -> None:
    wrong = MANIFESTS["job/StatefulSet"] | {"spec": MANIFESTS["job/StatefulSet"]["spec"] | {"replica": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


def test_sparks_operator_knows_every_field() -> None:
    from kubeflow_spark_api.models import (  # noqa: PLC0415  # 700 models, which take seconds
        SparkV1beta2SparkApplication as SparkApplication,
    )

    written = MANIFESTS["job-cluster/SparkApplication"]
    read = SparkApplication.from_dict(written)
    assert read is not None
    assert lost(written, read.to_dict()) == []
    assert lost({"spec": {"drivers": {}} | written["spec"]}, read.to_dict()) == []
    assert lost({"spec": {"driver": {"corez": 1}}}, read.to_dict()) == ["/spec/driver/corez"]


def test_every_service_is_probed_on_its_port() -> None:
    for name in SERVICES:
        (container,) = pods()[name]["containers"]
        variables = {variable["name"]: variable.get("value", "") for variable in container["env"]}
        assert container["ports"] == [{"name": "http", "containerPort": int(variables["STATELOOP_HTTP_PORT"])}], name
        probes = {kind: container[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
        assert probes == {
            "startupProbe": {"path": "/healthz", "port": "http"},
            "livenessProbe": {"path": "/healthz", "port": "http"},
            "readinessProbe": {"path": "/readyz", "port": "http"},
        }, name


@pytest.mark.parametrize("folder", [FOLDER, *sorted(COMPONENTS.iterdir())], ids=lambda folder: folder.name)
def test_kustomize_lists_all_manifests(folder: Path) -> None:
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert set(listed) == {path.name for path in folder.glob("*.yaml")} - BY_THEMSELVES


def test_a_project_may_select_each_component() -> None:
    overlay = (TEMPLATE / "deploy" / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8")
    named = set(re.findall(r"^  # - base/components/(\w+) # .", overlay, re.MULTILINE))
    assert named == {folder.name for folder in COMPONENTS.iterdir()}


def test_no_container_runs_as_root_or_gains_rights() -> None:
    for name, pod in pods().items():
        assert pod["securityContext"]["runAsNonRoot"], name
        for container in pod["containers"]:
            may = container["securityContext"]
            assert may["readOnlyRootFilesystem"], name
            assert not may["allowPrivilegeEscalation"], name
            assert may["capabilities"] == {"drop": ["ALL"]}, name


def test_every_container_requests_its_resources() -> None:
    assert pods()
    for name, pod in pods().items():
        for container in pod["containers"]:
            assert {"cpu", "memory"} <= set(container["resources"]["requests"]), name
            assert "memory" in container["resources"]["limits"], name


def test_every_service_has_a_disruption_budget() -> None:
    budgets = [
        one["spec"]["selector"]["matchLabels"] for one in MANIFESTS.values() if one["kind"] == "PodDisruptionBudget"
    ]
    for name, one in MANIFESTS.items():
        if one["kind"] in {"Deployment", "StatefulSet"}:
            assert one["spec"]["selector"]["matchLabels"] in budgets, name


def test_the_budget_of_sparks_pods_is_a_number_that_must_stay() -> None:
    executors = MANIFESTS["job-cluster/SparkApplication"]["spec"]["executor"]["instances"]
    budget = MANIFESTS["job-cluster/PodDisruptionBudget"]["spec"]
    assert budget["minAvailable"] == executors
    assert "maxUnavailable" not in budget


def test_sparks_pods_may_write_their_volume() -> None:
    written = MANIFESTS["job-cluster/SparkApplication"]["spec"]
    for pod in ("driver", "executor"):
        assert written[pod]["podSecurityContext"]["fsGroup"] == written[pod]["securityContext"]["runAsUser"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("topics/CronJob", TopicsSettings),
        ("job/StatefulSet", JobSettings),
        ("enrichment/Deployment", EnrichmentSettings),
        ("derive/Deployment", DeriveSettings),
        ("query/StatefulSet", QuerySettings),
        ("sink/sink/Deployment", SinkSettings),
    ],
)
def test_the_commands_and_settings_exist(name: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (container,) = pods()[name]["containers"]
    program, command = container["command"]
    assert program == "stateloop"
    assert not COMMANDS[command].takes_arguments
    own = {variable["name"]: variable.get("value", "of-the-pod-or-a-secret") for variable in container.get("env", ())}
    known = {f"STATELOOP_{field}".upper() for field in settings.model_fields}
    assert set(own) <= known
    for variable, value in (MANIFESTS["settings/ConfigMap"]["data"] | own).items():
        monkeypatch.setenv(variable, value)
    settings()


def test_the_commands_find_the_checkpoint_and_the_brokers_as_the_job_does() -> None:
    (job,) = pods()["job/StatefulSet"]["containers"]
    claims = MANIFESTS["job/StatefulSet"]["spec"]["volumeClaimTemplates"]
    claim = f"{claims[0]['metadata']['name']}-{MANIFESTS['job/StatefulSet']['metadata']['name']}-0"
    assert set(pods()) >= OF_THE_JOB
    for name in OF_THE_JOB:
        (command,) = pods()[name]["containers"]
        assert command["envFrom"] == job["envFrom"]
        assert all(variable in job["env"] for variable in command["env"])
        assert job["volumeMounts"][0] in command["volumeMounts"]
        assert {"name": "checkpoint", "persistentVolumeClaim": {"claimName": claim}} in pods()[name]["volumes"]


def test_the_policies_know_every_pod() -> None:
    policies = [one["spec"] for one in MANIFESTS.values() if one["kind"] == "NetworkPolicy"]
    (selector,) = (
        one["podSelector"]["matchExpressions"][0] for one in policies if "matchExpressions" in one["podSelector"]
    )
    owners = [one["spec"] for one in MANIFESTS.values() if one["kind"] in {"Deployment", "StatefulSet", "CronJob"}]
    templates = [(one.get("jobTemplate", {}).get("spec") or one)["template"] for one in owners]
    assert {one["metadata"]["labels"][selector["key"]] for one in templates} == set(selector["values"])


def test_instances_reach_each_other_by_the_name_of_their_pod() -> None:
    state = MANIFESTS["query/StatefulSet"]["spec"]
    variables = {one["name"]: one.get("value", "") for one in pods()["query/StatefulSet"]["containers"][0]["env"]}
    own = MANIFESTS["query/Service"]
    assert own["metadata"]["name"] == state["serviceName"]
    assert own["spec"]["clusterIP"] == "None"
    assert variables["STATELOOP_URL"] == f"http://$(STATELOOP_INSTANCE).{state['serviceName']}:8080"


def test_the_console_finds_every_pod_of_every_part() -> None:
    variables = {one["name"]: one.get("value", "") for one in pods()["query/StatefulSet"]["containers"][0]["env"]}
    targets = json.loads(variables["STATELOOP_SCRAPE_TARGETS"])
    watched = {url for urls in targets.values() for url in urls}
    assert not any(unmonitored(one, targets) for one in APPLICATIONS)
    parts = ("job/StatefulSet", "enrichment/Deployment", "derive/Deployment")
    assert watched == {f"http://{MANIFESTS[part]['metadata']['name']}:8080" for part in parts}
    for part in parts:
        service = MANIFESTS[f"{part.partition('/')[0]}/Service"]
        labels = MANIFESTS[part]["spec"]["template"]["metadata"]["labels"]
        (container,) = pods()[part]["containers"]
        assert service["metadata"]["name"] == MANIFESTS[part]["metadata"]["name"]
        assert service["spec"]["selector"].items() <= labels.items()
        assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
        (port,) = service["spec"]["ports"]
        assert (port["port"], port["targetPort"]) == (8080, container["ports"][0]["name"])


def test_the_console_finds_sparks_driver_by_the_same_name() -> None:
    application, service = MANIFESTS["job-cluster/SparkApplication"], MANIFESTS["job-cluster/Service"]
    variables = {one["name"]: one["value"] for one in application["spec"]["driver"]["env"]}
    assert service["metadata"] == MANIFESTS["job/Service"]["metadata"]
    selector = {"sparkoperator.k8s.io/app-name": application["metadata"]["name"], "spark-role": "driver"}
    assert service["spec"]["selector"] == selector
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == int(variables["STATELOOP_HTTP_PORT"])
    assert variables["STATELOOP_HTTP_HOST"] == "0.0.0.0"  # noqa: S104  # of the pod


def test_the_scaler_watches_the_workers_group_and_topic() -> None:
    scaler = MANIFESTS["scaling/enrichment/ScaledObject"]["spec"]
    triggers = [one["metadata"] for one in scaler["triggers"]]
    workers = [(one.enrichment_group, one.topics.snapshots) for one in APPLICATIONS if one.enrichments]
    assert [(trigger["consumerGroup"], trigger["topic"]) for trigger in triggers] == workers
    for watched in triggers:
        assert watched["bootstrapServers"] == MANIFESTS["settings/ConfigMap"]["data"]["STATELOOP_KAFKA"]
    partitions = {one["name"]: one["value"] for one in pods()["topics/CronJob"]["containers"][0]["env"]}
    assert scaler["maxReplicaCount"] == int(partitions["STATELOOP_PARTITIONS"])
    assert scaler["scaleTargetRef"]["name"] == MANIFESTS["enrichment/Deployment"]["metadata"]["name"]


def test_the_executors_have_a_slot_for_every_task() -> None:
    executor = MANIFESTS["job-cluster/SparkApplication"]["spec"]["executor"]
    partitions = MANIFESTS["scaling/enrichment/ScaledObject"]["spec"]["maxReplicaCount"]
    needed = sum(slots(one, partitions, partitions) for one in APPLICATIONS)
    assert executor["instances"] * executor["cores"] >= needed


def test_versions_are_those_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version, spark = re.search(r'^version = "(.+)"', project, re.MULTILINE), re.search(r'"pyspark==(.+?)"', project)
    assert version
    assert spark
    assert {one["newTag"] for one in MANIFESTS["kustomization/Kustomization"]["images"]} == {version[1]}
    application = MANIFESTS["job-cluster/SparkApplication"]["spec"]
    assert (application["image"], application["sparkVersion"]) == (f"stateloop-spark:{version[1]}", spark[1])
