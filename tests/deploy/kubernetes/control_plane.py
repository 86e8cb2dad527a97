"""A control plane of Kubernetes without machines: real API server, controllers and scheduler; kwok runs the nodes.

The folder in KUBERNETES_BINARIES has the programs of one release of Kubernetes, etcd and kwok, and in `crds` the
CustomResourceDefinitions of KEDA (scaledobjects), Prometheus' operator (podmonitors, prometheusrules) and Spark's
operator (sparkapplications).
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.security.certificates import Certificates
from tests.services.tools.broker.embedded import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE = "KUBERNETES_BINARIES"
FILES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl", "crds")
NODES, VOLUMES = 3, 8
TOKEN = "of-the-administrator"  # noqa: S105  # of a server that only this test reaches


def missing() -> str | None:
    """Return what is missing for a control plane; None if nothing is."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return f"needs {VARIABLE}, a folder with {', '.join(FILES)}"
    absent = [name for name in FILES if not (Path(folder) / name).exists()]
    return f"{folder} lacks {', '.join(absent)}" if absent else None


class ControlPlane:
    """The control plane, as kubectl and Python reach it."""

    def __init__(self, binaries: Path, configuration: Path) -> None:
        self.binaries = binaries
        self.configuration = configuration
        self.namespace = "default"

    def run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl in the namespace, with this text as its standard input."""
        options = ("--kubeconfig", str(self.configuration), "--namespace", self.namespace)
        command = [str(self.binaries / "kubectl"), *options, *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Return what kubectl prints. Raises AssertionError with its error."""
        done = self.run(*arguments, text=text)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def create(self, *manifests: dict[str, Any]) -> None:
        self.kubectl("create", "--filename", "-", text=yaml.safe_dump_all(manifests))

    def get(self, kind: str, *options: str) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "--output", "json", *options))["items"]
        return listed

    def pods(self, name: str) -> list[dict[str, Any]]:
        """Return the pods with this name of an application that are not being deleted."""
        found = self.get("pods", "--selector", f"app.kubernetes.io/name={name}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def wait(self, condition: Callable[[], bool], expected: str) -> None:
        wait_until(condition, expected, DEADLINE_S)


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """Run a control plane whose files are in this empty folder, with nodes and volumes."""
    binaries = Path(os.environ[VARIABLE]).resolve()
    with ExitStack() as stack:
        configuration = _start(binaries, folder, stack)
        plane = ControlPlane(binaries, configuration)
        plane.create(*(_node(number) for number in range(NODES)), *(_volume(number) for number in range(VOLUMES)))
        plane.kubectl("create", "--filename", str(binaries / "crds"))
        plane.kubectl("wait", "--for", "condition=Established", "crd", "--all", f"--timeout={DEADLINE_S}s")
        yield plane


def _start(binaries: Path, folder: Path, stack: ExitStack) -> Path:
    """Start the processes, and return the configuration of their clients."""
    certificates = Certificates(folder)
    key = str(certificates.server("server"))
    store = free_ports(4)
    peers, port, nodes = store + 1, store + 2, store + 3
    configuration = folder / "kubeconfig"
    configuration.write_text(json.dumps(_configuration(f"https://127.0.0.1:{port}", certificates.authority)))
    (folder / "tokens").write_text(f"{TOKEN},administrator,administrator,system:masters\n")
    client = ["--kubeconfig", str(configuration)]

    def start(program: str, *arguments: str) -> None:
        stack.enter_context(_running([str(binaries / program), *arguments], folder / f"{program}.log"))

    url = f"http://127.0.0.1:{store}"
    peer = f"http://127.0.0.1:{peers}"
    start(
        "etcd",
        *("--data-dir", str(folder / "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"),
    )
    start(
        "kube-apiserver",
        *("--etcd-servers", url, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"),
        *("--secure-port", str(port), "--tls-cert-file", key, "--tls-private-key-file", key),
        *("--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.96.0.0/16"),
        *("--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key),
        *("--service-account-signing-key-file", key, "--token-auth-file", str(folder / "tokens")),
        *("--authorization-mode", "RBAC", "--cert-dir", str(folder / "certificates")),
    )
    plane = ControlPlane(binaries, configuration)
    plane.wait(lambda: plane.run("get", "--raw", "/readyz").returncode == 0, f"the API server: {folder}")
    controllers = ("--service-account-private-key-file", key, "--root-ca-file", str(certificates.authority))
    start("kube-controller-manager", *client, *controllers, "--leader-elect=false", "--secure-port", "0")
    start("kube-scheduler", *client, "--leader-elect=false", "--secure-port", "0")
    start("kwok", *client, "--manage-all-nodes=true", "--server-address", f"127.0.0.1:{nodes}")
    plane.wait(lambda: plane.run("get", "serviceaccount", "default").returncode == 0, f"the controllers: {folder}")
    return configuration


@contextmanager
def _running(command: list[str], path: Path) -> Iterator[None]:
    with path.open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def _configuration(url: str, authority: Path) -> dict[str, Any]:
    """Return what kubectl reads."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "administrator", "user": {"token": TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "administrator"}}],
        "current-context": "test",
    }


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def _volume(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{number}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "100Gi"},
            "hostPath": {"path": f"/volumes/{number}"},
        },
    }
