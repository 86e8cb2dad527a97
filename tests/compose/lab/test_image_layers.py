from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.compose.configured import ROOT
from tests.compose.lab.commands import Commands
from tests.compose.lab.image_layers import ImageLayers, is_of_code, new_instructions, read_layers

if TYPE_CHECKING:
    from pathlib import Path

CLASSIC = [
    "",  # docker import
    '/bin/sh -c #(nop)  CMD ["bash"]',
    "/bin/sh -c apt-get update && apt-get install -y python3",
    "/bin/sh -c #(nop)  ENV PYTHONPATH=/opt/stateloop:/opt/packages",
    "/bin/sh -c #(nop) WORKDIR /tmp",
    "/bin/sh -c #(nop) COPY dir:1f in /opt/packages ",
    "/bin/sh -c #(nop) COPY dir:2f in /opt/stateloop/contracts ",
    "/bin/sh -c python3 -m compileall -q /opt/stateloop",
    "/bin/sh -c #(nop)  USER 10001:10001",
]
BUILDKIT = [
    "# debian.sh --arch 'amd64' out/ 'bookworm'",
    'CMD ["bash"]',
    "RUN /bin/sh -c apt-get update && apt-get install -y python3 # buildkit",
    "ENV PYTHONPATH=/opt/stateloop:/opt/packages",
    "WORKDIR /tmp",
    "COPY /opt/packages /opt/packages # buildkit",
    "COPY contracts /opt/stateloop/contracts # buildkit",
    "RUN /bin/sh -c python3 -m compileall -q /opt/stateloop # buildkit",
    "USER 10001:10001",
]


@pytest.mark.parametrize("instructions", [CLASSIC, BUILDKIT], ids=["classic builder", "BuildKit"])
@pytest.mark.parametrize(
    ("digests", "new"),
    [
        (["base", "apt", "packages", "code", "compiled"], []),
        (["base", "apt", "packages", "code 2", "compiled 2"], [6, 7]),
        (["base", "apt", "packages", "code 2", "compiled"], [6, 7]),
        (["base", "apt", "packages 2", "code", "compiled"], [5, 6, 7]),
        (["base 2", "apt 2", "packages 2", "code 2", "compiled 2"], [0, 2, 5, 6, 7]),
    ],
    ids=["nothing", "the code", "the code, compiled to the same files", "the packages", "everything"],
)
def test_the_new_layers_are_named_by_their_instructions(
    instructions: list[str], digests: list[str], new: list[int]
) -> None:
    before = ImageLayers(["base", "apt", "packages", "code", "compiled"], instructions)
    assert new_instructions(before, ImageLayers(digests, instructions)) == [instructions[place] for place in new]


def test_the_layers_of_an_image_are_read_from_the_engine(tmp_path: Path) -> None:
    """The engine lists the newest instruction first, and the base's layer first."""
    inspected = json.dumps([{"RootFS": {"Type": "layers", "Layers": ["sha256:1", "sha256:2"]}}])
    history = "\n".join(json.dumps(one) for one in reversed(CLASSIC))
    docker = tmp_path / "docker"
    docker.write_text(
        f"#!/bin/sh\ncase $1 in image) cat {tmp_path}/inspected;; history) cat {tmp_path}/history;; esac\n"
    )
    docker.chmod(0o755)
    (tmp_path / "inspected").write_text(inspected)
    (tmp_path / "history").write_text(history)
    commands = Commands(tmp_path / "log", {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert read_layers(commands, "stateloop-spark:test") == ImageLayers(["sha256:1", "sha256:2"], CLASSIC)


@pytest.mark.parametrize("image", ["services", "spark"])
def test_the_code_is_in_the_last_layers_of_an_image(image: str) -> None:
    joined = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    (stage,) = re.findall(rf"^FROM \S+ AS {image}\n(.*?)(?=^FROM |\Z)", joined, re.MULTILINE | re.DOTALL)
    layers = re.findall(r"^(?:COPY|RUN) .*", stage, re.MULTILINE)
    code = [layer for layer in layers if is_of_code(layer)]
    assert layers[-len(code) :] == code
    assert {"contracts", "python3"} <= {one.split()[1] for one in code}
