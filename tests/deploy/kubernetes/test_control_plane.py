"""The overlay of `stateloop new` with all components, applied to a control plane, changed, and deleted again."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from services.tools.new.project import write_project
from tests.deploy.kubernetes.control_plane import ControlPlane, control_plane, missing
from tests.deploy.kubernetes.test_manifests import FOLDER, MANIFESTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(missing()), reason=missing() or "")]

NAME = "cold_store"
OLD, NEW = "0.1.0", "0.2.0"
PARTS = {
    "statefulset/stateloop-job",
    "statefulset/stateloop-query",
    "deployment/stateloop-enrichment",
    "deployment/stateloop-sink",
}
COMMANDS = {"stateloop-topics", "stateloop-savepoint", "stateloop-archive", "stateloop-rebuild", "stateloop-restore"}
OF_THE_CLUSTER = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
"""What the controllers add to each namespace."""
SECRETS = {
    "stateloop-query": {"tokens.json": "{}", "STATELOOP_PEER_TOKEN": "of-the-instances", "prometheus": "of-prometheus"},
    "stateloop-sink": {"url": "redis://redis:6379/0"},
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("control-plane")) as started:
        yield started


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The overlay of a new project, with all components."""
    parent = tmp_path_factory.mktemp("project")
    write_project(NAME, parent)
    folder = parent / NAME / "deploy" / "kubernetes"
    path = folder / "kustomization.yaml"
    path.write_text(path.read_text().replace("# - base/components", "- base/components"))
    return folder


@pytest.fixture(scope="module")
def deployed(plane: ControlPlane, overlay: Path) -> ControlPlane:
    """The overlay, applied to a namespace that admits only restricted pods."""
    deploy(plane, "stateloop", overlay)
    return plane


def deploy(plane: ControlPlane, namespace: str, overlay: Path) -> None:
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    plane.namespace = namespace
    plane.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    for name, values in SECRETS.items():
        plane.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values})
    plane.kubectl("apply", "--server-side", "--filename", str(overlay / "base/components/commands/volume.yaml"))
    done = plane.run("apply", "--server-side", "--kustomize", str(overlay))
    assert (done.returncode, done.stderr) == (0, "")
    rolled_out(plane)


def rolled_out(plane: ControlPlane) -> None:
    for part in PARTS:
        plane.kubectl("rollout", "status", part, f"--timeout={os.environ.get('TEST_DEADLINE_S', '300')}s")


def changed(overlay: Path, folder: Path, tag: str, *patches: dict[str, Any]) -> Path:
    """Return a copy of the overlay with images of this tag and with more patches."""
    shutil.copytree(overlay, folder, dirs_exist_ok=True)
    path = folder / "kustomization.yaml"
    written = yaml.safe_load(path.read_text())
    for image in written["images"]:
        image["newTag"] = tag
    written["patches"] += [{"patch": yaml.safe_dump(patch)} for patch in patches]
    path.write_text(yaml.safe_dump(written))
    return folder


def run_job(plane: ControlPlane, command: str, job: str) -> None:
    plane.kubectl("create", "job", job, f"--from=cronjob/{command}")
    finished(plane, job)


def run_changed_job(plane: ControlPlane, command: str, job: str, *change: str) -> None:
    """Run a Job that this command of kubectl has changed before it is created."""
    shown = plane.kubectl("create", "job", job, f"--from=cronjob/{command}", "--dry-run=client", "--output=yaml")
    changed = plane.kubectl(*change, "--local", "--filename=-", "--output=yaml", text=shown)
    plane.kubectl("create", "--filename=-", text=changed)
    finished(plane, job)


def finished(plane: ControlPlane, job: str) -> None:
    plane.kubectl("wait", "--for=condition=Complete", f"job/{job}", "--timeout=300s")


def pod_of(plane: ControlPlane, job: str) -> dict[str, Any]:
    (pod,) = plane.get("pods", "--selector", f"batch.kubernetes.io/job-name={job}")
    return pod


def refuses_the_new_state(plane: ControlPlane) -> None:
    """Let the job be unready, as one of a former application is after a rebuild."""
    (job,) = plane.pods("stateloop-job")
    status = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    plane.kubectl("patch", "pod", job["metadata"]["name"], "--subresource=status", "--patch", json.dumps(status))


