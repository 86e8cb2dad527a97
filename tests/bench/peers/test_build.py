"""The JDK is a fake one, so that nothing is downloaded: `make bench QUICK=1` tries the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.peers.build import (
    IVY_XML,
    MARKER,
    PEERS,
    BuildFailedError,
    ToolMissingError,
    build,
    ivy_command,
    sources,
)

if TYPE_CHECKING:
    from pathlib import Path

JAVA = """#!/bin/sh
echo java >> "$(dirname "$0")/../calls"
for last; do :; done
mkdir -p "$(dirname "$last")" && touch "$(dirname "$last")/a-1.jar"
"""
JAVAC = """#!/bin/sh
echo javac >> "$(dirname "$0")/../calls"
"""
BROKEN = """#!/bin/sh
echo 'Note: all is well'; echo 'FlinkJob.java:1: error'; exit 1
"""


@pytest.fixture
def jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    place(home, "java", JAVA)
    place(home, "javac", JAVAC)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


def place(home: Path, tool: str, script: str) -> None:
    (home / "bin" / tool).write_text(script)
    (home / "bin" / tool).chmod(0o755)


def ignore(what: str) -> None:
    assert what


@pytest.mark.parametrize("peer", PEERS)
def test_it_is_built_once(jdk: Path, tmp_path: Path, peer: str) -> None:
    assert build(peer, ignore, tmp_path / "peers")
    assert (tmp_path / "peers" / peer / "a-1.jar").exists()
    assert not build(peer, ignore, tmp_path / "peers")
    assert (jdk / "calls").read_text().split() == ["java", "javac"]


@pytest.mark.usefixtures("jdk")
def test_it_is_built_again_when_its_sources_have_changed(tmp_path: Path) -> None:
    build("flink", ignore, tmp_path)
    (tmp_path / "flink" / MARKER).write_text("of other sources")
    (tmp_path / "flink" / "a-0.jar").touch()
    assert build("flink", ignore, tmp_path)
    assert [jar.name for jar in (tmp_path / "flink").glob("*.jar")] == ["a-1.jar"]


def test_without_a_compiler_nothing_is_downloaded_and_the_error_names_the_package(jdk: Path, tmp_path: Path) -> None:
    (jdk / "bin" / "javac").unlink()
    with pytest.raises(ToolMissingError, match=r"javac is not in .*apt-get install -y openjdk-17-jdk-headless"):
        build("flink", ignore, tmp_path)
    assert not (jdk / "calls").exists()


def test_a_failed_compilation_is_reported_with_its_log_and_counts_as_missing(jdk: Path, tmp_path: Path) -> None:
    place(jdk, "javac", BROKEN)
    with pytest.raises(BuildFailedError, match=r"compiling flink failed: FlinkJob.java:1: error"):
        build("flink", ignore, tmp_path)
    assert "all is well" in (tmp_path / "flink.log").read_text()
    assert not (tmp_path / "flink").exists()


@pytest.mark.usefixtures("jdk")
def test_a_mirror_of_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATELOOP_IVY_SETTINGS", raising=False)
    assert "-settings" not in ivy_command("flink", tmp_path)
    monkeypatch.setenv("STATELOOP_IVY_SETTINGS", "mirror.xml")
    command = ivy_command("flink", tmp_path)
    assert command[command.index("-settings") + 1] == "mirror.xml"


def test_each_peer_has_its_job_and_the_shared_code() -> None:
    assert [path.name for path in sources("flink")] == [
        "Acc.java",
        "Iso.java",
        "Rec.java",
        "View.java",
        "AlertJob.java",
        "AsyncJob.java",
        "CountJob.java",
        "FlinkJob.java",
    ]
    assert [path.name for path in sources("kstreams")] == [
        "Acc.java",
        "Iso.java",
        "Rec.java",
        "View.java",
        "KsAnswers.java",
        "KsCount.java",
        "KsJob.java",
        "KsQueries.java",
    ]
    assert all(f'<conf name="{peer}"/>' in IVY_XML.read_text() for peer in PEERS)
