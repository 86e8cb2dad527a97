"""Errors of building a peer, each with its remedy."""

from pathlib import Path

from bench.harness.errors import BenchError

WITHOUT = "or measure without the peers: make bench ARGS='--jobs stateloop bare'"


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
