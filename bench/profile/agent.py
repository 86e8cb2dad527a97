"""The profiler's library: downloaded by the Ivy that pyspark ships, as pinned in ivy.xml."""

import platform
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from bench.harness.errors import last_line
from bench.harness.plan import CHECKOUT
from bench.peers.build import ivy_command
from bench.profile.errors import AgentMissingError, NoAgentError

IVY_XML = Path(__file__).parent / "ivy.xml"
FOLDER = CHECKOUT / ".stateloop" / "profile"
LIBRARIES = {
    ("Linux", "x86_64"): "linux-x64/libasyncProfiler.so",
    ("Linux", "aarch64"): "linux-arm64/libasyncProfiler.so",
    ("Darwin", "arm64"): "macos/libasyncProfiler.so",
    ("Darwin", "x86_64"): "macos/libasyncProfiler.so",
}
"""The paths of the libraries in the jar, by system and machine."""


def library(report: Callable[[str], None], folder: Path = FOLDER) -> Path:
    """The library for this machine, downloaded if need be. Raises NoAgentError, AgentMissingError, ToolMissingError."""
    member = _member(platform.system(), platform.machine())
    found = folder / member
    if not found.exists():
        report("downloading async-profiler (1 MB)")
        with tempfile.TemporaryDirectory() as name:
            _download(Path(name))
            with zipfile.ZipFile(next(Path(name).glob("*.jar"))) as jar:
                jar.extract(member, folder)
    return found


def option(agent: Path, samples: Path) -> str:
    """Java's option that samples every thread, Java and native, each 2 ms of its CPU, into one file for each JVM."""
    options = "event=itimer,interval=2ms,threads,collapsed"
    return f"-agentpath:{agent}=start,{options},file={samples}/%p.collapsed"


def _member(system: str, machine: str) -> str:
    if (system, machine) not in LIBRARIES:
        raise NoAgentError(system, machine, tuple(" ".join(one) for one in LIBRARIES))
    return LIBRARIES[system, machine]


def _download(into: Path) -> None:
    command = ivy_command("profile", into, IVY_XML)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode or not list(into.glob("*.jar")):
        raise AgentMissingError(last_line(done.stdout, "Ivy said nothing"))
