"""The broker's data folder: `server.properties`, written at each start, and `log`, formatted at the first one."""

from __future__ import annotations

import errno
import shutil
import subprocess
import uuid
from typing import TYPE_CHECKING

from services.tools.broker.errors import DATA, DiskFullError, FolderUnusableError, FormatError
from services.tools.broker.properties import cluster_id, server_properties

if TYPE_CHECKING:
    from pathlib import Path

    from services.tools.broker.settings import BrokerSettings

NEEDED_MB = 500
FORMAT_S = 120


def log_dir(data: Path) -> Path:
    """Return the folder of Kafka's log."""
    return data / "log"


def prepare(settings: BrokerSettings, data: Path, java: Path, classpath: str) -> Path:
    """Format the storage if it is new, and give the path of the properties to start with."""
    try:
        if not (log_dir(data) / "meta.properties").exists():
            _format(settings, data, java, classpath)
        return _write(settings, data / "server.properties", log_dir(data))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFullError(data, 0, NEEDED_MB, DATA) from error
        raise FolderUnusableError(data, error.strerror or str(error), DATA) from error


def format_command(java: Path, classpath: str, properties: Path, cluster: str) -> list[str]:
    """Return the command that formats the log folder that the properties name."""
    quick = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN"]
    tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", f"--config={properties}"]
    return [str(java), *quick, "-cp", classpath, *tool]


def _format(settings: BrokerSettings, data: Path, java: Path, classpath: str) -> None:
    # In a folder next to it, renamed when complete: a start that is killed here begins anew the next time.
    new = data / "log.new"
    shutil.rmtree(new, ignore_errors=True)
    properties = _write(settings, data / "format.properties", new)
    command = format_command(java, classpath, properties, cluster_id(uuid.uuid4()))
    done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_S, check=False)
    if done.returncode != 0:
        raise FormatError(data, (done.stderr or done.stdout).strip().replace("\n", "; "))
    properties.unlink()
    new.rename(log_dir(data))


def _write(settings: BrokerSettings, path: Path, logs: Path) -> Path:
    properties = server_properties(logs, settings.broker_port, settings.controller_port, settings.broker_session)
    path.write_text(properties, encoding="ascii")
    return path
