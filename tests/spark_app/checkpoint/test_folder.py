"""A file system that refuses an operation ends the job with one line, not with a trace of Java's."""

import errno
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from spark_app.checkpoint.folder import CheckpointFolder
from spark_app.errors import CheckpointUnreachableError

pytestmark = pytest.mark.spark


def test_a_new_file_is_read_as_it_was_written(spark: SparkSession, tmp_path: Path) -> None:
    folder = CheckpointFolder(spark, str(tmp_path / "new" / "folder"))
    assert folder.read("file") is None
    folder.write_new("file", "Zürich")
    assert folder.read("file") == "Zürich"
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["file"]


def test_a_file_is_created_once(spark: SparkSession, tmp_path: Path) -> None:
    folder = CheckpointFolder(spark, str(tmp_path / "new"))
    assert folder.is_exclusive
    assert folder.names() == []
    assert folder.create("file", "first")
    assert not folder.create("file", "second")
    assert folder.read("file") == "first"
    folder.overwrite("file", "Zürich")
    assert (folder.read("file"), folder.names()) == ("Zürich", ["file"])
    folder.delete("file")
    folder.delete("file")
    assert (folder.read("file"), folder.names()) == (None, [])


def test_a_file_in_the_place_of_the_folder_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = CheckpointFolder(spark, str(tmp_path / "file"))
    for write in (folder.create, folder.overwrite, folder.write_new):
        with pytest.raises(CheckpointUnreachableError, match="not a directory"):
            write("name", "content")


def test_a_file_that_a_crash_interrupts_is_not_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(spark, str(tmp_path))

    def crash(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("spark_app.checkpoint.folder.os.fsync", crash)  # the content is not on the disk yet
        with pytest.raises(KeyboardInterrupt):
            folder.create("file", "content")
    assert folder.read("file") is None
    assert folder.create("file", "content")
    assert folder.names() == ["file"]


def test_a_file_is_created_where_there_are_no_hard_links(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(spark, str(tmp_path))
    monkeypatch.setattr(Path, "hardlink_to", Mock(side_effect=OSError(errno.EPERM, "not permitted")))
    assert folder.create("file", "content")
    assert not folder.create("file", "other")
    assert (folder.read("file"), folder.names()) == ("content", ["file"])


def test_a_delete_that_the_file_system_declines_is_an_error() -> None:
    file_system = Mock(**{"delete.return_value": False, "exists.return_value": True})
    with pytest.raises(CheckpointUnreachableError, match="did not delete file"):
        CheckpointFolder(session_on(file_system), "hdfs://name/folder").delete("file")


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("file:///proc/stateloop", "the file system did not create the folder"),
        ("unheard://of/it", 'No FileSystem for scheme "unheard"'),
        ("hdfs://127.0.0.1:1/checkpoint", "Connection refused"),
    ],
)
def test_a_folder_that_cannot_be_written_is_reported_in_one_line(
    spark: SparkSession, folder: str, message: str
) -> None:
    with pytest.raises(CheckpointUnreachableError) as refused:
        CheckpointFolder(spark, folder).write_new("file", "content")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_rename_that_the_file_system_declines_is_an_error() -> None:
    folder = CheckpointFolder(session_on(Mock(**{"rename.return_value": False})), "hdfs://name/folder")
    with pytest.raises(CheckpointUnreachableError, match=r"did not rename \.file\.tmp to file"):
        folder.write_new("file", "content")


def session_on(file_system: Mock) -> Mock:
    """A Spark session whose folders are on this file system: the local one never declines to rename."""
    spark = Mock()
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001  # as the folder finds it
    path.return_value.getFileSystem.return_value = file_system
    return spark


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 2000, 2001])
def test_a_file_that_was_cut_is_damaged(spark: SparkSession, tmp_path: Path, size: int) -> None:
    spark.sparkContext.parallelize([2000 * "a"], 1).saveAsTextFile(str(tmp_path / "text"))
    path = tmp_path / "text" / "part-00000"
    assert (tmp_path / "text" / ".part-00000.crc").exists()
    os.truncate(path, size)
    for folder, name in ((tmp_path, "text/part-00000"), (tmp_path / "text", "part-00000")):
        assert CheckpointFolder(spark, str(folder)).is_damaged(name) == (size < 2001)


@pytest.mark.parametrize("sums", [b"", b"crc\0\0\0", bytes(28)])
def test_a_file_whose_checksums_are_lost_is_not_called_damaged(
    spark: SparkSession, tmp_path: Path, sums: bytes
) -> None:
    spark.sparkContext.parallelize([2000 * "a"], 1).saveAsTextFile(str(tmp_path / "text"))
    (tmp_path / "text" / ".part-00000.crc").write_bytes(sums)
    assert not CheckpointFolder(spark, str(tmp_path)).is_damaged("text/part-00000")


def test_an_empty_file_whose_checksums_are_lost_is_damaged(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("5_a.zip", ".5_a.zip.crc"):
        (tmp_path / name).touch()
    assert CheckpointFolder(spark, str(tmp_path)).is_damaged("5_a.zip")
