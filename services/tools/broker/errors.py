"""The errors before the broker runs, each with the remedy in its message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.errors import PermanentError, RetryableError, StateloopError

if TYPE_CHECKING:
    from pathlib import Path

DATA = "STATELOOP_DATA (of make up) or STATELOOP_BROKER_DATA (of a broker alone)"
"""The settings of the data folder: make up reads STATELOOP_DATA."""
JARS = "STATELOOP_JARS"


class BrokerError(StateloopError):
    """Base of all errors of this part."""


class DownloadError(BrokerError, RetryableError):
    """The registry could not be reached, or broke off."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"The jars could not be downloaded ({cause}): check the network (behind a proxy, set JAVA_TOOL_OPTIONS to "
            "-Dhttps.proxyHost=… -Dhttps.proxyPort=…) and run stateloop jars again",
        )
        self.cause = cause


class NotReadyError(BrokerError, RetryableError):
    """A condition did not come true before its deadline."""

    def __init__(self, what: str, deadline_s: float) -> None:
        super().__init__(f"{what}: not so after {deadline_s:g} s")
        self.what = what
        self.deadline_s = deadline_s


class JavaMissingError(BrokerError, PermanentError):
    """No Java was found."""

    def __init__(self, install: str) -> None:
        super().__init__(f"Java is missing: install it with: {install}")
        self.install = install


class JavaTooOldError(BrokerError, PermanentError):
    """The Java is too old for Spark and Kafka."""

    def __init__(self, java: Path, found: int, needed: int, install: str) -> None:
        super().__init__(
            f"Java {needed} or later is needed, and {java} is Java {found}: install one with: {install} "
            "(or set JAVA_HOME to one)",
        )
        self.java = java
        self.found = found
        self.needed = needed


class PortBusyError(BrokerError, PermanentError):
    """Another process listens on the port."""

    def __init__(self, port: int, variable: str) -> None:
        super().__init__(
            f"Port {port} is busy: stop what listens there (find it with: ss -ltnp 'sport = :{port}'), "
            f"or set {variable} to a free port",
        )
        self.port = port


class FolderBusyError(BrokerError, PermanentError):
    """Another broker works in the folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"A broker already runs on the data in {folder}: stop it, or set {DATA} to another folder",
        )
        self.folder = folder


class FolderUnusableError(BrokerError, PermanentError):
    """The folder cannot be made or written."""

    def __init__(self, folder: Path, cause: str, setting: str) -> None:
        super().__init__(f"{folder} cannot be written ({cause}): make it writable, or set {setting} to another folder")
        self.folder = folder


class DiskFullError(BrokerError, PermanentError):
    """The disk has too little free space."""

    def __init__(self, folder: Path, free_mb: int, needed_mb: int, setting: str) -> None:
        super().__init__(
            f"The disk of {folder} has {free_mb} MB left and {needed_mb} MB are needed: free some space, "
            f"or set {setting} to a folder on another disk",
        )
        self.folder = folder
        self.free_mb = free_mb
        self.needed_mb = needed_mb


class JarsMissingError(BrokerError, PermanentError):
    """The jars are missing, or differ from those that ivy.xml pins."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"The jars in {folder} are missing or out of date: run stateloop jars")
        self.folder = folder


class PackageMissingError(BrokerError, PermanentError):
    """A required Python package is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"The Python package {package} is missing or incomplete: pip install 'stateloop[job]'")
        self.package = package


class UnresolvedError(BrokerError, PermanentError):
    """The registry has no such artefact."""

    def __init__(self, artefacts: tuple[str, ...]) -> None:
        super().__init__(f"The registry does not have {', '.join(artefacts)}: correct the version in ivy.xml")
        self.artefacts = artefacts


class FormatError(BrokerError, PermanentError):
    """Kafka refused to format its storage."""

    def __init__(self, folder: Path, output: str) -> None:
        super().__init__(f"Kafka could not format {folder}: {output}")
        self.folder = folder
