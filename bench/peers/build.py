"""Builds the peers: `python -m bench.peers.build`.

Their jars, pinned in ivy.xml, are resolved by the Ivy that pyspark ships into `.stateloop/peers/<peer>`, and their
sources compiled into `classes` there. A marker holds the hash of what it was made from: if that is the same, nothing is
done.
STATELOOP_IVY_SETTINGS names an Ivy settings file, to use a mirror of the registry.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from bench.harness.errors import BenchError, last_line

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".stateloop" / "peers"
IVY_XML = HERE / "ivy.xml"
PEERS = ("flink", "kstreams")
MARKER = ".made-from.sha256"
RELEASE = "17"
"""The version of Java that the peers are written in."""
WITHOUT = "or measure without the peers: make bench ARGS='--jobs stateloop'"


class ToolMissingError(BenchError):
    """A program of the JDK is not there; with a JRE, that is the compiler."""

    def __init__(self, tool: str, looked_in: str) -> None:
        super().__init__(
            f"{tool} is not in {looked_in}, and the peers need a JDK of Java 17 or later: install one (on Debian or "
            f"Ubuntu, apt-get install -y openjdk-17-jdk-headless; set JAVA_HOME if it is in another folder), {WITHOUT}"
        )
        self.tool = tool


class BuildFailedError(BenchError):
    """The jars could not be resolved, or the sources not compiled."""

    def __init__(self, peer: str, step: str, last: str, log: Path) -> None:
        super().__init__(f"{step} {peer} failed: {last} (all of it is in {log}); try again, {WITHOUT}")
        self.peer = peer
        self.log = log


def tool(name: str) -> str:
    """The path of `java` or `javac`, in JAVA_HOME or else on the PATH, as Spark looks. Raises ToolMissingError."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which(name, path=str(Path(home) / "bin") if home else None)
    if path is None:
        raise ToolMissingError(name, f"{home}/bin (of JAVA_HOME)" if home else "the PATH")
    return path


def build(peer: str, report: Callable[[str], None], folder: Path = FOLDER) -> bool:
    """Bring one of PEERS up to date; True if there was something to do. Raises ToolMissingError, BuildFailedError."""
    made = folder / peer
    if up_to_date(made, peer):
        return False
    compiler = tool("javac")  # before anything is downloaded
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as name:
        new = Path(name) / peer
        report(f"resolving the jars of {peer} (100 MB; a minute or two the first time)")
        _run(peer, "resolving the jars of", ivy_command(peer, new), folder)
        report(f"compiling {peer}")
        _run(peer, "compiling", javac_command(compiler, peer, new), folder)
        (new / MARKER).write_text(digest(peer))
        shutil.rmtree(made, ignore_errors=True)
        new.rename(made)
    return True


def up_to_date(made: Path, peer: str) -> bool:
    """Whether this folder was made from the ivy.xml and the sources of now."""
    marker = made / MARKER
    return marker.exists() and marker.read_text() == digest(peer)


def sources(peer: str) -> list[Path]:
    """Its own, and those that both have in common."""
    return sorted(HERE.glob("common/*.java")) + sorted((HERE / peer).glob("*.java"))


def digest(peer: str) -> str:
    """The hash that the marker holds."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in (IVY_XML, *sources(peer)))).hexdigest()


def ivy_command(peer: str, into: Path) -> list[str]:
    """Resolves the jars of a peer, and copies them to `into`."""
    settings = os.environ.get("STATELOOP_IVY_SETTINGS")
    mirror = ["-settings", settings] if settings else []
    pattern = f"{into}/[artifact]-[revision].[ext]"
    return [tool("java"), "-jar", ivy_jar(), *mirror, "-ivy", str(IVY_XML), "-confs", peer, "-retrieve", pattern]


def ivy_jar() -> str:
    """The path of the Ivy that pyspark ships."""
    (folder,) = getattr(find_spec("pyspark"), "submodule_search_locations", None) or (".",)
    return str(next(Path(folder).glob("jars/ivy-*.jar"), "jars/ivy.jar"))


def javac_command(compiler: str, peer: str, into: Path) -> list[str]:
    """Compiles a peer against its jars, which are in `into`."""
    files = [str(path) for path in sources(peer)]
    return [compiler, "-nowarn", "--release", RELEASE, "-cp", f"{into}/*", "-d", str(into / "classes"), *files]


def _run(peer: str, step: str, command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        log = folder / f"{peer}.log"
        log.write_text(done.stdout)
        raise BuildFailedError(peer, step, last_line(done.stdout), log)


def main() -> int:
    """Build both peers: return 0, or print an error with its remedy and return 1."""
    try:
        for peer in PEERS:
            build(peer, lambda what: print(what, flush=True))  # noqa: T201  # a command prints
    except BenchError as error:
        print(f"stateloop peers: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
