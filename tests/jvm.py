"""The options of the JVMs that tests start: most of their short lives is compiling and loading."""

from __future__ import annotations

import os

VARIABLE = "SPARK_SUBMIT_OPTS"
COMPILE_FAST = "-XX:TieredStopAtLevel=1"
"""No second compiler: what it saves comes after minutes."""


def start_fast() -> None:
    """Let all Spark drivers that this process starts from now on compile fast."""
    os.environ[VARIABLE] = COMPILE_FAST
