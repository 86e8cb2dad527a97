from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING
from zipfile import ZipFile

from services.tools.broker import sbom
from services.tools.broker.jars import IVY_XML, ivy_jar
from services.tools.broker.sbom import Jar, pinned_jars, spark_jars

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def write_jar(path: Path, *artefacts: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w") as archive:
        for artefact in artefacts:
            archive.writestr(f"META-INF/maven/{artefact}/pom.properties", "")
    return path


def test_the_jars_of_the_images_are_those_that_ivy_xml_pins(tmp_path: Path) -> None:
    found = [*pinned_jars(tmp_path)]
    pinned = re.findall(r'rev="([^"]+)" conf="(?:spark|console)->', IVY_XML.read_text())
    assert [jar.version for jar in found] == pinned
    assert {"spark-sql-kafka-0-10_2.13", "kafka-clients", "uplot"} <= {jar.name for jar in found}
    assert all(jar.path == tmp_path / jar.path.parent.name / f"{jar.name}-{jar.version}.jar" for jar in found)


def test_a_jar_has_the_coordinates_of_its_own_artefact_and_not_of_those_in_it(tmp_path: Path) -> None:
    own = write_jar(
        tmp_path / "spark-core_2.13-4.3.0.jar", "org.eclipse.jetty/jetty", "org.apache.spark/spark-core_2.13"
    )
    bare = write_jar(tmp_path / "jline-3.29.0-jdk8.jar", "org.jline/jline-terminal")
    assert [*spark_jars(tmp_path)] == [
        Jar(bare, "", "jline", "3.29.0-jdk8"),
        Jar(own, "org.apache.spark", "spark-core_2.13", "4.3.0"),
    ]


def test_the_document_gets_a_component_for_each_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = [Jar(write_jar(tmp_path / "a-1.jar"), "org.a", "a", "1"), Jar(write_jar(tmp_path / "b-2.jar"), "", "b", "2")]
    monkeypatch.setattr(sbom, "pinned_jars", lambda _: jars)
    monkeypatch.setattr(sbom, "spark_jars", lambda _: ())
    file = tmp_path / "sbom.json"
    file.write_text(json.dumps({"bomFormat": "CycloneDX", "components": [{"name": "aiohttp"}]}))
    sbom.main([str(file)])
    document = json.loads(file.read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert [component["name"] for component in document["components"]] == ["aiohttp", "a", "b"]
    known, unknown = document["components"][1:]
    assert known["purl"] == "pkg:maven/org.a/a@1"
    assert "purl" not in unknown
    assert known["hashes"][0]["content"] == hashlib.sha256((tmp_path / "a-1.jar").read_bytes()).hexdigest()


def test_every_jar_of_spark_has_a_name_and_a_version() -> None:
    names = [path.stem for path in ivy_jar().parent.glob("*.jar")]
    assert names
    assert [name for name in names if not sbom.NAMED.fullmatch(name)] == []