def tags(plane: ControlPlane) -> set[str]:
    """Return the tags of the images that run."""
    pods = [pod for part in PARTS for pod in plane.pods(part.partition("/")[2])]
    return {pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in pods}


def test_restricted_pods_are_admitted_and_no_others(deployed: ControlPlane) -> None:
    assert {name: len(deployed.pods(name)) for name in ("stateloop-job", "stateloop-query", "stateloop-sink")} == {
        "stateloop-job": 1,
        "stateloop-query": 2,
        "stateloop-sink": 2,
    }
    refused = deployed.run("run", "shell", "--image=debian")
    assert "violates PodSecurity" in refused.stderr


def test_an_apply_leaves_no_difference(deployed: ControlPlane, overlay: Path) -> None:
    done = deployed.run("diff", "--server-side", "--kustomize", str(overlay))
    assert (done.returncode, done.stdout) == (0, "")


def test_an_apply_does_not_change_the_number_of_workers_that_are_scaled(deployed: ControlPlane, overlay: Path) -> None:
    deployed.kubectl("scale", "deployment/stateloop-enrichment", "--replicas=5")
    deployed.kubectl("apply", "--server-side", "--kustomize", str(overlay))
    (workers,) = [one for one in deployed.get("deployments") if one["metadata"]["name"] == "stateloop-enrichment"]
    assert workers["spec"]["replicas"] == 5


def test_a_drain_evicts_one_pod_of_a_part_at_a_time(deployed: ControlPlane) -> None:
    def allowed() -> set[int]:
        return {one["status"].get("disruptionsAllowed", 0) for one in deployed.get("poddisruptionbudgets")}

    def evict(pod: dict[str, Any]) -> str:
        name = pod["metadata"]["name"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        path = f"/api/v1/namespaces/{deployed.namespace}/pods/{name}/eviction"
        return deployed.run("create", "--raw", path, "--filename", "-", text=json.dumps(body)).stderr

    deployed.wait(lambda: allowed() == {1}, "each budget allows one disruption")
    nodes = [node["metadata"]["name"] for node in deployed.get("nodes")]
    deployed.kubectl("cordon", *nodes)
    try:
        first, second = deployed.pods("stateloop-query")
        assert evict(first) == ""
        assert "disruption budget" in evict(second)
    finally:
        deployed.kubectl("uncordon", *nodes)
    deployed.wait(lambda: allowed() == {1}, "the evicted pod runs again")


def test_the_topics_are_checked_as_often_as_one_wants(deployed: ControlPlane) -> None:
    for job in ("topics-1", "topics-2"):
        run_job(deployed, "stateloop-topics", job)
        assert pod_of(deployed, job)["status"]["phase"] == "Succeeded"


def test_commands_run_where_the_checkpoint_is(deployed: ControlPlane) -> None:
    (job,) = deployed.pods("stateloop-job")
    for name in ("savepoint", "archive", "rebuild"):
        run_job(deployed, f"stateloop-{name}", f"{name}-by-hand")
        assert pod_of(deployed, f"{name}-by-hand")["spec"]["nodeName"] == job["spec"]["nodeName"]


def test_a_savepoint_is_restored_while_the_job_is_stopped(deployed: ControlPlane) -> None:
    deployed.kubectl("scale", "statefulset/stateloop-job", "--replicas=0")
    deployed.wait(lambda: not deployed.pods("stateloop-job"), "the job is stopped")
    command = ["mv", "/var/lib/stateloop/checkpoint/flights", "/var/lib/stateloop/former"]
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/command", "value": command}]
    run_changed_job(deployed, "stateloop-restore", "move-1", "patch", "--type=json", "--patch", json.dumps(patch))
    assert pod_of(deployed, "move-1")["spec"]["containers"][0]["command"] == command
    run_changed_job(deployed, "stateloop-restore", "restore-1", "set", "env", "SAVEPOINT=flights-1")
    (container,) = pod_of(deployed, "restore-1")["spec"]["containers"]
    assert {"name": "SAVEPOINT", "value": "flights-1"} in container["env"]
    deployed.kubectl("scale", "statefulset/stateloop-job", "--replicas=1")
    rolled_out(deployed)


def test_timers_start_the_savepoint_and_nothing_that_is_suspended(
    deployed: ControlPlane, overlay: Path, tmp_path: Path
) -> None:
    often = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "stateloop-savepoint"}}
    often |= {"spec": {"schedule": "* * * * *"}}
    deployed.kubectl("apply", "--server-side", "--kustomize", str(changed(overlay, tmp_path, OLD, often)))

    def timed() -> set[str]:
        """The commands whose Jobs a timer has started: their names end in the minute."""
        names = [one["metadata"]["name"] for one in deployed.get("jobs")]
        return {name.rpartition("-")[0] for name in names if re.search(r"-\d{8}$", name)}

    deployed.wait(lambda: "stateloop-savepoint" in timed(), "the controller starts the Job of the present minute")
    assert timed() <= {"stateloop-savepoint", "stateloop-archive"}
    assert {one["metadata"]["name"] for one in deployed.get("cronjobs")} == COMMANDS
    deployed.kubectl("apply", "--server-side", "--kustomize", str(overlay))


