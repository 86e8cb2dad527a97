"""The data folder: what is in it, and how a launch finds it clean."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.launcher.errors import DataFolderError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Folders:
    """The paths in a data folder."""

    data: Path

    @property
    def logs(self) -> Path:
        """Each part's output, as `<name>.log`; of this launch only."""
        return self.data / "logs"

    @property
    def run(self) -> Path:
        """Each running part's process id, as `<name>.pid`, and the lock."""
        return self.data / "run"

    @property
    def lock(self) -> Path:
        """Locked as long as a launcher, or something that it started, runs."""
        return self.run / "lock"

    @property
    def status(self) -> Path:
        """What each part does now, as JSON, for the live view."""
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
    def position(self) -> Path:
        """Where the replay is."""
        return self.data / "replay.json"

    @property
    def query(self) -> Path:
        """What the query service knows of the topics."""
        return self.data / "query"

    @property
    def scratch(self) -> Path:
        """Spark's working files: of no use after it ended."""
        return self.data / "scratch"

    def prepare(self) -> None:
        """Make the folders, without what the last launch left there and nobody needs. Raises DataFolderError."""
        try:
            for folder in (self.logs, self.scratch):
                shutil.rmtree(folder, ignore_errors=True)
            for folder in (self.logs, self.run, self.scratch):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataFolderError(self.data, error.strerror or str(error)) from error

    def state(self) -> list[Path]:
        """What makes the next launch go on where this one was, as far as it is there."""
        return [path for path in (self.broker, self.checkpoint, self.position, self.query) if path.exists()]

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
