"""Adds the jars of the images to an SBOM: `python -m services.tools.broker.sbom FILE`, a CycloneDX document in JSON.

They are the jars that pyspark has, and those that ivy.xml pins for Spark and for the console.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import ZipFile

from contracts.settings import read
from services.tools.broker.jars import IVY_XML, ivy_jar
from services.tools.broker.settings import JarsSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

IN_IMAGES = ("spark", "console")
"""The confs of ivy.xml whose jars the images have."""
PINNED = re.compile(r'<dependency org="([^"]+)" name="([^"]+)" rev="([^"]+)" conf="(\w+)->')
NAMED = re.compile(r"(?P<name>.+?)-(?P<version>\d.*)")
COORDINATES = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")


class Jar(NamedTuple):
    """A jar with its coordinates. The `group` is empty where the jar does not name it."""

    path: Path
    group: str
    name: str
    version: str


def pinned_jars(jars: Path) -> Iterator[Jar]:
    """Yield the jars that ivy.xml pins for the images."""
    for group, name, version, conf in PINNED.findall(IVY_XML.read_text(encoding="utf-8")):
        if conf in IN_IMAGES:
            yield Jar(jars / conf / f"{name}-{version}.jar", group, name, version)


def spark_jars(folder: Path) -> Iterator[Jar]:
    """Yield the jars of a folder, with the names and versions of their files."""
    for path in sorted(folder.glob("*.jar")):
        found = NAMED.fullmatch(path.stem)
        name, version = found.group("name", "version") if found else (path.stem, "")
        yield Jar(path, maven_group(path, name), name, version)


def maven_group(path: Path, name: str) -> str:
    """Return the Maven group of the artefact with this name: a jar may contain other artefacts. Empty if unknown."""
    with ZipFile(path) as archive:
        found = (COORDINATES.fullmatch(member) for member in archive.namelist())
        return next((match[1] for match in found if match and match[2] == name), "")


def component(jar: Jar) -> dict[str, Any]:
    """Return the CycloneDX component of a jar."""
    purl = f"pkg:maven/{jar.group}/{jar.name}@{jar.version}"
    named = {"group": jar.group, "purl": purl} if jar.group else {}
    digest = hashlib.sha256(jar.path.read_bytes()).hexdigest()
    return {
        "bom-ref": f"jar:{jar.path.name}",
        "type": "library",
        "name": jar.name,
        "version": jar.version,
        "hashes": [{"alg": "SHA-256", "content": digest}],
        **named,
    }


def with_jars(document: dict[str, Any], jars: Iterable[Jar]) -> dict[str, Any]:
    """Return the document with a component for each jar."""
    return document | {"components": [*document.get("components", ()), *map(component, jars)]}


def main(arguments: list[str]) -> None:
    """Add the jars to the file. Raises StateloopError, OSError."""
    file = Path(arguments[0])
    document = json.loads(file.read_text(encoding="utf-8"))
    jars = [*pinned_jars(read(JarsSettings).jars), *spark_jars(ivy_jar().parent)]
    file.write_text(json.dumps(with_jars(document, jars), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
