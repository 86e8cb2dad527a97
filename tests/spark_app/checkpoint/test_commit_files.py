"""Which files of a checkpoint a commit needs."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spark_app.checkpoint.commit_files import commit_files, version_of
from spark_app.errors import WholeStateDamagedError

ID = "5cf2714d-2c76-4510-a962-9557f4ef30{:02}"
FAILED = ID.format(99)


class LocalFolder:
    """A local folder, with the methods of CheckpointFolder that are called here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.path = str(path)
        self.damaged: set[str] = set()
        """The ends of the paths of files that do not have their checksum. The others have none."""

    def names(self, name: str = ".") -> list[str]:
        return [path.name for path in (self._path / name).iterdir()]

    def is_damaged(self, name: str) -> bool:
        return name.endswith(tuple(self.damaged))

    def files(self, name: str) -> list[str]:
        return [str(path.relative_to(self._path)) for path in (self._path / name).rglob("*") if path.is_file()]

    def read(self, name: str) -> str | None:
        content = self.read_bytes(name)
        return content.decode() if content is not None else None

    def read_bytes(self, name: str) -> bytes | None:
        path = self._path / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes = b"") -> None:
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def whole(self, partition: str, version: int, attempt: str, *shared: str) -> None:
        """Write a whole state that consists of these shared files."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            files = [{"localFileName": "x", "dfsSstFileName": name, "sizeBytes": 1} for name in shared]
            archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": files}))
        self.write(f"{partition}/{version}_{attempt}.zip", content.getvalue())
        for name in shared:
            self.write(f"{partition}/SSTs/{name}")
            self.write(f"{partition}/SSTs/.{name}.crc")


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    """A checkpoint of 9 batches, and a tenth that is not committed. One partition of two was never stored whole."""
    made = LocalFolder(tmp_path)
    for name in (
        "metadata",
        ".metadata.crc",
        "sources/0/0",
        "state/0/_metadata/metadata",
        "state/0/0/_metadata/schema",
    ):
        made.write(name)
    for batch in range(9):
        ids = [[ID.format(batch)], [ID.format(batch)]]
        made.write(f"commits/{batch}", b"v2\n" + json.dumps({"stateUniqueIds": {"0": ids}}).encode())
    for batch in range(10):
        made.write(f"offsets/{batch}")
        made.write(f"offsets/.{batch}.crc")
        for partition in (0, 1):
            made.write(f"state/0/{partition}/{batch + 1}_{ID.format(batch)}.changelog")
    made.whole("state/0/0", 3, ID.format(2), "1-a.sst")
    made.whole("state/0/0", 5, ID.format(4), "1-a.sst", "2-b.sst")
    made.whole("state/0/0", 7, FAILED, "3-c.sst")
    made.whole("state/0/0", 9, ID.format(8), "4-d.sst")
    made.whole("state/0/0", 10, ID.format(9), "5-e.sst")
    made.write(f"state/0/0/7_{FAILED}.zip", b"cut")
    return made


def needed(folder: Any, batch: int) -> set[str]:
    return set(commit_files(folder, batch))


def test_a_commit_needs_the_last_whole_state_and_the_changelogs_since(folder: LocalFolder) -> None:
    paths = {path for path in needed(folder, 8) if path.startswith("state/0/0/")}
    versions = {version_of(path) for path in paths if "/_" not in path and "SSTs" not in path}
    assert versions == {5, 6, 7, 8, 9}, "8 is the state that a repeated batch begins with, and 9 the committed one"
    shared = {Path(path).name for path in paths if "SSTs" in path and not path.endswith("crc")}
    assert {"1-a.sst", "2-b.sst", "4-d.sst"} <= shared
    assert not {"3-c.sst", "5-e.sst"} & shared, "of an attempt that failed, and of a batch that is not committed"
    assert f"state/0/0/7_{FAILED}.zip" not in paths
    assert "state/0/0/_metadata/schema" in paths


def test_a_damaged_whole_state_is_reported_with_a_way_out(folder: LocalFolder) -> None:
    folder.write(f"state/0/0/9_{ID.format(8)}.zip", b"cut")
    with pytest.raises(WholeStateDamagedError, match=rf"9_{ID.format(8)}\.zip of the state is damaged: try again when"):
        needed(folder, 8)


def test_the_changelogs_of_a_partition_without_a_whole_state_are_all_needed(folder: LocalFolder) -> None:
    paths = {path for path in needed(folder, 8) if path.startswith("state/0/1/")}
    assert {version_of(path) for path in paths} == set(range(1, 10))
    assert {path for path in needed(folder, 8) if path.startswith("offsets/")} == {
        f"offsets/{name}" for batch in range(9) for name in (str(batch), f".{batch}.crc")
    }


def test_the_logs_begin_with_the_oldest_whole_state(folder: LocalFolder) -> None:
    folder.whole("state/0/1", 6, ID.format(5))
    paths = needed(folder, 8)
    logged = {path for path in paths if path.startswith("commits/")}
    assert logged == {f"commits/{batch}" for batch in range(3, 9)}, "Spark starts after 4 with the offsets of 3"
    assert {"metadata", ".metadata.crc", "sources/0/0", "state/0/_metadata/metadata"} <= paths


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("state/0/1/7_5cf2714d-2c76-4510-a962-9557f4ef307e.changelog", 7),
        ("state/0/1/12_5cf2714d-2c76-4510-a962-9557f4ef307e.zip", 12),
        ("offsets/3", 3),
        ("offsets/.3.crc", 3),
        ("state/0/1/SSTs/000013-5cf2714d-2c76-4510-a962-9557f4ef307e.sst", None),
        ("state/0/_metadata/metadata", None),
    ],
)
def test_the_version_of_a_file(path: str, version: int | None) -> None:
    assert version_of(path) == version
