"""The project that `stateloop new` writes: complete, consistent with this checkout, and its own tests pass."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from contracts.model.suite import load_suite
from services.tools.cli.__main__ import main
from services.tools.launcher.folders import Folders
from services.tools.launcher.process_specs import process_specs
from services.tools.launcher.settings import LauncherSettings
from services.tools.new import project
from services.tools.new.errors import FolderInUseError, InvalidNameError, TemplateMissingError
from services.tools.new.project import PLACEHOLDER, write_project
from tests.compose.configured import ROOT, configured, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "cold_store"
APPLICATION = f"{NAME}.application:app"
SAME_AS_OURS = {"kafka", "topics", "job", "enrichment", "query", "reference"}
OWN = {"image", "build"}
"""What each service of a project has of its own, beside the application."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("projects")
    write_project(NAME, parent)
    return parent / NAME


@pytest.fixture
def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the application, which can be imported."""
    monkeypatch.syspath_prepend(folder)
    yield APPLICATION
    for module in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[module]


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def test_only_the_name_is_replaced(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]  # of other tests
    assert {f"{NAME}/application.py", "Makefile", ".github/workflows/ci.yaml", "deploy/kubernetes/base/job.yaml"} <= {
        path.relative_to(folder).as_posix() for path in files
    }
    assert [path for path in files if PLACEHOLDER in f"{path.name}{path.read_text()}"] == []
    assert NAME in (folder / "pyproject.toml").read_text()


@pytest.mark.slow
def test_its_tests_pass(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_make_up_starts_each_of_its_parts(loaded: str) -> None:
    settings = LauncherSettings(application=loaded, workers=1)
    specs = process_specs(settings, Folders(settings.data), headless=True)
    assert [spec.name for spec in specs] == ["broker", "topics", "reference", "job", "worker-1", "query", "source"]
    commands = {spec.name: spec.command[-1] for spec in specs}
    assert (commands["reference"], commands["source"]) == (f"{NAME}.reference", f"{NAME}.source")


def test_its_versions_are_those_of_this_checkout(folder: Path) -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    theirs = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert f"stateloop[job]=={ours['version']}" in theirs["dependencies"]
    assert theirs["requires-python"] == ours["requires-python"]
    labels = re.findall(r'image\.version="(.*)"', (folder / "Dockerfile").read_text())
    assert labels == [theirs["version"]] * 2
    own = dict(re.findall(r"^(\w+)=(.*)$", (folder / ".env").read_text(), re.MULTILINE))
    assert own.items() <= variables().items()


def test_its_containers_are_ours_with_its_application(folder: Path) -> None:
    """`include` and `extends` read files: an image's are out of reach, and a wheel's have no path that stays."""
    ours, theirs = configured(), configured(root=folder)
    assert set(theirs) == SAME_AS_OURS | {"source"}
    for name in SAME_AS_OURS:
        assert general(theirs[name]) == general(ours[name]), name
        assert theirs[name]["environment"].get("STATELOOP_APPLICATION", APPLICATION) == APPLICATION
    assert general(theirs["source"]).items() >= {"read_only": True, "cap_drop": ["ALL"], "user": "10001:10001"}.items()
    assert theirs["job"]["build"]["args"] == {"STATELOOP_VERSION": variables()["STATELOOP_VERSION"]}
    assert {theirs[name]["build"]["target"] for name in ("topics", "job")} == {"services", "spark"}


def general(service: dict[str, Any]) -> dict[str, Any]:
    """Return what does not depend on the application."""
    left = {name: value for name, value in service.items() if name not in OWN}
    given = dict(left["environment"] or {})
    given.pop("STATELOOP_APPLICATION", None)
    if "STATELOOP_SCRAPE_TARGETS" in given:
        targets = json.loads(given["STATELOOP_SCRAPE_TARGETS"])
        targets.pop("derive", None)
        given["STATELOOP_SCRAPE_TARGETS"] = json.dumps(targets)
    command = ["APPLICATION" if ".reference" in word else word for word in left["command"] or ()]
    networks = [*left["networks"]]
    return left | {"environment": given, "command": command, "networks": networks}


def test_its_images_are_ours_with_the_package_and_its_requirements(folder: Path) -> None:
    dockerfile = (folder / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+) AS (\S+)$", dockerfile, re.MULTILINE) == [
        ("stateloop-spark:${STATELOOP_VERSION}", "packages"),
        ("stateloop-services:${STATELOOP_VERSION}", "services"),
        ("stateloop-spark:${STATELOOP_VERSION}", "spark"),
    ]
    copied = dict(re.findall(r"^COPY (\S+) (\S+)$", dockerfile, re.MULTILINE))
    (target,) = set(re.findall(r"--target (\S+)", dockerfile))
    assert copied == {NAME: f"{target}/{NAME}", "requirements.txt": "/tmp/requirements.txt"}  # noqa: S108
    assert dockerfile.count(f"COPY --from=packages {target} {target}\n") == 2
    path = re.search(r"^ENV PYTHONPATH=(\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert path
    assert target in path[1].split(":")
    assert {f"!{name}" for name in copied} <= {*(folder / ".dockerignore").read_text().splitlines()}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize(("job", "kind"), [("job-cluster.yaml", "SparkApplication"), ("job.yaml", "StatefulSet")])
def test_its_overlay_has_its_images_settings_and_group(folder: Path, loaded: str, job: str, kind: str) -> None:
    overlay = folder / "deploy" / "kubernetes" / "kustomization.yaml"
    overlay.write_text(overlay.read_text().replace("# - base/components/scaling", "- base/components/scaling"))
    base = overlay.parent / "base" / "kustomization.yaml"
    base.write_text(re.sub(r"- job\S*\.yaml", f"- {job}", base.read_text()))
    command = ["kubectl", "kustomize", str(overlay.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (application,) = load_suite(loaded).applications
    manifests = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout)}
    assert manifests["ConfigMap", "stateloop"]["data"]["STATELOOP_APPLICATION"] == loaded
    images = set(re.findall(r"image: (\S+)", done.stdout))
    assert images == {f"registry.example/{NAME}-{part}:0.1.0" for part in ("services", "spark")}
    (trigger,) = manifests["ScaledObject", "stateloop-enrichment"]["spec"]["triggers"]
    assert trigger["metadata"]["consumerGroup"] == application.enrichment_group
    assert trigger["metadata"]["topic"] == application.topics.snapshots
    assert ("Deployment", "stateloop-derive") not in manifests
    assert not application.derived_names
    assert (kind, "stateloop-job") in manifests


@pytest.mark.parametrize(
    "name", ["", "Cold", "cold-store", "1cold", "cold__store", "cold_", "../cold", "class", "json", "tests", "pytest"]
)
def test_a_name_that_is_no_new_package_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidNameError):
        write_project(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "mine").write_text("mine")
    with pytest.raises(FolderInUseError):
        write_project(NAME, tmp_path)
    assert [path.name for path in (tmp_path / NAME).iterdir()] == ["mine"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    assert Path("Makefile") in write_project(NAME, tmp_path)


def test_compiled_modules_of_an_installation_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = tmp_path / "template"
    (template / "__pycache__").mkdir(parents=True)
    (template / "__pycache__" / "module.pyc").write_bytes(b"\xff")
    (template / "module.py").write_text("")
    monkeypatch.setattr(project, "TEMPLATE", template)
    assert write_project(NAME, tmp_path) == (Path("module.py"),)


def test_an_installation_without_the_template_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "TEMPLATE", tmp_path / "missing")
    with pytest.raises(TemplateMissingError):
        write_project(NAME, tmp_path)


def test_the_command_prints_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", NAME]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^  (.*?)(?:  .*)?$", printed, re.MULTILINE) == [f"cd {NAME}", "make test", "make up"]
