from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from services.tools.broker import jars
from services.tools.broker.errors import DownloadError, JarsMissingError, UnresolvedError
from services.tools.broker.java import find_java
from services.tools.broker.settings import JarsSettings
from tests.services.tools.broker.embedded import CHECKOUT

FOUND = "\tfound org.apache.kafka#kafka_2.13;4.1.0 in public\n"
LOADED = "\t[SUCCESSFUL ] org.apache.kafka#kafka_2.13;4.1.0!kafka_2.13.jar (157ms)\n"
REFUSED = "\tServer access error at url somewhere/a.pom (java.net.ConnectException: Connection refused)\n"
ABSENT = "\t\tmodule not found: org.apache.kafka#kafka_2.13;9.9.9\n"

# An Ivy that takes the pattern of -retrieve and fails as often as the number in the file `failures`.
FAKE_IVY = """#!{python}
import pathlib, sys
failures = pathlib.Path({folder!r}) / "failures"
left = int(failures.read_text())
if left:
    failures.write_text(str(left - 1))
    sys.exit({refused!r})
print({found!r})
pattern = sys.argv[sys.argv.index("-retrieve") + 1]
for conf in ("spark", "broker", "console"):
    jar = pathlib.Path(pattern.replace("[conf]", conf).replace("[artifact]-[revision].[ext]", "a-1.jar"))
    jar.parent.mkdir()
    jar.touch()
"""


@pytest.fixture
def settings(tmp_path: Path) -> JarsSettings:
    return JarsSettings(jars=tmp_path / "jars")


def fail(folder: Path, times: int) -> None:
    (folder / "failures").write_text(str(times))


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    java = tmp_path / "java"
    java.write_text(FAKE_IVY.format(python=sys.executable, folder=str(tmp_path), refused=REFUSED, found=FOUND))
    java.chmod(0o755)
    monkeypatch.setattr(jars, "find_java", lambda: java)
    fail(tmp_path, times=0)
    return java


def test_ivy_xml_pins_every_version_and_brings_no_slf4j_to_spark() -> None:
    pins = ET.parse(jars.IVY_XML).findall("dependencies/dependency")  # noqa: S314 - our own file
    spark = [pin.attrib for pin in pins if pin.attrib["conf"].startswith("spark")]
    assert all(pin["transitive"] == "false" for pin in spark)
    assert not [pin for pin in spark if "slf4j" in pin["name"]]
    assert all(pin.attrib["rev"][0].isdigit() and "+" not in pin.attrib["rev"] for pin in pins)


def test_progress_is_reported_in_words() -> None:
    assert jars.progress(FOUND) == "found kafka_2.13 4.1.0"
    assert jars.progress(LOADED) == "downloaded kafka_2.13 4.1.0"
    assert jars.progress(":: retrieving :: stateloop#jars\n") is None


def test_no_network_is_distinguished_from_an_artefact_that_does_not_exist() -> None:
    offline = jars.failure(ABSENT + REFUSED)
    assert isinstance(offline, DownloadError)
    assert offline.cause == "java.net.ConnectException: Connection refused"
    wrong = jars.failure(ABSENT + ABSENT)
    assert isinstance(wrong, UnresolvedError)
    assert wrong.artefacts == ("org.apache.kafka#kafka_2.13;9.9.9",)


@pytest.mark.parametrize("output", ["", "java.lang.OutOfMemoryError\n"])
def test_any_other_failure_keeps_ivys_last_word(output: str) -> None:
    assert isinstance(jars.failure(output), DownloadError)


@pytest.mark.usefixtures("fake_java")
def test_jars_are_resolved_once(settings: JarsSettings) -> None:
    lines: list[str] = []
    (settings.jars / ".new-abandoned").mkdir(parents=True)
    assert jars.resolve(settings, lines.append)
    assert lines == ["found kafka_2.13 4.1.0"]
    assert jars.up_to_date(settings.jars)
    assert not jars.resolve(settings, lines.append)
    assert (settings.jars / "spark" / "a-1.jar").exists()
    assert not list(settings.jars.glob(".new-*"))


@pytest.mark.usefixtures("fake_java")
def test_a_changed_ivy_xml_replaces_them(
    settings: JarsSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars.resolve(settings, lambda _: None)
    (settings.jars / "broker" / "old-0.jar").touch()
    changed = tmp_path / "ivy.xml"
    changed.write_bytes(jars.IVY_XML.read_bytes() + b"<!-- changed -->")
    monkeypatch.setattr(jars, "IVY_XML", changed)
    with pytest.raises(JarsMissingError, match="stateloop jars"):
        jars.classpath(settings.jars, "broker")
    assert jars.resolve(settings, lambda _: None)
    assert jars.classpath(settings.jars, "broker") == f"{settings.jars}/broker/*"
    assert not (settings.jars / "broker" / "old-0.jar").exists()


@pytest.mark.usefixtures("fake_java")
def test_a_flaky_download_is_tried_again(settings: JarsSettings, tmp_path: Path) -> None:
    fail(tmp_path, times=1)
    assert jars.resolve(settings, lambda _: None)


@pytest.mark.usefixtures("fake_java")
def test_a_download_that_keeps_failing_leaves_nothing_behind(settings: JarsSettings, tmp_path: Path) -> None:
    fail(tmp_path, times=2)
    with pytest.raises(DownloadError, match="check the network"):
        jars.resolve(settings, lambda _: None)
    assert not jars.up_to_date(settings.jars)
    assert not list(settings.jars.glob(".new-*"))


def test_the_command_names_ivys_settings_only_if_there_are_some() -> None:
    ivy, into = Path("ivy.jar"), Path("new")
    assert "-settings" not in jars.ivy_command(Path("java"), ivy, into, None)
    command = jars.ivy_command(Path("java"), ivy, into, Path("mirror.xml"))
    assert command[command.index("-settings") + 1] == "mirror.xml"


def test_pyspark_ships_ivy() -> None:
    assert jars.ivy_jar().exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", [("jars",), ("up", "--headless")], ids=" ".join)
def test_offline_is_one_line_and_an_exit_code(command: tuple[str, ...], tmp_path: Path) -> None:
    home, nowhere = tmp_path / "home", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"
    done = subprocess.run(
        [sys.executable, "-m", "services.tools.cli", *command],
        cwd=CHECKOUT,
        env={"PATH": "/usr/bin:/bin", "STATELOOP_JARS": str(tmp_path / "jars"), "JAVA_HOME": _java_home()}
        | {"JAVA_TOOL_OPTIONS": f"-Duser.home={home} {nowhere}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "check the network" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def _java_home() -> str:
    return str(find_java().resolve().parents[1])
