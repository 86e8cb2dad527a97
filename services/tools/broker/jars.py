"""Resolves the jars that ivy.xml pins, with the Ivy that pyspark ships: `stateloop jars`.

They go to `<jars>/spark`, `<jars>/broker` and `<jars>/console`; a marker next to them holds the hash of their ivy.xml.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from contracts.settings import read
from services.tools.broker.errors import (
    JARS,
    BrokerError,
    DownloadError,
    JarsMissingError,
    PackageMissingError,
    UnresolvedError,
)
from services.tools.broker.java import find_java
from services.tools.broker.preflight import require_disk
from services.tools.broker.settings import JarsSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

IVY_XML = Path(__file__).with_name("ivy.xml")
CONFS = ("spark", "broker", "console")
MARKER = ".resolved.sha256"
NEEDED_MB = 250
ATTEMPTS = 2


def resolve(settings: JarsSettings, report: Callable[[str], None]) -> bool:
    """Bring the jars up to date; True if there was something to do. Safe to run twice at once."""
    java, ivy = find_java(), ivy_jar()
    require_disk(settings.jars, NEEDED_MB, JARS)
    with _alone(settings.jars), _new_folder(settings.jars) as new:
        if up_to_date(settings.jars):
            return False
        command = ivy_command(java, ivy, new, settings.ivy_settings)
        for attempt in Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            retry=retry_if_exception_type(DownloadError),
            reraise=True,
        ):
            with attempt:
                _run(command, report)
        _replace(new, settings.jars)
    return True


def classpath(jars: Path, conf: str) -> str:
    """Return the class path of all jars of one conf of ivy.xml; refuse jars of another ivy.xml."""
    if not up_to_date(jars):
        raise JarsMissingError(jars)
    return f"{jars.absolute() / conf}/*"


def up_to_date(jars: Path) -> bool:
    """Return whether the jars are there, all of them, and made from the ivy.xml of now."""
    marker = jars / MARKER
    return marker.exists() and marker.read_text() == digest() and all((jars / conf).is_dir() for conf in CONFS)


def digest() -> str:
    """Return the hash that the marker holds."""
    return hashlib.sha256(IVY_XML.read_bytes()).hexdigest()


def ivy_jar() -> Path:
    """Return the path of the Ivy that pyspark ships."""
    spec = find_spec("pyspark")
    jars = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not jars:
        raise PackageMissingError("pyspark")
    return jars[-1]


def ivy_command(java: Path, ivy: Path, into: Path, ivy_settings: Path | None) -> list[str]:
    """Return the command that resolves ivy.xml and copies the jars to `into`."""
    mirror = ["-settings", str(ivy_settings)] if ivy_settings else []
    pattern = f"{into}/[conf]/[artifact]-[revision].[ext]"
    return [str(java), "-jar", str(ivy), *mirror, "-ivy", str(IVY_XML), "-confs", *CONFS, "-retrieve", pattern]


def progress(line: str) -> str | None:
    """Return what a line of Ivy's output means to a person, or None if nothing."""
    resolved = re.match(r"\s*found \S+#(\S+);(\S+) in", line)
    if resolved:
        return f"found {resolved[1]} {resolved[2]}"
    loaded = re.match(r"\s*\[SUCCESSFUL ] \S+#(\S+);(\S+)!", line)
    return f"downloaded {loaded[1]} {loaded[2]}" if loaded else None


def failure(output: str) -> BrokerError:
    """Return the reason why Ivy failed: the network, or an artefact that does not exist."""
    access = re.search(r"Server access error .*?\((.*)\)|(Host \S+ not found)|\[FAILED +] (\S+)", output)
    if access:
        return DownloadError(next(group for group in access.groups() if group))
    absent = re.findall(r"(?:module not found|unresolved dependency): (\S+?;\S+?)(?:[:\s]|$)", output)
    if absent:
        return UnresolvedError(tuple(dict.fromkeys(absent)))
    return DownloadError(output.strip().splitlines()[-1] if output.strip() else "Ivy said nothing")


def _run(command: list[str], report: Callable[[str], None]) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        output = "".join(_reported(ivy.stdout or (), report))
    if ivy.returncode != 0:
        raise failure(output)


def _reported(lines: Iterable[str], report: Callable[[str], None]) -> Iterator[str]:
    for line in lines:
        what = progress(line)
        if what:
            report(what)
        yield line


def _replace(new: Path, jars: Path) -> None:
    # Without its marker a half-replaced folder counts as missing, so a crash in here costs only another run.
    (jars / MARKER).unlink(missing_ok=True)
    for conf in CONFS:
        shutil.rmtree(jars / conf, ignore_errors=True)
        (new / conf).rename(jars / conf)
    (jars / MARKER).write_text(digest())


@contextmanager
def _new_folder(jars: Path) -> Iterator[Path]:
    for abandoned in jars.glob(".new-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=jars, prefix=".new-") as new:
        yield Path(new)


@contextmanager
def _alone(jars: Path) -> Iterator[None]:
    with (jars / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Bring the jars up to date, with progress. Raises StateloopError."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    settings = read(JarsSettings)
    if up_to_date(settings.jars):
        return
    console.print(f"Resolving the jars of ivy.xml into {settings.jars} (53 MB, up to a minute the first time)")
    with console.status("connecting to the registry") as status:
        resolve(settings, status.update)
    counts = ", ".join(f"{conf} {len(list((settings.jars / conf).glob('*.jar')))}" for conf in CONFS)
    console.print(f"The jars are ready: {counts}")
