"""The data folder: its paths, and its preparation for a launch."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.tools.launcher.errors import DataFolderError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Folders:
    """The paths in a data folder."""

    data: Path

    @property
    def logs(self) -> Path:
        """The output of each process of this launch, as `<name>.log`."""
        return self.data / "logs"

    @property
    def run(self) -> Path:
        """The id of each running process, as `<name>.pid`, and the lock."""
        return self.data / "run"

    @property
    def lock(self) -> Path:
        """Locked while a launcher or one of its processes runs."""
        return self.run / "lock"

    @property
    def status(self) -> Path:
        """The state of each process, as JSON, for the live view."""
        return self.run / "status.json"

    @property
    def broker(self) -> Path:
        """The broker's log of records."""
        return self.data / "broker"

    @property
    def checkpoint(self) -> Path:
        """The Spark job's state and offsets."""
        return self.data / "checkpoint"

    @property
    def raw_checkpoint(self) -> Path:
        """The Spark job's offsets in topics of raw records."""
        return self.data / "checkpoint-raw"

    @property
    def position(self) -> Path:
        """The position of the replay."""
        return self.data / "replay.json"

    @property
    def query(self) -> Path:
        """The store of the query service."""
        return self.data / "query"

    @property
    def scratch(self) -> Path:
        """Spark's temporary files."""
        return self.data / "scratch"

    def prepare(self) -> None:
        """Create the folders, and remove old logs and temporary files. Raises DataFolderError."""
        try:
            for folder in (self.logs, self.scratch):
                shutil.rmtree(folder, ignore_errors=True)
            for folder in (self.logs, self.run, self.scratch):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataFolderError(self.data, error.strerror or str(error)) from error

    def state(self) -> list[Path]:
        """Return the existing paths from which the next launch resumes."""
        paths = (self.broker, self.checkpoint, self.raw_checkpoint, self.position, self.query)
        return [path for path in paths if path.exists()]

    def forget(self) -> None:
        """Remove the state. Raises DataFolderError."""
        try:
            for path in self.state():
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        except OSError as error:
            raise DataFolderError(self.data, error.strerror or str(error)) from error
