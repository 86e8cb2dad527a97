"""The two images as the Dockerfile declares them. The compose lab looks at built ones."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.compose.configured import configured, variables
from tests.packaging.built import ROOT

LABELS = ("title", "version", "source", "licenses")


def stage(image: str) -> str:
    joined = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    (found,) = re.findall(rf"^FROM \S+ AS {image}\n(.*?)(?=^FROM |\Z)", joined, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.parametrize("image", ["services", "spark"])
def test_an_image_has_the_labels_of_open_containers(image: str) -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', stage(image)))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert tuple(labels) == LABELS
    assert labels["title"] == f"stateloop-{image}"
    assert labels["licenses"] == project["license"]
    for label in ("version", "source"):
        assert labels[label] == f"${{STATELOOP_{label.upper()}}}"
        assert f"\nARG STATELOOP_{label.upper()}\n" in stage(image)


def test_the_version_of_the_labels_is_that_of_the_tag() -> None:
    built = [service["build"]["args"] for service in configured().values() if "build" in service]
    assert [arguments["STATELOOP_VERSION"] for arguments in built] == [variables()["STATELOOP_VERSION"]] * 2


@pytest.mark.parametrize("image", ["services", "spark"])
def test_an_image_runs_as_a_user_that_owns_no_file_of_it(image: str) -> None:
    *_, user = re.findall(r"^USER (\S+)$", stage(image), re.MULTILINE)
    assert user == "10001:10001"
    assert "--chown" not in stage(image)
