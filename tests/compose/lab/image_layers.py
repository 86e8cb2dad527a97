"""The layers of an image, and those that a build did not take from its cache."""

from __future__ import annotations

import json
import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.compose.lab.commands import Commands

METADATA = re.compile(
    r"(/bin/sh -c #\(nop\)\s+)?"
    r"(ARG|CMD|ENTRYPOINT|ENV|EXPOSE|HEALTHCHECK|LABEL|MAINTAINER|ONBUILD|SHELL|STOPSIGNAL|USER|VOLUME|WORKDIR)\b"
)
"""An instruction that changes no files, as the classic builder writes it, and BuildKit."""


CODE = re.compile(r"/opt/stateloop\b")
"""The folder of our code in the images."""


class ImageLayers(NamedTuple):
    """The layers of an image by their digests, and the instructions that it was built by; the first comes first."""

    digests: list[str]
    instructions: list[str]


def read_layers(commands: Commands, image: str) -> ImageLayers:
    """Return the layers of an image that the engine has."""
    (found,) = json.loads(commands.run("docker", "image", "inspect", image))
    history = commands.run("docker", "history", "--no-trunc", "--format={{json .CreatedBy}}", image).splitlines()
    return ImageLayers(found["RootFS"]["Layers"], [json.loads(line) for line in reversed(history)])


def new_instructions(before: ImageLayers, after: ImageLayers) -> list[str]:
    """Return the instructions of the later image whose layers the earlier one does not have.

    A layer above one that is new is new too, even with the same content: the build has made it again.
    """
    same = takewhile(lambda pair: pair[0] == pair[1], zip(before.digests, after.digests, strict=False))
    new = len(after.digests) - len([*same])
    made = [instruction for instruction in after.instructions if not METADATA.match(instruction)]
    return made[max(0, len(made) - new) :]


def is_of_code(instruction: str) -> bool:
    """Return whether an instruction copies or compiles our code."""
    return CODE.search(instruction) is not None
