"""Finds the programs of the JDK, where Spark and the broker look too: in JAVA_HOME, else on the PATH."""

import os
import shutil
from pathlib import Path

from bench.peers.errors import ToolMissingError


def tool(name: str) -> str:
    """The path of `java` or `javac`. Raises ToolMissingError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise ToolMissingError(name, f"{home}/bin (of JAVA_HOME)" if home else "the PATH")
    return found
