"""The wheel has all that its commands read, and runs without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from services.tools.cli.app import WITHOUT_SPARK
from tests.deadline import DEADLINE_S
from tests.packaging.built import PACKAGES, ROOT, build_wheel

pytestmark = pytest.mark.slow

APPLICATION = """
from typing import Annotated
from stateloop import Application, Count, Event, State
class Reading(Event): ...
class Device(State):
    readings: Annotated[int, Count()]
app = Application(name="devices", event=Reading, state=Device)
"""
NO_BROKER = "127.0.0.1:1"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel, with the module of an application."""
    folder = tmp_path_factory.mktemp("installed")
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    (folder / "devices.py").write_text(APPLICATION)
    return folder


def environment(installed: Path) -> dict[str, str]:
    """Return an environment with the packages of the wheel in place of those of the checkout, and no settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATELOOP_")}
    return clean | {"PYTHONPATH": str(installed)}


def python(installed: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=installed,
        env=environment(installed) | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_it_has_every_file_of_its_packages_and_no_test(wheel: Path) -> None:
    walked = (walk for package in PACKAGES for walk in os.walk(ROOT / package, followlinks=True))
    paths = {Path(folder, file).relative_to(ROOT).as_posix() for folder, _, files in walked for file in files}
    found = {name for name in names(wheel) if ".dist-info/" not in name}
    assert {"services/tools/broker/ivy.xml", "services/query/console/page/index.html"} <= found
    assert found == {path for path in paths if "__pycache__" not in path}


def test_its_metadata_has_the_license_and_leaves_spark_to_the_job(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        required = [line for line in archive.read(metadata).decode().splitlines() if line.startswith("Requires-Dist")]
    assert any(name.endswith("licenses/LICENSE") for name in names(wheel))
    assert [line for line in required if "pyspark" in line] == ['Requires-Dist: pyspark==4.3.0; extra == "job"']


def test_client_and_declarations_come_from_it(installed: Path) -> None:
    code = "import devices, services.client, stateloop.client, stateloop.testing; print(services.client.__file__)"
    done = python(installed, "-c", code)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(installed)


def test_topics_name_the_broker_that_does_not_answer(installed: Path) -> None:
    settings = {"STATELOOP_APPLICATION": "devices:app", "STATELOOP_KAFKA": NO_BROKER, "STATELOOP_PATIENCE": "1"}
    done = python(installed, "-m", "services.tools.cli", "topics", **settings)
    assert done.returncode == 1
    assert NO_BROKER in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["worker", "query"])
def test_a_service_starts(installed: Path, command: str, tmp_path: Path) -> None:
    """It prints its settings when all is imported; without a broker it then waits for one."""
    settings = {"APPLICATION": "devices:app", "KAFKA": NO_BROKER, "QUERY_DATA": str(tmp_path)}
    service = subprocess.Popen(
        [sys.executable, "-m", "services.tools.cli", command],
        cwd=installed,
        env=environment(installed) | {f"STATELOOP_{name}": value for name, value in settings.items()},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert service.stderr is not None
    first = service.stderr.readline()
    service.terminate()
    _, rest = service.communicate(timeout=DEADLINE_S)
    assert first.startswith(f"stateloop {command}: {{")
    assert "Traceback" not in rest


@pytest.mark.full
def test_pip_installs_it_alone_and_with_the_job(wheel: Path, tmp_path: Path) -> None:
    """In an empty environment, with packages from the registry."""
    venv.create(tmp_path / "venv", with_pip=True)
    stateloop = tmp_path / "venv" / "bin" / "stateloop"
    (tmp_path / "devices.py").write_text(APPLICATION)
    install(tmp_path, str(wheel))
    for command in ("worker", "query"):
        assert run(tmp_path, stateloop, command, "--help").returncode == 0
    imported = run(tmp_path, tmp_path / "venv/bin/python", "-c", "import devices, stateloop.client, stateloop.testing")
    assert imported.returncode == 0, imported.stderr
    job = run(tmp_path, stateloop, "job", STATELOOP_APPLICATION="devices:app")
    assert job.stderr.strip() == f"stateloop job: {WITHOUT_SPARK}"
    install(tmp_path, f"{wheel}[job]")
    job = run(tmp_path, stateloop, "job", STATELOOP_APPLICATION="devices:app", STATELOOP_KAFKA=NO_BROKER)
    assert job.returncode == 1
    assert NO_BROKER in job.stdout


def install(folder: Path, requirement: str) -> None:
    done = run(folder, folder / "venv/bin/python", "-m", "pip", "install", "--quiet", requirement)
    assert done.returncode == 0, done.stderr


def run(folder: Path, program: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program without the checkout."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and "STATELOOP" not in name}
    command = [str(program), *arguments]
    return subprocess.run(command, cwd=folder, env=clean | variables, capture_output=True, text=True, check=False)


def test_without_its_extra_the_job_names_it(installed: Path) -> None:
    (installed / "pyspark.py").write_text("raise ModuleNotFoundError(name='pyspark')")
    done = python(installed, "-m", "services.tools.cli", "job", STATELOOP_APPLICATION="devices:app")
    (installed / "pyspark.py").unlink()
    assert done.returncode == 1
    assert done.stderr.strip() == f"stateloop job: {WITHOUT_SPARK}"
    assert "stateloop[job]" in WITHOUT_SPARK