def test_new_images_change_no_field_that_is_immutable(deployed: ControlPlane, overlay: Path, tmp_path: Path) -> None:
    assert tags(deployed) == {OLD}
    newer = changed(overlay, tmp_path, NEW)
    image = f"registry.example/{NAME}-spark:{NEW}"
    run_changed_job(deployed, "stateloop-rebuild", "rebuild-1", "set", "image", f"command={image}")
    assert pod_of(deployed, "rebuild-1")["spec"]["containers"][0]["image"] == image
    refuses_the_new_state(deployed)
    deployed.kubectl("apply", "--server-side", "--kustomize", str(newer))
    rolled_out(deployed)
    deployed.wait(lambda: tags(deployed) == {NEW}, "all pods are new")
    run_job(deployed, "stateloop-topics", "topics-3")
    assert pod_of(deployed, "topics-3")["spec"]["containers"][0]["image"].endswith(f":{NEW}")
    assert deployed.run("diff", "--server-side", "--kustomize", str(newer)).returncode == 0


@pytest.mark.parametrize("path", ["monitoring", "job-cluster.yaml"])
def test_the_operators_schemas_accept_what_is_for_them(deployed: ControlPlane, path: str) -> None:
    kind = "--kustomize" if (FOLDER / path).is_dir() else "--filename"
    deployed.kubectl("create", "namespace", f"of-{path[:3]}")
    deployed.kubectl("apply", "--server-side", "--namespace", f"of-{path[:3]}", kind, str(FOLDER / path))


def test_a_misspelt_field_of_an_operators_kind_is_refused(deployed: ControlPlane) -> None:
    scaler = MANIFESTS["scaling/enrichment/ScaledObject"]
    wrong = scaler | {"spec": scaler["spec"] | {"minReplicas": 2}}
    refused = deployed.run("create", "--dry-run=server", "--filename", "-", text=yaml.safe_dump(wrong))
    assert 'unknown field "spec.minReplicas"' in refused.stderr


def test_a_client_side_apply_is_deleted_but_for_its_volumes(plane: ControlPlane, overlay: Path) -> None:
    before, plane.namespace = plane.namespace, "deleted"
    plane.kubectl("create", "namespace", plane.namespace)
    try:
        plane.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=300s")
        plane.kubectl("apply", "--kustomize", str(overlay))
        assert plane.run("diff", "--kustomize", str(overlay)).returncode == 0
        plane.wait(lambda: len(plane.get("persistentvolumeclaims")) == 3, "the claims of job and query")
        plane.kubectl("delete", "--kustomize", str(overlay))
        plane.wait(lambda: kinds(remaining(plane)) == {"persistentvolumeclaim"}, "nothing remains but volumes")
        assert len(remaining(plane)) == 3
    finally:
        plane.namespace = before


def remaining(plane: ControlPlane) -> set[str]:
    """Return what the namespace has, without what each namespace has."""
    listed = plane.kubectl("api-resources", "--namespaced", "--verbs=list,create", "--output=name").split()
    asked = ",".join(name for name in listed if not name.startswith("events"))
    return set(plane.kubectl("get", asked, "--output=name", "--ignore-not-found").split()) - OF_THE_CLUSTER


def kinds(names: set[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}
