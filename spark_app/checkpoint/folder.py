"""A folder of text files on any file system that Spark writes to, through Hadoop's client, which Spark brings."""

import errno
import math
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.sql import SparkSession

from spark_app.errors import CheckpointUnreachableError, SparkExitedError

CHECKSUM_ERROR = "ChecksumException"
CRC_MAGIC = b"crc\0"
CRC_HEADER, CRC_SIZE = 8, 4
"""The bytes of a file of checksums: its beginning with the size of a block, and the checksum of each block."""
WITHOUT_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)
"""The errors of a file system that has no hard links."""


class CheckpointFolder:
    """Reads and writes small files. Each method raises CheckpointUnreachableError when the file system refuses."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001  # PySpark has no public way
        self._configuration = context._jsc.hadoopConfiguration()  # noqa: SLF001
        with self._refusals():
            self._checked = self._jvm.org.apache.hadoop.fs.Path(path).getFileSystem(self._configuration)
            self._fs = self._unchecked(self._checked)
            self._scheme = str(self._fs.getUri().getScheme())

    def below(self, name: str) -> "CheckpointFolder":
        """Return the folder of this name in this folder."""
        folder = copy(self)
        folder.path = f"{self.path.rstrip('/')}/{name}"
        return folder

    @property
    def is_exclusive(self) -> bool:
        """Whether `create` is atomic here. Object stores look first and write later, so two may both create a file."""
        return self._scheme in ("file", "hdfs")

    def has(self, name: str) -> bool:
        """Return whether a file or folder of this name exists."""
        with self._refusals():
            return bool(self._fs.exists(self._at(name)))

    def names(self, name: str = ".") -> list[str]:
        """Return the names of all files and folders in a folder of this name; none if it does not exist."""
        with suppress(FileNotFoundError), self._refusals():
            return [str(status.getPath().getName()) for status in self._fs.listStatus(self._at(name))]
        return []

    def files(self, name: str = ".") -> list[str]:
        """Return the paths of all files below a folder of this name, relative to this folder; none without it."""
        with self._refusals():
            root = self._fs.makeQualified(self._at(".")).toUri()
        return [str(root.relativize(path.toUri()).getPath()) for path in self._walk(self._at(name))]

    def _walk(self, folder: Any) -> Iterator[Any]:
        """Yield the paths of all files below a folder. A file that is gone meanwhile is no error."""
        with suppress(FileNotFoundError), self._refusals():
            if self._scheme != "file":  # where one request lists a whole tree
                listed = self._fs.listFiles(folder, True)  # noqa: FBT003  # Java has no keywords
                while listed.hasNext():
                    yield listed.next().getPath()
                return
            for status in self._fs.listStatus(folder):  # `listFiles` runs the command ls for each local file
                if status.isDirectory():
                    yield from self._walk(status.getPath())
                else:
                    yield status.getPath()

    def copy(self, name: str, target: "CheckpointFolder") -> int | None:
        """Copy a file into another folder, under its name; return its size in bytes, or None for one that is gone."""
        with suppress(FileNotFoundError), self._refusals():
            source = self._at(name)
            size = int(self._fs.getFileStatus(source).getLen())
            there = (target._fs, target._at(name))  # noqa: SLF001  # of this class
            file_util = self._jvm.org.apache.hadoop.fs.FileUtil
            copied = file_util.copy(self._fs, source, *there, False, self._configuration)  # noqa: FBT003
            self._require(bool(copied), f"copy {name} to {target.path}")
            return size
        return None

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes; None where there is no such file."""
        with suppress(FileNotFoundError), self._refusals():
            return int(self._fs.getFileStatus(self._at(name)).getLen())
        return None

    def modified(self, name: str) -> datetime | None:
        """Return when a file was written last, by the file system's clock; None where there is no such file."""
        with suppress(FileNotFoundError), self._refusals():
            return datetime.fromtimestamp(self._fs.getFileStatus(self._at(name)).getModificationTime() / 1000, UTC)
        return None

    def read(self, name: str) -> str | None:
        """Return a file's text; None where there is no such file."""
        content = self.read_bytes(name)
        return None if content is None else content.decode(errors="replace")

    def read_bytes(self, name: str) -> bytes | None:
        """Return a file's content; None where there is no such file."""
        with suppress(FileNotFoundError), self._refusals():
            stream = self._fs.open(self._at(name))
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()
        return None

    def is_damaged(self, name: str) -> bool:
        """Return whether a file of a state does not have the checksum that was written with it.

        On a local file system Spark writes one beside the file; HDFS has its own, and object stores verify themselves.
        A crash of the machine may leave both empty, and no file of a state is.
        """
        try:
            with self._refusals():
                stream = self._checked.open(self._at(name))
                try:
                    self._jvm.org.apache.commons.io.IOUtils.consume(stream)
                finally:
                    stream.close()
        except FileNotFoundError:
            return False
        except CheckpointUnreachableError as error:
            if CHECKSUM_ERROR in str(error):
                return True
            raise
        return self._scheme == "file" and self._is_shortened(name)

    def _is_shortened(self, name: str) -> bool:
        """Return whether a local file ends before the blocks of its checksums, as pages that were not written yet.

        Hadoop's client does not notice it where the file ends with a block.
        """
        folder, slash, own = name.rpartition("/")
        sums, size = self.read_bytes(f"{folder}{slash}.{own}.crc"), self.size(name)
        if sums is None or size is None or not sums.startswith(CRC_MAGIC):  # Hadoop's client ignores those too
            return size == 0
        block = int.from_bytes(sums[len(CRC_MAGIC) : CRC_HEADER], "big")
        return block > 0 and (len(sums) - CRC_HEADER) // CRC_SIZE > math.ceil(size / block)

    def write_new(self, name: str, content: str) -> None:
        """Write a file that does not exist yet. A crash leaves no half of it under this name."""
        unfinished = f".{name}.tmp"
        with self._refusals():
            self._make()
            self._write(unfinished, content)
            self._require(self._fs.rename(self._at(unfinished), self._at(name)), f"rename {unfinished} to {name}")

    def create(self, name: str, content: str) -> bool:
        """Write a file unless there is one; return whether it was written.

        A crash leaves the whole file or none on a local file system; elsewhere as that file system does.
        """
        with suppress(FileExistsError), self._refusals():
            self._make()
            if self._scheme == "file":  # Hadoop's client for local files looks first and creates later
                _create(Path(self._fs.pathToFile(self._at(name)).getPath()), content)
            else:
                self._write(name, content, overwrite=False)
            return True
        return False

    def overwrite(self, name: str, content: str) -> None:
        """Write a file in place. A reader may see a part of it."""
        with self._file_in_place(), self._refusals():
            self._write(name, content)

    def delete(self, name: str) -> None:
        """Delete a file; one that is gone is no error."""
        with self._refusals():
            if not self._fs.delete(self._at(name), False):  # noqa: FBT003  # Java has no keywords
                self._require(not self._fs.exists(self._at(name)), f"delete {name}")

    def _make(self) -> None:
        with self._file_in_place(), self._refusals():
            self._require(self._fs.mkdirs(self._at(".")), "create the folder")

    def _write(self, name: str, content: str, *, overwrite: bool = True) -> None:
        stream = self._fs.create(self._at(name), overwrite)
        try:
            stream.write(content.encode())
        finally:
            stream.close()

    def _unchecked(self, file_system: Any) -> Any:
        """A local file system without its checksum files: they refuse a file that an editor changed."""
        local = file_system.getUri().getScheme() == "file"
        return file_system.getLocal(self._configuration).getRawFileSystem() if local else file_system

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.path, name)

    def _require(self, done: bool, action: str) -> None:  # noqa: FBT001  # the value that Hadoop returns
        if not done:
            raise CheckpointUnreachableError(self.path, f"the file system did not {action}")

    @contextmanager
    def _file_in_place(self) -> Iterator[None]:
        """Let a file in the place of the folder be no file that another job has created first."""
        try:
            yield
        except FileExistsError as error:
            raise CheckpointUnreachableError(self.path, str(error)) from error

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Translate Java's errors to Python's."""
        try:
            yield
        except Py4JNetworkError as error:
            raise SparkExitedError from error
        except Py4JJavaError as error:
            kind = error.java_exception.getClass().getSimpleName()
            problem = str(error.java_exception.toString()).splitlines()[0]
            if kind == "FileNotFoundException":
                raise FileNotFoundError(problem) from error
            if kind == "FileAlreadyExistsException":
                raise FileExistsError(problem) from error
            raise CheckpointUnreachableError(self.path, problem) from error
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError as error:
            raise CheckpointUnreachableError(self.path, str(error)) from error


def _create(path: Path, content: str) -> None:
    """Write a local file, and give it its name when the disk has it. Raises FileExistsError."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with unfinished.open("x", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(unfinished)
        except OSError as error:
            if error.errno not in WITHOUT_LINKS:
                raise
            with path.open("x", encoding="utf-8") as file:
                file.write(content)
    finally:
        unfinished.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
